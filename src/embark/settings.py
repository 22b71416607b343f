"""Settings: each from an argument, else the environment, else a settings file, else a default.

There are two files: the user's own (`embark/settings.toml` in the configuration folder) may set everything;
`embark.toml` in the working folder, which may be a stranger's, only what no credential, connection or code depends on.
That file also names the folder's own tasks, models and benchmarks, for all commands (`folder_names`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from embark.paths import Outside, inside
from embark.types import EmbarkError

NAMES = (
    "home", "results", "workers", "memory", "endpoint", "offline", "requests_per_minute", "tokens_per_minute", "store",
    "engine", "address",
)  # fmt: skip
NUMBERS = ("workers", "memory", "requests_per_minute", "tokens_per_minute")
PLUGINS = "plugins"  # the distributions whose plug-ins may run; no setting of a run, so not in `Settings`
ALLOWED = "EMBARK_PLUGINS"  # … from the environment
ITEM_LIMITS = {"item_memory": 4096, "item_seconds": 120}  # of a process, as `plugins`; with their defaults
ITEM_PLACES = ("EMBARK_ITEM_MEMORY", "EMBARK_ITEM_SECONDS", "XDG_CONFIG_HOME", "HOME")  # variables that decide them
KNOWN = (*NAMES, PLUGINS, *ITEM_LIMITS)
OF_FOLDER = ("results", "offline", *NUMBERS)  # what embark.toml of the working folder may set
OWN_NAMES = {"tasks": "a file of tasks", "task": "[[task]] tables", "model": "[[model]] tables",
             "benchmark": "[[benchmark]] tables"}  # what else it may hold  # fmt: skip
KINDS = {
    "offline": (bool, "true or false"),
    PLUGINS: (list, "a list of distributions"),
    "endpoint": (str, "an address"),
    "store": (str, "a path or an address"),
    "engine": (str, "the name of an engine"),
    "address": (str, "the address of a cluster"),
    **dict.fromkeys((*NUMBERS, *ITEM_LIMITS), (int, "a whole number")),
}
FOLDER_FILE = "embark.toml"
YES = ("1", "true", "yes", "on")
NO = ("0", "false", "no", "off")


@dataclass(frozen=True)
class Settings:
    """`home` holds vectors, `results` scores; `workers` are processes or threads, `memory` megabytes for scoring.

    `other_store` is where vectors live if not under `home`: a folder, or the address of a bucket (s3://bucket/prefix).
    Data and models come from the hub at `endpoint` (else HF_ENDPOINT) into huggingface_hub's cache; `offline` (else
    HF_HUB_OFFLINE) uses only what is there. Models behind an API are asked at most `requests_per_minute`, for
    `tokens_per_minute`, where your account has such limits. `engine` says where models run ("local", or "ray" with
    what a run may use of a cluster: "ray:copies=8,gpus=1"), `address` where that cluster is. `notes` tell what the
    working folder's file set.
    """

    home: Path
    results: Path
    workers: int
    memory: int = 512
    endpoint: str = "https://huggingface.co"
    offline: bool = False
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)
    other_store: Path | str | None = None
    engine: str = "local"
    address: str | None = None

    @property
    def store(self) -> Path | str:
        """Where vectors live: a folder, or the address of a bucket (see `embark.store.buckets`)."""
        return self.other_store or self.home / "store"


def load_settings(
    home: Path | str | None = None,
    results: Path | str | None = None,
    workers: int | None = None,
    memory: int | None = None,
    endpoint: str | None = None,
    offline: bool | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    store: Path | str | None = None,
    engine: str | None = None,
    address: str | None = None,
) -> Settings:
    """The settings in force, each from the first place that states it: argument, environment, settings file."""
    limits = (requests_per_minute, tokens_per_minute)
    values = (home, results, workers, memory, endpoint, offline, *limits, store, engine, address)
    arguments = dict(zip(NAMES, values, strict=True))
    of_user = _user_file()
    of_folder = _folder_file()

    def pick(name: str, default: Any) -> Any:
        places = (arguments[name], os.environ.get(f"EMBARK_{name.upper()}"), of_folder.get(name), of_user.get(name))
        return next((value for value in places if value not in (None, "")), default)

    def limit(name: str) -> int | None:
        stated = pick(name, None)
        return None if stated is None else _count(name, stated)

    item_limits()  # a wrong one is an error before anything is read
    return Settings(
        home=_expanded(pick("home", None) or cache_folder() / "embark"),
        results=_expanded(pick("results", "results")),
        workers=limit("workers") or _workers(),
        memory=limit("memory") or Settings.memory,
        endpoint=_address(pick("endpoint", os.environ.get("HF_ENDPOINT") or Settings.endpoint)),
        offline=_boolean(pick("offline", os.environ.get("HF_HUB_OFFLINE", "").lower() in YES)),
        requests_per_minute=limit("requests_per_minute"),
        tokens_per_minute=limit("tokens_per_minute"),
        notes=_folder_notes(of_folder, folder_names()),
        other_store=_store(pick("store", None)),
        engine=pick("engine", Settings.engine),
        address=pick("address", None),
    )


def folder_names() -> dict[str, Any]:
    """The own things that `embark.toml` of the working folder names: `tasks` (a file, of the same folder), and the
    tables `task`, `model` and `benchmark`, as they stand in the file.
    """
    path = Path(FOLDER_FILE)
    content = _toml(path) if path.is_file() else {}
    own = {name: content[name] for name in OWN_NAMES if name in content}
    for name, value in own.items():
        tables = isinstance(value, list) and all(isinstance(table, dict) for table in value)
        if not (isinstance(value, str) if name == "tasks" else tables):
            raise EmbarkError(f"'{name}' must be {OWN_NAMES[name]}, not {value!r} as in {path.resolve()}.")
    return own


def in_folder(relative: str, where: str) -> Path:
    """A path that `embark.toml` of the working folder names (`where`, for the message), if it is inside the folder."""
    try:
        return inside(Path(), relative)
    except Outside as error:
        raise EmbarkError(f"{Path(FOLDER_FILE).resolve()}, {where}: {error}") from None


def allowed_plugins() -> set[str]:
    """The distributions whose plug-ins may run: those that EMBARK_PLUGINS and the user's settings file name."""
    names = os.environ.get(ALLOWED, "").split(",")
    return {name.strip() for name in map(str, (*names, *_user_file().get(PLUGINS, ()))) if name.strip()}


def item_limits() -> dict[str, int]:
    """What one item may take: `item_memory`, megabytes of its decoded content, and `item_seconds` of its preparation.

    From EMBARK_ITEM_MEMORY and EMBARK_ITEM_SECONDS, else the user's settings file, else the defaults. A folder's
    `embark.toml` cannot set them: they protect against what comes with a folder.
    """
    return dict(_item_limits(*map(os.environ.get, ITEM_PLACES)))


@lru_cache(maxsize=8)
def _item_limits(memory: str | None, seconds: str | None, *places: str | None) -> dict[str, int]:
    """As `item_limits`, of these variables and of the settings file in these folders: it is asked for every item."""
    of_user = _user_file()
    return {
        name: _count(name, next(value for value in (variable, of_user.get(name), usual) if value not in (None, "")))
        for (name, usual), variable in zip(ITEM_LIMITS.items(), (memory, seconds), strict=True)
    }


def _count(name: str, stated: Any) -> int:
    """A setting that counts something."""
    try:
        count = int(stated)
    except ValueError:
        raise EmbarkError(f"The setting '{name}' must be a whole number, not '{stated}'.") from None
    if count < 1:
        raise EmbarkError(f"The setting '{name}' must be at least 1, not {count}.")
    return count


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _workers() -> int:
    """Three quarters of the cores prepare items; the others feed the device, which waits otherwise (on 16 cores)."""
    return max(min(cores(), 2), cores() * 3 // 4)


def _address(stated: str) -> str:
    _public("endpoint", stated, "set HF_TOKEN to a token")
    if not stated.startswith(("https://", "http://")):
        raise EmbarkError(f"The setting 'endpoint' must be an address such as {Settings.endpoint}, not '{stated}'.")
    return stated.rstrip("/")


def _public(name: str, address: str, advice: str) -> SplitResult:
    """The parts of an address that holds no secret."""
    parts = urlsplit(address)
    if "@" in parts.netloc or parts.query:  # messages show the address
        raise EmbarkError(f"The setting '{name}' holds a password: leave it out, and {advice}.")
    return parts


def _store(stated: Path | str | None) -> Path | str | None:
    """A folder, or an address without a slash at its end."""
    if stated is None or "://" not in str(stated):
        return stated and _expanded(stated)
    address = str(stated).rstrip("/")
    parts = _public("store", address, "give it as its library expects")
    if not parts.netloc and parts.scheme != "file":
        raise EmbarkError(f"The setting 'store' must be a folder or an address such as s3://bucket, not '{stated}'.")
    return Path(parts.path) if parts.scheme == "file" else address


def _boolean(stated: bool | str) -> bool:
    word = str(stated).lower()
    if word not in (*YES, *NO):
        raise EmbarkError(f"The setting 'offline' must be true or false, not '{stated}'.")
    return word in YES


def cache_folder() -> Path:
    """The user's folder for what can be made again."""
    if not os.environ.get("XDG_CACHE_HOME") and _no_home() and (home := os.environ.get("EMBARK_HOME")):
        return Path(home) / "cache"
    return _expanded(os.environ.get("XDG_CACHE_HOME") or "~/.cache")


def _expanded(path: Path | str) -> Path:
    if str(path).startswith("~") and _no_home():
        raise EmbarkError(f"There is no home folder for {path}: set HOME, or EMBARK_HOME to a folder of embark's own.")
    return Path(path).expanduser()


def _no_home() -> bool:
    """Whether this user has no home folder, as in many containers."""
    return os.path.expanduser("~") == "~"


def _user_file() -> Mapping[str, Any]:
    """`embark/settings.toml` in the user's configuration folder, if there is one."""
    config = os.environ.get("XDG_CONFIG_HOME") or (None if _no_home() else "~/.config")
    path = config and Path(config, "embark", "settings.toml").expanduser()
    return _parse(path) if path and path.is_file() else {}


def _folder_file() -> Mapping[str, Any]:
    """`embark.toml` in the working folder, if there is one: it came with the folder, perhaps from a stranger."""
    path = Path(FOLDER_FILE)
    values = _parse(path, tuple(OWN_NAMES)) if path.is_file() else {}
    if refused := [name for name in values if name not in OF_FOLDER]:
        places = f"EMBARK_{refused[0].upper()}{' or HF_ENDPOINT' * (refused[0] == 'endpoint')}"
        raise EmbarkError(
            f"{path.resolve()} must not set '{refused[0]}', as a folder may come from anybody: set {places}, or put it "
            "into your own embark/settings.toml in ~/.config."
        )
    if values.get("offline") is False:
        raise EmbarkError(f"{path.resolve()} may set 'offline' to true only: leave it out.")
    try:
        inside(Path(), os.path.expanduser(values.get("results", ".")))
    except Outside as error:
        raise EmbarkError(f"{path.resolve()}, setting 'results': {error} Set EMBARK_RESULTS or --results.") from None
    return values


def _folder_notes(of_folder: Mapping[str, Any], names: Mapping[str, Any]) -> tuple[str, ...]:
    """One line on what the working folder's file sets and names."""
    sets = f"sets {', '.join(of_folder)}" if of_folder else ""
    listed = ["tasks"] * ("tasks" in names or "task" in names)
    listed += [f"{kind}s" for kind in ("model", "benchmark") if kind in names]
    named = f"names {', '.join(listed)}" if listed else ""
    return (f"{FOLDER_FILE} of this folder {' and '.join(filter(None, (sets, named)))}",) if sets or named else ()


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EmbarkError(f"The settings file {path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise EmbarkError(f"The settings file {path} is not valid TOML: {error}") from error


def _parse(path: Path, beside: Sequence[str] = ()) -> Mapping[str, Any]:
    """The settings of a file, without what may stand `beside` them."""
    values = {name: value for name, value in _toml(path).items() if name not in beside}
    if unknown := sorted(set(values) - set(KNOWN)):
        known = ", ".join((*KNOWN, *beside))
        raise EmbarkError(f"The settings file {path} has unknown settings {', '.join(unknown)}; known: {known}.")
    for name, value in values.items():
        kind, description = KINDS.get(name, (str, "a path"))
        if type(value) is not kind:  # not isinstance: True is an int
            raise EmbarkError(f"The setting '{name}' must be {description}, not {value!r} as in {path}.")
    return values
