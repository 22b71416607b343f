"""The card of a checkpoint folder that no row describes: its files say which family it is of."""

from __future__ import annotations

import json
from pathlib import Path

from embark.models.hub import digest
from embark.types import EmbarkError, ModelCard

FILES = {  # a file that only one family writes → loader
    "modules.json": "sentence-transformers",
    "open_clip_config.json": "open_clip",
}
MODEL_TYPES: dict[str, str] = {  # config.json's model_type → loader
}


def recognise(folder: Path) -> ModelCard:
    """A card for the folder; its loader adds what only the checkpoint knows (modalities, dimension)."""
    loader = next((loader for name, loader in FILES.items() if (folder / name).is_file()), None)
    if loader is None and (config := folder / "config.json").is_file():
        kind = json.loads(config.read_text(encoding="utf-8")).get("model_type", "")
        loader = MODEL_TYPES.get(kind)
        if loader is None:
            raise EmbarkError(
                f"{folder} holds a checkpoint of model type '{kind}', which no loader claims; name one: LOADER:{folder}"
            )
    if loader is None:
        raise EmbarkError(f"{folder} holds no checkpoint that embark knows: there is no config.json or modules.json.")
    return ModelCard(f"local/{folder.resolve().name}", digest(folder), loader, (), source=str(folder))
