"""Prompts of multimodal language models, as a pure function of card, style, item and instruction.

A card's options (`cards/mllm.py` explains them) say how its authors wrote the prompt. Its answer to a row's style, in
`styles`, says which of them differ where the paper of a benchmark ran it. Two fields of its templates are the row's:
{row} is the row's own template, media in place, and {row_text} the same without media.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from embark.models.encoder import Capabilities, Encoder, render_item
from embark.models.prompts import Prompts
from embark.types import MODALITIES, Array, EmbarkError, Item, Modality, ModelCard, Part, Rendered, Style, Text

TEMPLATE = "{media} {instruction} {text}"  # of rows whose paper's is not known
PROMPTED_LOADERS = ("text", "sentence-transformers", "onnx")
PREPARED: Mapping[str, tuple[Modality, ...]] = {  # facts that change pixels or tokens, and of which items
    "context": MODALITIES,
    "pixels": ("image",),
    "frame_pixels": ("video",),
    "film_pixels": ("video",),
    "video": ("video",),
    "fps": ("video",),
}


def render_prompt(
    card: ModelCard, item: Item, role: str, instruction: str | None, style: Style | None = None
) -> Rendered:
    """The whole prompt, with the item's media in their places; the mode names an answer that `prepare` must follow."""
    answer = answer_to(card, style)
    options = {**card.options, **answer}
    instructed = role not in options["uninstructed"]
    takes_instruction = instructed and answer.get("instructed", card.instructed)
    sentence = _sentence(instruction, options["stop"]) if instruction and takes_instruction else ""
    texts = [part.text for part in item.parts if isinstance(part, Text)]
    text = "\n".join(texts)
    media = [part for part in item.parts if not isinstance(part, Text)]
    templates = options.get("asking", options["templates"]) if instructed else options["templates"]
    row_template = style.template(role, item) if style else None
    row = compose(row_template, media, sentence, text, options.get("gap", False), item.parts)
    row_text = _row_text(compose(row_template, [], sentence, text, options.get("gap", False)))
    if options.get("squeeze"):
        row_text = " ".join(row_text.split()) or " "
    has_text = bool(texts or (sentence and "{asked}" in templates["mixed"]))
    fields: dict[str, Sequence[Part]] = {
        "{media}": media,
        "{text}": [Text(text)],
        "{asked}": [Text(_join(sentence, text))],
        "{instruction}": [Text(sentence)],
        "{system}": [Text(sentence or options["system"])],
        "{prefix}": [Text(options["prefixes"].get(role, options["prefixes"].get("", "")))],
        "{row}": row,
        "{row_text}": [Text(row_text)],
    }
    template = templates["mixed" if media and has_text else "media" if media else "text"]
    pieces = [fields.get(piece, [Text(piece)]) for piece in re.split(r"(\{[a-z_]+\})", template)]
    parts = tuple(_merge_texts([part for piece in pieces for part in piece]))
    return Rendered(parts, _mode(card, style, answer, item))


def compose(
    template: str | None,
    media: Sequence[Part],
    instruction: str,
    text: str,
    gap: bool = False,
    parts: Sequence[Part] = (),
) -> list[Part]:
    """A row's template, filled: a field without content goes, and with it the blank that would have parted it.

    `gap`: the blank before an empty text stays, as some models' code left it. `parts` are {item}, in their order.
    """
    template = template or TEMPLATE
    if media and not re.search(r"\{(media|item)\}", template):
        template = f"{{media}} {template}"
    if not media:
        template = re.sub(r"\{media\} *", "", template)
    if not instruction:
        template = re.sub(r"\{instruction\} ?", "", template)
    if not text:
        template = re.sub(r"\{text\}" if gap else r" ?\{text\}", "", template)
    fields: dict[str, Sequence[Part]] = {
        "{media}": media,
        "{instruction}": [Text(instruction)],
        "{text}": [Text(text)],
        "{item}": parts or [Text(text)],
    }
    pieces = [fields.get(piece, [Text(piece)]) for piece in re.split(r"(\{[a-z]+\})", template)]
    return _merge_texts([part for piece in pieces for part in piece])


def answer_to(card: ModelCard, style: Style | None) -> Mapping[str, Any]:
    """The options of a card that differ under a style; none where the card has no answer to it."""
    return card.styles.get(style.name, {}) if style else {}


def answer_of(card: ModelCard, mode: str) -> tuple[str, Mapping[str, Any]]:
    """(style's name, the card's answer) that a mode of `render_prompt` stands for; ("", {}) for the usual mode."""
    name = mode.rpartition(" ")[0]
    return (name, card.styles[name]) if name else ("", {})


def _mode(card: ModelCard, style: Style | None, answer: Mapping[str, Any], item: Item) -> str:
    """The style's name and a hash of the answer's facts that change this item's pixels or tokens; empty without any."""
    usual = {**card.options, "context": card.context}
    facts = {
        name: answer[name]
        for name, kinds in PREPARED.items()
        if name in answer and answer[name] != usual.get(name) and set(kinds) & set(item.modalities)
    }
    if style is None or not facts:
        return ""
    return f"{style.name} {hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]}"


def _row_text(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def _sentence(instruction: str, stop: bool) -> str:
    """The instruction, with a full stop at its end where `stop` requires one."""
    ended = not stop or unicodedata.category(instruction.strip()[-1:] or ".").startswith("P")
    return instruction if ended else f"{instruction.strip()}."


def _join(instruction: str, text: str) -> str:
    space = " " if instruction and text and not instruction[-1].isspace() else ""
    return f"{instruction}{space}{text}"


def _merge_texts(parts: Sequence[Part]) -> list[Part]:
    """The parts with neighbouring texts as one and empty ones left out."""
    out: list[Part] = []
    for part in parts:
        if isinstance(part, Text) and out and isinstance(out[-1], Text):
            out[-1] = Text(out[-1].text + part.text)
        elif not isinstance(part, Text) or part.text:
            out.append(part)
    return out


# ── from a card alone ────────────────────────────────────────────────────────────────────────────────────────────────


class Unloaded(Encoder):
    """An encoder that only renders: what a model would see, from its card alone."""

    def __init__(self, card: ModelCard) -> None:
        self.card = card
        if "templates" in card.options:
            self.capabilities = Capabilities(render_styled=partial(render_prompt, card))

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """As the loaded model would, without prompts that only its checkpoint states."""
        if self.card.loader in PROMPTED_LOADERS:
            prompt = Prompts.from_options(self.card.options).prompt(role, instruction)
            return Rendered((Text(prompt), *item.parts) if prompt else item.parts)
        if "templates" in self.card.options:
            return render_prompt(self.card, item, role, instruction)
        return Rendered(item.parts)

    def embed(self, batch: Sequence[Any]) -> Array:
        """Nothing is loaded that could."""
        raise EmbarkError(f"{self.card.name} is not loaded; its card alone embeds nothing.")


def sketch(card: ModelCard, item: Item, role: str, instruction: str | None, style: Style | None = None) -> str:
    """What a model sees of an item, as one text: media are their kind in brackets, as in [image]."""
    parts = render_item(Unloaded(card), item, role, instruction, style).parts
    return "".join(part.text if isinstance(part, Text) else f"[{part.kind}]" for part in parts)
