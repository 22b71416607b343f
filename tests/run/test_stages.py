"""Stages around a retriever, end to end: captions, rewritten queries, re-ranking; what is kept and under which name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import embark
from cases import slow
from embark.boards.comparable_results import own_results, published_results
from embark.boards.leaderboards import rank_models
from embark.cli import app
from embark.cli.options import StageOptions
from embark.models.encoder import Generator, Reranker
from embark.models.functions import generator, reranker
from embark.protocol import vector_space
from embark.results import Results
from embark.run import evaluate
from embark.run.stages import Stages, prompt_hash, prompts
from embark.settings import load_settings
from embark.store import Store
from embark.tasks import TASKS
from embark.types import EmbarkError, Item, Task, Text
from folders import two_tasks

Pictures = Callable[..., Path]
NAMES = {(255, 0, 0): "red", (0, 255, 0): "green", (0, 0, 255): "blue"}


class Counted:
    """A function, and how many inputs it was given since it was last asked."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.inputs, self.asked = function, 0, list[Any]()

    def __call__(self, values: list[Any], *more: Any) -> Any:
        self.inputs += len(values)
        self.asked += more
        return self.function(values, *more)

    def since(self) -> int:
        count, self.inputs = self.inputs, 0
        return count


def color(image: Image.Image) -> str:
    pixel = image.convert("RGB").getpixel((0, 0))
    return NAMES.get(pixel, "") if isinstance(pixel, tuple) and len(pixel) == 3 else ""


def describe(values: list[Any], prompt: str) -> list[str]:
    return [f"a {color(value)} page" if isinstance(value, Image.Image) else "a page" for value in values]


def overlap(pairs: list[tuple[Any, Any]]) -> list[float]:
    """Words in common; a picture has the name of its colour."""
    said = [[set((color(half) if isinstance(half, Image.Image) else str(half)).split()) for half in p] for p in pairs]
    return [float(len(query & document)) for query, document in said]


@pytest.fixture
def retrieval(pictures: Pictures) -> Task:
    """Three captions to three pictures."""
    return two_tasks(pictures())[0]


@pytest.fixture
def captioner() -> Generator:
    return generator(Counted(describe), name="test/captioner", revision="1")


@pytest.fixture
def judge() -> Reranker:
    return reranker(Counted(overlap), modalities=("text", "image"), name="test/judge", revision="1")


@pytest.fixture
def blind() -> embark.Encoder:
    """A model that sees and reads nothing but lengths: every ranking is a tie."""
    return embark.encoder(
        text=lambda texts: np.ones((len(texts), 2)), image=lambda images: np.ones((len(images), 2)), name="test/blind"
    )


def counter(model: Any) -> Counted:
    found: Counted = model.function
    found.since()
    return found


def test_captions_let_a_reader_do_tasks_of_pictures(
    reader_of_colours: embark.Encoder, retrieval: Task, captioner: Generator
) -> None:
    asked = counter(captioner)
    assert evaluate(reader_of_colours, retrieval).skipped[0].why == "the model takes no image"
    run = evaluate(reader_of_colours, retrieval, stages=Stages(caption=captioner))
    [result] = run.results
    assert result.score == 1.0
    assert (result.model, result.protocol) == ("test/reader + test/captioner", "caption")
    assert asked.since() == 3  # the pictures, and not the captions
    assert asked.asked[-1] == prompts()["caption"]
    assert Results(load_settings().results).load(result.model, "1", retrieval.name, "caption") == result
    other = embark.encoder(text=lambda texts: np.ones((len(texts), 2)), name="test/other")
    evaluate(other, retrieval, stages=Stages(caption=captioner))
    assert asked.since() == 0  # what was written is kept, whoever reads it


def test_another_prompt_is_another_protocol(
    reader_of_colours: embark.Encoder, retrieval: Task, captioner: Generator
) -> None:
    asked, made = counter(captioner), []
    for prompt in ("Say it.", "Say it again."):
        stages = Stages(caption=captioner, prompts={"caption": prompt})
        made.append(evaluate(reader_of_colours, retrieval, stages=stages).results[0].records[0].fingerprint)
        assert (asked.since(), asked.asked[-1]) == (3, prompt)
    assert len(set(made)) == 2


def test_queries_are_rewritten_and_documents_are_not(tiny: embark.Encoder, retrieval: Task) -> None:
    swap = {"a red page": "green", "a green page": "blue", "a blue page": "red"}
    writer = generator(lambda values, _: [swap.get(v, "?") for v in values], modalities=("text",), name="test/writer")
    plain, wrong = evaluate(tiny, retrieval), evaluate(tiny, retrieval, stages=Stages(rewrite=writer))
    assert (plain.results[0].score, wrong.results[0].protocol) == (1.0, "rewrite")
    tops = wrong.results[0].outcomes()["top"].to_pylist()
    assert tops == ["green.png", "blue.png", "red.png"]
    assert wrong.embedded == 3  # the new queries


def test_a_rewriter_that_sees_keeps_the_pictures_of_a_query() -> None:
    from embark.run.stages import _rewritten
    from tiny import item, picture

    image, _ = item(picture(1), "make it dark").parts
    query = Item((image, Text("make it dark"), Text("and blue")))
    assert _rewritten(query, {query: "a dark one"}, query) == Item((image, Text("a dark one")))
    assert _rewritten(Item((image,)), {query: "x", Item((image,)): "a dog"}, Item((image,))) == Item(
        (image, Text("a dog"))
    )
    assert _rewritten(Item((image,)), {}, Item(())) == Item((image,))  # nothing that the rewriter could read


def test_a_reranker_settles_what_the_retriever_leaves_open(
    blind: embark.Encoder, retrieval: Task, judge: Reranker
) -> None:
    asked = counter(judge)
    plain = evaluate(blind, retrieval).results[0]
    run = evaluate(blind, retrieval, stages=Stages(rerank=judge))
    [result] = run.results
    assert plain.records[0].metrics["recall_at_1"] == pytest.approx(1 / 3)
    assert result.records[0].metrics["recall_at_1"] == 1.0
    assert (result.model, result.protocol) == ("test/blind + test/judge", "rerank-50")
    assert "blind + judge" in run.table().columns
    assert run.embedded == 0  # vectors are those of the plain run
    assert asked.since() == 9
    evaluate(blind, retrieval, stages=Stages(rerank=judge), rescore=True)
    assert evaluate(blind, retrieval, stages=Stages(rerank=judge)).computed == 0
    assert asked.since() == 0
    space = Store(load_settings().store).space(vector_space(judge.card))
    assert (len(space), str(space.head)) == (9, "float32 vectors of 1 dimensions")


def test_only_the_best_are_scored_again(blind: embark.Encoder, retrieval: Task, judge: Reranker) -> None:
    asked = counter(judge)
    run = evaluate(blind, retrieval, stages=Stages(rerank=judge, depth=1))
    assert asked.since() == 3
    assert run.results[0].records[0].metrics["recall_at_1"] == pytest.approx(1 / 3)
    assert run.results[0].protocol == "rerank-1"
    with pytest.raises(EmbarkError, match="at least one document"):
        Stages(rerank=judge, depth=0)


def test_all_stages_together(retrieval: Task, captioner: Generator, judge: Reranker, blind: embark.Encoder) -> None:
    writer = generator(lambda values, _: [f"{v} now" for v in values], modalities=("text",), name="test/writer")
    run = evaluate(blind, retrieval, stages=Stages(rewrite=writer, caption=captioner, rerank=judge, depth=3))
    [result] = run.results
    assert (result.score, result.protocol) == (1.0, "rewrite+caption+rerank-3")
    assert result.model == "test/blind + test/writer + test/captioner + test/judge"


def test_prompts_are_sent_as_given_and_results_carry_their_hash(
    tiny: embark.Encoder, pictures: Pictures, tmp_path: Path
) -> None:
    heard = Counted(describe)
    captioner = generator(heard, modalities=("image",), name="test/captioner", revision="1")
    file = tmp_path / "caption.txt"
    file.write_text("Say {exactly} what\nyou see.\n", encoding="utf-8")
    retrieval = two_tasks(pictures())[0]
    runs = [
        evaluate(tiny, retrieval, stages=Stages(caption=captioner, prompts=own), rescore=True).results[0].records[0]
        for own in ({}, {"caption": file}, {"caption": "Say {exactly} what\nyou see."})
    ]
    assert {"Say {exactly} what\nyou see.", prompts()["caption"]} <= set(heard.asked)
    hashes = [record.loaded["stages"]["prompts"]["caption"] for record in runs]
    assert hashes == [prompt_hash(prompts()["caption"]), *[prompt_hash("Say {exactly} what\nyou see.")] * 2]
    assert runs[1].fingerprint == runs[2].fingerprint != runs[0].fingerprint


def test_prompts_that_cannot_be_sent_are_errors(tmp_path: Path) -> None:
    with pytest.raises(EmbarkError, match="no stage with a prompt named 'captoin'"):
        Stages(caption="a/b", prompts={"captoin": "Describe it."})
    with pytest.raises(EmbarkError, match=r"a prompt for 'rewrite' but no model: name one \(--rewrite\)"):
        Stages(caption="a/b", prompts={"rewrite": "Write it anew."})
    with pytest.raises(EmbarkError, match="cannot be read from"):
        Stages(caption="a/b", prompts={"caption": tmp_path / "none.txt"}).own_prompts()
    with pytest.raises(EmbarkError, match="The prompt for 'caption' is empty"):
        Stages(caption="a/b", prompts={"caption": " \n"}).own_prompts()
    file = tmp_path / "p.txt"
    named = StageOptions(caption="a/b", prompt=[f"caption={file}"])
    assert named.stages() == Stages(caption="a/b", prompts={"caption": file})
    result = CliRunner().invoke(app, ["run", "-m", "embark/random", "--caption", "a/b", "--prompt", "caption"])
    assert result.exit_code == 2


def test_captions_of_ark_stand_beside_the_published_ones(tiny: embark.Encoder, pictures: Pictures) -> None:
    """Own runs carry the published table's protocol, and a footnote says whose prompts they had."""
    captioner = generator(describe, modalities=("image",), name="test/captioner", revision="1")
    ark = TASKS["ARK/Biology"]
    like_ark = replace(two_tasks(pictures())[0], family="ARK", name="ARK/Biology", metric="recall_at_1")
    for own, whose in (({}, "embark"), ({"caption": "Describe it."}, "the user")):
        stages = Stages(caption=captioner, prompts=own)
        [result] = evaluate(tiny, like_ark, stages=stages).results
        assert result.protocol == "captions"
        note = f"the prompt for 'caption' is {whose}'s"
        assert any(warning.startswith(note) for warning in result.warnings)
    row = replace(like_ark, protocol="captions")
    current, stale = own_results([row], [result])
    assert (current, stale) == ([result], {})
    printed, _ = published_results([replace(ark, protocol="captions")])
    assert {entry.protocol for entry in printed} == {"captions"}
    board = rank_models([row], [*printed, *current])
    assert {"BAAI/bge-m3", f"{tiny.card.name} + test/captioner"} <= {entry.model.model for entry in board.entries}
    assert any("not the published one" in note for note in board.tasks_table().note_lines())


def test_a_reranker_scores_pairs_of_images_and_texts(blind: embark.Encoder) -> None:
    """A cross score is a scorer of pairs: it stands in place of the vectors' similarity."""
    knows = reranker(
        Counted(lambda pairs: [len(str(text)) if isinstance(text, str) else 0 for text, _ in pairs]),
        modalities=("text", "image"),
        name="test/long",
    )
    plain = evaluate(blind, "PocketHairPairs").results[0]
    run = evaluate(blind, "PocketHairPairs", stages=Stages(rerank=knows))
    [result] = run.results
    assert run.skipped == []
    assert result.model == "test/blind + test/long"
    assert result.records[0].counts["samples"] == plain.records[0].counts["samples"]
    assert result.records[0].metrics["image_acc"] == 0  # a text has one score, whichever image it stands with


def test_tasks_that_stages_cannot_help_are_said(tiny: embark.Encoder, pictures: Pictures, captioner: Generator) -> None:
    _, zeroshot = two_tasks(pictures())
    judge = reranker(overlap, name="test/reads")
    found = {
        "no rankings to re-rank": Stages(rerank=judge),
        "nothing to caption": Stages(caption=captioner),
        "test/reads takes no image": Stages(rerank=judge),
    }
    tasks = [zeroshot, TASKS["PocketNameSTS"], two_tasks(pictures("Others"))[0]]
    for (why, stages), task in zip(found.items(), tasks, strict=True):
        [skipped] = evaluate(tiny, task, stages=stages).skipped
        assert skipped.kind == "not applicable"
        assert why in skipped.why


def test_what_does_not_decode_follows_the_rows_policy(
    reader_of_colours: embark.Encoder, pictures: Pictures, captioner: Generator
) -> None:
    folder = pictures()
    (folder / "blue.png").write_bytes((folder / "blue.png").read_bytes()[:40])
    task = two_tasks(folder)[0]
    with pytest.raises(EmbarkError, match="1 items cannot be captioned"):
        evaluate(reader_of_colours, task, stages=Stages(caption=captioner))
    lenient = replace(task, unreadable="skip")
    [result] = evaluate(reader_of_colours, lenient, stages=Stages(caption=captioner)).results
    assert "left out 1 items that do not decode" in result.warnings


@pytest.mark.parametrize(
    "task", ["PocketFlagCapital", "PocketClockArithmetic", "PocketRenderedSTS", *slow("PocketRobustness")]
)
def test_captions_serve_every_kind_of_task(task: str) -> None:
    def mean(images: list[Image.Image], _: str) -> list[str]:
        return [str(np.asarray(image.convert("RGB")).mean()) for image in images]

    writer = generator(mean, modalities=("image",), name="test/mean")
    run = evaluate("embark/handmade", task, stages=Stages(caption=writer), show_progress=False)
    assert not run.skipped
    assert run.results[0].protocol == "caption"


def test_the_command_line_names_stages() -> None:
    assert StageOptions().stages() is None
    assert StageOptions(caption="a/b", rerank="c/d:20").stages() == Stages(caption="a/b", rerank="c/d", depth=20)
    both = StageOptions(rewrite="w/r", rerank="cross-encoder:/tmp/x")
    assert both.stages() == Stages(rewrite="w/r", rerank="cross-encoder:/tmp/x")
    result = CliRunner().invoke(app, ["run", "-m", "embark/random", "-t", "PocketNameToImage", "--rerank", "no/such"])
    assert isinstance(result.exception, EmbarkError)
    assert "no/such" in str(result.exception)
    result = CliRunner().invoke(
        app, ["run", "-m", "embark/random", "-t", "PocketNameToImage", "--rerank", "embark/pocket"]
    )
    assert "is an embedding model; what is needed here is a re-ranker" in str(result.exception)
