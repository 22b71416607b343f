"""Where things live: set by option, else environment, else settings file, else default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embark.types import EmbarkError

NAMES = ("home", "results", "workers", "memory")


@dataclass(frozen=True)
class Settings:
    """`home` holds vectors and data, `results` scores; `workers` are threads, `memory` megabytes for scoring."""

    home: Path
    results: Path
    workers: int
    memory: int = 256

    @property
    def store(self) -> Path:
        """The folder of stored vectors."""
        return self.home / "store"


def load(
    home: Path | str | None = None,
    results: Path | str | None = None,
    workers: int | None = None,
    memory: int | None = None,
) -> Settings:
    """The settings in force, each from the first place that states it."""
    options = {"home": home, "results": results, "workers": workers, "memory": memory}
    file = _settings_file()

    def pick(name: str, default: Any) -> Any:
        for value in (options[name], os.environ.get(f"EMBARK_{name.upper()}"), file.get(name)):
            if value not in (None, ""):
                return value
        return default

    def number(name: str, default: int) -> int:
        stated = pick(name, default)
        try:
            count = int(stated)
        except ValueError:
            raise EmbarkError(f"The setting '{name}' must be a whole number, not '{stated}'.") from None
        if count < 1:
            raise EmbarkError(f"The setting '{name}' must be at least 1, not {count}.")
        return count

    return Settings(
        home=Path(pick("home", _cache_folder() / "embark")).expanduser(),
        results=Path(pick("results", "results")).expanduser(),
        workers=number("workers", min(8, os.cpu_count() or 1)),
        memory=number("memory", 256),
    )


def _cache_folder() -> Path:
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
        wanted, what = (int, "a whole number") if name in ("workers", "memory") else (str, "a path")
        if type(value) is not wanted:  # true is an int, too
            raise EmbarkError(f"The setting '{name}' must be {what}, not '{value}' as in {path}.")
    return values
