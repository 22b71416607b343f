"""A card for a checkpoint folder without one: the first loader that recognizes the folder loads it."""

from __future__ import annotations

from pathlib import Path

from embark.models.checkpoints import folder_revision, read_json
from embark.models.loaders import LOADERS
from embark.types import EmbarkError, ModelCard


def recognize(folder: Path) -> ModelCard:
    """A card for the folder; its loader adds modalities and dimension."""
    name = f"local/{folder.resolve().name}"
    return ModelCard(name, folder_revision(folder), loader_of(folder), (), source=str(folder))


def loader_of(folder: Path) -> str:
    """The loader of a checkpoint folder."""
    has_config = (folder / "config.json").is_file()
    config = read_json(folder / "config.json") if has_config else {}
    for loader in LOADERS.values():
        if loader.recognize is not None and loader.recognize(folder, config):
            return loader.name
    if has_config:
        raise EmbarkError(
            f"{folder} holds a checkpoint of model type '{config.get('model_type', '')}', which no loader recognizes; "
            f"name one: LOADER:{folder} (see: embark models --help)."
        )
    raise EmbarkError(
        f"{folder} holds no checkpoint that embark knows: there is no config.json, modules.json or model.onnx."
    )
