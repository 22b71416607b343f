"""Encoders as ONNX files: a text graph with its tokeniser, an image graph with its preprocessing, or both.

Neither torch nor transformers is needed. A folder holds what exporters write: model.onnx or text_model.onnx with
tokenizer.json, vision_model.onnx with preprocessor_config.json; the graphs may lie in a folder `onnx`. Further options
are in an embark.json beside them: `pooling` (last, first, mean), `normalise`, `tokens`, `prompts`, `template`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from embark.models.checkpoints import fetch_checkpoint, read_json
from embark.models.encoder import (
    Capabilities,
    Encoder,
    Tower,
    Towers,
    embed_in_groups,
    image_towers,
    prepare_many,
    require_tokens,
    unit,
)
from embark.models.loading import Loading, record_loading
from embark.models.pixels import Fit
from embark.models.prompts import Prompted, Prompts, join_texts, split_prompt
from embark.models.text_length import TextLength, text_length
from embark.types import MODALITIES, Array, Content, EmbarkError, Item, Modality, ModelCard, Rendered

WEIGHT_FILES = (
    ("text_model.onnx", "vision_model.onnx"),
    ("model.onnx",),
)  # the first group that has a file; whole models last
VECTORS = ("sentence_embedding", "text_embeds", "image_embeds", "pooler_output")  # outputs with one row per input
FILLED = ("siglip", "siglip2")  # model types whose texts are padded to their full length, without a mask
Pool = Callable[[Array, Array], Array]
POOLING_NAMES = {"cls": "first", "cls_token": "first", "mean": "mean", "mean_tokens": "mean", "lasttoken": "last"}


def load(card: ModelCard, loading: Loading) -> Encoder:
    """An encoder from a folder or one file; the card's options take precedence over those in embark.json."""
    source = Path(card.source).expanduser()
    if source.is_file():
        folder = source.parent.parent if source.parent.name == "onnx" else source.parent
        file = source.relative_to(folder).as_posix()
        card = replace(card, source=str(folder), options={**card.options, "file": file})
    checkpoint = fetch_checkpoint(card, loading, also=("*.onnx", "*.onnx_data"))
    options = {**_json(checkpoint.folder / "embark.json"), **checkpoint.card.options}
    towers: dict[Modality, Tower] = {}
    length = TextLength(None)
    for path in _graphs(checkpoint.folder, options):
        graph = Graph(path, loading)
        if "pixel_values" in graph.inputs:
            towers |= _image_towers(graph, checkpoint.folder, options)
        else:
            length = _text_length(graph, checkpoint.folder, options)
            towers["text"] = _text_tower(graph, checkpoint.folder, options, length.tokens)
    towers = {kind: towers[kind] for kind in MODALITIES if kind in towers}
    fusion = checkpoint.card.fusion or ("unit-sum" if len(towers) == 3 else None)
    card = replace(checkpoint.card, modalities=tuple(towers), fusion=fusion)
    card = record_loading(card, loading, ("onnxruntime",), **length.record)
    return OnnxEncoder(Towers(replace(card, dim=_dim(card, towers)), towers), Prompts.from_options(options))


def _graphs(folder: Path, options: Mapping[str, Any]) -> list[Path]:
    for names in ((options["file"],),) if "file" in options else WEIGHT_FILES:
        if paths := [path for name in names for path in (folder / name, folder / "onnx" / name) if path.is_file()]:
            return paths
    raise EmbarkError(
        f"{folder} holds no ONNX encoder: none of {', '.join(name for names in WEIGHT_FILES for name in names)}."
    )


@dataclass(eq=False)
class OnnxEncoder(Prompted):
    """Towers whose texts may have prompts."""

    towers: Towers
    prompts: Prompts

    def __post_init__(self) -> None:
        self.card = self.towers.card
        self.capabilities = Capabilities(prepare_many=self._prepare_many, styled_pixels=True)

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The prompt, then the item; an item without text has no prompt."""
        return super().render(item, role, instruction) if "text" in item.modalities else Rendered(item.parts)

    def prepare(self, contents: Sequence[Content], mode: str) -> list[tuple[Modality, Any]]:
        """A prompt becomes the beginning of the item's text."""
        return self.towers.prepare(_with_prompt(contents, mode), mode)

    def _prepare_many(
        self, batch: Sequence[Sequence[Content]], modes: Sequence[str]
    ) -> Sequence[list[tuple[Modality, Any]]]:
        """As `prepare` for each item."""
        return prepare_many(self.towers, list(map(_with_prompt, batch, modes)), modes)

    def embed(self, batch: Sequence[list[tuple[Modality, Any]]]) -> Array:
        """As towers do."""
        return self.towers.embed(batch)


def _with_prompt(contents: Sequence[Content], mode: str) -> list[Content]:
    """The texts of an item, joined behind the prompt, then its other contents."""
    prompt, own = split_prompt(contents, mode)
    texts = [content for content in own if content.kind == "text"]
    text = [Content("text", prompt + join_texts(texts))] if texts else []
    return [*text, *(content for content in own if content.kind != "text")]


class Graph:
    """An ONNX file, ready to run; an output with one row per input is preferred to token states."""

    def __init__(self, path: Path, loading: Loading) -> None:
        import onnxruntime

        providers = ["CPUExecutionProvider"]
        if loading.device != "cpu" and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            providers.insert(0, "CUDAExecutionProvider")
        self.path = path
        self.session = onnxruntime.InferenceSession(str(path), providers=providers)
        self.inputs = {node.name: node.type for node in self.session.get_inputs()}
        self.shapes = {node.name: node.shape for node in self.session.get_inputs()}
        names = [node.name for node in self.session.get_outputs()]
        self.output = next((name for name in VECTORS if name in names), names[0])

    def __call__(self, inputs: Mapping[str, Array]) -> Array:
        """The chosen output; inputs that the graph does not take are left out."""
        if missing := [name for name in self.inputs if name not in inputs]:
            raise EmbarkError(
                f"{self.path.name} asks for {', '.join(missing)}, which embark does not make; it makes "
                f"{', '.join(inputs)}. Export the text and the image part apart."
            )
        dtypes = {"tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(float16)": np.float16}
        feed = {name: inputs[name].astype(dtypes.get(kind, np.float32)) for name, kind in self.inputs.items()}
        first = next(iter(self.inputs))
        rows = len(feed[first])
        step = self.fixed_size(first, 0) or rows
        parts = [
            {name: np.resize(array[start : start + step], (step, *array.shape[1:])) for name, array in feed.items()}
            for start in range(0, rows, step)  # of a fixed batch, the last is filled with rows that are dropped again
        ]
        return np.concatenate([self.session.run([self.output], part)[0] for part in parts])[:rows].astype(np.float32)

    def fixed_size(self, name: str, axis: int) -> int | None:
        """The length of an input's axis where the graph takes no other; None where it is free."""
        size = self.shapes[name][axis]
        return size if isinstance(size, int) and size > 0 else None


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _text_length(graph: Graph, folder: Path, options: Mapping[str, Any]) -> TextLength:
    config = _json(folder / "config.json")
    length = text_length(folder, config.get("text_config") or config, options.get("tokens"))
    fixed = graph.fixed_size("input_ids", 1)
    return TextLength(fixed, graph.path.name) if fixed and fixed <= (length.tokens or fixed) else length


def _text_tower(graph: Graph, folder: Path, options: Mapping[str, Any], tokens: int | None) -> Tower:
    tokenizer, pad_id = _tokenizer(graph, folder, tokens)
    pool = _pooler(graph, folder, options)
    masked = "attention_mask" in graph.inputs  # where padding cannot be masked, texts of one length share a pass

    def embed_group(_: int, rows: list[Any]) -> Array:
        ids, mask = _padded(rows, pad_id)
        return pool(graph({"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}), mask)

    def embed(rows: list[Any]) -> Array:
        return np.stack(embed_in_groups(rows, lambda row: 0 if masked else len(row[0]), embed_group))

    def prepare_many(texts: list[str]) -> list[tuple[list[int], list[int]]]:
        encodings = tokenizer.encode_batch_fast(texts)
        return [(require_tokens(encoding.ids), encoding.attention_mask) for encoding in encodings]

    return Tower(embed, lambda text: prepare_many([text])[0], prepare_many=prepare_many)


def _tokenizer(graph: Graph, folder: Path, tokens: int | None) -> tuple[Any, int]:
    """(the tokeniser, which cuts texts to so many tokens, and the token of padding).

    `_padded` pads a batch to its longest text, whatever tokenizer.json says: exporters leave their own lengths there.
    The tokeniser pads for a graph that takes one length, and for SigLIP, which reads its padding: up to its full
    length. Where config.json names no model type, a graph without a mask is padded as tokenizer.json states.
    """
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise EmbarkError(
            f"{folder} has no tokenizer.json, which the text encoder {graph.path.name} needs. Copy it into the folder, "
            "with tokenizer_config.json and config.json, from the model that was exported."
        )
    tokenizer = Tokenizer.from_file(str(path))
    truncation = tokenizer.truncation or {}
    padding = tokenizer.padding or {}
    stated = _json(folder / "tokenizer_config.json")
    pad_token = stated.get("pad_token")
    pad_token = pad_token.get("content") if isinstance(pad_token, Mapping) else pad_token
    if not padding and isinstance(pad_token, str) and (pad_id := tokenizer.token_to_id(pad_token)) is not None:
        padding = {"pad_id": pad_id, "pad_token": pad_token, "direction": stated.get("padding_side", "right")}
    tokenizer.no_truncation()
    if tokens:
        side = stated.get("truncation_side") or truncation.get("direction", "right")
        tokenizer.enable_truncation(tokens, direction=side)
    length = graph.fixed_size("input_ids", 1)
    if length is None and "attention_mask" not in graph.inputs:
        kind = _model_type(folder)
        length = tokens if kind in FILLED else None if kind else padding.get("length")
    how = {name: padding[name] for name in ("direction", "pad_id", "pad_type_id", "pad_token") if name in padding}
    if length:
        tokenizer.enable_padding(length=length, **how)
    else:
        tokenizer.no_padding()
    return tokenizer, int(padding.get("pad_id", 0))


def _model_type(folder: Path) -> str:
    """The model type in config.json, also where it is that of the text part alone; empty where there is none."""
    return str(_json(folder / "config.json").get("model_type", "")).removesuffix("_text_model")


def _padded(rows: Sequence[tuple[list[int], list[int]]], pad_id: int) -> tuple[Array, Array]:
    lengths = np.fromiter((len(ids) for ids, _ in rows), np.int64, len(rows))[:, None]
    filled = np.arange(lengths.max()) < lengths
    ids = np.full(filled.shape, pad_id)
    ids[filled] = np.fromiter(chain.from_iterable(ids for ids, _ in rows), np.int64, int(lengths.sum()))
    mask = np.zeros(filled.shape, np.int64)
    mask[filled] = np.fromiter(chain.from_iterable(mask for _, mask in rows), np.int64, int(lengths.sum()))
    return ids, mask


def _pooling(folder: Path, options: Mapping[str, Any]) -> Pool | None:
    pooling = options.get("pooling")
    if pooling is None:  # as sentence-transformers writes it, in its present form or the former one
        config = _json(folder / "1_Pooling" / "config.json")
        former = (name.removeprefix("pooling_mode_") for name in config if config[name])
        names = [str(config.get("pooling_mode", "")), *former]
        pooling = next((POOLING_NAMES[name] for name in names if name in POOLING_NAMES), None)
    if pooling is None:
        return None
    if pooling not in POOLING:
        raise EmbarkError(f"There is no pooling '{pooling}'; there are {', '.join(POOLING)}.")
    return POOLING[pooling]


def _pooler(graph: Graph, folder: Path, options: Mapping[str, Any]) -> Pool:
    """From the graph's output and the mask of its input to vectors; an output that has vectors is not pooled."""
    pool = _pooling(folder, options)

    def vectors(output: Array, mask: Array) -> Array:
        if output.ndim == 3:
            if pool is None:
                raise EmbarkError(
                    f"{graph.path} returns states of tokens, and nothing says how to pool them: write "
                    '{"pooling": "mean"} (or first, last) to an embark.json beside it.'
                )
            output = pool(output, mask)
        return unit(output) if options.get("normalise") else output

    return vectors


def _last(states: Array, mask: Array) -> Array:
    return np.asarray(states[np.arange(len(states)), mask.shape[1] - 1 - mask[:, ::-1].argmax(1)])


def _mean(states: Array, mask: Array) -> Array:
    return np.asarray((states * mask[:, :, None]).sum(1) / np.maximum(mask.sum(1, keepdims=True), 1))


POOLING: dict[str, Pool] = {
    "last": _last,
    "first": lambda states, mask: np.asarray(states[np.arange(len(states)), mask.argmax(1)]),
    "mean": _mean,
}


# ── images ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ImagePreprocessor:
    """The steps of a preprocessor_config.json, with Pillow: resize, crop, scale, normalise."""

    config: Mapping[str, Any]

    def __call__(self, image: Any) -> Array:
        """(3, height, width) of an image."""
        config = self.config
        fit = Fit(
            self._size() if config.get("do_resize", True) else None,
            _sides(config["crop_size"]) if config.get("do_center_crop") else None,
            config.get("resample", 3),
        )
        values = np.asarray(fit(image.convert("RGB")), np.float32)
        if config.get("do_rescale", True):
            values = values * np.float32(config.get("rescale_factor", 1 / 255))
        if config.get("do_normalize", True):
            values = (values - np.float32(config["image_mean"])) / np.float32(config["image_std"])
        return np.ascontiguousarray(values.transpose(2, 0, 1))

    def _size(self) -> int | tuple[int, int]:
        size = self.config["size"]
        if isinstance(size, Mapping) and "height" in size:
            return _sides(size)
        return int(size["shortest_edge"] if isinstance(size, Mapping) else size)


def _image_towers(graph: Graph, folder: Path, options: Mapping[str, Any]) -> dict[Modality, Tower]:
    config = _json(folder / "preprocessor_config.json")
    if not config:
        raise EmbarkError(f"{folder} has no preprocessor_config.json, which {graph.path.name} needs.")
    pool = _pooler(graph, folder, options)

    def embed(images: list[Any]) -> Array:
        states = graph({"pixel_values": np.stack(images)})
        return pool(states, np.ones(states.shape[:2], np.int64))

    return image_towers(embed, ImagePreprocessor(config))


def _sides(size: Any) -> tuple[int, int]:
    return (int(size["height"]), int(size["width"])) if isinstance(size, Mapping) else (int(size), int(size))


def _dim(card: ModelCard, towers: Mapping[Modality, Tower]) -> int:
    from PIL import Image

    samples: dict[Modality, Any] = {"text": "a", "image": Image.new("RGB", (64, 64))}
    dims = {
        kind: towers[kind].embed([towers[kind].prepare(sample)]).shape[1]
        for kind, sample in samples.items()
        if kind in towers
    }
    if len({*dims.values(), card.dim or next(iter(dims.values()))}) > 1:
        listed = ", ".join(f"{kind} {dim}" for kind, dim in dims.items())
        raise EmbarkError(f"{card.name} should have {card.dim or 'one number of'} dimensions, but makes: {listed}.")
    return int(next(iter(dims.values())))


def _json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}
