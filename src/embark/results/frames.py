"""Data frames for those who have pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embark.types import EmbarkError


def data_frame(rows: Sequence[Any], columns: Sequence[str] | None = None) -> Any:
    """The rows as a pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise EmbarkError("Data frames need pandas: pip install pandas. The same values are in `.rows()`.") from error
    return pandas.DataFrame(rows, columns=columns)
