"""Generators and re-rankers of recorded outputs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import embark
from embark.items import media, mixed, text
from embark.models.recorded import SHIPPED, input_key, input_of, item_key
from embark.protocol import vector_space
from embark.types import Content, EmbarkError, Item, Rendered, Text

ITEM = mixed(media("image", b"a file"), text("two hours later"))
FILE = {"sha256": hashlib.sha256(b"a file").hexdigest()}


def lines(path: Path, *rows: object) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def seen(rendered: Rendered) -> list[Content]:
    return [Content("text", part.text) for part in rendered.parts if isinstance(part, Text)]


def written(model: embark.models.Generator, *items: Item) -> list[str]:
    return model.generate([model.prepare(seen(model.render(item, "Any prompt.")), "") for item in items])


def test_texts_are_found_by_text_by_file_and_by_both(tmp_path: Path) -> None:
    rows = [
        {"input": "a dog", "output": "Hund"},
        {"input": FILE, "output": "a clock"},
        {"input": [FILE, "two hours later"], "output": "five o'clock"},
    ]
    model = embark.models.get_generator(f"recorded:{lines(tmp_path / 'texts.jsonl', *rows)}")
    assert written(model, text("a dog"), media("image", b"a file"), ITEM) == ["Hund", "a clock", "five o'clock"]
    assert input_of(ITEM) == rows[2]["input"]
    assert item_key(ITEM) == input_key(rows[2]["input"])
    film = media("video", b"a frame", b"another")
    assert item_key(film) == input_key(input_of(film))


def test_what_is_missing_is_an_error_that_names_it(tmp_path: Path) -> None:
    model = embark.models.get_generator(f"recorded:{lines(tmp_path / 'texts.jsonl', {'input': 'a', 'output': 'b'})}")
    with pytest.raises(EmbarkError, match=r'texts.jsonl has no output for 1 of 2 inputs, such as "a cat"'):
        written(model, text("a"), text("a cat"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Line 1 of .* is not JSON"),
        ('{"input": "a"}', 'Line 1 of .* has no "input" with a text'),
        ('{"input": {"md5": "1"}, "output": "b"}', "is no input: write a text or"),
        ('{"input": "a", "output": "b"}\n{"input": "a", "output": "c"}', 'Line 2 of .* has another output for "a"'),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text(content)
    with pytest.raises(EmbarkError, match=message):
        embark.models.get_generator(f"recorded:{path}")
    with pytest.raises(EmbarkError, match="no file"):
        embark.models.get_generator(f"recorded:{tmp_path / 'other.jsonl'}")


def test_scores_have_a_default_for_documents_of_known_queries_alone(tmp_path: Path) -> None:
    pair = {"query": "a", "document": "x", "score": 0.5}
    strict = embark.models.get_reranker(f"recorded-scores:{lines(tmp_path / 'strict.jsonl', pair)}")
    loose = embark.models.get_reranker(f"recorded-scores:{lines(tmp_path / 'loose.jsonl', {'default': -1}, pair)}")

    def score(model: embark.models.Reranker, query: str, document: str) -> float:
        rendered = model.render(text(query), text(document), None)
        return float(model.score([model.prepare(seen(rendered), rendered.mode)])[0])

    assert (score(strict, "a", "x"), score(loose, "a", "x"), score(loose, "a", "y")) == (0.5, 0.5, -1)
    with pytest.raises(EmbarkError, match='no score for "a" with "y"'):
        score(strict, "a", "y")
    with pytest.raises(EmbarkError, match='no score for the query "b"'):
        score(loose, "b", "x")
    rendered = loose.render(text("a"), media("image", b"a file"), None)  # the file knows texts alone
    with pytest.raises(EmbarkError, match='no score for "a" with a file'):
        loose.score([loose.prepare(seen(rendered), rendered.mode)])


def test_another_content_is_another_model_wherever_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    row = {"input": "a", "output": "b"}
    here, there = (lines(tmp_path / path, row) for path in ("t.jsonl", "there/t.jsonl"))
    other = lines(tmp_path / "other.jsonl", {**row, "output": "c"})
    spaces = [vector_space(embark.models.get_generator(f"recorded:{path}").card) for path in (here, there, other)]
    assert spaces[0] == spaces[1] != spaces[2]


def test_those_of_the_package_are_small() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 500_000
    assert embark.models.get_generator("embark/pocket-rewrites").card.revision.startswith("sha256-")


def test_a_picture_without_a_line_is_an_error_of_its_task(tmp_path: Path) -> None:
    path = lines(tmp_path / "captions.jsonl", {"input": FILE, "output": "one"})
    with pytest.raises(EmbarkError, match="has no output for"):
        embark.evaluate(
            "embark/random", "PocketARK/Clocks", stages=embark.Stages(caption=f"recorded:{path}"), show_progress=False
        )
