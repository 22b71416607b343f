"""Scores during training: of the module as it is, which is left as it was, and handed to trainers and loggers."""

from __future__ import annotations

import csv
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import embark
from embark.types import EmbarkError
from tiny import wordpiece

torch = pytest.importorskip("torch")
TASKS = ["PocketHairPairs", "PocketFlagZeroShot", "PocketClockReading"]
EXAMPLE = Path(__file__).parents[2] / "examples" / "training.py"


class Towers(torch.nn.Module):  # type: ignore[misc]
    """Letters and mean colors to vectors, with all that behaves otherwise in training."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.text = torch.nn.Linear(64, 16)
        self.image = torch.nn.Linear(192, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, kind: str, rows: Any) -> Any:
        return self.drop(self.norm(getattr(self, kind)(rows)))


def letters(texts: Sequence[str]) -> Any:
    rows = [np.bincount(np.frombuffer(text.encode(), np.uint8) % 64, minlength=64) for text in texts]
    return torch.tensor(np.stack(rows), dtype=torch.float32)


def colors(images: Sequence[Image.Image]) -> Any:
    rows = [np.asarray(image.convert("RGB").resize((8, 8)), np.float32).ravel() / 255 for image in images]
    return torch.tensor(np.stack(rows))


gradients: list[bool] = []  # whether they were computed, in each call


def encoder(module: Towers) -> embark.Encoder:
    def text(texts: list[str]) -> Any:
        _ = torch.rand(()), random.random(), np.random.random()  # noqa: NPY002 - as careless code does
        gradients.append(torch.is_grad_enabled())
        return module("text", letters(texts))

    def image(images: list[Image.Image]) -> Any:
        return module("image", colors(images))

    return embark.encoder(text=text, image=image, name="me/towers", revision="live")


def monitor(tasks: Any = "PocketHairPairs", **options: Any) -> embark.Monitor:
    return embark.Monitor(tasks, encoder=encoder, **options)


def train(module: Towers, steps: int, watch: Callable[[Towers, int], object] = lambda module, step: None) -> Towers:
    """A few steps whose loss depends on the random state, through dropout and the batch."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(steps):
        watch(module, step)
        rows = torch.rand(8, 64) + random.random() + np.random.random()  # noqa: NPY002
        loss = module("text", rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return module


def test_scores_and_intervals_are_those_of_an_evaluation(elsewhere: Path) -> None:
    watch = monitor(TASKS)
    measured = watch.score(Towers())
    assert not (elsewhere / "home").exists()
    assert not (elsewhere / "results").exists()
    run = embark.evaluate(encoder(Towers().eval()), TASKS, show_progress=False)
    points = {point.task: (point.score, point.low, point.high) for point in measured.points}
    assert [*points] == [*TASKS, "mean"]
    for result in run.results:
        assert points[result.task] == pytest.approx((result.score, *result.interval), abs=1e-12)
    assert measured.score == pytest.approx(np.mean([result.score for result in run.results]))


def test_the_change_is_the_paired_difference_of_a_comparison() -> None:
    """Also at a step where nothing has changed."""
    watch = monitor(["PocketHairPairs", "PocketClockReading", "PocketNameSTS"])
    assert all(point.change is None for point in watch.score(Towers(0), 0).points)
    changes = {point.task: point.change for point in watch.score(Towers(1), 10).points}
    for seed in (0, 1):
        model = encoder(Towers(seed).eval())
        model.card = embark.types.ModelCard(**{**vars(model.card), "name": f"me/{seed}"})
        embark.evaluate(model, watch.tasks, show_progress=False)
    for pair in embark.compare("me/1", "me/0").pairs:
        assert changes.pop(pair.task) == pytest.approx((pair.difference, pair.low, pair.high, pair.p), abs=1e-12)
    mean = changes.pop("mean")
    assert mean is not None
    assert mean.low < mean.value < mean.high
    assert 0 < mean.p < 1
    assert not changes
    same = watch.score(Towers(1), 20)
    for point in same.points:
        assert point.change is not None
        assert (point.change.value, point.change.p, point.significant) == (0, 1, False)


@pytest.mark.slow
def test_training_is_what_it_would_be_without_a_monitor() -> None:
    """Weights, statistics, gradients, flags and random states, with a part that is frozen."""

    def run(watch: Callable[[Towers, int], object]) -> tuple[dict[str, Any], float]:
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        module = Towers()
        module.train()
        module.norm.eval()
        module.text.bias.requires_grad_(False)
        trained = train(module, 4, watch).state_dict()
        return trained, random.random() + np.random.random() + float(torch.rand(()))  # noqa: NPY002

    watch = monitor()

    def check(module: Towers, step: int) -> None:
        before_it = [None if p.grad is None else p.grad.clone() for p in module.parameters()]
        flags = [(child.training, [p.requires_grad for p in child.parameters()]) for child in module.modules()]
        watch.score(module, step)
        assert flags == [(child.training, [p.requires_grad for p in child.parameters()]) for child in module.modules()]
        for parameter, gradient in zip(module.parameters(), before_it, strict=True):
            assert parameter.grad is None if gradient is None else torch.equal(parameter.grad, gradient)

    gradients.clear()
    alone, watched = run(lambda module, step: None), run(check)
    assert set(gradients) == {False}
    assert watched[1] == alone[1]
    assert all(torch.equal(alone[0][name], tensor) for name, tensor in watched[0].items())
    assert len({measurement.score for measurement in watch.measurements}) > 1


def test_items_are_read_and_hashed_once() -> None:
    calls: list[int] = []

    def counting(module: Towers) -> embark.Encoder:
        calls.append(1)
        return encoder(module)

    module = Towers()
    watch = embark.Monitor("PocketHairPairs", encoder=counting)
    for step in range(3):
        watch.score(module, step)
    assert calls == [1]


def test_steps_are_scored_when_they_are_due_and_once() -> None:
    module = Towers()
    watch = monitor(every=10)
    for step in [0, 0, *range(25), 20]:
        watch.step(module, step)
    assert [measurement.step for measurement in watch.measurements] == [0, 10, 20]
    with pytest.raises(EmbarkError, match=r"every so many whole steps, 1 or more, not 0\."):
        monitor(every=0)


def test_a_first_failure_is_raised_and_a_later_one_noted(caplog: pytest.LogCaptureFixture) -> None:
    module = Towers()
    watch = monitor()
    with pytest.raises(EmbarkError, match="Nothing has been scored yet"):
        watch.curve()
    watch.step(module, 0)
    good = module.text.weight.detach().clone()
    module.text.weight.data.fill_(float("nan"))
    assert watch.step(module, 1) is None
    assert module.training
    module.text.weight.data.copy_(good)
    assert watch.step(module, 2) is not None
    [note] = watch.curve().notes
    assert note.startswith("step 1 could not be scored and logged: ")
    assert note in caplog.text
    module.text.weight.data.fill_(float("nan"))
    with pytest.raises(EmbarkError, match="me/towers"):
        monitor().step(module, 0)


def test_a_logger_that_fails_at_first_is_raised_too() -> None:
    def refuse(measurement: Any) -> None:
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        monitor(loggers=[refuse]).step(Towers(), 0)


def test_one_logger_may_stand_alone_and_its_failure_costs_no_other(tmp_path: Path) -> None:
    monitor(loggers=tmp_path / "curve.csv").score(Towers())
    assert (tmp_path / "curve.csv").exists()
    with pytest.raises(EmbarkError, match=r"whole steps, 1 or more, not 2\.5"):
        monitor(every=2.5)

    def refuse(measurement: Any) -> None:
        raise OSError("disk full")

    received: list[Any] = []
    with pytest.raises(OSError, match="disk full"):
        monitor(loggers=[refuse, received.append]).score(Towers())
    assert len(received) == 1


def test_an_encoder_stands_for_itself_or_for_a_module() -> None:
    module = Towers()
    live = encoder(module)
    scores = [
        monitor().score(module).score,
        embark.Monitor("PocketHairPairs", encoder=live).score(module).score,
        embark.Monitor("PocketHairPairs").score(encoder(module.eval())).score,
    ]
    assert len(set(scores)) == 1
    pocket = embark.Monitor("PocketHairPairs").score(embark.get_model("embark/random"))
    [result] = embark.evaluate("embark/random", "PocketHairPairs", show_progress=False).results
    assert pocket.score == result.score


def test_what_is_no_encoder_is_refused() -> None:
    with pytest.raises(EmbarkError, match=r"gave a Towers, which is no encoder: return embark\.encoder"):
        embark.Monitor("PocketHairPairs", encoder=lambda module: module).score(Towers())


def test_tasks_that_the_model_cannot_do_are_left_out_with_a_note() -> None:
    watch = monitor(["PocketHairPairs", "PocketSpokenNameToText"])
    measured = watch.score(Towers())
    assert [point.task for point in measured.points] == ["PocketHairPairs"]
    assert measured.notes == ("not applicable: PocketSpokenNameToText: the model takes no audio",)
    with pytest.raises(EmbarkError, match=r"none of these tasks.*no audio"):
        monitor("PocketSpokenNameToText").score(Towers())
    with pytest.raises(EmbarkError, match=r"A Towers embeds nothing by itself.*encoder=lambda module"):
        embark.Monitor("PocketHairPairs").score(Towers())


# ── curves and loggers ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_curve_has_a_table_a_file_and_a_plot(tmp_path: Path) -> None:
    watch = monitor(["PocketHairPairs", "PocketClockReading"], loggers=["logged/curve.csv"])
    train(Towers(), 3, watch.score)
    curve = watch.curve()
    assert [row.cells[1] for row in curve.table().rows] == 3 * ["PocketHairPairs", "PocketClockReading", "mean"]
    assert re.search(r" 2 +mean .*\[[+-]\d", str(curve))
    curve.save(tmp_path / "curve.csv")
    assert (tmp_path / "curve.csv").read_text() == Path("logged/curve.csv").read_text()
    rows = list(csv.DictReader((tmp_path / "curve.csv").read_text().splitlines()))
    assert [rows[0]["change"], float(rows[-1]["change"])] == ["", watch.measurements[-1].points[-1].change.value]
    curve.plot(tmp_path / "curve.svg")
    drawn = (tmp_path / "curve.svg").read_text()
    assert all(words in drawn for words in ("PocketHairPairs", "mean", "differs from the step before", "chance"))


class Recorder:
    """The methods of a logger, which record their calls."""

    def __init__(self, *methods: str) -> None:
        self.calls: list[tuple[Any, ...]] = []
        for name in methods:
            setattr(self, name, lambda *values, _name=name, **more: self.calls.append((_name, *values, *more.values())))


def test_loggers_are_known_by_their_methods() -> None:
    tensorboard = Recorder("add_scalar", "flush")
    wandb = Recorder("define_metric", "log")
    mlflow = Recorder("log_metrics")
    got: list[Any] = []
    measured = monitor(loggers=[tensorboard, wandb, mlflow, got.append]).score(Towers(), 7)
    metrics = measured.metrics()
    assert set(metrics) == {"embark/PocketHairPairs", "embark/PocketHairPairs/low", "embark/PocketHairPairs/high"}
    assert tensorboard.calls == [*(("add_scalar", name, metrics[name], 7) for name in metrics), ("flush",)]
    assert wandb.calls[-1] == ("log", metrics | {"embark/step": 7})
    assert ("define_metric", "embark/*", "embark/step") in wandb.calls
    assert mlflow.calls == [("log_metrics", metrics, 7)]
    assert got == [measured]


def test_names_of_loggers_import_them_at_use(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("wandb", "tensorboard", "mlflow"):
        for module in (name, "tensorboardX", "torch.utils.tensorboard"):
            monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(EmbarkError, match=rf"needs {name}: pip install {name}$"):
            monitor(loggers=[name])
    run = Recorder("define_metric", "log")
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=run, init=None))  # type: ignore[arg-type]
    monitor(loggers="wandb").score(Towers(), 1)
    assert [call[0] for call in run.calls] == ["define_metric", "define_metric", "log"]
    with pytest.raises(EmbarkError, match=r"'curve\.txt' is no logger: give wandb, tensorboard, mlflow"):
        monitor(loggers=["curve.txt"])


# ── trainers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_callback_of_transformers() -> None:
    """As its Trainer calls it, on the first process alone."""
    from transformers.trainer_callback import CallbackHandler, TrainerCallback, TrainerControl, TrainerState

    watch = monitor(every=2)
    callback = watch.transformers()
    assert isinstance(callback, TrainerCallback)
    state, control = TrainerState(), TrainerControl()
    handler = CallbackHandler([callback], Towers(), None, None, None)
    handler.on_train_begin(None, state, control)
    for state.global_step in range(1, 5):
        handler.on_step_begin(None, state, control)
        handler.on_step_end(None, state, control)
    handler.on_train_end(None, state, control)
    assert [measurement.step for measurement in watch.measurements] == [0, 2, 4]
    state.is_world_process_zero = False
    state.global_step = 6
    handler.on_step_end(None, state, control)
    assert len(watch.measurements) == 3


@pytest.mark.slow
def test_an_evaluator_of_sentence_transformers(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.evaluation import BaseEvaluator, SequentialEvaluator
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel

    tokenizer = wordpiece()
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = SentenceTransformer(modules=[Transformer(str(tmp_path)), Pooling(16)], device="cpu").train()
    watch = embark.Monitor("PocketNameSTS", every=1000)
    evaluator = watch.sentence_transformers()
    assert isinstance(evaluator, BaseEvaluator)
    assert evaluator.greater_is_better
    metrics = evaluator(model, epoch=0.5, steps=30)
    assert model.training
    assert watch.measurements[0].step == 30
    assert metrics[evaluator.primary_metric] == watch.measurements[0].score
    assert model.model_card_data.eval_results_dict[evaluator] == metrics
    both = SequentialEvaluator([evaluator])(model, steps=60)
    assert both["embark_PocketNameSTS/change"] == 0


def test_a_callback_of_lightning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its class is imported under either of its names; nothing else of the library is used."""
    watch = monitor(every=2)
    for name in ("lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(EmbarkError, match=r"needs lightning: pip install lightning$"):
        watch.lightning()
    library = ModuleType("pytorch_lightning")
    library.Callback = type("Callback", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pytorch_lightning", library)
    callback = watch.lightning()
    assert isinstance(callback, library.Callback)
    trainer = SimpleNamespace(is_global_zero=True, global_step=0)
    module = Towers()
    callback.on_train_start(trainer, module)
    for number in range(8):  # two batches a step
        trainer.global_step = (number + 1) // 2
        callback.on_train_batch_end(trainer, module, None, None, number)
    assert [measurement.step for measurement in watch.measurements] == [0, 2, 4]


@pytest.mark.slow
def test_the_example_learns_and_is_thirty_lines(elsewhere: Path) -> None:
    lines = [line for line in EXAMPLE.read_text(encoding="utf-8").split('"""', 2)[2].splitlines() if line.strip()]
    assert len([line for line in lines if not line.startswith(("import ", "from "))]) <= 30
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)], capture_output=True, text=True, timeout=300, check=True
    )
    assert "PocketSkinTonePairs" in ran.stdout
    curve = csv.DictReader(Path("curve.csv").read_text().splitlines())
    rows = [row for row in curve if row["task"] == "PocketSkinTonePairs"]
    assert [int(row["step"]) for row in rows] == list(range(0, 201, 20))
    assert float(rows[-1]["low"]) > 1 / 6 > float(rows[0]["high"])
    assert any(float(row["change low"]) > 0 for row in rows[1:])
    with Image.open("curve.png") as picture:
        assert picture.size == (2100, 1350)
    assert not (elsewhere / "home").exists()
