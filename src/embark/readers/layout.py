"""Which files of a dataset hold a split: by the row's patterns, else the dataset card, else the usual layouts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import yaml

from embark.catalogue import listed
from embark.items.errors import errors_about
from embark.types import EmbarkError, Modality, Source

TABLES = ("parquet", "jsonl", "json", "csv", "tsv", "tar", "jsonl.gz", "json.gz", "csv.gz", "tsv.gz")
MEDIA: dict[Modality, tuple[str, ...]] = {
    "image": ("png", "jpg", "jpeg", "webp", "gif", "bmp", "tif", "tiff", "avif"),
    "audio": ("wav", "flac", "mp3", "ogg", "oga", "opus", "m4a", "aac", "aif", "aiff"),
    "video": ("mp4", "webm", "mkv", "mov", "avi", "m4v", "mpg", "mpeg", "ogv"),
}  # endings of media files
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

FEW_STARS = 3  # in a pattern: regular expressions with more can take for ever

Card = Callable[[], str]


class NoFiles(EmbarkError):
    """The dataset has no files for a split and config."""


def choose(
    source: Source, split: str, config: str | None, paths: Sequence[str], card: Card, stated: bool = False
) -> list[str]:
    """The files of a split in order, out of all `paths` of a dataset; none is an error that lists these.

    `card` reads the dataset's card. `stated`: only files that the row or the card names, none by the usual layouts.
    """
    paths = sorted(paths, key=natural)
    patterns = (source.files.get(f"{config}/{split}") if config else None) or source.files.get(split)
    if patterns is not None:
        chosen = [path for path in paths if any(fnmatchcase(path, pattern) for pattern in patterns)]
    else:
        chosen = _by_card(source, split, config, paths, card) or ([] if stated else _by_layout(split, config, paths))
    if chosen:
        return chosen
    what = f"split '{split}'" + (f" of config '{config}'" if config else "")
    by_patterns = f" (patterns: {', '.join(patterns)})" if patterns is not None else ""
    raise NoFiles(f"Dataset {source.id} has no files for {what}{by_patterns}. Its files: {listed(paths) or 'none'}.")


def is_table(path: str) -> bool:
    """Whether a file can hold rows."""
    return path.endswith(tuple(f".{ext}" for ext in TABLES))


def media_kind(path: str) -> Modality | None:
    """The modality of a media file, by its ending; None for other files."""
    ending = path.lower().rpartition(".")[2]
    return next((kind for kind, endings in MEDIA.items() if ending in endings), None)


# ── the usual layouts ────────────────────────────────────────────────────────────────────────────────────────────────


def _by_layout(split: str, config: str | None, paths: Sequence[str], root: str = "") -> list[str]:
    """The files of the first layout that fits, in a folder of the dataset."""
    unnamed = config in (None, "default")
    layouts = (*(() if unnamed else _OF_CONFIG), *(_SHARDED + _WHOLE if unnamed or root else ()))
    layouts += _JUDGEMENTS if config in (None, "default", "qrels") else ()
    for layout in layouts:
        for ext in SHARDS if "*" in layout else TABLES:
            pattern = root + layout.format(split=split, config=config, ext=ext)
            if fitting := list(filter(_glob(pattern), paths)):
                return fitting
    return []


def natural(path: str) -> tuple[tuple[int, str], ...]:
    """The sort key that puts shard 10 after shard 9, and frame 10 after frame 9."""
    return tuple((int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.findall(r"\d+|\D+", path))


def _glob(pattern: str) -> Callable[[str], object]:
    """Whether a path fits a pattern in which * stays within a folder, as hubs have it; ** does not, {a,b} is either."""
    if pattern.count("*") > FEW_STARS:
        return lambda path: len(path) in _ends(pattern, path, {0})
    return re.compile(_expression(pattern)).fullmatch


def _tokens(pattern: str) -> list[str]:
    return re.findall(r"\*\*/|\*\*|\[[^\]]+\]|\{[^{}]*\}|.", pattern)


def _expression(pattern: str) -> str:
    """A pattern as a regular expression."""

    def expression(token: str) -> str:
        if len(token) > 1 and token[0] == "[":
            return token.replace("[!", "[^")
        if len(token) > 1 and token[0] == "{":
            return f"(?:{'|'.join(map(_expression, token[1:-1].split(',')))})"
        return {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(token) or re.escape(token)

    return "".join(map(expression, _tokens(pattern)))


def _ends(pattern: str, path: str, starts: set[int]) -> set[int]:
    """Where parts of a path end that fit a pattern and start at one of these positions; slow, but never for ever."""
    for token in _tokens(pattern):
        rest = range(min(starts, default=len(path)), len(path))
        if token == "**":
            starts = {*starts, *(position + 1 for position in rest)}
        elif token == "**/":
            starts = starts | {position + 1 for position in rest if path[position] == "/"}
        elif token == "*":
            starts = set(starts)
            for position in rest:
                if position in starts and path[position] != "/":
                    starts.add(position + 1)
        elif token[0] == "{" and len(token) > 1:
            starts = set().union(*(_ends(option, path, starts) for option in token[1:-1].split(",")))
        else:
            fits = re.compile(_expression(token)).fullmatch
            starts = {position + 1 for position in rest if position in starts and fits(path[position])}
    return starts


# ── the card ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _by_card(source: Source, split: str, config: str | None, paths: Sequence[str], card: Card) -> list[str]:
    """Files by the card's `configs`, if it has the config that was asked for."""
    if "README.md" not in paths:
        return []
    entry = _entry(card_configs(card(), source.id), config)
    root = f"{str(entry.get('data_dir', '')).removeprefix('.').strip('/')}/".lstrip("/")
    if "data_files" not in entry:
        return _by_layout(split, None, paths, root) if root else []
    chosen: list[str] = []
    for name, pattern in _data_files(entry["data_files"], source.id):
        if name == split:
            with errors_about(f"The card of dataset {source.id}"):
                fits = _glob(root + pattern.removeprefix("./"))
                chosen += [path for path in paths if is_table(path) and fits(path) and path not in chosen]
    return chosen


def _entry(configs: Sequence[Mapping[str, Any]], config: str | None) -> Mapping[str, Any]:
    """The config of that name; without a name, the default one or the only one."""
    by_name = {str(entry.get("config_name", "default")): entry for entry in configs}
    if config is not None:
        return by_name.get(config, {})
    default = next((entry for entry in configs if entry.get("default") == "true"), None)
    return default or by_name.get("default") or (configs[0] if len(configs) == 1 else {})


def _data_files(value: Any, id: str) -> Iterator[tuple[str, str]]:
    """(split, pattern) pairs; patterns without a split are of "train", as hubs have it."""
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, str):
            yield "train", entry
        elif isinstance(entry, dict) and "path" in entry:
            for pattern in entry["path"] if isinstance(entry["path"], list) else [entry["path"]]:
                yield str(entry.get("split", "train")), str(pattern)
        else:
            raise EmbarkError(f"The card of dataset {id} has data_files that are not understood: {entry}.")


def card_configs(card: str, id: str = "?") -> list[dict[str, Any]]:
    """The `configs` of a dataset card, which is Markdown after a head of YAML; every value in them is a text."""
    block = re.search(r"^configs:.*\n(?:(?:[ \t-].*|#.*)?\n)*", card_head(card), re.MULTILINE)
    if block is None:
        return []
    try:
        # BaseLoader takes nothing for a number or a truth value: a config may be called "no".
        configs: Any = yaml.load(block[0], Loader=yaml.BaseLoader)["configs"] or []
        if not isinstance(configs, list) or not all(isinstance(entry, dict) for entry in configs):
            raise ValueError("not a list of configs")
    except (yaml.YAMLError, ValueError, TypeError, KeyError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise EmbarkError(
            f"The card of dataset {id} has `configs` that are not understood ({reason}): name the files in the row."
        ) from None
    return configs


def card_class_names(card: str, config: str | None, column: str) -> tuple[str, ...] | None:
    """The names of a class column, where the card's `dataset_info` has them; None where it has none that is valid."""
    block = re.search(r"^dataset_info:.*\n(?:(?:[ \t-].*|#.*)?\n)*", card_head(card), re.MULTILINE)
    try:
        info: Any = yaml.load(block[0], Loader=yaml.BaseLoader)["dataset_info"] if block else []
        features = _entry(info if isinstance(info, list) else [info], config).get("features", ())
        [names] = [entry["dtype"]["class_label"]["names"] for entry in features if entry["name"] == column]
        if isinstance(names, dict):
            names = [names[str(number)] for number in range(len(names))]
        return tuple(map(str, names))
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def card_head(card: str) -> str:
    """The head of a dataset card, which is YAML; empty where there is none."""
    head = re.match(r"\ufeff?---[^\S\n]*\n(.*?\n)---[^\S\n]*(\n|$)", card.replace("\r\n", "\n"), re.DOTALL)
    return head[1] if head else ""
