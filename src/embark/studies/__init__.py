"""Studies: one analysis per module; scores or vectors in, a table and a figure out."""

from embark.studies.registry import STUDIES

__all__ = ["STUDIES"]
