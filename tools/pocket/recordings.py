"""Recorded outputs for the pocket ARK: captions, rewritten queries and re-ranker's scores, by rule and with errors.

    python tools/pocket/recordings.py

No model wrote them. One caption in ten, one rewritten query in five and one judgement in six is wrong, so that a stage
behaves like an imperfect model, and its gain can be counted by hand from these files. The same bytes every time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import embark
from embark.models.recorded import SHIPPED, input_of
from embark.readers.pocket_ark import Question, Questions, questions
from embark.tasks.pocket_ark import TASKS
from embark.types import Item, Media, Text

CAPTION_ERRORS, REWRITE_ERRORS, JUDGEMENT_ERRORS = 10, 5, 6  # one in so many


def main(folder: Path = SHIPPED) -> None:
    """Write the three files."""
    subtypes = {task.name: questions(task) for task in TASKS}
    rewrites = {key: text for name, subtype in subtypes.items() for key, text in rewritten(name, subtype).items()}
    folder.mkdir(exist_ok=True)
    write(folder / "captions.jsonl", captions(subtypes.values()))
    write(folder / "rewrites.jsonl", ({"input": json.loads(key), "output": text} for key, text in rewrites.items()))
    write(folder / "judgements.jsonl", judgements(subtypes, rewrites))


def captions(subtypes: Iterable[Questions]) -> Iterable[dict[str, Any]]:
    """A caption for every picture of galleries and queries."""
    words: dict[str, str] = {}
    for subtype in subtypes:
        for picture in subtype.pictures.values():
            words.setdefault(written(picture.item), picture.words)
    names = list(words.values())
    rng = Random("captions")
    for key, text in words.items():
        wrong = rng.randrange(CAPTION_ERRORS) == 0
        yield {"input": json.loads(key), "output": rng.choice(names) if wrong else text}


def rewritten(name: str, subtype: Questions) -> dict[str, str]:
    """The new text of every query: the words of its right picture, or of another one of the gallery."""
    rng = Random(f"rewrites of {name}")
    words = [picture.words for picture in subtype.pictures.values()]
    return {
        written(question.item): rng.choice(words) if rng.randrange(REWRITE_ERRORS) == 0 else question.answer
        for question in subtype.questions.values()
    }


def judgements(subtypes: dict[str, Questions], rewrites: dict[str, str]) -> Iterable[dict[str, Any]]:
    """Scores of three documents for every query, as it is and rewritten; all others have the default.

    A query is judged once: where a wrong text equals another query, it is judged as that one.
    """
    yield {"default": 0.0}
    judged: dict[str, list[str]] = {}  # the best documents, by query
    for name, subtype in subtypes.items():
        rng = Random(f"judgements of {name}")
        orders = {question: _order(rng, subtype, question) for question in subtype.questions.values()}
        for question, order in orders.items():
            judged.setdefault(written(question.item), order)
        for question, order in orders.items():
            judged.setdefault(written(after_rewriting(question, rewrites)), order)
    for query, order in judged.items():
        for score, document in zip((0.9, 0.6, 0.3), order, strict=True):
            yield {"query": json.loads(query), "document": json.loads(document), "score": score}


def _order(rng: Random, subtype: Questions, question: Question) -> list[str]:
    """The keys of the three best documents of a question: the right one is first, or second."""
    others = rng.sample([name for name in subtype.pictures if name != question.right], 2)
    order = [question.right, *others] if rng.randrange(JUDGEMENT_ERRORS) else [others[0], question.right, others[1]]
    return [written(subtype.pictures[document].item) for document in order]


def after_rewriting(question: Question, rewrites: dict[str, str]) -> Item:
    """The query with the new text in place of its own; pictures stay before it."""
    pictures = [part for part in question.item.parts if isinstance(part, Media)]
    return Item((*pictures, Text(rewrites[written(question.item)])))


def written(item: Item) -> str:
    """An item as an input, in JSON."""
    return json.dumps(input_of(item), ensure_ascii=False)


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """One JSON object a line; a line that another one equals is written once."""
    lines = dict.fromkeys(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{path.name}: {len(lines)} lines, {path.stat().st_size:,} bytes (embark {embark.__version__})")


if __name__ == "__main__":
    main()
