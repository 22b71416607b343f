"""Devices, precision, padding and pooling: what every torch family relies on."""

from __future__ import annotations

import os
from contextlib import nullcontext
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.models import LOADERS, lanes_on
from embark.models.device import (
    POOLING,
    own_stream,
    pad,
    split_options,
    to_device,
    to_numpy,
    without_gradients,
)
from embark.models.device_names import CONNECTIONS, devices, joined
from embark.models.loading import Loading, build, record_loading
from embark.protocol import vector_space
from embark.seams import Loader
from embark.types import EmbarkError, ModelCard

torch = pytest.importorskip("torch")
CARD = ModelCard("tiny/x", "1", "own", ("text",))


def test_a_device_is_chosen_or_refused() -> None:
    assert devices("cpu") == ("cpu",)
    assert devices("cpu, cpu") == ("cpu", "cpu")
    assert len(devices("auto")) >= 1
    with pytest.raises(EmbarkError, match=r"'cuda:99'.*try cpu"):
        devices("cuda:99")
    with pytest.raises(EmbarkError, match="'toaster'"):
        devices("toaster")


def test_streams_get_queues_of_their_own_unless_someone_has_said_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    devices("cpu")
    assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS")
    devices("cpu")
    assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == CONNECTIONS


def test_several_devices_may_be_those_of_one_copy() -> None:
    assert devices("cpu+cpu,cpu") == ("cpu+cpu", "cpu")
    assert devices("split") == ("+".join(devices("auto")),)
    with pytest.raises(EmbarkError, match="'cuda:99'"):
        devices("cpu+cuda:99")
    gpus = [f"cuda:{number}" for number in range(5)]
    assert joined(gpus, 2, "a/model") == ("cuda:0+cuda:1", "cuda:2+cuda:3")
    assert joined(gpus, 1, "a/model") == tuple(gpus)
    assert joined(["cpu"], 2, "a/model") == ("cpu",)
    with pytest.raises(EmbarkError, match=r"a/model needs 8 GPUs for one copy, and there are 5 here\."):
        joined(gpus, 8, "a/model")


def test_a_model_that_transformers_does_not_load_stands_on_one_device() -> None:
    assert split_options("cuda:1", "a/model") == {}
    with pytest.raises(EmbarkError, match=r"tiny/x cannot stand on several devices at once \(cpu\+cpu\)"):
        to_device(torch.nn.Linear(2, 2), CARD, Loading("cpu+cpu"))
    missing = pytest.raises(EmbarkError, match="pip install accelerate")
    with nullcontext() if find_spec("accelerate") else missing:
        assert split_options("cpu+cpu", "a/model") == {"device_map": "auto", "max_memory": {"cpu": 1 << 50}}


def test_a_model_is_moved_without_dropout_or_gradients() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
    model = to_device(module, CARD, Loading("cpu"))
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert model[0].weight.dtype == torch.float32


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_precision_is_the_cards(dtype: str) -> None:
    model = to_device(torch.nn.Linear(2, 2), ModelCard("tiny/x", "1", "own", ("text",), dtype=dtype), Loading("cpu"))
    assert model.weight.dtype == getattr(torch, dtype)
    assert to_numpy(model.weight).dtype == np.float32


def test_what_a_model_computes_for_itself_stays_exact() -> None:
    module = torch.nn.Linear(2, 2)
    module.register_buffer("frequencies", torch.tensor([1 / 3]), persistent=False)
    module.register_buffer("mean", torch.tensor([1 / 3]))
    model = to_device(module, ModelCard("tiny/x", "1", "own", ("text",), dtype="bfloat16"), Loading("cpu"))
    assert (model.weight.dtype, model.mean.dtype, model.frequencies.dtype) == (
        torch.bfloat16,
        torch.bfloat16,
        torch.float32,
    )


@pytest.mark.parametrize("device", ["", "cpu", "mps", "cuda:0"])
def test_a_stream_of_its_own_changes_nothing_without_cuda(device: str) -> None:
    with own_stream("cpu" if device == "cuda:0" and torch.cuda.is_initialized() else device):
        vectors = to_numpy(torch.tensor([[1 / 3]], dtype=torch.bfloat16))
    assert vectors.tolist() == [[0.333984375]]


def test_models_on_cuda_take_several_batches_at_once_unless_they_tokenise_meanwhile() -> None:
    def lanes(device: str, *names: str) -> list[int]:
        return [lanes_on(device, LOADERS[name]) for name in names]

    assert lanes("cuda:0", "dual", "open_clip") == lanes("cuda", "timm", "mllm") == [4, 4]
    assert lanes("cpu", "dual") == lanes("mps", "text") == lanes("auto", "onnx") == [1]
    assert lanes("cuda:0+cuda:1", "mllm") == [1]
    assert lanes("cuda:0", "sentence-transformers", "jina", "colbert", "openai") == [1] * 4
    assert lanes_on("cuda:0", Loader("own", "own:load")) == 1


def test_unknown_precision_is_refused() -> None:
    with pytest.raises(EmbarkError, match="'int4'; there are float32"):
        Loading(dtype="int4")


def test_forward_passes_keep_nothing_for_training() -> None:
    layer = torch.nn.Linear(2, 2)
    assert not without_gradients(layer.forward)(torch.ones(1, 2)).requires_grad


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 2**31))
def test_pooling_does_not_see_padding_on_either_side(lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [rng.integers(1, 50, size=length).tolist() for length in lengths]
    table = torch.randn(50, 4, generator=torch.Generator().manual_seed(seed))
    for name, pool in POOLING.items():
        alone = [table[torch.tensor(row)] for row in rows]
        expected = torch.stack([{"last": a[-1], "first": a[0], "mean": a.mean(0)}[name] for a in alone])
        for side in ("left", "right"):
            ids, mask = pad(rows, 0, side, "cpu")
            assert mask.sum(1).tolist() == lengths
            torch.testing.assert_close(pool(table[ids], mask), expected)


@given(st.lists(st.lists(st.integers(0, 60_000), max_size=9), min_size=1, max_size=9), st.integers(-3, 9))
def test_padding_puts_every_row_at_its_side(rows: list[list[int]], value: int) -> None:
    longest = max(map(len, rows))
    for side in ("left", "right"):
        ids, mask = pad(rows, value, side, "cpu")
        assert (ids.dtype, mask.dtype) == (torch.long, torch.long)
        fillings = [longest - len(row) for row in rows]
        for row, filling, row_ids, row_mask in zip(rows, fillings, ids.tolist(), mask.tolist(), strict=True):
            empty, full = [value] * filling, [1] * len(row)
            assert row_ids == ([*empty, *row] if side == "left" else [*row, *empty])
            assert row_mask == ([*[0] * filling, *full] if side == "left" else [*full, *[0] * filling])


def test_how_a_model_was_record_loading_is_on_its_card() -> None:
    card = record_loading(CARD, Loading("cpu"), ("numpy",), trusted="abc", nothing=None)
    assert card.loaded == {"device": "cpu", "libraries": {"numpy": np.__version__}, "trusted": "abc"}


def test_a_missing_library_names_the_extra() -> None:
    loader = Loader("own", "tests_no_module:load", extra="torch")
    with pytest.raises((EmbarkError, ModuleNotFoundError)) as caught:
        build(loader, CARD, Loading())
    assert "tests_no_module" in str(caught.value)


def test_a_loader_that_makes_other_vectors_names_another_space() -> None:
    path = "embark.models.baselines:load_random"
    first, again, second = (build(Loader("own", path, version=version), CARD, Loading()) for version in (1, 1, 2))
    assert vector_space(first.card) == vector_space(again.card) == vector_space(CARD)
    assert vector_space(second.card) != vector_space(first.card)
