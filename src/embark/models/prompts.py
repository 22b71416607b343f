"""What text models put before a text: a prefix for its role, or the task's instruction in the model's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from embark.models.encoder import Encoder
from embark.types import Content, EmbarkError, Item, Rendered, Text

PROMPTED = "prompted"  # the mode of what begins with a prompt
HOLE = "{instruction}"


@dataclass(frozen=True)
class Prompts:
    """`by_role` has a prefix a role ("" is every role that has none of its own); `template` takes an instruction.

    Documents never get the instruction: it says what to look for.
    """

    by_role: Mapping[str, str] = field(default_factory=dict)
    template: str = ""

    @classmethod
    def of(cls, options: Mapping[str, Any], found: Mapping[str, str] | None = None) -> Prompts:
        """As a card's options have them, on top of those `found` in the checkpoint."""
        template = str(options.get("template", ""))
        if template and HOLE not in template:
            raise EmbarkError(f"The template {template!r} has no place for the instruction: write {HOLE} there.")
        return cls({**(found or {}), **options.get("prompts", {})}, template)

    def before(self, role: str, instruction: str | None) -> str:
        """The text to put before an item; empty where there is none."""
        if instruction and self.template and role != "document":
            return self.template.replace(HOLE, instruction)
        return self.by_role.get(role, self.by_role.get("", ""))


class Prompted(Encoder):
    """An encoder with prompts: what stands before an item is a part of its own, so that keys cover it."""

    prompts: Prompts

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The prompt, then the item."""
        prompt = self.prompts.before(role, instruction)
        return Rendered((Text(prompt), *item.parts), PROMPTED) if prompt else Rendered(item.parts)


def split(contents: Sequence[Content], mode: str) -> tuple[str, Sequence[Content]]:
    """(prompt, the item's own contents) of what `Prompted.render` made."""
    return (str(contents[0].value), contents[1:]) if PROMPTED in mode.split() else ("", contents)


def joined(contents: Sequence[Content]) -> str:
    """The texts of an item as one."""
    return " ".join(str(content.value) for content in contents)
