"""The diagnosis of a model on ARK."""

from embark.studies.ark.diagnosis import ArkDiagnosis, diagnose_ark

__all__ = ["ArkDiagnosis", "diagnose_ark"]
