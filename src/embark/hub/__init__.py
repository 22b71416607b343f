"""Files of hub datasets at a pinned revision: huggingface_hub downloads them into its own cache, and we verify them.

`home/hub/<id>` holds answers of the hub: `<commit>.json` lists the files of a commit, `terms-<commit>.json` has what it
says of license and access (`embark.hub.terms`), `ref-<branch>.json` names a branch's commit. The hashes of verified
files are kept with their states (`embark.file_hashes`): a file in another state is verified before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
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
from embark.atomic import NO_ROOM, atomically
from embark.file_hashes import SHA256, file_hashes
from embark.http import HASH, Refused, TemporaryFailure, logger, with_retries
from embark.hub.terms import FIELDS, Terms, read_terms
from embark.paths import component, relative_path
from embark.settings import Settings
from embark.types import EmbarkError

CONNECTIONS = 4  # files downloaded at once
LARGE = 16 << 20  # bytes from which on a download shows its progress

# A listing of more than this is refused; the largest datasets have some 100,000 files, a page 1,000 of them.
LISTING_FILES = 2_000_000
LISTING_PAGES = 10_000
LISTING_BYTES = 1 << 30
ANSWER_BYTES = 64 << 20  # of one page
LONGEST_PATH = 4096
LARGEST_FILE = 1 << 50

ROOM = (
    "Make room, or choose a larger disk (HF_HOME for data, --home or EMBARK_HOME for the rest), and run the same "
    "command: it goes on where it stopped."
)

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
    def kind(self) -> str:
        """The kind of hash that the hub states of it."""
        return SHA256 if self.sha256 else "git object"

    @property
    def hash(self) -> str:
        """What its content must hash to."""
        return self.sha256 or self.oid

    @property
    def checksum(self) -> str:
        """Both in words."""
        return f"{self.kind} {self.hash}"


Answer = tuple[Any, str, int]  # of the hub's API: the value, the address of the next page (or ""), its bytes


class Hub:
    """The datasets of one hub, and folders of this machine that serve as datasets."""

    def __init__(self, settings: Settings, progress: Progress | None = None) -> None:
        self.endpoint = settings.endpoint
        self.home = settings.home
        self.offline = settings.offline
        self.progress = progress
        self.opened: dict[tuple[str, str], dict[str, RemoteFile]] = {}  # by dataset and revision
        self.made: dict[str, list[Path]] = {}  # by dataset: the files that this Hub downloaded or unpacked, for `evict`
        self.unchanged: list[Any] = []  # tasks of folders that were seen to be in the state that their rows have
        self._commits: dict[tuple[str, str], str] = {}
        self._hashes = file_hashes(settings.home)
        self._answered = False  # a hub that never answered is not asked again and again
        self._unreachable: EmbarkError | None = None

    def resolve(self, id: str, revision: str) -> str:
        """The commit that a revision stands for; a branch is looked up once for each Hub."""
        if HASH.fullmatch(revision) or is_local(id):
            return revision
        if (id, revision) not in self._commits:
            ref = self._folder(id) / f"ref-{component(revision)}.json"
            commit: Any = None
            if self.offline:
                with suppress(OSError, ValueError):
                    commit = json.loads(ref.read_bytes())
                if not _is_hash(commit):
                    raise _offline_error(f"revision {revision} of dataset {id}")
            else:
                url = f"{self.endpoint}/api/datasets/{id}/revision/{quote(revision, safe='')}"
                answer, *_ = self._ask(url, id, revision)
                commit = answer.get("sha") if isinstance(answer, dict) else None
                if not _is_hash(commit):
                    raise self._wrong(id, f"its commit at revision {revision} is {str(commit)[:80]!r}, not a hash")
                _save(ref, commit)
            self._commits[id, revision] = str(commit)
        return self._commits[id, revision]

    def commit(self, id: str, revision: str) -> str:
        """The commit that a revision was resolved to so far; the revision itself if it was not."""
        return self._commits.get((id, revision), revision)

    def files(self, id: str, revision: str) -> list[RemoteFile]:
        """Every file of the dataset at that revision."""
        return list(self._tree(id, revision).values())

    def terms(self, id: str, revision: str) -> Terms | None:
        """What the hub said of a dataset's license and access when it was listed; asked now, once, if nobody did.

        None where nobody knows: what is offline, or not answered, stays unknown.
        """
        with suppress(EmbarkError, Refused, TemporaryFailure):
            commit = self.resolve(id, revision)
            path = self._folder(id) / f"terms-{commit}.json"
            with suppress(OSError, ValueError, TypeError, KeyError):  # one that is damaged is asked for again
                stored = json.loads(path.read_bytes())
                return Terms(tuple(map(str, stored["licenses"])), stored["open"] is True)
            if not self.offline and not self._unreachable:
                fields = "&".join(f"expand={name}" for name in FIELDS)
                answer, *_ = self._get(f"{self.endpoint}/api/datasets/{id}/revision/{commit}?{fields}")
                if terms := read_terms(answer):
                    _save(path, asdict(terms))
                return terms
        return None

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
                self.forget(id, revision)
                same_name = [name for name in tree if PurePosixPath(name).name == PurePosixPath(path).name]
                advice = f" Did you mean {' or '.join(same_name[:3])}?" if same_name else ""
                raise EmbarkError(f"Dataset {id} has no file '{path}' at revision {revision}.{advice}")
        self.opened.setdefault((id, revision), {}).update((path, tree[path]) for path in paths)
        local = self._verified_files(id, commit, [tree[path] for path in dict.fromkeys(paths)])
        missing = [tree[path] for path in dict.fromkeys(paths) if path not in local]
        if missing and self.offline:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise _offline_error(f"file '{missing[0].path}'{more} of dataset {id} ({revision})")
        if missing:
            local |= self._download_all(id, commit, missing)
        return [local[path] for path in paths]

    def read_range(self, id: str, revision: str, file: RemoteFile, start: int, size: int) -> bytes:
        """Some bytes of a file, without downloading the others; of a file on this machine, from there."""
        commit = self.resolve(id, revision)
        if path := self._find(id, commit, file):
            with path.open("rb") as local:
                local.seek(start)
                return local.read(size)
        if self.offline:
            raise _offline_error(f"file '{file.path}' of dataset {id} ({revision})")
        url = f"{self.endpoint}/datasets/{id}/resolve/{commit}/{quote(file.path)}"
        attempt = partial(self._get_range, url, start, min(size, file.size - start))
        try:
            return with_retries(f"Reading '{file.path}' of dataset {id}", attempt)
        except Refused as refused:
            raise self._refusal_error(refused, id, revision, file.path) from None

    def _get_range(self, url: str, start: int, size: int) -> bytes:
        from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

        http.guard_huggingface_hub(self.endpoint)
        headers = build_hf_headers(library_name="embark") | {"Range": f"bytes={start}-{start + size - 1}"}
        body = bytearray()
        try:
            with get_session().stream("GET", url, headers=headers, timeout=http.TIMEOUT, follow_redirects=True) as page:
                hf_raise_for_status(page)
                skip = start if page.status_code == 200 else 0  # a server without ranges sends all
                for block in page.iter_bytes(1 << 16):
                    body += block[skip:]
                    skip = max(0, skip - len(block))
                    if len(body) >= size:
                        break
        except Exception as error:
            raise self._problem(error) from None
        if len(body) < size:
            raise TemporaryFailure(f"{len(body):,} bytes came instead of {size:,}")
        return bytes(body[:size])

    def forget(self, id: str, revision: str) -> None:
        """Have the files listed again next time: a list that something is missing in may be wrong."""
        if not self.offline and not is_local(id):
            (self._folder(id) / f"{self.resolve(id, revision)}.json").unlink(missing_ok=True)
            _load_listing.cache_clear()

    def add_made(self, id: str, path: Path) -> None:
        """Remember a file that is there because of this Hub."""
        self.made.setdefault(id, []).append(path)

    def evict(self, id: str) -> int:
        """Delete the files of a dataset that this Hub downloaded or unpacked, and none that were there before.

        Returns the bytes that are free now.
        """
        free = 0
        for path in self.made.pop(id, ()):
            for file in {path.resolve(), path}:  # in the cache, the path is a link to the content
                with suppress(OSError):
                    free += 0 if file.is_symlink() else file.stat().st_size
                    file.unlink()
        return free

    def _find(self, id: str, commit: str, file: RemoteFile) -> Path | None:
        """The file on this machine, if it is here and of the right size."""
        path = (Path(id) if is_local(id) else _snapshot(id, commit)) / file.path
        return path if path.is_file() and path.stat().st_size == file.size else None

    def _folder(self, id: str) -> Path:
        return self.home / "hub" / component(safe_path(id))

    # ── verification ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _verified_files(self, id: str, commit: str, files: Sequence[RemoteFile]) -> dict[str, Path]:
        """Those of the files that are on this machine, by path; content is read where it may have changed."""
        local = [(file, path) for file in files if (path := self._find(id, commit, file))]
        if not is_local(id):
            changed = [(file, path) for file, path in local if not self._is_verified(file, path)]
            with ThreadPoolExecutor(CONNECTIONS) as pool:
                damaged = [file for file, whole in pool.map(partial(self._verify, id), changed) if not whole]
            local = [(file, path) for file, path in local if file not in damaged]
        return {file.path: path for file, path in local}

    def _verify(self, id: str, entry: tuple[RemoteFile, Path]) -> tuple[RemoteFile, bool]:
        """Whether the content of a file is what the hub lists; one that is not is set aside."""
        file, path = entry
        state = path.stat()
        checksum = _checksum(path, file)
        if checksum == file.checksum:
            self._keep_hash(file, path, state)
            return file, True
        wrong = f"{path} is not file '{file.path}' of dataset {id}: expected {file.checksum}, found {checksum}"
        if self.offline:
            raise EmbarkError(f"{wrong}. It was altered or damaged: run `embark fetch` without --offline.")
        logger.warning("%s. It is set aside as *.damaged and downloaded again.", wrong)
        _set_aside(path)
        return file, False

    def _is_verified(self, file: RemoteFile, path: Path) -> bool:
        """Whether a file was verified in the state that it is in."""
        return self._hashes.known(path, file.kind, path.stat()) == file.hash

    def _keep_hash(self, file: RemoteFile, path: Path, state: os.stat_result) -> None:
        """Keep that a file in this state was verified: nobody but the hub's cache and us writes it."""
        self._hashes.keep(path, file.kind, state, file.hash)

    # ── listing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _tree(self, id: str, revision: str) -> dict[str, RemoteFile]:
        if is_local(id):
            return _files_in(Path(id))
        commit = self.resolve(id, revision)
        listing = self._folder(id) / f"{commit}.json"
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):  # a damaged one is asked for again
            return _load_listing(str(listing))
        if self.offline:
            raise _offline_error(f"the list of files of dataset {id} ({revision})")
        rows = [asdict(file) for file in self._list(id, commit)]
        _save(listing, {"files": rows, "checksum": _listing_checksum(rows)})
        self.terms(id, commit)
        return _load_listing(str(listing))

    def _list(self, id: str, commit: str) -> list[RemoteFile]:
        """The files that the hub lists, checked: what is wrong in a list would stay wrong, because it is kept."""
        tree = f"/api/datasets/{id}/tree/{commit}"
        url = f"{self.endpoint}{tree}?recursive=true"
        files: dict[str, RemoteFile] = {}
        seen: set[str] = set()
        size = 0
        while url:
            if url in seen or len(seen) >= LISTING_PAGES or len(files) > LISTING_FILES or size > LISTING_BYTES:
                raise self._wrong(id, f"it does not end (after {len(seen):,} pages and {len(files):,} files)")
            seen.add(url)
            rows, following, page_size = self._ask(url, id, commit)
            if not isinstance(rows, list):
                raise self._wrong(id, "it is no list")
            for row in rows:
                file = _remote_file(row)
                if file is None or file.path in files:
                    raise self._wrong(id, f"it has the row {str(row)[:200]}")
                if row["type"] == "file":
                    files[file.path] = file
            size += page_size
            url = self._next_page(id, following, tree)
        if not files:
            raise self._wrong(id, "it is empty")
        return list(files.values())

    def _next_page(self, id: str, link: str, tree: str) -> str:
        """A listing's next page at our endpoint: mirrors link to other hosts, and nothing is asked from those."""
        parts = urlsplit(link)
        if link and (parts.scheme not in ("http", "https") or not parts.path.endswith(tree)):
            raise self._wrong(id, f"it goes on at {link[:200]}")
        return f"{self.endpoint}{tree}?{parts.query}" if link else ""

    def _wrong(self, id: str, reason: str) -> EmbarkError:
        return EmbarkError(
            f"{self.endpoint} describes dataset {id} wrongly: {reason}. "
            "Nothing of it is kept: check the endpoint, or try again later."
        )

    @property
    def unreachable(self) -> EmbarkError | None:
        """The error of a hub that has never answered."""
        return self._unreachable

    def _ask(self, url: str, id: str, revision: str) -> Answer:
        """What the hub's API answers about a dataset."""

        def attempt() -> Answer:
            try:
                answer = self._get(url)
                self._answered = True
                return answer
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

    def _get(self, url: str) -> Answer:
        from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

        http.guard_huggingface_hub(self.endpoint)
        headers = build_hf_headers(library_name="embark")
        body = bytearray()
        try:
            with get_session().stream("GET", url, headers=headers, timeout=http.TIMEOUT) as response:
                hf_raise_for_status(response)
                for block in response.iter_bytes(1 << 16):
                    body += block
                    if len(body) > ANSWER_BYTES:
                        raise EmbarkError(f"{url} answers with more than {ANSWER_BYTES:,} bytes: check the endpoint.")
        except Exception as error:
            raise self._problem(error) from None
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise TemporaryFailure(f"the answer is not JSON: {error}") from None
        return value, response.links.get("next", {}).get("url", ""), len(body)

    # ── download ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _download_all(self, id: str, commit: str, files: Sequence[RemoteFile]) -> dict[str, Path]:
        total = sum(file.size for file in files)
        if total > _free(_snapshot(id, commit)):
            raise _full_disk(_snapshot(id, commit), total)
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
        known = _content(id, commit, file).exists()  # of another revision
        for _ in range(2):
            try:
                path = with_retries(f"Downloading '{file.path}' of dataset {id}", attempt, bar.stopped.wait)
            except Refused as refused:
                self.forget(id, commit)
                raise self._refusal_error(refused, id, commit, file.path) from None
            state = path.stat()
            checksum = _checksum(path, file)
            if checksum == file.checksum:
                self._keep_hash(file, path, state)
                if not known:
                    self.add_made(id, path)
                return path
            path.resolve().unlink(missing_ok=True)  # the content; in the cache, the path is a link to it
            path.unlink(missing_ok=True)
        self.forget(id, commit)
        raise EmbarkError(
            f"File '{file.path}' of dataset {id} arrived damaged twice: expected {file.checksum}, found {checksum}."
        )

    def _download_once(self, id: str, commit: str, file: RemoteFile, bar: _Bar) -> Path:
        from huggingface_hub import hf_hub_download

        http.guard_huggingface_hub(self.endpoint)
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
        reason = http.hub_message(str(error)) or type(error).__name__
        response = getattr(error, "response", None)
        if response is not None:
            status = int(response.status_code)
            phrase = http.hub_message(response.reason_phrase)
            reason = f"HTTP {status} {phrase}"
            if status in http.BUSY:
                return TemporaryFailure(reason, http.retry_after(response.headers))
            if not str(response.url).startswith(f"{self.endpoint}/"):  # a link to storage may have run out
                return TemporaryFailure(reason)
            return Refused(status, phrase)
        if isinstance(error, (errors.OfflineModeIsEnabled, ValueError)):
            return EmbarkError(reason)
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
            newest = str(self._get(f"{self.endpoint}/api/datasets/{id}")[0].get("sha"))
        except (Refused, TemporaryFailure, AttributeError):
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


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and HASH.fullmatch(value) is not None


def _remote_file(row: Any) -> RemoteFile | None:
    """The file or folder of a listing's row; None where the row is not one."""
    if not isinstance(row, dict) or row.get("type") not in ("file", "directory"):
        return None
    path = row.get("path")
    lfs = row.get("lfs") or {}
    if not isinstance(path, str) or len(path) > LONGEST_PATH or "\0" in path or not isinstance(lfs, dict):
        return None
    size = lfs.get("size", row.get("size", 0))
    if type(size) is not int or not 0 <= size <= LARGEST_FILE:
        return None
    sha256 = lfs.get("oid", "")
    if not _is_hash(row.get("oid")) or (lfs and not _is_hash(sha256)):
        return None
    return RemoteFile(safe_path(path), size, sha256, row["oid"])


def _set_aside(path: Path) -> None:
    """Rename a damaged file; in the cache, the path is a link to the content."""
    content = path.resolve()
    with suppress(FileNotFoundError):  # another process did it
        if content.parent.name == "blobs" or not path.is_symlink():
            content.replace(content.with_name(f"{content.name}.damaged"))
        path.unlink(missing_ok=True)


def _free(target: Path) -> int:
    return shutil.disk_usage(next(path for path in (target, *target.parents) if path.exists())).free


def _full_disk(target: Path, needed: int) -> EmbarkError:
    """The error where a download does not fit: it names how much is needed and free."""
    return EmbarkError(f"The disk is full: {target} needs {needed:,} bytes, {_free(target):,} are free. {ROOM}")


def _snapshot(id: str, commit: str) -> Path:
    """The folder of a commit in huggingface_hub's cache."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE, f"datasets--{safe_path(id).replace('/', '--')}", "snapshots", commit)


def _content(id: str, commit: str, file: RemoteFile) -> Path:
    """Where the cache has the content of a file, whichever revisions have it."""
    return _snapshot(id, commit).parent.parent / "blobs" / (file.sha256 or file.oid)


def _files_in(folder: Path) -> dict[str, RemoteFile]:
    if not folder.is_dir():
        raise EmbarkError(f"There is no folder {folder}.")
    return {name: RemoteFile(name, size) for name, size in files_below(folder)}


def files_below(folder: Path | str, prefix: str = "", linked: bool = False) -> Iterator[tuple[str, int]]:
    """The files of a folder and below, with their sizes, also those in folders that links lead to.

    Hidden links are left out, as they lead anywhere, and links in a linked folder, as they could lead in circles.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError:
        return
    for entry in entries:
        name = prefix + entry.name
        link = entry.is_symlink()
        if link and any(part.startswith(".") for part in name.split("/")):
            continue
        if entry.is_dir():
            if not (link and linked):
                yield from files_below(entry.path, f"{name}/", linked or link)
        elif entry.is_file():
            yield name, entry.stat().st_size


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
    stored = json.loads(Path(path).read_bytes())
    if stored["checksum"] != _listing_checksum(stored["files"]):
        raise ValueError("it is not what was written")  # a file that is not in the list would not be missed
    return {row["path"]: RemoteFile(**row) for row in stored["files"]}


def _listing_checksum(rows: Any) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _save(path: Path, value: Any) -> None:
    text = json.dumps(value).encode()
    try:
        with atomically(path) as out:
            out.write(text)
    except OSError as error:
        raise _disk_error(error, path, len(text)) from error


def _disk_error(error: OSError, target: Path, size: int) -> EmbarkError:
    if error.errno in NO_ROOM:
        return _full_disk(target, size)
    return EmbarkError(f"Cannot write {target}: {error.strerror or error}.")


def _offline_error(what: str) -> EmbarkError:
    return EmbarkError(f"Offline, and {what} is not on this machine: get it beforehand with `embark fetch`.")
