"""Checkpoints: folders of the hub at a pinned revision, folders on disk, and single files of weights.

Weights are safetensors, and no code of a checkpoint is executed: pickles and a repository's own code are fetched and
used only for the exact revision that the user trusts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.request import Request

from embark import http
from embark.file_hashes import file_hashes
from embark.hub import Hub
from embark.hub.cache import MODELS
from embark.models.loading import Loading
from embark.settings import load_settings
from embark.types import EmbarkError, ModelCard

SAFE = ("*.json", "*.jsonl", "*.txt", "*.model", "*.jinja", "*.tiktoken", "*.safetensors")
RISKY = ("*.py", "*.bin", "*.pt", "*.pth", "*.ckpt")
WEIGHTS = {"model.safetensors": ("*.safetensors",), "pytorch_model.bin": RISKY[1:]}  # transformers' name → any other
PICKLED = "its weights are pickles, which can run any code when they are opened"


@dataclass(frozen=True)
class Checkpoint:
    """A folder with a checkpoint's files; `card.revision` is the commit or hash of these very files."""

    folder: Path
    card: ModelCard
    trusted: bool

    @property
    def name(self) -> str:
        """The model's name, for messages."""
        return self.card.name

    @property
    def config(self) -> dict[str, Any]:
        """The content of its config.json; empty where it has none."""
        path = self.folder / "config.json"
        return read_json(path) if path.is_file() else {}

    @property
    def complete(self) -> bool:
        """Whether all files are here: those that may run code are downloaded for trusted revisions only."""
        return self.trusted or Path(self.card.source).expanduser().is_dir()

    def with_options(self, **options: Any) -> Checkpoint:
        """The checkpoint with these options on its card, besides those that it has."""
        return replace(self, card=replace(self.card, options={**self.card.options, **options}))

    def weight_files(self, parts: Iterable[str] = ("",)) -> list[Path]:
        """The weights in its folder, or in these sub-folders; other sub-folders may hold those of another training.

        Safetensors; pickles where a folder has no safetensors and the revision is trusted.
        """
        files: list[Path] = []
        for part in parts:
            safe, pickles = (_weight_files(self.folder / part, name, patterns) for name, patterns in WEIGHTS.items())
            if pickles and not safe:
                self.require_trust(PICKLED)
            files += safe or pickles
        if not files and self.complete:
            raise EmbarkError(f"{self.name} is not loaded: there are no weights in {self.folder}.")
        if not files:
            self.require_trust(PICKLED)
        return files

    def require_trust(self, reason: str) -> None:
        """An error unless the user trusts exactly this revision."""
        if not self.trusted:
            raise EmbarkError(
                f"{self.name} is not loaded: {reason}. If you trust it: --trust {self.card.revision} "
                f"(in Python: trust='{self.card.revision}')."
            )


def read_json(path: Path) -> dict[str, Any]:
    """The names and values in a JSON file of a checkpoint."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise EmbarkError(f"{path} is no JSON ({error}); is the checkpoint whole?") from error
    if not isinstance(content, dict):
        raise EmbarkError(f"{path} holds no names and values, but a {type(content).__name__}; is the checkpoint whole?")
    return content


def fetch_checkpoint(
    card: ModelCard, loading: Loading, also: Sequence[str] = (), only: Sequence[str] | None = None
) -> Checkpoint:
    """The card's files, downloaded once: the usual ones and those of the patterns `also`, or those of `only`."""
    folder = Path(card.source).expanduser()
    if folder.is_dir():
        card = replace(card, revision=folder_revision(folder))
        return Checkpoint(folder, card, loading.trust == card.revision)
    hub = Hub(loading.settings or load_settings(), _bytes_shown, MODELS)
    try:
        card = replace(card, revision=hub.resolve(card.source, card.revision))
        trusted = loading.trust == card.revision
        patterns = list(only or [*SAFE, *also, *(RISKY if trusted else ())])
        paths = [file.path for file in hub.files(card.source, card.revision)]
        wanted = [path for path in paths if any(fnmatch(path, pattern) for pattern in patterns)]
        hub.get_all(card.source, card.revision, wanted)
    except EmbarkError as error:
        raise EmbarkError(
            f"The checkpoint {card.source} at revision {card.revision} could not be fetched: {error} "
            "A folder with its files works too."
        ) from error
    return Checkpoint(hub.folder(card.source, card.revision), card, trusted)


@contextmanager
def _bytes_shown(title: str, total: int) -> Iterator[Callable[[int], object]]:
    """A bar of the bytes that a download has yet to get."""
    from huggingface_hub.utils import tqdm

    with tqdm(desc=title, total=total, unit="B", unit_scale=True) as bar:
        yield bar.update


def companion_checkpoint(
    checkpoint: Checkpoint, part: str, loading: Loading, only: Sequence[str] | None = None
) -> tuple[Checkpoint, Checkpoint]:
    """The checkpoint, and the checkpoint of one of its parts.

    The card's options name the part as "ID@REVISION", else it is a sub-folder. The options of the returned checkpoint
    name the part's exact commit or hash, because the part decides vectors, too.
    """
    source, _, revision = str(checkpoint.card.options.get(part, "")).partition("@")
    if source:
        other = fetch_checkpoint(
            replace(checkpoint.card, source=source, revision=revision or "main"), loading, only=only
        )
    else:
        folder = checkpoint.folder / part
        if not folder.is_dir():
            raise EmbarkError(f"{checkpoint.name} is not loaded: its {part} is missing, which belongs into {folder}.")
        other = Checkpoint(folder, replace(checkpoint.card, revision=folder_revision(folder)), checkpoint.trusted)
    return checkpoint.with_options(**{part: f"{source or part}@{other.card.revision}"}), other


def is_weights_file(source: str) -> bool:
    """Whether a source is a single file of weights, on disk or at an address."""
    return "://" in source or Path(source).expanduser().is_file()


def fetch_weights_file(card: ModelCard, loading: Loading) -> tuple[Checkpoint, Path]:
    """A single file of weights, downloaded once where the source is an address; its hash is the revision."""
    path = _download_file(card, loading) if "://" in card.source else Path(card.source).expanduser()
    hashes = file_hashes((loading.settings or load_settings()).home)
    revision = f"sha256-{hashes.sha256(path)[:16]}"
    checkpoint = Checkpoint(path.parent, replace(card, revision=revision), loading.trust == revision)
    if path.suffix != ".safetensors":
        checkpoint.require_trust("its weights are a pickle, which can run any code when it is opened")
    return checkpoint, path


def folder_revision(folder: Path) -> str:
    """A local checkpoint's revision: the hash of its files' names and bytes, without hidden files (git's, say)."""
    hashes = file_hashes(load_settings().home)
    content = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        if not any(part.startswith(".") for part in name.parts):
            content.update(f"{name.as_posix()} {hashes.sha256(path)}\n".encode())
    return f"local-{content.hexdigest()[:16]}"


def _weight_files(folder: Path, name: str, patterns: Sequence[str]) -> list[Path]:
    """As transformers chooses: the file of that name, else the files that its index lists, else all that match."""
    if (folder / name).is_file():
        return [folder / name]
    files = sorted(path for pattern in patterns for path in folder.glob(pattern))
    if not (index := folder / f"{name}.index.json").is_file():
        return files
    listed = set(read_json(index)["weight_map"].values())
    return [path for path in files if path.name in listed]


def _download_file(card: ModelCard, loading: Loading) -> Path:
    settings = loading.settings or load_settings()
    name = hashlib.sha256(card.source.encode()).hexdigest()[:16]
    suffix = "safetensors" if card.source.endswith(".safetensors") else "pt"
    path = settings.home / "checkpoints" / f"{name}.{suffix}"
    if path.is_file():
        return path
    if settings.offline:
        raise EmbarkError(f"{card.name} is not here, and embark is offline: its weights are at {card.source}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")

    def fetch() -> None:
        with http.send(Request(card.source)) as answer, part.open("wb") as file:
            while chunk := http.receive(answer, 1 << 20):
                file.write(chunk)

    try:
        http.with_retries(f"Fetching {card.source}", fetch)
        part.replace(path)
    except (http.RequestRefused, OSError) as error:
        raise EmbarkError(
            f"The weights of {card.name} could not be fetched from {card.source} ({error}); "
            f"put the file at {path} by hand, or try again."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return path
