"""The prompts of text models: a prefix for each role, or the task's instruction in the model's template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from embark.models.encoder import Encoder
from embark.types import Content, EmbarkError, Item, Rendered, Text

PROMPTED = "prompted"  # the mode of rendered items whose first part is a prompt
FIELD = "{instruction}"


@dataclass(frozen=True)
class Prompts:
    """`by_role` are prefixes ("" is every role without one of its own); `template` is filled with an instruction.

    Documents never get the instruction: it describes what to look for.
    """

    by_role: Mapping[str, str] = field(default_factory=dict)
    template: str = ""

    @classmethod
    def from_options(cls, options: Mapping[str, Any], by_role: Mapping[str, str] | None = None) -> Prompts:
        """The prompts of a card's options; `by_role` are those of its checkpoint, for roles without an option."""
        template = str(options.get("template", ""))
        if template and FIELD not in template:
            raise EmbarkError(f"The template {template!r} has no place for the instruction: write {FIELD} there.")
        return cls({**(by_role or {}), **options.get("prompts", {})}, template)

    def prompt(self, role: str, instruction: str | None) -> str:
        """The text to put before an item; empty where there is none."""
        if instruction and self.template and role != "document":
            return self.template.replace(FIELD, instruction)
        return self.by_role.get(role, self.by_role.get("", ""))


class Prompted(Encoder):
    """An encoder with prompts: the prompt is a part of its own before the item's, so that keys cover it."""

    prompts: Prompts

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The prompt, then the item."""
        prompt = self.prompts.prompt(role, instruction)
        return Rendered((Text(prompt), *item.parts), PROMPTED) if prompt else Rendered(item.parts)


def split_prompt(contents: Sequence[Content], mode: str) -> tuple[str, Sequence[Content]]:
    """(prompt, the item's own contents) of what `Prompted.render` returned."""
    return (str(contents[0].value), contents[1:]) if PROMPTED in mode.split() else ("", contents)


def join_texts(contents: Sequence[Content]) -> str:
    """The texts of an item, joined by spaces."""
    return " ".join(str(content.value) for content in contents)
