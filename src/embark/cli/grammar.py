"""What all commands share: commands listed under headings, and former names of commands and options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup, TyperOption

EARLIER = {  # former or other option name → the words that replace it
    "--no-compile": ("--compile", "no"),
    "--json": ("--format", "json"),
    "--models": ("--model",),
    "--licence": ("--license",),
    "--type": ("--evaluator",),
    "--kind": ("--correlation",),
}


class Command(TyperCommand):
    """A command that accepts the former names of its options."""
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the command's name."""
        known = {option for parameter in self.params for option in parameter.opts}
        words: list[str] = []
        for word in args:
            name, equals, value = word.partition("=")
            now = EARLIER.get(name, ())
            renamed = name not in known and bool(now) and now[0] in known
            words += [now[0] + equals + value, *now[1:]] if renamed else [word]
        words = self._completed(words)
        self._check_repeated(ctx, words)
        return super().parse_args(ctx, words)

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

    `EARLIER` maps former names of commands to present ones; `UNNAMED` is the command that runs if none is named.
    """
    HEADS: ClassVar[dict[str, tuple[str, ...]]] = {}
    EARLIER: ClassVar[dict[str, str]] = {}
    UNNAMED: ClassVar[str] = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the group's name."""
        if self.UNNAMED and args and args[0] not in self.commands and args[0] != "--help":
            args = [self.UNNAMED, *args]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or of that former name."""
        return super().get_command(ctx, self.EARLIER.get(cmd_name, cmd_name))

    def heads(self) -> Mapping[str, tuple[str, ...]]:
        """The names of commands by heading."""
        return self.HEADS

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        heads = self.heads()
        if not heads:
            return super().format_commands(ctx, formatter)
        width = max(len(name) for names in heads.values() for name in names)
        for head, names in heads.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [
                (name.ljust(width), command.get_short_help_str(formatter.width - width - 6))
                for name, command in commands
            ]
            with formatter.section(head):
                formatter.write_dl(rows)
        return None
