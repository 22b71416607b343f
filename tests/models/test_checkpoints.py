"""Checkpoints from a hub that speaks the real paths, and from folders; what may run code waits for consent."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import hf_hub_download

from embark.models import get_model
from embark.models.checkpoints import (
    companion_checkpoint,
    fetch_checkpoint,
    fetch_weights_file,
    folder_revision,
    is_weights_file,
)
from embark.models.loading import Loading
from embark.models.recognize import recognize
from embark.protocol import vector_space
from embark.settings import Settings
from embark.types import EmbarkError, ModelCard
from hub import FakeHub
from local_server import LocalServer, QuietHandler
from tiny import saved, wordpiece

COMMIT = "c0ffee" + "0" * 34
FILES = {
    "config.json": b'{"model_type": "clip"}',
    "model.safetensors": b"safe weights",
    "pytorch_model.bin": b"a pickle",
    "modeling_own.py": b"print('hello')",
    "README.md": b"# words",
}


class Handler(QuietHandler):
    """Single files at addresses; "broken" stops in the middle when it is first asked for."""

    asked: list[str]

    def do_GET(self) -> None:
        name = self.path.removeprefix("/files/")
        self.asked.append(name)
        if name not in ("weights.pth", "weights.safetensors", "broken.pth"):
            self.send_error(404)
            return
        whole = name != "broken.pth" or self.asked.count(name) > 1
        self.send_response(200)
        self.send_header("Content-Length", "7")
        self.end_headers()
        self.wfile.write(b"weights" if whole else b"wei")


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Handler]]:
    """A server of single files; EMBARK_ENDPOINT is its address."""
    handler = type("Addresses", (Handler,), {"asked": []})
    server = LocalServer(handler)
    monkeypatch.setenv("EMBARK_ENDPOINT", server.endpoint)
    yield handler
    server.close()


@pytest.fixture
def tiny(hub: FakeHub) -> FakeHub:
    """A hub with one model."""
    hub.add("org/tiny", FILES, COMMIT)
    return hub


def fetched(hub: FakeHub) -> list[str]:
    """The files that were asked for."""
    return sorted({path.rpartition("/")[2] for path in hub.asked("/resolve/")})


CARD = ModelCard("org/tiny", COMMIT, "clip", ("image",), source="org/tiny")


def test_only_safe_files_are_fetched_and_only_once(tiny: FakeHub) -> None:
    found = fetch_checkpoint(CARD, Loading())
    assert fetched(tiny) == ["config.json", "model.safetensors"]
    assert [path.name for path in found.weight_files()] == ["model.safetensors"]
    assert found.config == {"model_type": "clip"}
    assert found.card.revision == COMMIT
    asked = list(tiny.requests)
    fetch_checkpoint(CARD, Loading())
    assert tiny.requests == asked


def test_a_branch_becomes_the_commit_that_it_has(tiny: FakeHub) -> None:
    card = ModelCard("org/tiny", "main", "clip", ("image",), source="org/tiny")
    assert fetch_checkpoint(card, Loading()).card.revision == COMMIT


def test_pickles_and_code_need_consent_for_that_revision(tiny: FakeHub) -> None:
    held = {name: data for name, data in FILES.items() if name != "model.safetensors"}
    tiny.add("org/tiny", held, COMMIT)
    for trust in (None, "main", "another"):
        found = fetch_checkpoint(CARD, Loading(trust=trust))
        assert not found.trusted
        with pytest.raises(EmbarkError, match=f"pickles.*--trust {COMMIT}"):
            found.weight_files()
    assert fetched(tiny) == ["config.json"]  # what is not trusted is not even fetched
    found = fetch_checkpoint(CARD, Loading(trust=COMMIT))
    assert [path.name for path in found.weight_files()] == ["pytorch_model.bin"]
    found.require_trust("its own code would run")
    assert (found.folder / "modeling_own.py").is_file()


def test_offline_uses_what_is_here_or_says_so(tiny: FakeHub, tmp_path: Path) -> None:
    offline = Loading(settings=Settings(tmp_path, tmp_path, 1, offline=True))
    with pytest.raises(EmbarkError, match=r"org/tiny.*could not be fetched"):
        fetch_checkpoint(CARD, offline)
    assert not tiny.requests
    fetch_checkpoint(CARD, Loading())
    assert fetch_checkpoint(CARD, offline).config == {"model_type": "clip"}


def test_offline_uses_what_another_program_has_downloaded(tiny: FakeHub, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        hf_hub_download("org/tiny", name, endpoint=tiny.endpoint)
    asked = list(tiny.requests)
    offline = Loading(settings=Settings(tmp_path, tmp_path, 1, endpoint=tiny.endpoint, offline=True))
    found = fetch_checkpoint(replace(CARD, revision="main"), offline)
    assert found.card.revision == COMMIT
    assert found.config == {"model_type": "clip"}
    assert tiny.requests == asked


def test_weights_are_what_the_hub_lists(tiny: FakeHub, caplog: pytest.LogCaptureFixture) -> None:
    """A damaged download comes again, and so does what was altered since."""
    tiny.corrupt = 1
    [weights] = fetch_checkpoint(CARD, Loading()).weight_files()
    assert weights.read_bytes() == FILES["model.safetensors"]
    weights.resolve().write_bytes(b"safe Weights")
    [again] = fetch_checkpoint(CARD, Loading()).weight_files()
    assert again.read_bytes() == FILES["model.safetensors"]
    assert "It is set aside as *.damaged" in caplog.text


def test_an_unknown_repository_is_a_message(tiny: FakeHub) -> None:
    with pytest.raises(EmbarkError, match="org/none at revision"):
        fetch_checkpoint(ModelCard("org/none", COMMIT, "clip", ("image",), source="org/none"), Loading())


def test_a_gated_repository_says_what_to_do(tiny: FakeHub) -> None:
    tiny.gated.add("org/tiny")
    with pytest.raises(EmbarkError, match=r"org/tiny .* is gated, private or not there .*accept its terms.*HF_TOKEN"):
        fetch_checkpoint(CARD, Loading())


def test_a_folder_is_named_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    card = ModelCard("local/x", "", "clip", ("image",), source=str(tmp_path))
    first = fetch_checkpoint(card, Loading())
    assert first.card.revision == folder_revision(tmp_path)
    assert first.folder == tmp_path
    (tmp_path / "model.safetensors").write_bytes(b"2")
    assert fetch_checkpoint(card, Loading()).card.revision != first.card.revision


def test_what_hides_in_a_folder_does_not_name_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = folder_revision(tmp_path)
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / ".git" / "objects" / "pack").write_bytes(b"all of it once more")
    assert folder_revision(tmp_path) == before


def test_files_are_hashed_once_and_again_when_they_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.safetensors"
    read: list[Any] = []
    plain = hashlib.file_digest
    monkeypatch.setattr("hashlib.file_digest", lambda *given: read.append(given) or plain(*given))
    file.write_bytes(b"1")
    fresh = folder_revision(tmp_path)
    assert (folder_revision(tmp_path), len(read)) == (fresh, 2)  # just written: its times prove nothing yet
    monkeypatch.setattr("embark.file_hashes.SETTLED", 0)
    assert (folder_revision(tmp_path), folder_revision(tmp_path), len(read)) == (fresh, fresh, 3)
    file.write_bytes(b"23")
    assert folder_revision(tmp_path) != fresh


def test_consent_for_a_folder_names_its_digest(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    card = ModelCard("local/x", "", "clip", ("image",), source=str(tmp_path))
    with pytest.raises(EmbarkError, match=folder_revision(tmp_path)):
        fetch_checkpoint(card, Loading()).weight_files()
    assert fetch_checkpoint(card, Loading(trust=folder_revision(tmp_path))).weight_files()


def test_weights_are_those_that_transformers_would_read(tmp_path: Path) -> None:
    found = fetch_checkpoint(ModelCard("local/x", "", "clip", ("image",), source=str(tmp_path)), Loading())

    def put(*names: str) -> list[str]:
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(b"weights")
        return [path.relative_to(tmp_path).as_posix() for path in found.weight_files()]

    with pytest.raises(EmbarkError, match="there are no weights in"):
        put("old/model.safetensors", "zoo/model.safetensors")
    assert put("b.safetensors", "a.safetensors") == ["a.safetensors", "b.safetensors"]
    index = {"weight_map": {"x": "a.safetensors", "y": "a.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert put() == ["a.safetensors"]
    assert put("model.safetensors", "model.fp16.safetensors") == ["model.safetensors"]
    assert [path.parent.name for path in found.weight_files(["", "old"])] == [tmp_path.name, "old"]


def test_safe_weights_below_do_not_make_a_pickle_safe(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for name in ("pytorch_model.bin", "old/model.safetensors"):
        (tmp_path / name).write_bytes(b"weights")
    card = ModelCard("local/x", "", "clip", ("image",), source=str(tmp_path))
    with pytest.raises(EmbarkError, match=f"pickles.*--trust {folder_revision(tmp_path)}"):
        fetch_checkpoint(card, Loading()).weight_files()
    with pytest.raises(EmbarkError, match="pickles"):
        fetch_checkpoint(card, Loading()).weight_files(["old", ""])
    trusted = fetch_checkpoint(card, Loading(trust=folder_revision(tmp_path)))
    assert [path.name for path in trusted.weight_files()] == ["pytorch_model.bin"]


@pytest.mark.parametrize("pickled", ["2_Dense/model.safetensors", "model.safetensors"])
def test_pickles_of_a_module_that_were_not_fetched_need_consent(hub: FakeHub, tmp_path: Path, pickled: str) -> None:
    """A repository's pickles are not here without consent: the library misses them, and its user is told why."""
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel

    tokens = wordpiece()
    config = BertConfig(vocab_size=len(tokens), hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    plain = saved(tmp_path / "plain", BertModel(config, add_pooling_layer=False), tokens)
    modules = [Transformer(str(plain)), Pooling(8, "mean"), Dense(8, 4)]
    library.SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(tmp_path / "st"))
    files = [path for path in (tmp_path / "st").rglob("*") if path.is_file()]
    held: dict[str, bytes | str] = {path.relative_to(tmp_path / "st").as_posix(): path.read_bytes() for path in files}
    assert held.pop(pickled)
    hub.add("org/tiny", held, COMMIT)
    with pytest.raises(EmbarkError, match=f"its weights are pickles.*--trust {COMMIT}"):
        get_model(replace(CARD, loader="sentence-transformers", modalities=("text",)), loading=Loading(device="cpu"))


@pytest.mark.parametrize("content", ["[]", '["model_type"]', '"bert"', "{"])
def test_a_config_that_is_none_is_a_message(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    for ask in (
        lambda: fetch_checkpoint(replace(CARD, source=str(tmp_path)), Loading()).config,
        lambda: recognize(tmp_path),
    ):
        with pytest.raises(EmbarkError, match=r"config\.json (holds no names and values|is no JSON)"):
            ask()


def test_a_part_may_lie_in_another_repository_or_beside(tiny: FakeHub, tmp_path: Path) -> None:
    whole = fetch_checkpoint(replace(CARD, source=str(tmp_path), options={"words": f"org/tiny@{COMMIT}"}), Loading())
    named, words = companion_checkpoint(whole, "words", Loading(), only=("config.json",))
    assert (words.folder / "config.json").is_file()
    assert fetched(tiny) == ["config.json"]
    assert named.card.options == whole.card.options
    branch = replace(whole, card=replace(whole.card, options={"words": "org/tiny"}))
    assert companion_checkpoint(branch, "words", Loading())[0].card.options == {"words": f"org/tiny@{COMMIT}"}
    with pytest.raises(EmbarkError, match="its eyes is missing, which belongs into"):
        companion_checkpoint(whole, "eyes", Loading())
    (tmp_path / "eyes").mkdir()
    first, eyes = companion_checkpoint(whole, "eyes", Loading())
    assert eyes.folder == tmp_path / "eyes"
    (tmp_path / "eyes" / "vocab.txt").write_text("other words")  # beside one file of weights, nothing else tells
    assert vector_space(companion_checkpoint(whole, "eyes", Loading())[0].card) != vector_space(first.card)


# ── one file of weights ──────────────────────────────────────────────────────────────────────────────────────────────


def at(addresses: type[Handler], name: str) -> ModelCard:
    return replace(CARD, source=f"{os.environ['EMBARK_ENDPOINT']}/files/{name}")


def test_a_file_or_an_address_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "x.pth").touch()
    assert is_weights_file(str(tmp_path / "x.pth"))
    assert is_weights_file("https://example.org/x.pth")
    assert not is_weights_file(str(tmp_path))
    assert not is_weights_file("org/tiny")


def test_a_file_is_named_by_its_bytes_and_a_pickle_needs_consent(tmp_path: Path) -> None:
    for name in ("x.safetensors", "x.pth"):
        (tmp_path / name).write_bytes(b"weights")
    revision = f"sha256-{hashlib.sha256(b'weights').hexdigest()[:16]}"
    found, path = fetch_weights_file(replace(CARD, source=str(tmp_path / "x.safetensors")), Loading())
    assert (found.card.revision, path.name) == (revision, "x.safetensors")
    pickled = replace(CARD, source=str(tmp_path / "x.pth"))
    with pytest.raises(EmbarkError, match=f"a pickle.*--trust {revision}"):
        fetch_weights_file(pickled, Loading(trust="sha256-other"))
    assert fetch_weights_file(pickled, Loading(trust=revision))[1].name == "x.pth"


def test_a_file_at_an_address_is_fetched_once(addresses: type[Handler], tmp_path: Path) -> None:
    online = Settings(tmp_path, tmp_path, 1)
    card, offline = at(addresses, "weights.safetensors"), replace(online, offline=True)
    with pytest.raises(EmbarkError, match="embark is offline: its weights are at http"):
        fetch_weights_file(card, Loading(settings=offline))
    for options in (online, online, offline):
        assert fetch_weights_file(card, Loading(settings=options))[1].read_bytes() == b"weights"
    assert addresses.asked == ["weights.safetensors"]
    with pytest.raises(EmbarkError, match=r"org/tiny could not be fetched from .*/none\.pth \(HTTP 404"):
        fetch_weights_file(at(addresses, "none.pth"), Loading(settings=online))


def test_a_broken_download_is_begun_again(
    addresses: type[Handler], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embark.http.PAUSE", 0.0)
    revision = f"sha256-{hashlib.sha256(b'weights').hexdigest()[:16]}"
    _, path = fetch_weights_file(
        at(addresses, "broken.pth"), Loading(trust=revision, settings=Settings(tmp_path, tmp_path, 1))
    )
    assert path.read_bytes() == b"weights"
    assert addresses.asked == ["broken.pth"] * 2
    assert list(path.parent.iterdir()) == [path]
