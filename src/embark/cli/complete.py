"""What a shell may complete as the value of an option: names of models, tasks and benchmarks, and fixed words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator

from embark.types import EmbarkError

Complete = Callable[[str], list[str]]


def choices(*words: str) -> Complete:
    """What completes one of some words."""

    def complete(incomplete: str) -> list[str]:
        return _beginning(incomplete, lambda: words)

    return complete


def model_names(incomplete: str) -> list[str]:
    """Names of models that begin so: of the catalogue, of embark.toml, and of results."""

    def names() -> Iterator[str]:
        from embark.models import known_models
        from embark.results import Results
        from embark.settings import load_settings

        yield from known_models()
        yield from (card.name for card in Results(load_settings().results).cards())

    return _beginning(incomplete, names)


def task_names(incomplete: str) -> list[str]:
    """Names of tasks that begin so, also the last of several with commas: built in, of embark.toml, and own ones."""

    def names() -> Iterable[str]:
        from embark.results import Results
        from embark.results.task_rows import known_tasks
        from embark.settings import load_settings

        settings = load_settings()
        return known_tasks(Results(settings.results).all(), settings.home)

    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _beginning(last, names)]


def benchmark_names(incomplete: str) -> list[str]:
    """Names of benchmarks that begin so."""

    def names() -> Iterable[str]:
        from embark.tasks import known_benchmarks

        return known_benchmarks()

    return _beginning(incomplete, names)


def everything(incomplete: str) -> list[str]:
    """Names of tasks, benchmarks and models that begin so."""
    return [*task_names(incomplete), *benchmark_names(incomplete), *model_names(incomplete)]


def _beginning(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    """The names that begin so, each once; none where the settings or files of this folder have an error."""
    try:
        return list(dict.fromkeys(name for name in names() if name.startswith(incomplete)))
    except EmbarkError:
        return []


def quote_for_bash(lines: str) -> str:
    """Completions as bash takes them in: what is no plain letter is quoted, unless the word begins with a quote."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    place = int(os.environ.get("COMP_CWORD", "0"))
    if place < len(words) and words[place][:1] in ("'", '"'):
        return lines
    return re.sub(r"([^\w@%+=:,./\n-])", r"\\\1", lines)
