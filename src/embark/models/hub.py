"""Checkpoints: folders, from the hub at a pinned revision or where the user has one, and single files of weights.

Weights come as safetensors, and nothing that a checkpoint brings is executed: pickles and a repository's own code are
fetched and used only for the exact revision that the user consented to.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.request import Request

from embark import http
from embark.models.loading import Loading
from embark.settings import Settings, load_settings
from embark.types import EmbarkError, ModelCard

SAFE = ("*.json", "*.jsonl", "*.txt", "*.model", "*.jinja", "*.tiktoken", "*.safetensors")
RISKY = ("*.py", "*.bin", "*.pt", "*.pth", "*.ckpt")
WEIGHTS = {"model.safetensors": ("*.safetensors",), "pytorch_model.bin": RISKY[1:]}  # transformers' name → any other
PICKLED = "its weights are pickles, which can run any code when they are opened"
SETTLED = 2.0  # seconds after which a file's times tell whether it was written again


@dataclass(frozen=True)
class Checkpoint:
    """A folder with a checkpoint's files; `card` names the revision that they really are."""

    folder: Path
    card: ModelCard
    trusted: bool

    @property
    def config(self) -> dict[str, Any]:
        """What its config.json says; nothing where it has none."""
        path = self.folder / "config.json"
        return described(path) if path.is_file() else {}

    @property
    def whole(self) -> bool:
        """Whether all files are here: of a repository, those that may run code are fetched with consent only."""
        return self.trusted or Path(self.card.source).expanduser().is_dir()

    def weights(self, parts: Iterable[str] = ("",)) -> list[Path]:
        """The weights in its folder, or in these parts of it; what else lies below may be of another training.

        Safetensors; pickles where a part has no others and they were consented to.
        """
        out: list[Path] = []
        for part in parts:
            safe, pickles = (_chosen(self.folder / part, name, patterns) for name, patterns in WEIGHTS.items())
            if pickles and not safe:
                self.consent(PICKLED)
            out += safe or pickles
        if not out and self.whole:
            raise EmbarkError(f"{self.card.name} is not loaded: there are no weights in {self.folder}.")
        if not out:
            self.consent(PICKLED)
        return out

    def consent(self, why: str) -> None:
        """An error unless the user trusts exactly this revision."""
        if not self.trusted:
            raise EmbarkError(
                f"{self.card.name} is not loaded: {why}. If you trust it: --trust {self.card.revision} "
                f"(in Python: trust='{self.card.revision}')."
            )


def described(path: Path) -> dict[str, Any]:
    """What a JSON file of a checkpoint says."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise EmbarkError(f"{path} is no JSON ({error}); is the checkpoint whole?") from error
    if not isinstance(told, dict):
        raise EmbarkError(f"{path} holds no names and values, but a {type(told).__name__}; is the checkpoint whole?")
    return told


def checkpoint(
    card: ModelCard, loading: Loading, also: Sequence[str] = (), only: Sequence[str] | None = None
) -> Checkpoint:
    """The card's files, downloaded once; its loader reads further patterns (`also`), or no others (`only`)."""
    folder = Path(card.source).expanduser()
    if folder.is_dir():
        card = replace(card, revision=digest(folder))
        return Checkpoint(folder, card, loading.trust == card.revision)
    given = loading.settings or load_settings()
    revision = _commit(card, given)
    trusted = loading.trust == revision
    patterns = only or [*SAFE, *also, *(RISKY if trusted else ())]
    return Checkpoint(_download(card.source, revision, patterns, given), replace(card, revision=revision), trusted)


def companion(
    found: Checkpoint, part: str, loading: Loading, only: Sequence[str] | None = None
) -> tuple[Checkpoint, Checkpoint]:
    """The checkpoint and that of a part which lies elsewhere: options say "ID@REVISION"; else the folder has it.

    The commit (of a folder: the hash) that was found stands in the options after: it decides vectors, too.
    """
    source, _, revision = str(found.card.options.get(part, "")).partition("@")
    if source:
        other = checkpoint(replace(found.card, source=source, revision=revision or "main"), loading, only=only)
    else:
        folder = found.folder / part
        if not folder.is_dir():
            raise EmbarkError(f"{found.card.name} is not loaded: its {part} is missing, which belongs into {folder}.")
        other = Checkpoint(folder, replace(found.card, revision=digest(folder)), found.trusted)
    options = {**found.card.options, part: f"{source or part}@{other.card.revision}"}
    return replace(found, card=replace(found.card, options=options)), other


def is_file(source: str) -> bool:
    """Whether a source is one file of weights, here or at an address."""
    return "://" in source or Path(source).expanduser().is_file()


def weights_file(card: ModelCard, loading: Loading) -> tuple[Checkpoint, Path]:
    """One file of weights, downloaded once where the source is an address; its hash is the revision."""
    path = _downloaded(card, loading) if "://" in card.source else Path(card.source).expanduser()
    revision = f"sha256-{_hash(path)[:16]}"
    found = Checkpoint(path.parent, replace(card, revision=revision), loading.trust == revision)
    if path.suffix != ".safetensors":
        found.consent("its weights are a pickle, which can run any code when it is opened")
    return found, path


def digest(folder: Path) -> str:
    """A local checkpoint's revision: the hash of all its files' names and bytes, but for hidden ones (git's, say)."""
    whole = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        if not any(part.startswith(".") for part in name.parts):
            whole.update(f"{name.as_posix()} {_hash(path)}\n".encode())
    return f"local-{whole.hexdigest()[:16]}"


def _chosen(folder: Path, name: str, patterns: Sequence[str]) -> list[Path]:
    """As transformers chooses: the file of that name, else those that its index lists; else all that there are."""
    if (folder / name).is_file():
        return [folder / name]
    found = sorted(path for pattern in patterns for path in folder.glob(pattern))
    if not (index := folder / f"{name}.index.json").is_file():
        return found
    listed = set(described(index)["weight_map"].values())
    return [path for path in found if path.name in listed]


_HASHES: dict[tuple[int, ...], str] = {}  # of this process: a folder is looked at once a device, and more often


def _hash(path: Path) -> str:
    """Of a file's bytes; remembered unless it was just written, for clocks are too coarse to tell the next writing."""
    told = path.stat()
    state = (told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns, told.st_ctime_ns)
    if state not in _HASHES:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if time.time() - max(told.st_mtime, told.st_ctime) < SETTLED:
            return found
        _HASHES[state] = found
    return _HASHES[state]


def _commit(card: ModelCard, given: Settings) -> str:
    """The commit that a revision stands for: vectors are named by commits, because branches move."""
    if len(card.revision) == 40:
        return card.revision
    import huggingface_hub as hf

    try:
        if given.offline:  # a downloaded snapshot lies in a folder that is named by its commit
            return Path(hf.snapshot_download(card.source, revision=card.revision, local_files_only=True)).name
        return str(hf.HfApi(endpoint=given.endpoint).model_info(card.source, revision=card.revision).sha)
    except Exception as error:
        raise _failed(card.source, card.revision, error) from error


def _download(source: str, revision: str, patterns: Sequence[str], given: Settings) -> Path:
    import huggingface_hub as hf

    try:
        found = hf.snapshot_download(
            source, revision=revision, allow_patterns=list(patterns), endpoint=given.endpoint,
            local_files_only=given.offline,
        )  # fmt: skip
    except Exception as error:
        raise _failed(source, revision, error) from error
    return Path(found)


def _downloaded(card: ModelCard, loading: Loading) -> Path:
    given = loading.settings or load_settings()
    name = hashlib.sha256(card.source.encode()).hexdigest()[:16]
    path = given.home / "checkpoints" / f"{name}.{'safetensors' if card.source.endswith('.safetensors') else 'pt'}"
    if path.is_file():
        return path
    if given.offline:
        raise EmbarkError(f"{card.name} is not here, and embark is offline: its weights are at {card.source}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")

    def fetch() -> None:
        with http.send(Request(card.source)) as answer, part.open("wb") as file:
            while piece := http.receive(answer, 1 << 20):
                file.write(piece)
            if file.tell() < int(answer.headers.get("Content-Length", 0)):
                raise http.Again("the connection was closed in the middle of the file")

    try:
        http.patiently(f"Fetching {card.source}", fetch)
        part.replace(path)
    except (http.Refused, OSError) as error:
        raise EmbarkError(
            f"The weights of {card.name} could not be fetched from {card.source} ({error}); "
            f"put the file at {path} by hand, or try again."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return path


def _failed(source: str, revision: str, error: Exception) -> EmbarkError:
    from huggingface_hub import errors

    told = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    advice = "Check the name and the network"
    if isinstance(error, errors.GatedRepoError):
        told, advice = "it is gated", "Accept its terms on its page, then set HF_TOKEN to a token of your account"
    elif isinstance(error, errors.RepositoryNotFoundError):
        told, advice = (
            "no such repository",
            "Check the name; if it is private, set HF_TOKEN to a token that may read it",
        )
    return EmbarkError(
        f"The checkpoint {source} at revision {revision} could not be fetched: {told.rstrip('.')}. {advice}; "
        "a folder with its files works too."
    )
