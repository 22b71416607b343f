"""VLM2Vec's first models, on Phi-3.5-vision. transformers has no class for it: it is built here of its modules.

The checkpoint's own code would have to be trusted, and runs on transformers 4 only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, isqrt
from types import SimpleNamespace
from typing import Any

from embark.models import checkpoints
from embark.models.checkpoints import Checkpoint
from embark.models.device import release_weights, to_device
from embark.models.encoder import Encoder, require_tokens
from embark.models.hf import CLIP_MEAN, CLIP_SPREAD, Tokenizer, load_model, read_weights, two_layers
from embark.models.loading import Loading
from embark.models.lora import adapter_and_base, merge
from embark.models.mllm import MediaInput, MllmEncoder, Prompt, complete_card
from embark.types import Content, ModelCard

VISION = "model.vision_embed_tokens."  # prefix of the weights that are not the language model's
IMAGE_TOKEN = "<|image|>"  # the placeholder of an image's states
LINEAR = ("weight", "bias")  # of a linear layer
HEAD_WIDTH = 64  # the width of an attention head of CLIP; all other shapes are those of the weights


def load(card: ModelCard, loading: Loading) -> Encoder:
    """The encoder of a Phi-3.5-vision checkpoint, whole or as an adapter of it."""
    checkpoint, base = adapter_and_base(checkpoints.fetch_checkpoint(card, loading), loading)
    with_tokenizer = checkpoint if (checkpoint.folder / "tokenizer_config.json").is_file() else base
    tokenizer = Tokenizer(with_tokenizer, cut=False)
    modules = to_device(_modules(base, loading), checkpoint.card, replace(loading, compile=False))
    merge(modules, checkpoint)
    model = PhiModel(modules, tokenizer.inner.convert_tokens_to_ids(IMAGE_TOKEN))
    card = complete_card(checkpoint.card, loading, "phi3_v", model.language.config.hidden_size, ("text", "image"))
    processor = CropProcessor(card.options["crops"], model.vision.config.image_size, model.merged)
    release_weights(modules, loading)
    return PhiEncoder(card, model, tokenizer, {"image": processor})


class PhiEncoder(MllmEncoder):
    """Each text between images is tokenised separately, with a beginning token of its own."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.capabilities = replace(self.capabilities, prepare_many=None)

    def prepare(self, contents: Sequence[Content], mode: str) -> Prompt:
        """Tokens and images; a text without an image is cut to the context, as published."""
        ids: list[int] = []
        media: list[Mapping[str, Any]] = []
        text = ""
        for content in contents:
            if content.kind == "text":
                text += self.placeholders.sub(" ", content.value)
                continue
            image = self.processors[content.kind](content.value)
            ids += self.tokenizer(text)
            ids += [self.model.config.image_token_id] * image.prompt.count(IMAGE_TOKEN)
            media.append(image.tensors)
            text = ""
        ids = require_tokens(ids + self.tokenizer(text))
        return Prompt(ids if media else ids[: self.card.context], tuple(media))


@dataclass(frozen=True)
class CropProcessor:
    """An image as a whole and in squares: as many as fit its shape, but no more than `most`.

    `side` is that of a square in pixels, `merged` that in merged patches.
    """

    most: int
    side: int
    merged: int

    def image(self, image: Any) -> Any:
        """The image, resized to a whole number of squares' width, on a white page of a whole number's height."""
        from PIL import Image

        image = image.convert("RGB")
        if tall := image.width < image.height:
            image = image.transpose(Image.Transpose.TRANSPOSE)
        ratio = image.width / image.height
        wide = 1
        while (wide + 1) * ceil((wide + 1) / ratio) <= self.most:
            wide += 1
        width, height = wide * self.side, int(wide * self.side / ratio)
        page = Image.new("RGB", (width, ceil(height / self.side) * self.side), "white")
        page.paste(image.resize((width, height), Image.Resampling.BILINEAR), (0, (page.height - height) // 2))
        return page.transpose(Image.Transpose.TRANSPOSE) if tall else page

    def __call__(self, image: Any) -> MediaInput:
        """The whole, then the squares; the tensor `crops` has the numbers of their rows and columns."""
        import numpy as np
        import torch

        page = torch.from_numpy(np.array(self.image(image), np.float32) / 255)
        page = ((page - torch.tensor(CLIP_MEAN)) / torch.tensor(CLIP_SPREAD)).permute(2, 0, 1)
        high, wide = (length // self.side for length in page.shape[1:])
        whole = torch.nn.functional.interpolate(page[None], size=(self.side, self.side), mode="bicubic")
        squares = page.view(3, high, self.side, wide, self.side).permute(1, 3, 0, 2, 4).reshape(-1, *whole.shape[1:])
        states = (high * wide + 1) * self.merged**2 + 1 + (high + 1) * self.merged
        tensors = {"pixel_values": torch.cat([whole, squares]), "crops": torch.tensor([[high, wide]])}
        return MediaInput(IMAGE_TOKEN * states, tensors)


# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────────


class PhiModel:
    """Tokens and images to the final states of the language model."""

    def __init__(self, modules: Any, image_token_id: int) -> None:
        self.modules = modules
        self.language = modules["language"]
        self.vision = modules["vision"]
        self.device = self.language.device
        self.dtype = self.language.dtype
        self.config = SimpleNamespace(model_type="phi3_v", image_token_id=image_token_id)
        self.merged = self.vision.config.image_size // self.vision.config.patch_size // 2  # merged patches per side

    def __call__(
        self, input_ids: Any, attention_mask: Any, pixel_values: Any = None, crops: Any = None, **others: Any
    ) -> Any:
        """The final states; an image's states replace its placeholders."""
        states = self.language.get_input_embeddings()(input_ids)
        if pixel_values is not None:
            placeholders = (input_ids == self.config.image_token_id)[..., None]
            states = states.masked_scatter(placeholders, self.images(pixel_values, crops.tolist()).to(states.dtype))
        return self.language(inputs_embeds=states, attention_mask=attention_mask, **others)

    def images(self, pixels: Any, crops: list[list[int]]) -> Any:
        """For each image: its squares line by line, a separator, the whole."""
        import torch

        features = self.vision(pixels, output_hidden_states=True).hidden_states[-2][:, 1:]
        by_image = features.split([1 + high * wide for high, wide in crops])
        out = []
        for image, (high, wide) in zip(by_image, crops, strict=True):
            squares = self.lines(image[1:], high, wide)
            out += [squares, self.modules["separators"]["glb_GN"], self.lines(image[:1], 1, 1)]
        return self.modules["img_projection"](torch.cat(out))

    def lines(self, features: Any, high: int, wide: int) -> Any:
        """Merged patches (2 × 2), line by line over all squares, each line with a separator at its end."""
        import torch

        side = self.merged
        width = features.shape[-1]
        grid = features.reshape(high, wide, side, 2, side, 2, width).permute(0, 2, 1, 4, 3, 5, 6)
        rows = grid.reshape(high * side, wide * side, 4 * width)
        return torch.cat([rows, self.modules["separators"]["sub_GN"].expand(len(rows), 1, -1)], 1).flatten(0, 1)


def _modules(checkpoint: Checkpoint, loading: Loading) -> Any:
    """The language model, the vision tower, the projection and the separators, with the checkpoint's weights."""
    import torch
    from transformers import CLIPVisionModel, Phi3Model

    loading = replace(loading, weights=True)  # whose shapes say what the modules are
    state = read_weights(checkpoint)
    language = {name: tensor for name, tensor in state.items() if not name.startswith((VISION, "lm_head."))}
    image = {name.removeprefix(VISION): tensor for name, tensor in state.items() if name.startswith(VISION)}
    tower = {name.removeprefix("img_processor."): image[name] for name in image if name.startswith("img_processor.")}
    projection = {f"{layer}.{name}": image[f"img_projection.{layer}.{name}"] for layer in (0, 2) for name in LINEAR}
    separators = {name: torch.nn.Parameter(image[name].flatten()[None]) for name in ("glb_GN", "sub_GN")}
    return torch.nn.ModuleDict(
        {
            "language": load_model(Phi3Model, checkpoint, loading, language, config=_config(checkpoint)),
            "vision": load_model(CLIPVisionModel, checkpoint, loading, tower, config=_clip_config(tower)),
            "img_projection": two_layers(projection, torch.nn.GELU()),
            "separators": torch.nn.ParameterDict(separators),
        }
    )


def _config(checkpoint: Checkpoint) -> Any:
    """The language model's configuration, with the present names of its options."""
    from transformers import Phi3Config

    facts = {name: value for name, value in checkpoint.config.items() if name not in ("model_type", "auto_map")}
    if facts.get("rope_scaling", {}).get("type") == "su":
        facts["rope_scaling"] = {**facts["rope_scaling"], "type": "longrope"}
    return Phi3Config.from_dict(facts)


def _clip_config(state: Mapping[str, Any]) -> Any:
    """The configuration of CLIP's vision tower, from the shapes of its weights."""
    from transformers import CLIPVisionConfig

    name = "vision_model.{}.weight".format
    width, _, _, patch = state[name("embeddings.patch_embedding")].shape
    positions = len(state[name("embeddings.position_embedding")])
    return CLIPVisionConfig(
        hidden_size=width, patch_size=patch, image_size=isqrt(positions - 1) * patch,
        num_attention_heads=width // HEAD_WIDTH, intermediate_size=len(state[name("encoder.layers.0.mlp.fc1")]),
        num_hidden_layers=sum(weight.endswith("mlp.fc1.weight") for weight in state),
    )  # fmt: skip
