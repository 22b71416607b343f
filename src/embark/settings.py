"""Settings: each from an argument, else the environment, else the settings file, else a default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embark.types import EmbarkError

NAMES = ("home", "results", "workers", "memory", "endpoint", "offline", "requests_per_minute", "tokens_per_minute")
NUMBERS = ("workers", "memory", "requests_per_minute", "tokens_per_minute")
KINDS = {
    "offline": (bool, "true or false"),
    "endpoint": (str, "an address"),
    **dict.fromkeys(NUMBERS, (int, "a whole number")),
}
YES = ("1", "true", "yes", "on")
NO = ("0", "false", "no", "off")


@dataclass(frozen=True)
class Settings:
    """`home` holds vectors, `results` scores; `workers` are threads, `memory` megabytes for scoring.

    Data and models come from the hub at `endpoint` (else HF_ENDPOINT) into huggingface_hub's cache; `offline` (else
    HF_HUB_OFFLINE) uses only what is there. Models behind an API are asked at most `requests_per_minute`, for
    `tokens_per_minute`, where your account has such limits.
    """

    home: Path
    results: Path
    workers: int
    memory: int = 512
    endpoint: str = "https://huggingface.co"
    offline: bool = False
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    @property
    def store(self) -> Path:
        """The folder of stored vectors."""
        return self.home / "store"


def load_settings(
    home: Path | str | None = None,
    results: Path | str | None = None,
    workers: int | None = None,
    memory: int | None = None,
    endpoint: str | None = None,
    offline: bool | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
) -> Settings:
    """The settings in force, each from the first place that states it: argument, environment, settings file."""
    values = (home, results, workers, memory, endpoint, offline, requests_per_minute, tokens_per_minute)
    arguments = dict(zip(NAMES, values, strict=True))
    file = _settings_file()

    def pick(name: str, default: Any) -> Any:
        for value in (arguments[name], os.environ.get(f"EMBARK_{name.upper()}"), file.get(name)):
            if value not in (None, ""):
                return value
        return default

    def limit(name: str) -> int | None:
        stated = pick(name, None)
        if stated is None:
            return None
        try:
            count = int(stated)
        except ValueError:
            raise EmbarkError(f"The setting '{name}' must be a whole number, not '{stated}'.") from None
        if count < 1:
            raise EmbarkError(f"The setting '{name}' must be at least 1, not {count}.")
        return count

    return Settings(
        home=Path(pick("home", cache_folder() / "embark")).expanduser(),
        results=Path(pick("results", "results")).expanduser(),
        workers=limit("workers") or _workers(),
        memory=limit("memory") or Settings.memory,
        endpoint=_address(pick("endpoint", os.environ.get("HF_ENDPOINT") or Settings.endpoint)),
        offline=_boolean(pick("offline", os.environ.get("HF_HUB_OFFLINE", "").lower() in YES)),
        requests_per_minute=limit("requests_per_minute"),
        tokens_per_minute=limit("tokens_per_minute"),
    )


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _workers() -> int:
    """Three quarters of the cores prepare items; the others feed the device, which waits otherwise (on 16 cores)."""
    return max(min(cores(), 2), cores() * 3 // 4)


def _address(stated: str) -> str:
    if not stated.startswith(("https://", "http://")):
        raise EmbarkError(f"The setting 'endpoint' must be an address such as {Settings.endpoint}, not '{stated}'.")
    return stated.rstrip("/")


def _boolean(stated: bool | str) -> bool:
    word = str(stated).lower()
    if word not in (*YES, *NO):
        raise EmbarkError(f"The setting 'offline' must be true or false, not '{stated}'.")
    return word in YES


def cache_folder() -> Path:
    """The user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


def _settings_file() -> Mapping[str, Any]:
    """`embark.toml` in the working folder, else `embark/settings.toml` in the user's configuration folder."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    for path in (Path("embark.toml"), config / "embark" / "settings.toml"):
        if path.is_file():
            return _parse(path)
    return {}


def _parse(path: Path) -> Mapping[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EmbarkError(f"The settings file {path} is not valid TOML: {error}") from error
    if unknown := sorted(set(values) - set(NAMES)):
        raise EmbarkError(
            f"The settings file {path} has unknown settings {', '.join(unknown)}; known: {', '.join(NAMES)}."
        )
    for name, value in values.items():
        kind, description = KINDS.get(name, (str, "a path"))
        if type(value) is not kind:  # not isinstance: True is an int
            raise EmbarkError(f"The setting '{name}' must be {description}, not {value!r} as in {path}.")
    return values
