"""Tests of faults read tables as tests of readers do."""

from __future__ import annotations

from data.conftest import read

__all__ = ["read"]
