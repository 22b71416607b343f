"""Which files of a dataset hold a split: by the row's patterns, else the dataset card, else the usual layouts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from embark.types import EmbarkError, Source

TABLES = ("parquet", "jsonl", "json", "csv", "tsv", "tar", "jsonl.gz", "json.gz", "csv.gz", "tsv.gz")
SHARDS = ("parquet", "jsonl", "tar", "json", "csv", "tsv", "jsonl.gz")

_WHOLE = ("{split}.{ext}", "data/{split}.{ext}")
_SHARDED = (
    "data/{split}-*.{ext}",
    "{split}-*.{ext}",
    "{split}/*.{ext}",
    "data/{split}/*.{ext}",
    "data/{split}_*.{ext}",
)
_OF_CONFIG = (
    "{config}/{split}-*.{ext}",
    "{config}/{split}/*.{ext}",
    "{config}/{split}.{ext}",
    "data/{config}/{split}-*.{ext}",
    "data/{config}/{split}/*.{ext}",
    "data/{config}/{split}.{ext}",
    "{config}-{split}.{ext}",
    "{config}_{split}.{ext}",
    "{config}-{split}-*.{ext}",
    "{config}/{split}_*.{ext}",
    "{config}/*[-_.]{split}.{ext}",
    "{config}/*[-_.]{split}[-_.]*.{ext}",
    "{config}.{ext}",
)
_JUDGEMENTS = ("qrels/{split}.{ext}",)  # BEIR keeps them apart from corpus.jsonl and queries.jsonl

Card = Callable[[], str]


class NoFiles(EmbarkError):
    """The dataset has no files for what was asked."""


def choose(source: Source, split: str, config: str | None, paths: Sequence[str], card: Card) -> list[str]:
    """The files of a split in order; none is an error that lists what is there. `card` reads the dataset's card."""
    there = sorted(paths, key=natural)
    patterns = (source.files.get(f"{config}/{split}") if config else None) or source.files.get(split)
    if patterns is not None:
        found = [path for path in there if any(fnmatchcase(path, pattern) for pattern in patterns)]
    else:
        found = _by_card(source, split, config, there, card) or _usual(split, config, there)
    if found:
        return found
    what = f"split '{split}'" + (f" of config '{config}'" if config else "")
    told = f" (patterns: {', '.join(patterns)})" if patterns is not None else ""
    raise NoFiles(f"Dataset {source.id} has no files for {what}{told}. Its files: {_listed(there)}.")


def is_table(path: str) -> bool:
    """Whether a file can hold rows."""
    return path.endswith(tuple(f".{ext}" for ext in TABLES))


# ── the usual layouts ────────────────────────────────────────────────────────────────────────────────────────────────


def _usual(split: str, config: str | None, there: Sequence[str], root: str = "") -> list[str]:
    """The files of the first layout that fits."""
    plain = config in (None, "default")
    layouts = (*(() if plain else _OF_CONFIG), *(_SHARDED + _WHOLE if plain or root else ()))
    layouts += _JUDGEMENTS if config in (None, "default", "qrels") else ()
    for layout in layouts:
        for ext in SHARDS if "*" in layout else TABLES:
            pattern = root + layout.format(split=split, config=config, ext=ext)
            if found := [path for path in there if _glob(pattern).fullmatch(path)]:
                return found
    return []


def natural(path: str) -> tuple[tuple[int, str], ...]:
    """Shard 10 after shard 9, frame 10 after frame 9."""
    return tuple((int(run), "") if run.isdigit() else (-1, run) for run in re.findall(r"\d+|\D+", path))


def _glob(pattern: str) -> re.Pattern[str]:
    """A pattern in which * stays within a folder, as hubs have it; ** does not, and {a,b} is either."""

    def translated(text: str) -> str:
        return "".join(map(one, re.findall(r"\*\*/|\*\*|\[[^\]]+\]|\{[^{}]*\}|.", text)))

    def one(token: str) -> str:
        if len(token) > 1 and token[0] == "[":
            return token.replace("[!", "[^")
        if len(token) > 1 and token[0] == "{":
            return f"(?:{'|'.join(map(translated, token[1:-1].split(',')))})"
        return {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(token) or re.escape(token)

    return re.compile(translated(pattern))


def _listed(paths: Sequence[str]) -> str:
    return ", ".join(paths[:12]) + (f" and {len(paths) - 12} more" if len(paths) > 12 else "") or "none"


# ── the card ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _by_card(source: Source, split: str, config: str | None, there: Sequence[str], card: Card) -> list[str]:
    """Files by the card's `configs`, if it has the config that was asked for."""
    if "README.md" not in there:
        return []
    entry = _entry(card_configs(card(), source.id), config)
    root = f"{str(entry.get('data_dir', '')).removeprefix('.').strip('/')}/".lstrip("/")
    if "data_files" not in entry:
        return _usual(split, None, there, root) if root else []
    found: list[str] = []
    for name, pattern in _data_files(entry["data_files"], source.id):
        if name == split:
            expression = _glob(root + pattern.removeprefix("./"))
            found += [path for path in there if is_table(path) and expression.fullmatch(path) and path not in found]
    return found


def _entry(configs: Sequence[Mapping[str, Any]], config: str | None) -> Mapping[str, Any]:
    """The config of that name; without a name, the default one or the only one."""
    by_name = {str(entry.get("config_name", "default")): entry for entry in configs}
    if config is not None:
        return by_name.get(config, {})
    default = [entry for entry in configs if entry.get("default") == "true"]
    if default or "default" in by_name:
        return default[0] if default else by_name["default"]
    return configs[0] if len(configs) == 1 else {}


def _data_files(stated: Any, id: str) -> Iterator[tuple[str, str]]:
    """(split, pattern) pairs; patterns without a split are of "train", as hubs have it."""
    for one in stated if isinstance(stated, list) else [stated]:
        if isinstance(one, str):
            yield "train", one
        elif isinstance(one, dict) and "path" in one:
            for pattern in one["path"] if isinstance(one["path"], list) else [one["path"]]:
                yield str(one.get("split", "train")), str(pattern)
        else:
            raise EmbarkError(f"The card of dataset {id} has data_files that are not understood: {one}.")


def card_configs(card: str, id: str = "?") -> list[dict[str, Any]]:
    """The `configs` of a dataset card: the small part of YAML that they are written in, and nothing else."""
    front = re.match(r"\ufeff?---\s*\n(.*?\n)---\s*(\n|$)", card.replace("\r\n", "\n"), re.DOTALL)
    block = re.search(r"^configs:[ \t]*\n((?:(?:[ \t-].*|#.*)?\n)*)", front[1], re.MULTILINE) if front else None
    if block is None:
        return []
    lines = [(len(line) - len(line.lstrip()), _uncommented(line.strip())) for line in block[1].splitlines()]
    lines = [(indent, text) for indent, text in lines if text]
    try:
        configs, rest = _yaml(lines) if lines else ([], [])
        if rest or not isinstance(configs, list) or not all(isinstance(entry, dict) for entry in configs):
            raise ValueError(rest[0][1] if rest else "not a list of configs")
    except (ValueError, RecursionError) as error:
        message = (
            f"The card of dataset {id} has `configs` that are not understood ({error}): name the files in the row."
        )
        raise EmbarkError(message) from None
    return configs


Lines = list[tuple[int, str]]


def _yaml(lines: Lines) -> tuple[Any, Lines]:
    """The list or mapping that starts at the first line, and the lines after it."""
    indent, first = lines[0]
    if first.startswith("- ") or first == "-":
        return _yaml_list(indent, lines)
    found: dict[str, Any] = {}
    while lines and lines[0][0] == indent and not lines[0][1].startswith("- "):
        pair = re.fullmatch(r"(\"[^\"]*\"|'[^']*'|[^\s:\"'\[\]{}&*!|>%@`][^:]*):(?:\s+(.*))?", lines[0][1])
        if pair is None:
            raise ValueError(lines[0][1])
        key, inline, lines = _scalar(pair[1]), pair[2], lines[1:]
        if inline:
            found[key] = _inline(inline)
        elif lines and (lines[0][0] > indent or (lines[0][0] == indent and lines[0][1].startswith("- "))):
            found[key], lines = _yaml(lines)
        else:
            found[key] = ""
    if lines and lines[0][0] > indent:
        raise ValueError(lines[0][1])
    return found, lines


def _yaml_list(indent: int, lines: Lines) -> tuple[list[Any], Lines]:
    found: list[Any] = []
    while lines and lines[0][0] == indent and (lines[0][1].startswith("- ") or lines[0][1] == "-"):
        text = lines[0][1][1:].lstrip()
        inner = indent + len(lines[0][1]) - len(text)
        nested = not text or text.startswith("- ") or re.match(r"[\w\"'-]+:(\s|$)", text)
        if not nested:
            value, lines = _inline(text), lines[1:]
        else:
            value, lines = _yaml([(inner, text), *lines[1:]] if text else lines[1:])
        found.append(value)
    return found, lines


def _inline(text: str) -> Any:
    """A scalar, or a list in brackets."""
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(part) for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^,\[\]\s][^,\[\]]*", text[1:-1])]
    return _scalar(text)


def _scalar(text: str) -> str:
    text = text.strip()
    if text[:1] in "\"'" and text:
        if len(text) < 2 or text[-1] != text[0]:
            raise ValueError(text)
        return text[1:-1]
    if text[:1] in ("[", "{", "&", "|", ">", "!", "%", "@", "`") or (text[:1] == "*" and re.fullmatch(r"\*\w+", text)):
        raise ValueError(text)
    return text


def _uncommented(line: str) -> str:
    """Without a comment, which starts the line or follows a space outside quotes."""
    if line.startswith("#"):
        return ""
    bare: Iterable[re.Match[str]] = re.finditer(r"\"[^\"]*\"|'[^']*'|\s#.*$", line)
    return next((line[: hit.start()].rstrip() for hit in bare if hit[0].lstrip().startswith("#")), line)
