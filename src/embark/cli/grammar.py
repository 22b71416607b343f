"""The commands' common parts: options that may stand alone or are given once, and commands listed under headings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup, TyperOption

WHOLE = 1000  # letters: of help texts that are not cut


class Command(TyperCommand):
    """A command of ours: an option shown as [NAME] may stand alone, and an option for one value is given once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the command's name."""
        words = self._completed(args)
        self._check_repeated(ctx, words)
        return super().parse_args(ctx, words)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options under the titles of their groups; those of no group come first."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            title = getattr(parameter, "rich_help_panel", None) or "Options"
            if record is not None and isinstance(parameter, TyperOption):
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def _check_repeated(self, ctx: Any, words: list[str]) -> None:
        """An option for one value that has two is an error: the first would be lost."""
        _, _, order = self.make_parser(ctx).parse_args(list(words))
        for parameter in order:
            once = isinstance(parameter, TyperOption) and not (parameter.multiple or parameter.is_flag)
            if once and order.count(parameter) > 1:
                ctx.fail(f"{parameter.opts[-1]} takes one value, and there are {order.count(parameter)}.")

    def _completed(self, words: list[str]) -> list[str]:
        """The words with "" after options that may stand alone: those whose value is shown as [NAME], or as [a|b] where
        it can only be one of these words.
        """
        shown = {option: parameter.metavar or "" for parameter in self.params for option in parameter.opts}
        choices = {option: value.strip("[]") for option, value in shown.items() if value.startswith("[")}
        following = [*words[1:], "-"]

        def is_alone(word: str, after: str) -> bool:
            choice = choices.get(word, "")
            return bool(choice) and (after.startswith("-") if choice.isupper() else after not in choice.split("|"))

        return [
            part
            for word, after in zip(words, following, strict=False)
            for part in ([word, ""] if is_alone(word, after) else [word])
        ]


class Group(TyperGroup):
    """A group whose help lists commands under headings; `HEADS` are its commands by heading, in their order.

    `UNNAMED` is the command that runs if none is named.
    """

    HEADS: ClassVar[dict[str, tuple[str, ...]]] = {}
    UNNAMED: ClassVar[str] = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the group's name."""
        if self.UNNAMED and args and args[0] not in self.commands and args[0] != "--help":
            args = [self.UNNAMED, *args]
        return super().parse_args(ctx, args)

    def heads(self) -> Mapping[str, tuple[str, ...]]:
        """The names of commands by heading."""
        return self.HEADS

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        heads = self.heads() or {"Commands": tuple(self.list_commands(ctx))}
        width = max(len(name) for names in heads.values() for name in names)
        for head, names in heads.items():
            commands = [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
            commands = [(name, command) for name, command in commands if not command.hidden]
            rows = [(name.ljust(width), command.get_short_help_str(WHOLE)) for name, command in commands]
            with formatter.section(head):
                formatter.write_dl(rows)
