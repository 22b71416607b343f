"""Files of hub datasets at a pinned revision: huggingface_hub downloads them into its own cache, and we verify them.

`home/hub/<id>` holds answers of the hub: `<commit>.json` lists the files of a commit, `ref-<branch>.json` names a
branch's commit. A folder `<commit>` in it has files that an earlier version of embark downloaded; they are used, too.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from embark import http
from embark.data.atomic import atomically
from embark.http import Refused, TemporaryFailure, with_retries
from embark.paths import commit_name, component, relative_path
from embark.settings import Settings
from embark.types import EmbarkError

CONNECTIONS = 4  # files downloaded at once
LARGE = 16 << 20  # bytes from which on a download shows its progress

# Shows the work on a number of bytes: progress(title, total) as advance, and then advance(count).
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a dataset; `sha256` of its content, or where that is empty, `oid` as git has it."""

    path: str
    size: int
    sha256: str = ""
    oid: str = ""

    @property
    def checksum(self) -> str:
        """What its content must hash to."""
        return f"sha256 {self.sha256}" if self.sha256 else f"git object {self.oid}"


class Hub:
    """The datasets of one hub, and folders of this machine that serve as datasets."""

    def __init__(self, settings: Settings, progress: Progress | None = None) -> None:
        self.endpoint = settings.endpoint
        self.home = settings.home
        self.offline = settings.offline
        self.progress = progress
        self.opened: dict[tuple[str, str], dict[str, RemoteFile]] = {}  # by dataset and revision
        self._commits: dict[tuple[str, str], str] = {}
        self._answered = False  # a hub that never answered is not asked again
        self._unreachable: EmbarkError | None = None

    def resolve(self, id: str, revision: str) -> str:
        """The commit that a revision stands for; a branch is looked up once for each Hub."""
        if re.fullmatch("[0-9a-f]{40}", revision) or is_local(id):
            return revision
        if (id, revision) not in self._commits:
            ref = self._folder(id) / f"ref-{component(revision)}.json"
            if self.offline:
                if not ref.exists():
                    raise _offline_error(f"revision {revision} of dataset {id}")
                commit = commit_name(json.loads(ref.read_bytes()), str(ref))
            else:
                url = f"{self.endpoint}/api/datasets/{id}/revision/{quote(revision, safe='')}"
                commit = commit_name(self._ask(url, id, revision)[0]["sha"], self.endpoint)
                _save(ref, commit)
            self._commits[id, revision] = commit
        return self._commits[id, revision]

    def commit(self, id: str, revision: str) -> str:
        """The commit that a revision was resolved to so far; the revision itself if it was not."""
        return self._commits.get((id, revision), revision)

    def files(self, id: str, revision: str) -> list[RemoteFile]:
        """Every file of the dataset at that revision."""
        return list(self._tree(id, revision).values())

    def has(self, id: str, revision: str, file: RemoteFile) -> bool:
        """Whether a file is on this machine; it was verified when it was downloaded."""
        return self._find(id, self.resolve(id, revision), file) is not None

    def get(self, id: str, revision: str, path: str) -> Path:
        """The file on this machine; downloaded and verified if it is not here."""
        return self.get_all(id, revision, [path])[0]

    def get_all(self, id: str, revision: str, paths: Sequence[str]) -> list[Path]:
        """The files on this machine; those that are not here are downloaded, several at once."""
        tree = self._tree(id, revision)
        commit = self.resolve(id, revision)
        for path in paths:
            if path not in tree:
                same_name = [name for name in tree if PurePosixPath(name).name == PurePosixPath(path).name]
                advice = f" Did you mean {' or '.join(same_name[:3])}?" if same_name else ""
                raise EmbarkError(f"Dataset {id} has no file '{path}' at revision {revision}.{advice}")
        self.opened.setdefault((id, revision), {}).update((path, tree[path]) for path in paths)
        local = {path: file for path in paths if (file := self._find(id, commit, tree[path]))}
        missing = [tree[path] for path in dict.fromkeys(paths) if path not in local]
        if missing and self.offline:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise _offline_error(f"file '{missing[0].path}'{more} of dataset {id} ({revision})")
        if missing:
            local |= self._download_all(id, commit, missing)
        return [local[path] for path in paths]

    def _find(self, id: str, commit: str, file: RemoteFile) -> Path | None:
        """The file on this machine, if it is here and whole."""
        for folder in [Path(id)] if is_local(id) else [_snapshot(id, commit), self._folder(id) / commit]:
            path = folder / file.path
            if path.is_file() and path.stat().st_size == file.size:
                return path
        return None

    def _folder(self, id: str) -> Path:
        return self.home / "hub" / component(safe_path(id))

    # ── listing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _tree(self, id: str, revision: str) -> dict[str, RemoteFile]:
        if is_local(id):
            return _files_in(Path(id))
        commit = self.resolve(id, revision)
        listing = self._folder(id) / f"{commit}.json"
        if not listing.exists():
            if self.offline:
                raise _offline_error(f"the list of files of dataset {id} ({revision})")
            _save(listing, [asdict(file) for file in self._list(id, commit)])
        return _load_listing(str(listing))

    def _list(self, id: str, commit: str) -> Iterator[RemoteFile]:
        url = f"{self.endpoint}/api/datasets/{id}/tree/{commit}?recursive=true"
        while url:
            rows, url = self._ask(url, id, commit)
            for row in rows:
                if row["type"] == "file":
                    lfs = row.get("lfs") or {}
                    size = lfs.get("size", row["size"])
                    yield RemoteFile(safe_path(row["path"]), size, lfs.get("oid", ""), row["oid"])

    def _ask(self, url: str, id: str, revision: str) -> tuple[Any, str]:
        """The answer of the hub's API about a dataset, and the address of the next page, if there is one."""

        def attempt() -> tuple[Any, str]:
            try:
                response = self._get(url)
                self._answered = True
                following = response.links.get("next", {}).get("url", "")
                return response.json(), self._at_endpoint(following) if following else ""
            except json.JSONDecodeError as error:
                raise TemporaryFailure(f"the answer is not JSON: {error}") from None
            except TemporaryFailure as failure:
                if failure.unreachable and not self._answered:
                    advice = "Check the network or name a mirror (EMBARK_ENDPOINT); EMBARK_OFFLINE=1 uses what is here."
                    self._unreachable = EmbarkError(f"{self.endpoint} cannot be reached: {failure}. {advice}")
                    raise self._unreachable from None
                raise

        if self._unreachable:
            raise self._unreachable
        try:
            return with_retries(f"Asking {self.endpoint} about dataset {id}", attempt)
        except Refused as refused:
            raise self._refusal_error(refused, id, revision) from None

    def _get(self, url: str) -> Any:
        from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

        http.check_token()
        try:
            response = get_session().get(url, headers=build_hf_headers(library_name="embark"), timeout=http.TIMEOUT)
            hf_raise_for_status(response)
        except Exception as error:
            raise self._problem(error) from None
        return response

    def _at_endpoint(self, url: str) -> str:
        """The same page at our endpoint, because a token must not be sent to another server."""
        if url.startswith(f"{self.endpoint}/"):
            return url
        parts = urlsplit(url)
        return f"{self.endpoint}{parts.path}?{parts.query}"

    # ── download ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _download_all(self, id: str, commit: str, files: Sequence[RemoteFile]) -> dict[str, Path]:
        total = sum(file.size for file in files)
        shown = self.progress(f"Downloading {id}", total) if self.progress and total >= LARGE else nullcontext()
        with shown as advance, ThreadPoolExecutor(CONNECTIONS) as pool:
            bar = _Bar(advance)
            try:
                paths = list(pool.map(lambda file: self._download(id, commit, file, bar), files))
            except BaseException:
                bar.stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                _stop_xet()
                raise
        return {file.path: path for file, path in zip(files, paths, strict=True)}

    def _download(self, id: str, commit: str, file: RemoteFile, bar: _Bar) -> Path:
        """Download a file and verify it; a damaged file is downloaded once more."""
        attempt = partial(self._download_once, id, commit, file, bar)
        for _ in range(2):
            try:
                path = with_retries(f"Downloading '{file.path}' of dataset {id}", attempt, bar.stopped.wait)
            except Refused as refused:
                raise self._refusal_error(refused, id, commit, file.path) from None
            checksum = _checksum(path, file)
            if checksum == file.checksum:
                return path
            path.resolve().unlink(missing_ok=True)  # the content; in the cache, the path is a link to it
            path.unlink(missing_ok=True)
        raise EmbarkError(
            f"File '{file.path}' of dataset {id} arrived damaged twice: expected {file.checksum}, found {checksum}."
        )

    def _download_once(self, id: str, commit: str, file: RemoteFile, bar: _Bar) -> Path:
        from huggingface_hub import hf_hub_download

        http.check_token()
        try:
            path = hf_hub_download(
                id, file.path, repo_type="dataset", revision=commit, endpoint=self.endpoint, library_name="embark",
                tqdm_class=bar,
            )  # fmt: skip
        except Exception as error:
            raise self._problem(error, _snapshot(id, commit) / file.path, file.size) from error
        return Path(path)

    # ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _problem(self, error: Exception, target: Path | None = None, size: int = 0) -> Exception:
        """The exception to raise for an error of huggingface_hub.

        TemporaryFailure if a retry may help, else Refused or EmbarkError.
        """
        from huggingface_hub import errors

        if isinstance(error, EmbarkError):
            return error
        if isinstance(error, errors.LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
            error = error.__cause__  # why it had to look for the file here
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        response = getattr(error, "response", None)
        if isinstance(error, (errors.OfflineModeIsEnabled, ValueError)):
            return EmbarkError(reason)
        if response is not None:
            status = int(response.status_code)
            reason = f"HTTP {status} {response.reason_phrase}"
            if status in http.BUSY:
                return TemporaryFailure(reason, http.retry_after(response.headers))
            if not str(response.url).startswith(f"{self.endpoint}/"):  # a link to storage may have run out
                return TemporaryFailure(reason)
            return Refused(status, response.reason_phrase)
        if isinstance(error, OSError) and error.errno is not None and target:
            return _disk_error(error, target, size)
        unreachable = any(isinstance(cause, http.UNREACHABLE) for cause in _causes(error))
        return TemporaryFailure(reason, unreachable=unreachable)

    def _refusal_error(self, refused: Refused, id: str, revision: str, path: str = "") -> EmbarkError:
        """The error for a refusal, with advice."""
        page = f"{self.endpoint}/datasets/{id}"
        if refused.status in (401, 403):
            return EmbarkError(
                f"Dataset {id} is gated, private or not there (HTTP {refused.status}): accept its terms at {page} "
                "and set HF_TOKEN to a token of yours, or log in with `hf auth login`."
            )
        if refused.status != 404:
            return EmbarkError(f"{page} answered {refused}.")
        try:
            newest = str(self._get(f"{self.endpoint}/api/datasets/{id}").json().get("sha"))
        except (Refused, TemporaryFailure, ValueError):
            return EmbarkError(f"There is no dataset {id} at {self.endpoint}.")
        if path and newest == revision:
            return EmbarkError(f"File '{path}' of dataset {id} is gone from revision {revision}.")
        return EmbarkError(f"Revision {revision} of dataset {id} is gone (the hub has {newest}).")


class _Bar:
    """A progress bar for huggingface_hub: it counts the bytes of several files, and can stop the downloads."""

    def __init__(self, advance: Callable[[int], object] | None) -> None:
        self.advance = advance
        self.stopped = threading.Event()

    def __call__(self, *args: object, **options: object) -> _Bar:
        return self

    __enter__ = __call__

    def update(self, count: float | None = 1) -> None:
        if self.stopped.is_set():
            raise EmbarkError("The download was stopped.")
        if self.advance:
            self.advance(int(count or 0))

    def ignore(self, *args: object, **options: object) -> None:
        pass

    __exit__ = close = refresh = update_transfer = set_postfix_str = set_transfer_postfix_str = ignore


def _stop_xet() -> None:
    """Downloads from Xet storage run outside Python and would go on."""
    with suppress(ImportError):
        from huggingface_hub.utils._xet import abort_xet_session

        abort_xet_session()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_local(id: str) -> bool:
    """Whether a dataset is a folder of this machine and not one of the hub."""
    return Path(id).is_absolute()


def safe_path(path: str) -> str:
    """A path that came from elsewhere, which must not lead out of its folder."""
    return relative_path(path, "The hub")


def _snapshot(id: str, commit: str) -> Path:
    """The folder of a commit in huggingface_hub's cache."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE, f"datasets--{safe_path(id).replace('/', '--')}", "snapshots", commit)


def _files_in(folder: Path) -> dict[str, RemoteFile]:
    if not folder.is_dir():
        raise EmbarkError(f"There is no folder {folder}.")
    files = ((path.relative_to(folder), path) for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        name.as_posix(): RemoteFile(name.as_posix(), path.stat().st_size)
        for name, path in files
        if not (path.is_symlink() and any(part.startswith(".") for part in name.parts))  # hidden links lead anywhere
    }


def _checksum(path: Path, file: RemoteFile) -> str:
    size = path.stat().st_size
    if size != file.size:
        return f"{size:,} bytes instead of {file.size:,}"
    with path.open("rb") as data:
        if file.sha256:
            return f"sha256 {hashlib.file_digest(data, 'sha256').hexdigest()}"
        header = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        return f"git object {hashlib.file_digest(data, lambda: header).hexdigest()}"


@lru_cache(maxsize=64)
def _load_listing(path: str) -> dict[str, RemoteFile]:
    """A stored list of files; it never changes, because it is a commit's."""
    return {row["path"]: RemoteFile(**row) for row in json.loads(Path(path).read_bytes())}


def _save(path: Path, value: Any) -> None:
    text = json.dumps(value).encode()
    try:
        with atomically(path) as out:
            out.write(text)
    except OSError as error:
        raise _disk_error(error, path, len(text)) from error


def _disk_error(error: OSError, target: Path, size: int) -> EmbarkError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "Make room, or choose a larger disk: HF_HOME for data, --home (EMBARK_HOME) for the rest."
        return EmbarkError(f"The disk is full: {target} needs {size:,} bytes. {advice}")
    return EmbarkError(f"Cannot write {target}: {error.strerror or error}.")


def _offline_error(what: str) -> EmbarkError:
    return EmbarkError(f"Offline, and {what} is not on this machine: get it beforehand with `embark fetch`.")
