"""Tests of items read tables as tests of readers do."""

from __future__ import annotations

from readers.conftest import read

__all__ = ["read"]
