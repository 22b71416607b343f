"""What declarations of several seams are checked for."""

from __future__ import annotations


def are_texts(values: object) -> bool:
    """Whether these are a tuple of texts that are not empty."""
    return isinstance(values, tuple) and all(isinstance(value, str) and value for value in values)
