"""VLM2Vec's first models, on Phi-3.5-vision: put together here from parts of transformers, which has no class for it.

The checkpoint's own code would need consent, and runs on transformers 4 only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, isqrt
from types import SimpleNamespace
from typing import Any

from embark.models import hub
from embark.models.device import settle
from embark.models.encoder import Encoder, some
from embark.models.hf import CLIP_MEAN, CLIP_SPREAD, Tokenizer, tensors, weights
from embark.models.hub import Checkpoint
from embark.models.loading import Loading, put_to_work
from embark.models.lora import adapted, merge
from embark.models.mllm import LIMIT, Prompt, Reader, Seen, complete
from embark.types import Content, ModelCard

EYES = "model.vision_embed_tokens."
PLACE = "<|image|>"  # the token that a picture's states take the place of
HEAD = 64  # the width of an attention head of CLIP; all other shapes are those of the weights


def load(card: ModelCard, loading: Loading) -> Encoder:
    """The encoder of a Phi-3.5-vision checkpoint, whole or as an adapter of it."""
    found, base = adapted(hub.checkpoint(card, loading), loading)
    tokenizer = Tokenizer(found if (found.folder / "tokenizer_config.json").is_file() else base, LIMIT)
    parts = settle(_parts(base, loading), found.card, replace(loading, compile=False))
    if base is not found:
        merge(parts, found)
    model = Vision(parts, tokenizer.inner.convert_tokens_to_ids(PLACE))
    card = complete(found.card, "phi3_v", model.words.config.hidden_size, ("text", "image"))
    card = put_to_work(card, loading, ("torch", "transformers"))
    eyes = Crops(card.options["crops"], model.eyes.config.image_size, model.merged)
    return Phi(card, model, tokenizer, {"image": eyes})


class Phi(Reader):
    """Each text between pictures is tokenised for itself, with a token of beginning of its own."""

    def prepare(self, contents: Sequence[Content], mode: str) -> Prompt:
        """Tokens and pictures; a text alone is cut to the context, as published."""
        ids: list[int] = []
        media: list[Mapping[str, Any]] = []
        words = ""
        for content in contents:
            if content.kind == "text":
                words += self.foreign.sub(" ", content.value)
                continue
            seen = self.senses[content.kind](content.value)
            place = [self.model.config.image_token_id] * seen.prompt.count(PLACE)
            ids, words = [*ids, *self.tokenizer(words), *place], ""
            media.append(seen.tensors)
        ids = some(ids + self.tokenizer(words))
        return Prompt(ids if media else ids[: self.card.context], tuple(media))


class Crops:
    """A picture as a whole and in squares: as many as fit its shape, but no more than the card says."""

    def __init__(self, most: int, side: int, merged: int) -> None:
        self.most, self.side, self.merged = most, side, merged

    def image(self, image: Any) -> Any:
        """The picture, as wide as so many squares, on a white page as high as some."""
        from PIL import Image

        image = image.convert("RGB")
        if tall := image.width < image.height:
            image = image.transpose(Image.Transpose.TRANSPOSE)
        ratio, wide = image.width / image.height, 1
        while (wide + 1) * ceil((wide + 1) / ratio) <= self.most:
            wide += 1
        width, height = wide * self.side, int(wide * self.side / ratio)
        page = Image.new("RGB", (width, ceil(height / self.side) * self.side), "white")
        page.paste(image.resize((width, height), Image.Resampling.BILINEAR), (0, (page.height - height) // 2))
        return page.transpose(Image.Transpose.TRANSPOSE) if tall else page

    def __call__(self, image: Any) -> Seen:
        """The whole, then the squares; `crops` says how many lines and columns there are of them."""
        import numpy as np
        import torch

        page = torch.from_numpy(np.array(self.image(image), np.float32) / 255)
        page = ((page - torch.tensor(CLIP_MEAN)) / torch.tensor(CLIP_SPREAD)).permute(2, 0, 1)
        high, wide = (length // self.side for length in page.shape[1:])
        whole = torch.nn.functional.interpolate(page[None], size=(self.side, self.side), mode="bicubic")
        squares = page.view(3, high, self.side, wide, self.side).permute(1, 3, 0, 2, 4).reshape(-1, *whole.shape[1:])
        places = (high * wide + 1) * self.merged**2 + 1 + (high + 1) * self.merged
        tensors = {"pixel_values": torch.cat([whole, squares]), "crops": torch.tensor([[high, wide]])}
        return Seen(PLACE * places, tensors)


# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Vision:
    """Pictures and words to the states of the language model."""

    def __init__(self, parts: Any, place: int) -> None:
        self.parts, self.words, self.eyes = parts, parts["words"], parts["eyes"]
        self.device, self.dtype, self.config = (
            self.words.device,
            self.words.dtype,
            SimpleNamespace(model_type="phi3_v", image_token_id=place),
        )
        self.merged = self.eyes.config.image_size // self.eyes.config.patch_size // 2

    def __call__(
        self, input_ids: Any, attention_mask: Any, pixel_values: Any = None, crops: Any = None, **others: Any
    ) -> Any:
        """The final states; those of a picture stand where its placeholders are."""
        states = self.words.get_input_embeddings()(input_ids)
        if pixel_values is not None:
            place = (input_ids == self.config.image_token_id)[..., None]
            states = states.masked_scatter(place, self.pictures(pixel_values, crops.tolist()).to(states.dtype))
        return self.words(inputs_embeds=states, attention_mask=attention_mask, **others)

    def pictures(self, pixels: Any, crops: list[list[int]]) -> Any:
        """For each picture: its squares line by line, a mark, the whole."""
        import torch

        features = self.eyes(pixels, output_hidden_states=True).hidden_states[-2][:, 1:]
        out, at = [], 0
        for high, wide in crops:
            end = at + 1 + high * wide
            squares, whole = self.lines(features[at + 1 : end], high, wide), self.lines(features[at : at + 1], 1, 1)
            out += [squares, self.parts["marks"]["glb_GN"], whole]
            at = end
        return self.parts["img_projection"](torch.cat(out))

    def lines(self, features: Any, high: int, wide: int) -> Any:
        """Patches in twos by twos, line by line over all squares, each line with its end."""
        import torch

        side, width = self.merged, features.shape[-1]
        grid = features.reshape(high, wide, side, 2, side, 2, width).permute(0, 2, 1, 4, 3, 5, 6)
        rows = grid.reshape(high * side, wide * side, 4 * width)
        return torch.cat([rows, self.parts["marks"]["sub_GN"].expand(len(rows), 1, -1)], 1).flatten(0, 1)


def _parts(found: Checkpoint, loading: Loading) -> Any:
    """The language model, the eyes, and what stands between them, with the checkpoint's weights."""
    import torch
    from transformers import CLIPVisionModel, Phi3Model

    state = {name: tensor for path in found.weights() for name, tensor in tensors(path).items()}
    seen = {name.removeprefix(EYES): tensor for name, tensor in state.items() if name.startswith(EYES)}
    said = {name: tensor for name, tensor in state.items() if not name.startswith((EYES, "lm_head."))}
    looks = {name.removeprefix("img_processor."): seen[name] for name in seen if name.startswith("img_processor.")}
    first, second = (seen[f"img_projection.{at}.weight"].shape for at in (0, 2))
    projection = torch.nn.Sequential(
        torch.nn.Linear(*reversed(first)), torch.nn.GELU(), torch.nn.Linear(*reversed(second))
    )
    projection.load_state_dict({name: seen[f"img_projection.{name}"] for name in projection.state_dict()})
    marks = {name: torch.nn.Parameter(seen[name].flatten()[None]) for name in ("glb_GN", "sub_GN")}
    return torch.nn.ModuleDict(
        {
            "words": weights(Phi3Model, found, loading, said, config=_config(found)),
            "eyes": weights(CLIPVisionModel, found, loading, looks, config=_clip(looks)),
            "img_projection": projection,
            "marks": torch.nn.ParameterDict(marks),
        }
    )


def _config(found: Checkpoint) -> Any:
    """The language model's, in today's words."""
    from transformers import Phi3Config

    facts = {name: value for name, value in found.config.items() if name not in ("model_type", "auto_map")}
    if facts.get("rope_scaling", {}).get("type") == "su":
        facts["rope_scaling"] = {**facts["rope_scaling"], "type": "longrope"}
    return Phi3Config.from_dict(facts)


def _clip(state: Mapping[str, Any]) -> Any:
    """CLIP's vision tower, of the shapes that its weights have."""
    from transformers import CLIPVisionConfig

    name = "vision_model.{}.weight".format
    patches, places = state[name("embeddings.patch_embedding")], state[name("embeddings.position_embedding")]
    width, patch = patches.shape[0], patches.shape[-1]
    return CLIPVisionConfig(
        hidden_size=width, patch_size=patch, image_size=isqrt(len(places) - 1) * patch,
        num_attention_heads=width // HEAD, intermediate_size=len(state[name("encoder.layers.0.mlp.fc1")]),
        num_hidden_layers=sum(each.endswith("mlp.fc1.weight") for each in state),
    )  # fmt: skip
