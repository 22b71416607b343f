"""What all evaluators share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from embark.registries import EVALUATORS


@pytest.mark.parametrize("kind", EVALUATORS)
def test_scikit_learn_is_loaded_by_one_thread_at_a_time(kind: str) -> None:
    """Threads that import it at once may see it half loaded, and fail."""
    source = Path(EVALUATORS[kind].evaluate.__code__.co_filename).read_text(encoding="utf-8")
    needed = {*re.findall(r"from (sklearn\.\w+) import", source)} - {"sklearn.base", "sklearn.exceptions"}
    assert needed == {*EVALUATORS[kind].imports}
