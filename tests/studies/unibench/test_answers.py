"""Generators as classifiers: answers are matched to classes, and kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
from embark.models import LOADERS, Loading
from embark.models.loading import build
from embark.models.recorded import input_of
from embark.run.workbench import Workbench
from embark.settings import load_settings
from embark.studies.unibench.answers import NO_CLASS, match_answers
from embark.tasks import TASKS
from embark.types import Classes
from tiny import picture
from tiny_mllm import PIXELS, built

TASK, GROUPS = "PocketFlagZeroShot", "PocketGroupZeroShot"


@pytest.mark.parametrize(
    ("answer", "matched"),
    [
        ("Tiger shark.", 1),
        ("It is a TIGER", 0),
        ("a tiger shark, or a tiger", 1),
        ("tigers", NO_CLASS),
        ("", NO_CLASS),
        ("ice-cream cone", 2),
        ("The answer: ice cream cone!", 2),
    ],
)
def test_an_answer_is_the_class_that_it_names(answer: str, matched: int) -> None:
    assert match_answers([answer], ["tiger", "tiger shark", "ice cream cone"]).tolist() == [matched]


def test_a_generator_that_knows_one_class_is_right_on_it(tmp_path: Path) -> None:
    calls = []

    def write(items: list[Any], prompt: str) -> list[str]:
        calls.append(len(items))
        return ["It is the flag: Japan." if "Japan" in prompt else "no idea" for _ in items]

    model = embark.generator(write, modalities=("text", "image"), name="test/one-answer", revision="1")
    before = len(calls)
    study = embark.analyze.answers(model, TASK, show_progress=False)
    [part] = study.parts
    japan = [number for number, hit in enumerate(part.right) if hit]
    assert len(japan) == 1
    assert part.unmatched == 0
    assert len(part.texts) == len(part.right) > 100
    assert part.score.low <= 1 / len(part.right) <= part.score.high
    asked = len(calls)
    assert asked > before
    again = embark.analyze.answers(model, TASK, show_progress=False)
    assert len(calls) == asked  # what was written is stored
    np.testing.assert_array_equal(again.parts[0].predicted, part.predicted)
    study.plot(tmp_path / "answers.svg")
    assert "accuracy" in str(study)


def test_answers_need_classes_to_choose_from() -> None:
    model = embark.generator(lambda items, prompt: ["a"] * len(items), name="test/a", revision="1")
    with pytest.raises(embark.EmbarkError, match=r"Answers need zero-shot tasks; chosen were PocketNameSTS \(sts\)"):
        embark.analyze.answers(model, "PocketNameSTS")


# ── by likelihood ────────────────────────────────────────────────────────────────────────────────────────────────────


def recorded(path: Path, likelihoods: Callable[[str, str], Any]) -> str:
    """A recorded generator of groups of emoji: the likelihood of each name, for the item of each right name."""
    data = Workbench(load_settings(), show_progress=False).read(TASKS[GROUPS], *TASKS[GROUPS].parts[0])
    truth = data.truth
    assert isinstance(truth, Classes)
    lines = [
        {"input": input_of(item), "likelihoods": {name: likelihoods(name, truth.names[label]) for name in truth.names}}
        for item, label in zip(data.sides["item"].items, truth.label.tolist(), strict=True)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return f"recorded:{path}"


def test_the_likeliest_name_is_the_class(tmp_path: Path) -> None:
    perfect = recorded(tmp_path / "perfect.jsonl", lambda name, right: [-1.0 if name == right else -2.0, 4])
    for way in ("likelihood", "mean-likelihood"):
        study = embark.analyze.answers(perfect, GROUPS, by=way, show_progress=False)
        [part] = study.parts
        assert part.score.value == 1
        assert part.unmatched == 0
    assert "by the mean log-probability of its tokens" in str(study)
    study.plot(tmp_path / "likelihoods.svg")
    wrong = recorded(tmp_path / "wrong.jsonl", lambda name, right: -2.0 if name == right else -1.0)
    assert embark.analyze.answers(wrong, GROUPS, by="likelihood", show_progress=False).parts[0].score.value == 0
    with pytest.raises(embark.EmbarkError, match="does not tell how many tokens"):
        embark.analyze.answers(wrong, GROUPS, by="mean-likelihood", show_progress=False)


def test_the_mean_of_tokens_undoes_the_length_of_a_name(tmp_path: Path) -> None:
    """Every token costs the same, and those of the right name a little less: by sums, the shortest name always wins."""
    model = recorded(
        tmp_path / "long.jsonl", lambda name, right: [-len(name) * (0.9 if name == right else 1.0), len(name)]
    )
    by_sum, by_mean = (
        embark.analyze.answers(model, GROUPS, by=way, show_progress=False).parts[0]
        for way in ("likelihood", "mean-likelihood")
    )
    assert by_mean.score.value == 1
    assert by_sum.score.value < 0.3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"input": "a", "likelihoods": {"cat": 0.5}}', "0.5 is no log-probability"),
        ('{"input": "a", "likelihoods": {"cat": "-1"}}', "is no log-probability"),
        ('{"input": "a", "likelihoods": [-1]}', 'no "input" with a text as "output" or "likelihoods"'),
        ('{"input": "a", "likelihoods": {"cat": -1}}\n{"input": "a", "likelihoods": {"cat": -2}}', "another output"),
    ],
)
def test_damaged_likelihoods_are_refused(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(line)
    with pytest.raises(embark.EmbarkError, match=message):
        embark.get_generator(f"recorded:{path}")


def test_what_a_file_lacks_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text('{"input": "a", "likelihoods": {"cat": -1}}')
    with pytest.raises(embark.EmbarkError, match=r"has no likelihood of 262 of 262 texts for a file, such as 'flag: "):
        embark.analyze.answers(f"recorded:{path}", TASK, by="likelihood", show_progress=False)


def test_a_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(embark.EmbarkError, match=r"does not tell how likely a given text is .*--by answer"):
        embark.analyze.answers("openai-chat:gpt", TASK, by="likelihood", show_progress=False)
    with pytest.raises(embark.EmbarkError, match="way to choose a class"):
        embark.analyze.answers("openai-chat:gpt", TASK, by="guess")


@pytest.mark.slow
def test_a_real_checkpoint_chooses_the_name_that_it_would_rather_write(tmp_path: Path) -> None:
    """A tiny random chat model with vision: its choice is that of its own likelihoods, which are stored."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from embark.models.generate import ChatGenerator

    folder = built("qwen2_vl", tmp_path / "model")
    template = "<|im_start|>user\n{body}<|im_end|>\n<|im_start|>assistant\n"
    card = embark.ModelCard(
        "tiny/chat", "1", "chat", (), source=str(folder), options={**PIXELS, "template": template}, kind="generator"
    )
    model = build(LOADERS["chat"], card, Loading(device="cpu"))
    assert isinstance(model, ChatGenerator)
    model.chat.model.generation_config.eos_token_id = [*model.chat.tokens("<|im_end|>"), 151_643]  # as Qwen's come
    pages = [{"image": picture(number), "label": name} for number, name in enumerate(["red", "green", "blue"] * 2)]
    task = embark.task(pages, "zeroshot", name="Pages", templates=["{}"])
    study = embark.analyze.answers(model, task, by="likelihood", show_progress=False)
    [part] = study.parts
    assert len(part.right) == 6
    assert set(part.texts) <= {"red", "green", "blue"}
    before = study.parts[0].predicted
    model.chat = None  # type: ignore[assignment]  # what is stored needs no model
    np.testing.assert_array_equal(
        embark.analyze.answers(model, task, by="likelihood", show_progress=False).parts[0].predicted, before
    )
