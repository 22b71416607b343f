"""The diagnosis of a model on OmniSET."""

from embark.studies.omni.diagnosis import OmniDiagnosis, diagnose_omni

__all__ = ["OmniDiagnosis", "diagnose_omni"]
