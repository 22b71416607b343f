"""Jina-CLIP, with the modelling code of its checkpoints, which runs only for a trusted revision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embark.models.checkpoints import Checkpoint, fetch_checkpoint
from embark.models.device import to_device, to_numpy
from embark.models.encoder import Encoder, Tower, Towers, image_towers
from embark.models.loading import Loading, loaded_card
from embark.settings import load_settings
from embark.types import Array, EmbarkError, ModelCard


def load(card: ModelCard, loading: Loading) -> Encoder:
    """The model's own `encode_text` and `encode_image`, which prepare, embed and normalise."""
    import torch
    from transformers import AutoModel

    checkpoint = fetch_checkpoint(card, loading)
    checkpoint.require_trust("its modelling code would run, and fetch more code from the repositories that it names")
    checkpoint.weight_files()
    model, report = AutoModel.from_pretrained(
        checkpoint.folder, dtype=getattr(torch, checkpoint.card.dtype), trust_remote_code=True,
        output_loading_info=True, local_files_only=(loading.settings or load_settings()).offline,
        **_code_revision(checkpoint),
    )  # fmt: skip
    if missing := sorted(report["missing_keys"]):
        raise EmbarkError(f"{card.name} lacks {len(missing)} weights of its own code, the first is {missing[0]}.")
    model = to_device(model, checkpoint.card, loading)

    def as_embed(encode: Callable[..., Any]) -> Callable[[list[Any]], Array]:
        return lambda values: to_numpy(
            encode(values, batch_size=len(values), show_progress_bar=False, convert_to_tensor=True)
        )

    text = Tower(as_embed(model.encode_text))
    images = image_towers(as_embed(model.encode_image), lambda image: image.convert("RGB"))
    ready = loaded_card(checkpoint.card, loading, text.embed(["a"]).shape[1], fusion=card.fusion or "sum")
    return Towers(ready, {"text": text, **images})


def _code_revision(checkpoint: Checkpoint) -> dict[str, str]:
    """The revision of code in another repository, as an argument; without one, the user could not trust it."""
    elsewhere = [name for name in checkpoint.config.get("auto_map", {}).values() if "--" in name]
    code = checkpoint.card.options.get("code")
    if elsewhere and not code:
        raise EmbarkError(
            f"{checkpoint.name} takes its code from {elsewhere[0].split('--')[0]} and no revision of it is known: "
            "add options={'code': REVISION} to its card."
        )
    return {"code_revision": str(code)} if elsewhere else {}
