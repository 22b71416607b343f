"""Half precision on a CPU that traps it: tried in a child process, mended, said once and recorded."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import embark
from cases import slow
from embark.engine.doctor import examine
from embark.models import Loading, get_model, half_precision
from embark.models.half_precision import HALF, NO_FUSED, NO_ONEDNN, USUAL, VARIABLES, WAYS, secure
from embark.types import EmbarkError
from tiny import TEXTS, same, saved, vectors, wordpiece

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

RECORD = {"half precision": "without oneDNN, whose kernels are trapped on this CPU"}
SAYS = "Half precision ends a process on this CPU, so torch runs without oneDNN, .*ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
SIGILL = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
CPUINFO = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon {name}\nflags\t\t: fpu avx512f {flags}\n\n"


class Machine:
    """A CPU whose children do what a test says; `trials` are the ways that they were asked to try."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch, self.log = folder, patch, folder / "trials"
        self.answers = folder / "cache" / "embark" / "half-precision"
        self.log.touch()
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setattr(half_precision, "CPUINFO", folder / "cpuinfo")
        self.is_called("8480", "amx_bf16 amx_tile")
        self.starts_again()

    def is_called(self, name: str, flags: str) -> None:
        (self.folder / "cpuinfo").write_text(CPUINFO.format(name=name, flags=flags))

    def ends(self, *ways: str, by: str = SIGILL, otherwise: str = "pass") -> None:
        """Child processes that try these ways run `by`, others something else."""
        code = f"with open({str(self.log)!r}, 'a') as log: print({{way!r}}, file=log)\n"
        code += f"exec({by!r} if {{way!r}} in {ways!r} else {otherwise!r})"
        self.patch.setattr(half_precision, "TRIAL", code)

    def starts_again(self) -> None:
        """As in a new process: what it knew is forgotten, but for the disk."""
        torch.backends.mkldnn.enabled = True
        self.patch.setattr(half_precision, "_choose_way", cache(half_precision._choose_way.__wrapped__))
        for variable in VARIABLES:
            self.patch.setenv(variable, "")
            self.patch.delenv(variable)

    @property
    def trials(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    switches = torch.backends.mkldnn.enabled, torch.backends.cuda.flash_sdp_enabled()
    yield Machine(tmp_path, monkeypatch)
    torch.backends.mkldnn.enabled = switches[0]
    torch.backends.cuda.enable_flash_sdp(switches[1])


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(3)
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    tokens = wordpiece()
    model = transformers.BertModel(transformers.BertConfig(**shape, vocab_size=len(tokens)))
    return saved(tmp_path_factory.mktemp("models") / "my-bert", model, tokens)


def silently(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call()


def test_a_trapped_cpu_is_mended_said_once_and_recorded(bert: Path, machine: Machine) -> None:
    machine.ends(USUAL)
    exact = silently(lambda: get_model(str(bert), loading=Loading(device="cpu")))
    assert machine.trials == []
    assert torch.backends.mkldnn.enabled
    with pytest.warns(UserWarning, match=SAYS):
        rough = get_model(str(bert), loading=Loading(device="cpu", dtype="bfloat16"))
    assert machine.trials == [USUAL, NO_ONEDNN]
    assert not torch.backends.mkldnn.enabled
    assert same(vectors(exact, TEXTS), vectors(rough, TEXTS), 0.1)
    again = silently(lambda: get_model(str(bert), loading=Loading(device="cpu", dtype="float16")))
    assert np.isfinite(vectors(again, TEXTS)).all()
    assert machine.trials == [USUAL, NO_ONEDNN]
    assert rough.card.loaded == {**exact.card.loaded, **RECORD}
    [result] = embark.evaluate(rough, "PocketNameClustering", show_progress=False).results
    assert result.records[0].loaded["half precision"] == RECORD["half precision"]


def test_the_doctor_tells(bert: Path, machine: Machine) -> None:
    machine.ends(USUAL)
    with pytest.warns(UserWarning, match=SAYS):
        rough = get_model(str(bert), loading=Loading(device="cpu", dtype="bfloat16"))
    [finding] = [finding for finding in examine(rough) if finding.check == "half precision"]
    assert finding.verdict == "note"
    assert finding.message.startswith("runs without oneDNN, whose kernels are trapped on this CPU")
    assert not [finding for finding in examine(get_model(str(bert))) if finding.check == "half precision"]


def test_what_is_not_half_precision_on_a_cpu_starts_no_process(machine: Machine) -> None:
    machine.ends(*WAYS)
    assert secure("float32", "cpu") == secure("bfloat16", "meta") == {}
    assert machine.trials == []


def test_a_cpu_without_amx_starts_no_process(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.ends(*WAYS)
    machine.is_called("old", "avx512_bf16")
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", bool, raising=False)
    assert secure("bfloat16", "cpu") == {}
    assert machine.trials == []


def test_a_cpu_that_tells_torch_alone_is_tried(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.ends(*WAYS, by="pass")
    machine.is_called("in a sandbox", "avx512_bf16")
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True, raising=False)
    assert secure("bfloat16", "cpu") == {}
    assert machine.trials == [USUAL]


def test_a_sound_cpu_is_tried_once_a_machine(machine: Machine) -> None:
    machine.ends()
    for _ in range(3):
        assert silently(lambda: secure("bfloat16", "cpu")) == {}
        machine.starts_again()
    assert machine.trials == [USUAL]
    assert torch.backends.mkldnn.enabled


def test_the_answer_is_kept_for_this_machine_alone(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.ends(USUAL)
    for _ in range(2):
        with pytest.warns(UserWarning, match=SAYS):
            assert secure("bfloat16", "cpu") == RECORD
        assert not torch.backends.mkldnn.enabled
        machine.starts_again()
    assert machine.trials == [USUAL, NO_ONEDNN]
    machine.ends()
    machine.is_called("8592", "amx_tile")
    assert secure("bfloat16", "cpu") == {}
    assert machine.trials[2:] == [USUAL]
    machine.starts_again()
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # children that have it may live where others die
    assert secure("bfloat16", "cpu") == {}
    assert machine.trials[3:] == [USUAL]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'"as usual"', b'{"half precision": "as usual"}'])
def test_a_damaged_answer_counts_as_none(content: bytes, machine: Machine) -> None:
    machine.ends(USUAL)
    with pytest.warns(UserWarning, match=SAYS):
        secure("float16", "cpu")
    [answer] = machine.answers.iterdir()
    whole = answer.read_bytes()
    answer.write_bytes(content)
    machine.starts_again()
    with pytest.warns(UserWarning, match=SAYS):
        assert secure("float16", "cpu") == RECORD
    assert machine.trials == [USUAL, NO_ONEDNN] * 2
    assert answer.read_bytes() == whole
    assert json.loads(whole)["cpu"] == "GenuineIntel, Xeon 8480"


def test_a_folder_that_cannot_be_written_to_is_no_obstacle(machine: Machine) -> None:
    machine.ends(USUAL)
    machine.answers.parents[1].write_text("a file where the folder should be")
    for _ in range(2):
        with pytest.warns(UserWarning, match=SAYS):
            assert secure("bfloat16", "cpu") == RECORD
        machine.starts_again()
    assert machine.trials == [USUAL, NO_ONEDNN] * 2


@pytest.mark.slow
def test_attention_is_switched_where_it_is_trapped_too(machine: Machine) -> None:
    real = f"from embark.models.half_precision import trial; trial({NO_FUSED!r})"
    machine.ends(USUAL, NO_ONEDNN, otherwise=real)
    with pytest.warns(UserWarning, match="runs without oneDNN and fused attention, which"):
        record = secure("bfloat16", "cpu")
    assert record == {"half precision": "without oneDNN and fused attention, whose kernels are trapped on this CPU"}
    assert machine.trials == list(WAYS)
    assert not torch.backends.cuda.flash_sdp_enabled()
    assert json.loads(next(machine.answers.iterdir()).read_text())["half precision"] == NO_FUSED  # the child survived
    heads = torch.ones(1, 2, 64, 16, dtype=torch.bfloat16)
    assert torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).shape == heads.shape


def test_a_cpu_that_survives_nothing_is_an_error(bert: Path, machine: Machine) -> None:
    machine.ends(*WAYS)
    for dtype in HALF:
        with pytest.raises(EmbarkError, match=f"{dtype} cannot run on this CPU: .*Use float32"):
            get_model(str(bert), loading=Loading(device="cpu", dtype=dtype))
        machine.starts_again()
    assert machine.trials == list(WAYS)
    assert np.isfinite(vectors(get_model(str(bert), loading=Loading(device="cpu")), TEXTS)).all()


@pytest.mark.parametrize("by", ["import time; time.sleep(60)", SIGILL.replace("SIGILL", "SIGKILL")])
def test_a_child_that_is_lost_counts_as_dead_but_only_now(by: str, machine: Machine) -> None:
    machine.ends(*WAYS, by=by)
    machine.patch.setattr(half_precision, "LIMIT", 0.3 if "sleep" in by else half_precision.LIMIT)
    with pytest.raises(EmbarkError, match="Use float32"):
        secure("bfloat16", "cpu")
    assert not machine.answers.exists()


def test_a_child_that_cannot_try_is_no_reason_to_switch(machine: Machine) -> None:
    machine.ends(*WAYS, by="raise ImportError('no torch here')")
    assert silently(lambda: secure("bfloat16", "cpu")) == {}
    machine.starts_again()
    machine.patch.setattr("sys.executable", str(machine.folder / "no-python"))
    assert silently(lambda: secure("bfloat16", "cpu")) == {}
    assert machine.trials == [USUAL]
    assert not machine.answers.exists()


def test_processes_that_are_started_later_are_spared(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.ends(USUAL)
    monkeypatch.setenv("MKL_ENABLE_INSTRUCTIONS", "AVX2")  # the user's own choice stands
    with pytest.warns(UserWarning, match=SAYS):
        secure("bfloat16", "cpu")
    assert {name: os.environ[name] for name in VARIABLES} == {**VARIABLES, "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


# ── models of other libraries, already in memory ─────────────────────────────────────────────────────────────────────


class TwoTowers(torch.nn.Module):  # type: ignore[misc]
    """The two methods that open_clip's models have."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.pixels = torch.nn.Embedding(256, 8), torch.nn.Linear(12, 8)

    def encode_text(self, tokens: Any) -> Any:
        return self.words(tokens).mean(1)

    def encode_image(self, images: Any) -> Any:
        return self.pixels(images.flatten(1))


def to_pixels(image: Any) -> Any:
    return torch.from_numpy(np.asarray(image.resize((2, 2)), np.float32) / 255)


def to_tokens(texts: list[str]) -> Any:
    return torch.tensor([list(text.encode().ljust(100))[:100] for text in texts])


def of_open_clip() -> embark.Encoder:
    return embark.models.from_open_clip(TwoTowers().bfloat16(), to_pixels, to_tokens, name="me/clip")


def of_mteb() -> embark.Encoder:
    def encode(inputs: Any, **_: Any) -> Any:
        return torch.cat([model.encode_text(to_tokens(batch["text"])) for batch in inputs])

    model = TwoTowers().half()
    facts = {"modalities": ["text"], "embed_dim": 8, "similarity_fn_name": "cosine", "use_instructions": False}
    meta = SimpleNamespace(name="me/of-mteb", revision="7", **facts)
    return embark.models.from_mteb(SimpleNamespace(model=model, mteb_model_meta=meta, encode=encode))


def of_sentence_transformers() -> embark.Encoder:
    library = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    torch.manual_seed(3)
    tokens = wordpiece()
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    saved(Path("plain"), transformers.BertModel(transformers.BertConfig(**shape, vocab_size=len(tokens))), tokens)
    parts = [library.base.modules.Transformer("plain"), modules.Pooling(16)]
    return embark.models.from_sentence_transformers(library.SentenceTransformer(modules=parts, device="cpu").bfloat16())


@pytest.mark.parametrize("make", [of_open_clip, of_sentence_transformers, *slow(of_mteb)])
def test_models_in_memory_are_secured_before_they_run(make: Callable[[], embark.Encoder], machine: Machine) -> None:
    machine.ends(USUAL)
    with pytest.warns(UserWarning, match=SAYS):
        model = make()
    assert model.card.loaded == RECORD
    assert machine.trials == [USUAL, NO_ONEDNN]
    assert np.isfinite(vectors(model, TEXTS)).all()
