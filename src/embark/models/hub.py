"""Checkpoints as folders: from the hub at a pinned revision, or where the user has one.

Weights come as safetensors, and nothing that a checkpoint brings is executed: pickles and a repository's own code are
fetched and used only for the exact revision that the user consented to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embark import settings
from embark.models.loading import Loading
from embark.settings import Settings
from embark.types import EmbarkError, ModelCard

SAFE = ("*.json", "*.jsonl", "*.txt", "*.model", "*.jinja", "*.tiktoken", "*.safetensors")
RISKY = ("*.py", "*.bin", "*.pt", "*.pth", "*.ckpt")
WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.ckpt", "*.onnx", "*.onnx_data")


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
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    def weights(self) -> list[Path]:
        """Its safetensors; pickles where there are no others and they were consented to."""
        if safe := sorted(self.folder.rglob("*.safetensors")):
            return safe
        self.consent("its weights are pickles, which can run any code when they are opened")
        return sorted(path for pattern in RISKY[1:] for path in self.folder.rglob(pattern))

    def consent(self, why: str) -> None:
        """An error unless the user trusts exactly this revision."""
        if not self.trusted:
            raise EmbarkError(
                f"{self.card.name} is not loaded: {why}. If you trust it: --trust {self.card.revision} "
                f"(in Python: trust='{self.card.revision}')."
            )


def checkpoint(card: ModelCard, loading: Loading, also: Sequence[str] = ()) -> Checkpoint:
    """The card's files, downloaded once; `also` are further patterns that its loader reads."""
    folder = Path(card.source).expanduser()
    if folder.is_dir():
        card = replace(card, revision=digest(folder))
        return Checkpoint(folder, card, loading.trust == card.revision)
    given = loading.options or settings.load()
    revision = _commit(card, given)
    trusted = loading.trust == revision
    patterns = [*SAFE, *also, *(RISKY if trusted else ())]
    return Checkpoint(_download(card.source, revision, patterns, given), replace(card, revision=revision), trusted)


def companion(found: Checkpoint, part: str, loading: Loading) -> Checkpoint:
    """The checkpoint of a part that another repository holds: settings say "ID@REVISION"; else the folder has it."""
    told = str(found.card.settings.get(part, ""))
    if not told:
        return Checkpoint(found.folder / part, found.card, found.trusted)
    source, _, revision = told.partition("@")
    return checkpoint(replace(found.card, source=source, revision=revision), loading)


def digest(folder: Path) -> str:
    """A local checkpoint's revision: the hash of all its files' names and bytes."""
    whole = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            part = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{path.relative_to(folder).as_posix()} {part}\n".encode())
    return f"local-{whole.hexdigest()[:16]}"


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


def _failed(source: str, revision: str, error: Exception) -> EmbarkError:
    told = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return EmbarkError(
        f"The checkpoint {source} at revision {revision} could not be fetched ({told}). Check the name, the network "
        "and, for gated models, your hub token; a folder with its files works too."
    )
