"""One test for a whole table of rows, where a test a row would add nothing but time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def every(rows: Iterable[Any]) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """Decorates a check of one row: the test runs it on every row, and names all rows that fail with their reasons."""
    rows = list(rows)

    def decorate(check: Callable[[Any], None]) -> Callable[[], None]:
        def test() -> None:
            assert rows
            failures = {}
            for row in rows:
                try:
                    check(row)
                except Exception as error:
                    failures[getattr(row, "name", row)] = f"{type(error).__name__}: {error}"
            if failures:
                reasons = "\n\n".join(f"{name}: {reason}" for name, reason in failures.items())
                pytest.fail(f"{len(failures)} of {len(rows)} rows:\n{reasons}", pytrace=False)

        test.__name__ = check.__name__
        test.__doc__ = check.__doc__
        return test

    return decorate
