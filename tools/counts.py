"""Counts of models, tasks and dependencies in the README and the documentation, written from the registries.

    python tools/counts.py    writes them in place

`SENTENCES` has each sentence with the names of its counts in braces; a line may break wherever it has a space.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from embark.models import MODELS
from embark.tasks import BENCHMARKS, TASKS

ROOT = Path(__file__).parents[1]
CATALOGUE = (
    "{tasks} tasks: MIEB ({MIEB(Multilingual)}, with its lite, English and image-only boards), UniBench ({UniBench}), "
    "MMEB-V3 ({MMEB-V3}, and OmniSET's {OmniSET} directions), ARK ({ARK}; its relevance labels are not published), "
    "Pocket ({Pocket}, and {ARK(emoji)} of a pocket ARK), and {variants} variants."
)
SENTENCES = {  # file → its sentences with counts
    "README.md": ("{models} models are known by name",),
    "docs/quickstart.md": ("{models} models are known by name",),
    "docs/models.md": ("embark knows {models} models by name",),
    "docs/catalogue.md": (
        CATALOGUE,
        "{pinned} rows pin a commit of their data, Pocket's bring it along, and {branches} follow a branch.",
        "{pinned of MMEB-V3} of {MMEB-V3} pinned",
        "offline in about a minute: {Pocket} tasks over emoji",
        "MIEB(Multilingual): {MIEB(Multilingual)} tasks, by the rows' own counts",
    ),
    "docs/faq.md": (
        "{pinned} rows pin a commit; {branches} follow a branch",
        "{silent} of {models} cards state nothing",
        "The core has {dependencies} dependencies",
    ),
    "docs/results.md": ("{silent} of the {models} cards state nothing",),
    "docs/mieb.md": ("{MIEB(Multilingual)} tasks over pictures and texts",),
    "docs/unibench.md": (
        "{UniBench} benchmarks of vision–language models",
        "{branches of UniBench} of {UniBench} rows follow the branch `main`",
    ),
    "docs/mmeb.md": (
        "{pinned of MMEB-V3} rows are pinned to the commit that a download script of the authors names; "
        "{branches of MMEB-V3} follow a branch",
    ),
    "docs/ark.md": ("of professional knowledge in {ARK} subtypes",),
}
NAMED = ("MIEB(Multilingual)", "UniBench", "MMEB-V3", "OmniSET", "ARK", "Pocket", "ARK(emoji)")  # others are variants


def counts() -> dict[str, int]:
    """Every count by its name in the sentences."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    revisions = {name: task.source.revision for name, task in TASKS.items()}
    pinned = {name for name, revision in revisions.items() if len(revision) == 40}
    branches = {name for name, revision in revisions.items() if revision == "main"}
    members = {name: set(benchmark.tasks) for name, benchmark in BENCHMARKS.items()}
    return {
        **{name: len(names) for name, names in members.items()},
        **{f"pinned of {name}": len(pinned & names) for name, names in members.items()},
        **{f"branches of {name}": len(branches & names) for name, names in members.items()},
        "tasks": len(TASKS),
        "variants": len(set(TASKS).difference(*(members[name] for name in NAMED))),
        "pinned": len(pinned),
        "branches": len(branches),
        "models": len(MODELS),
        "silent": sum(card.trained_on is None for card in MODELS.values()),
        "dependencies": len(project["dependencies"]),
    }


def counted(text: str, sentence: str, known: Mapping[str, int]) -> str:
    """The text with the counts of a sentence as they are; an error if the text does not have the sentence."""
    names = re.findall(r"\{(.+?)\}", sentence)
    words = [re.escape(part).replace(r"\ ", r"\s+") for part in re.split(r"\{.+?\}", sentence)]
    pattern = re.compile("(" + r")[\d,]+(".join(words) + ")")
    if not pattern.search(text):
        raise ValueError(f"The documentation lacks the sentence '{sentence}'")
    numbers = [f"{known[name]:,}" for name in names]
    return pattern.sub(lambda match: "".join(map("".join, zip(match.groups(), [*numbers, ""], strict=True))), text)


def written() -> dict[Path, str]:
    """Every file with counts, as it should be."""
    known = counts()
    files = {}
    for name, sentences in SENTENCES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for sentence in sentences:
            text = counted(text, sentence, known)
        files[ROOT / name] = text
    return files


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
