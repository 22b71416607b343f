"""Jina-CLIP, by the modelling code that its checkpoints bring: it runs for nobody who did not consent to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embark.models.device import settle, to_numpy
from embark.models.encoder import Encoder, Tower, Towers, frame_mean
from embark.models.hub import Checkpoint, checkpoint
from embark.models.loading import Loading, loaded
from embark.settings import load_settings
from embark.types import Array, EmbarkError, ModelCard


def load(card: ModelCard, loading: Loading) -> Encoder:
    """The model's own `encode_text` and `encode_image`: they prepare, embed and normalise as published."""
    import torch
    from transformers import AutoModel

    found = checkpoint(card, loading)
    found.consent("its modelling code would run, and fetch more code from the repositories that it names")
    found.weights()
    model, told = AutoModel.from_pretrained(
        found.folder, dtype=getattr(torch, found.card.dtype), trust_remote_code=True, output_loading_info=True,
        local_files_only=(loading.settings or load_settings()).offline, **_elsewhere(found),
    )  # fmt: skip
    if missing := sorted(told["missing_keys"]):
        raise EmbarkError(f"{card.name} lacks {len(missing)} weights of its own code, the first is {missing[0]}.")
    model = settle(model, found.card, loading)

    def tower(encode: Callable[..., Any]) -> Callable[[list[Any]], Array]:
        return lambda values: to_numpy(
            encode(values, batch_size=len(values), show_progress_bar=False, convert_to_tensor=True)
        )

    text, image = Tower(tower(model.encode_text)), Tower(tower(model.encode_image), lambda image: image.convert("RGB"))
    dim = text.embed(["a"]).shape[1]
    ready = loaded(found.card, loading, dim, fusion=card.fusion or "sum")
    return Towers(ready, {"text": text, "image": image, "video": frame_mean(image)})


def _elsewhere(found: Checkpoint) -> dict[str, str]:
    """The revision of code that lies in another repository; without one, nobody knows what was consented to."""
    named = [name for name in found.config.get("auto_map", {}).values() if "--" in name]
    code = found.card.options.get("code")
    if named and not code:
        raise EmbarkError(
            f"{found.card.name} takes its code from {named[0].split('--')[0]} and no revision of it is known: "
            "add options={'code': REVISION} to its card."
        )
    return {"code_revision": str(code)} if named else {}
