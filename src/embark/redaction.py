"""The gate for whatever leaves this machine: text without folders, host names, user names and secrets.

`this_machine` finds out once what must not be told; `redacted` is a pure function of a text and of that. A path becomes
its last name, a private address a word. Two kinds of text are told apart:

- words (messages, facts, settings): every absolute path, private address, user name, host name and key is removed;
- `Content` (the texts, names and ids of a user's items): it is shown because the user chose to show it, so only folders
  of this machine and keys are removed from it. Whatever is not marked as content counts as words.
"""

from __future__ import annotations

import dataclasses
import getpass
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from embark.settings import Settings
from embark.types import EmbarkError, Task

SECRET = "…"
ADDRESS = "a private address"
LEAST_LETTERS = 4  # of a name that is removed where it stands alone; shorter ones go with paths and addresses only
# Names of accounts and machines that are also ordinary words, or words of embark: they tell nobody's name.
COMMON = frozenset({
    "admin", "administrator", "audio", "build", "builder", "clip", "cluster", "code", "coder", "compute", "computer",
    "container", "data", "debian", "default", "demo", "desktop", "develop", "developer", "docker", "embark", "eval",
    "fedora", "guest", "home", "host", "image", "jenkins", "jovyan", "kaggle", "laptop", "linux", "local",
    "localhost", "login", "machine", "main", "master", "model", "models", "node", "nobody", "none", "notebook",
    "null", "paper", "pocket", "public", "python", "query", "research", "root", "runner", "sandbox", "score",
    "science", "server", "service", "shared", "slurm", "spark", "split", "stack", "staff", "student", "system",
    "task", "team", "test", "tester", "testing", "tests", "text", "train", "ubuntu", "user", "username", "users",
    "vagrant", "video", "vision", "vscode", "windows", "work", "worker", "workstation",
})  # fmt: skip
KEYED = re.compile(r"TOKEN|SECRET|PASSW|KEY$|CREDENTIAL|SIGNATURE|^SIG$|^AUTH", re.IGNORECASE)  # of variables, queries
SHORTEST_KEY = 8  # characters of a variable's value that is taken for a key
KEYS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|pa-[\w-]{40,}|jina_[0-9a-f]{32}\w{16,}"  # the hub, providers of models
    r"|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[\w-]{35}|xox[abp]-[\w-]{10,}"
    r"|eyJ[\w-]{10,500}+[.]eyJ[\w-]{10,}[.][\w-]{10,})"  # a signed token (JWT)
)
PRIVATE_NAMES = (".local", ".internal", ".lan", ".corp", ".intranet", ".localdomain", ".home.arpa", ".localhost")

END = r"\s'\"`<>|*?;,()\[\]{}…“”‘’«»"  # characters that end a path that is not in quotes
WORD = rf"[^/\\{END}]+"
FIRST = rf"{WORD}(?: {WORD})?"  # a folder's name may have spaces, as long as a slash follows
UNENDED = r"(?<![.]\w\w)(?<![.]\w{3})(?<![.]\w{4})"  # behind the ending of a file, a space ends a path
STEP = rf"{WORD}(?:{UNENDED} (?:{WORD}|\([^()/\\\n]{{1,40}}\))){{0,4}}"  # of folders further in: several, and (2023)
TAIL = rf"(?:[/\\](?:{STEP}[/\\])*(?:{WORD})?)?"
QUOTED = re.compile(
    r"(?P<quote>['\"`“‘])(?P<path>(?:~|[.]{1,2}|[A-Za-z]:|\\\\[\w.$-]+)?[/\\][^'\"`“”‘’<>\n]*?)(?=['\"`”’])"
)
PATHS = re.compile(
    rf"(?<![\w\\])[A-Za-z]:(?:\\+(?:{STEP}\\+)*{WORD}|/(?!/)(?:{STEP}/)*{WORD})"  # Windows
    rf"|(?<![\w\\])\\\\+[\w.$?-]+\\+(?:{STEP}\\+)*{WORD}|(?<![\w:/\\])//[\w.$-]+/(?:{STEP}/)*{WORD}"  # shares
    rf"|(?<![\w/.+~\]}}*%\\-])(?<!base64,)(?!/\w+/\d+\b(?![/.\w-]))(?:~\w*|[.]{{1,2}}|/{FIRST})/(?:{STEP}/)*(?:{WORD})?"
)
FILE = re.compile(r"(?<![\w+.-])file:(?:/{2,3}(?=[A-Z]:[/\\])|(?://)?(?=/))", re.IGNORECASE)  # before an absolute path
ENCODED = re.compile(r"(?<![\w%])(?:[A-Za-z]+%3A)?%(?:2F|5C)(?:[\w.~+-]|%[0-9A-F]{2})+", re.IGNORECASE)  # in addresses
URLS = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s'\"`<>|“”‘’«»…]+")
HOSTS = re.compile(
    rf"(?<![\w./@-])(?:[\w-]+\.)+(?:{'|'.join(name[1:].replace('.', '[.]') for name in PRIVATE_NAMES)})\b(?![\w/.-]*/)"
    r"|(?<![\w.=-])(?:192[.]168|172[.](?:1[6-9]|2\d|3[01])|169[.]254)[.]\d{1,3}[.]\d{1,3}(?![\w.]*\w)"
    r"|(?<![\w.=-])(?:10|127)(?:[.]\d{1,3}){3}:\d+"  # without a port it may be the version of a library
    r"|(?<![\w:.])\[?(?:f[cd][0-9A-Fa-f]{2}|fe[89ab][0-9A-Fa-f]):(?:[0-9A-Fa-f]{0,4}:)+[0-9A-Fa-f]{0,4}"  # IPv6
    r"(?:%\w+)?(?:\]:\d+|\])?"
    r"|(?:(?<=node )|(?<=host )|(?<=at )|(?<=from )|(?<=to )|(?<=on ))(?:10|127)(?:[.]\d{1,3}){3}(?![\w.]*\w)"
)
BETWEEN = re.compile(">([^<>]+)<")
HOMES = re.compile(r"(?:/home|/Users|[A-Za-z]:[/\\]Users)[/\\][^/\\]+")
DEEP = re.compile(r"[^/\\]*[/\\]+[^/\\]+[/\\]")  # a folder in a folder: nothing else is spelled so
# Texts without any of these have neither paths nor addresses.
QUICK = re.compile(r"[/\\~@%]|\d[.]\d|[.][a-z]|[0-9A-Fa-f]::?[0-9A-Fa-f]")


class Content(str):
    """A text, name or id of a user's items, which is shown because the user chose to show it."""

    __slots__ = ()


class Markup(str):
    """A drawing as SVG: its texts, between tags, are words; all else is a picture."""

    __slots__ = ()


@dataclass(frozen=True)
class Private:
    """What must not be told: `folders` (absolute) with the words for them, `users`, `hosts` and `secrets`."""

    folders: tuple[tuple[str, str], ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @cached_property
    def places(self) -> re.Pattern[str] | None:
        """These folders and what is in them, the longest first; spaces may be written as addresses have them."""
        spellings = {spelling for path, _ in self.folders for spelling in (path, quote(path, safe="/\\:"))}
        names = sorted(spellings, key=len, reverse=True)
        spelled = [re.escape(name) if DEEP.match(name) else rf"(?<![\w.-]){re.escape(name)}" for name in names]
        return re.compile(rf"(?:{'|'.join(spelled)})(?![\w-]){TAIL}") if names else None

    @cached_property
    def names(self) -> re.Pattern[str] | None:
        """These users and hosts as words: not a part of another word, of a path or of an org/model name."""
        stated = [("user", name) for name in self.users] + [("host", name) for name in self.hosts]
        words = [f"(?P<{kind}{n}>{re.escape(name)})" for n, (kind, name) in enumerate(stated) if distinctive(name)]
        after = r"(?:[.][A-Za-z][\w-]*)*(?![A-Za-z0-9]|[\w.-]*/)"
        return re.compile(rf"(?<![A-Za-z0-9/])(?:{'|'.join(words)}){after}", re.IGNORECASE) if words else None

    @cached_property
    def keys(self) -> re.Pattern[str]:
        """These secrets, and what looks like a key of a known kind."""
        known = sorted(map(re.escape, self.secrets), key=len, reverse=True)
        return re.compile("|".join([*known, KEYS.pattern]))


def distinctive(name: str) -> bool:
    """Whether a name of an account or a machine is removed where it stands alone: no short one, no ordinary word."""
    return len(name) >= LEAST_LETTERS and name.lower() not in COMMON and not name.isdigit()


def this_machine(settings: Settings | None = None, environment: Mapping[str, str] = os.environ) -> Private:
    """What must not be told of this machine, its user and these settings (without any: those in the environment)."""
    folders = {str(Path.cwd()): "this folder", tempfile.gettempdir(): "tmp"}
    for name, word in (("EMBARK_RESULTS", "results"), ("EMBARK_HOME", "home"), ("HF_HOME", "huggingface")):
        if value := environment.get(name):
            folders[value] = word
    if settings is not None:
        folders |= {str(settings.results): "results", str(settings.home): "home"}
        folders |= {str(settings.store): "store"} if settings.other_store and "://" not in str(settings.store) else {}
    for value in (environment.get("HOME"), environment.get("USERPROFILE"), os.path.expanduser("~")):
        if value:
            folders[value] = "~"
    spelled = {spelling: word for path, word in folders.items() for spelling in _spellings(path)}
    users = [environment.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")]
    with suppress(OSError, KeyError, ImportError):  # a container may have no such account
        users.append(getpass.getuser())
    hosts = [environment.get("HOSTNAME", ""), environment.get("COMPUTERNAME", ""), socket.gethostname()]
    hosts += [name.partition(".")[0] for name in hosts]
    keys = (value for name, value in environment.items() if KEYED.search(name))
    return Private(
        tuple(sorted(spelled.items())),
        tuple(sorted({*users} - {""})),
        tuple(sorted({*hosts} - {""})),
        tuple(sorted({key for key in keys if len(key) >= SHORTEST_KEY and not key.isalpha()})),
    )


def redacted(text: str, private: Private) -> str:
    """The text as it may leave: see above. `Content` stays `Content`."""
    if isinstance(text, Content):
        return Content(_without_folders(private.keys.sub(SECRET, text), private))
    if isinstance(text, Markup):
        picture = _without_folders(private.keys.sub(SECRET, text), private)
        return Markup(BETWEEN.sub(lambda match: f">{_words(match[1], private)}<", picture))
    return _words(text, private)


def redacted_value(value: Any, private: Private, parts: tuple[type, ...] = ()) -> Any:
    """Texts, numbers, lists and mappings as they may leave; the names in mappings, too.

    `parts` are the dataclasses that are looked into; all other values stay as they are.
    """
    if isinstance(value, str):
        return redacted(value, private)
    if isinstance(value, Mapping):
        return {
            redacted_value(name, private, parts): redacted_value(entry, private, parts) for name, entry in value.items()
        }
    if isinstance(value, (list, tuple)):
        entries = (redacted_value(entry, private, parts) for entry in value)
        return list(entries) if isinstance(value, list) else tuple(entries)
    if isinstance(value, parts):
        part: Any = value
        fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part) if field.init}
        return dataclasses.replace(part, **redacted_value(fields, private, parts))
    return redacted(str(value), private) if isinstance(value, os.PathLike) else value


def last_name(path: str) -> str:
    """The last name of a path, of this system or another."""
    return re.split(r"[/\\]+", path.rstrip("/\\"))[-1]


def is_local_path(source: str) -> bool:
    """Whether a source of data or of a model is a place on some machine, and not a name of a hub or a page."""
    return bool(source) and (PATHS.fullmatch(source) is not None or Path(source).expanduser().is_absolute())


def public_row(task: Task) -> Task:
    """The row as others may see it: a folder of some machine is called by its last name."""
    id = task.source.id
    source = dataclasses.replace(task.source, id=last_name(id) if is_local_path(id) else id)
    return dataclasses.replace(task, source=source)


@lru_cache(maxsize=20_000)  # names of models and tasks come again and again
def _words(text: str, private: Private) -> str:
    text = private.keys.sub(SECRET, text)
    if QUICK.search(text):
        text = ENCODED.sub(lambda match: _decoded(match[0], lambda path: _words(path, private)), FILE.sub("", text))
        pieces: list[str] = []
        end = 0
        for url in URLS.finditer(text):
            pieces += [_local(text[end : url.start()], private), _url(url[0], private)]
            end = url.end()
        text = "".join([*pieces, _local(text[end:], private)])
    if private.names is not None:
        text = private.names.sub(lambda match: f"a {str(match.lastgroup)[:4]}", text)
    return text


def _local(text: str, private: Private) -> str:
    """A text without addresses of its own, without folders and private hosts."""
    text = QUOTED.sub(lambda match: f"{match['quote']}{_quoted(match['path'], private)}", text)
    text = PATHS.sub(lambda match: _shown(match[0], private), _without_folders(text, private))
    return HOSTS.sub(ADDRESS, text)


def _without_folders(text: str, private: Private) -> str:
    if private.places is None:
        return text
    shown = private.places.sub(lambda match: _shown(match[0], private), text)
    return ENCODED.sub(lambda match: _decoded(match[0], lambda path: _without_folders(path, private)), shown)


def _decoded(path: str, shown: Callable[[str], str]) -> str:
    """A path with %2F for slashes: as it may be shown, or as it is where nothing of it is private."""
    plain = unquote(path)
    return path if shown(plain) == plain else shown(plain)


def _quoted(path: str, private: Private) -> str:
    """A path in quotes, which may hold spaces; a slash and one word may be something else, and stays."""
    return _shown(path, private) if len(re.findall(r"[/\\]+[^/\\]", path)) > 1 or path[0] not in "/\\" else path


def _shown(path: str, private: Private) -> str:
    """A path by its last name; a home by "~", and a folder that is known by the word for it."""
    bare = path.rstrip(".,:;!")
    after = path[len(bare) :]
    bare = bare.rstrip("/\\") or bare
    folders = dict(private.folders)
    known = folders.get(bare, folders.get(unquote(bare)))
    if known is None and HOMES.fullmatch(bare):
        known = "~"
    return f"{_anonymous(last_name(bare), private) if known is None else known}{after}"


def _anonymous(name: str, private: Private) -> str:
    """A file's name without users and hosts, which are set apart by other signs than letters and digits there."""
    for kind, names in (("user", private.users), ("host", private.hosts)):
        for private_name in filter(distinctive, names):
            name = re.sub(rf"(?<![A-Za-z0-9]){re.escape(private_name)}(?![A-Za-z0-9])", kind, name, flags=re.IGNORECASE)
    return name


def _url(url: str, private: Private) -> str:
    """A public page without credentials; of what is in a private place, a word or the last name."""
    bare = url.rstrip(".,:;!)]}")
    after = url[len(bare) :]
    try:
        parts = urlsplit(bare)
        host = parts.hostname or ""
    except ValueError:
        return ADDRESS + after
    if parts.scheme.lower() not in ("http", "https"):
        return f"{_shown(parts.path or '/', private) or ADDRESS}{after}"
    if is_private_host(host, private):
        return ADDRESS + after
    pairs = (pair for pair in parts.query.split("&") if not KEYED.search(pair.partition("=")[0]))
    query = "&".join(_local(pair, private) for pair in pairs)
    fragment = _without_folders(parts.fragment, private)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query, fragment=fragment)) + after


def is_private_host(host: str, private: Private) -> bool:
    """Whether a name or number of a host is not one of the public internet."""
    with suppress(ValueError):
        return not ip_address(host).is_global
    named = host.lower()
    return "." not in named or named.endswith(PRIVATE_NAMES) or named in {name.lower() for name in private.hosts}


def _spellings(path: str) -> Iterable[str]:
    """A folder as messages may spell it: as stated, absolute, and where links lead; none that is a root."""
    stated = os.path.expanduser(path)
    with suppress(OSError, ValueError, EmbarkError):
        for spelling in (stated, os.path.abspath(stated), os.path.realpath(stated)):
            if os.path.isabs(spelling) and os.path.dirname(spelling) != spelling:
                yield spelling.rstrip("/\\")
