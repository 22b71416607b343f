"""Files of a hub's data sets and models at a pinned revision: huggingface_hub downloads them into its own cache, and we
verify them.

`home/hub/<id>` (for a model `models--<id>`) holds answers of the hub: `<commit>.json` lists the files of a commit,
`terms-<commit>.json` has what it says of license and access (`embark.hub.terms`), `ref-<branch>.json` names a branch's
commit. The hashes of verified files are kept with their states (`embark.file_hashes`): a file in another state is
verified before it is used.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from embark import http
from embark.file_hashes import file_hashes
from embark.http import HASH, RequestRefused, TemporaryFailure, logger, with_retries
from embark.hub.cache import (
    DATASETS,
    RepositoryKind,
    cached_commit,
    checksum_of,
    content,
    disk_error,
    free_bytes,
    full_disk,
    save,
    set_aside,
    snapshot,
)
from embark.hub.listing import (
    RemoteFile,
    files_in,
    is_hash,
    is_local,
    listing_checksum,
    load_listing,
    remote_file,
    safe_path,
)
from embark.hub.terms import FIELDS, Terms, read_terms
from embark.paths import component
from embark.settings import Settings
from embark.types import EmbarkError

CONNECTIONS = 4  # files downloaded at once
PROGRESS_BYTES = 16 << 20  # bytes from which on a download shows its progress

# A listing of more than this is refused; the largest datasets have some 100,000 files, a page 1,000 of them.
LISTING_FILES = 2_000_000
LISTING_PAGES = 10_000
LISTING_BYTES = 1 << 30
ANSWER_BYTES = 64 << 20  # of one page

# Shows the work on a number of bytes: progress(title, total) as advance, and then advance(count).
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]
Answer = tuple[Any, str, int]  # of the hub's API: the value, the address of the next page (or ""), its bytes


class Hub:
    """The repositories of one kind of a hub, and folders of this machine that serve as datasets."""

    def __init__(self, settings: Settings, progress: Progress | None = None, kind: RepositoryKind = DATASETS) -> None:
        self.kind = kind
        self.endpoint = settings.endpoint
        self.home = settings.home
        self.offline = settings.offline
        self.progress = progress
        self.opened: dict[tuple[str, str], dict[str, RemoteFile]] = {}  # by repository and revision
        self.made: dict[str, list[Path]] = {}  # by repository: what this Hub downloaded or unpacked, for `evict`
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
                if self.kind.shared and commit is None:
                    commit = cached_commit(self.kind, id, revision)
                if not is_hash(commit):
                    raise self._offline_error(f"revision {revision} of {self._spoken(id)}")
            else:
                url = f"{self._api}/{id}/revision/{quote(revision, safe='')}"
                answer, *_ = self._ask(url, id, revision)
                commit = answer.get("sha") if isinstance(answer, dict) else None
                if not is_hash(commit):
                    raise self._wrong(id, f"its commit at revision {revision} is {str(commit)[:80]!r}, not a hash")
                save(ref, commit)
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
        with suppress(EmbarkError, RequestRefused, TemporaryFailure):
            commit = self.resolve(id, revision)
            path = self._folder(id) / f"terms-{commit}.json"
            with suppress(OSError, ValueError, TypeError, KeyError):  # one that is damaged is asked for again
                stored = json.loads(path.read_bytes())
                return Terms(tuple(map(str, stored["licenses"])), stored["open"] is True)
            if not self.offline and not self._unreachable:
                fields = "&".join(f"expand={name}" for name in FIELDS)
                answer, *_ = self._get(f"{self._api}/{id}/revision/{commit}?{fields}")
                if terms := read_terms(answer):
                    save(path, asdict(terms))
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
                name = self.kind.noun.capitalize()
                raise EmbarkError(f"{name} {id} has no file '{path}' at revision {revision}.{advice}")
        self.opened.setdefault((id, revision), {}).update((path, tree[path]) for path in paths)
        local = self._verified_files(id, commit, [tree[path] for path in dict.fromkeys(paths)])
        missing = [tree[path] for path in dict.fromkeys(paths) if path not in local]
        if missing and self.offline:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise self._offline_error(f"file '{missing[0].path}'{more} of {self._spoken(id)} ({revision})")
        if missing:
            local |= self._download_all(id, commit, missing)
        return [local[path] for path in paths]

    def folder(self, id: str, revision: str) -> Path:
        """The folder on this machine with the files of a revision that are here."""
        return Path(id) if is_local(id) else snapshot(self.kind, id, self.resolve(id, revision))

    def read_range(self, id: str, revision: str, file: RemoteFile, start: int, size: int) -> bytes:
        """Some bytes of a file, without downloading the others; of a file on this machine, from there."""
        commit = self.resolve(id, revision)
        if path := self._find(id, commit, file):
            with path.open("rb") as local:
                local.seek(start)
                return local.read(size)
        if self.offline:
            raise self._offline_error(f"file '{file.path}' of {self._spoken(id)} ({revision})")
        url = f"{self._page(id)}/resolve/{commit}/{quote(file.path)}"
        attempt = partial(self._get_range, url, start, min(size, file.size - start))
        try:
            return with_retries(f"Reading '{file.path}' of {self._spoken(id)}", attempt)
        except RequestRefused as refused:
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
            load_listing.cache_clear()

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
        path = self.folder(id, commit) / file.path
        return path if path.is_file() and path.stat().st_size == file.size else None

    def _folder(self, id: str) -> Path:
        return self.home / "hub" / f"{self.kind.folder}{component(safe_path(id))}"

    # ── verification ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _verified_files(self, id: str, commit: str, files: Sequence[RemoteFile]) -> dict[str, Path]:
        """Those of the files that are on this machine, by path; content is read where it may have changed."""
        local = [(file, path) for file in files if (path := self._find(id, commit, file))]
        if not is_local(id):
            changed = [(file, path) for file, path in local if file.hash and not self._is_verified(file, path)]
            with ThreadPoolExecutor(CONNECTIONS) as pool:
                damaged = [file for file, whole in pool.map(partial(self._verify, id), changed) if not whole]
            local = [(file, path) for file, path in local if file not in damaged]
        return {file.path: path for file, path in local}

    def _verify(self, id: str, entry: tuple[RemoteFile, Path]) -> tuple[RemoteFile, bool]:
        """Whether the content of a file is what the hub lists; one that is not is set aside."""
        file, path = entry
        state = path.stat()
        checksum = checksum_of(path, file)
        if checksum == file.checksum:
            self._keep_hash(file, path, state)
            return file, True
        wrong = f"{path} is not file '{file.path}' of {self._spoken(id)}: expected {file.checksum}, found {checksum}"
        if self.offline:
            raise EmbarkError(f"{wrong}. It was altered or damaged: run `embark fetch` without --offline.")
        logger.warning("%s. It is set aside as *.damaged and downloaded again.", wrong)
        set_aside(path)
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
            return files_in(Path(id))
        commit = self.resolve(id, revision)
        listing = self._folder(id) / f"{commit}.json"
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):  # a damaged one is asked for again
            return load_listing(str(listing))
        if self.offline and self.kind.shared and (here := snapshot(self.kind, id, commit)).is_dir():
            return files_in(here)  # another program has downloaded them
        if self.offline:
            raise self._offline_error(f"the list of files of {self._spoken(id)} ({revision})")
        rows = [asdict(file) for file in self._list(id, commit)]
        save(listing, {"files": rows, "checksum": listing_checksum(rows)})
        self.terms(id, commit)
        return load_listing(str(listing))

    def _list(self, id: str, commit: str) -> list[RemoteFile]:
        """The files that the hub lists, checked: what is wrong in a list would stay wrong, because it is kept."""
        tree = f"/api/{self.kind.plural}/{id}/tree/{commit}"
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
                file = remote_file(row)
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
            f"{self.endpoint} describes {self._spoken(id)} wrongly: {reason}. "
            "The answer was discarded: check the endpoint, or try again later."
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
                    advice = "Check the network or name a mirror (EMBARK_ENDPOINT). EMBARK_OFFLINE=1 works offline."
                    self._unreachable = EmbarkError(f"{self.endpoint} cannot be reached: {failure}. {advice}")
                    raise self._unreachable from None
                raise

        if self._unreachable:
            raise self._unreachable
        try:
            return with_retries(f"Asking {self.endpoint} about {self._spoken(id)}", attempt)
        except RequestRefused as refused:
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
        if total > free_bytes(snapshot(self.kind, id, commit)):
            raise full_disk(snapshot(self.kind, id, commit), total)
        shown = (
            self.progress(f"Downloading {id}", total) if self.progress and total >= PROGRESS_BYTES else nullcontext()
        )
        with shown as advance, ThreadPoolExecutor(CONNECTIONS) as pool:
            bar = _ByteBar(advance)
            try:
                paths = list(pool.map(lambda file: self._download(id, commit, file, bar), files))
            except BaseException:
                bar.stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                _stop_xet()
                raise
        return {file.path: path for file, path in zip(files, paths, strict=True)}

    def _download(self, id: str, commit: str, file: RemoteFile, bar: _ByteBar) -> Path:
        """Download a file and verify it; a damaged file is downloaded once more."""
        attempt = partial(self._download_once, id, commit, file, bar)
        known = content(self.kind, id, file).exists()  # of another revision
        for _ in range(2):
            try:
                path = with_retries(f"Downloading '{file.path}' of {self._spoken(id)}", attempt, bar.stopped.wait)
            except RequestRefused as refused:
                self.forget(id, commit)
                raise self._refusal_error(refused, id, commit, file.path) from None
            state = path.stat()
            checksum = checksum_of(path, file)
            if checksum == file.checksum:
                self._keep_hash(file, path, state)
                if not known:
                    self.add_made(id, path)
                return path
            path.resolve().unlink(missing_ok=True)  # the content; in the cache, the path is a link to it
            path.unlink(missing_ok=True)
        self.forget(id, commit)
        raise EmbarkError(
            f"File '{file.path}' of {self._spoken(id)} arrived damaged twice: expected {file.checksum}, "
            f"found {checksum}."
        )

    def _download_once(self, id: str, commit: str, file: RemoteFile, bar: _ByteBar) -> Path:
        from huggingface_hub import hf_hub_download

        http.guard_huggingface_hub(self.endpoint)
        try:
            path = hf_hub_download(
                id, file.path, repo_type=self.kind.noun, revision=commit, endpoint=self.endpoint, library_name="embark",
                tqdm_class=bar,
            )  # fmt: skip
        except Exception as error:
            raise self._problem(error, snapshot(self.kind, id, commit) / file.path, file.size) from error
        return Path(path)

    # ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _api(self) -> str:
        return f"{self.endpoint}/api/{self.kind.plural}"

    def _spoken(self, id: str) -> str:
        """A repository in messages."""
        return f"{self.kind.noun} {id}"

    def _page(self, id: str) -> str:
        """The address of a repository's page, which its files are below."""
        return f"{self.endpoint}/{self.kind.page}{id}"

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
            return RequestRefused(status, phrase)
        if isinstance(error, (errors.OfflineModeIsEnabled, ValueError)):
            return EmbarkError(reason)
        if isinstance(error, OSError) and error.errno is not None and target:
            return disk_error(error, target, size)
        unreachable = any(isinstance(cause, http.UNREACHABLE) for cause in _causes(error))
        return TemporaryFailure(reason, unreachable=unreachable)

    def _offline_error(self, what: str) -> EmbarkError:
        return EmbarkError(f"Offline, and {what} is not on this machine: {self.kind.advice}.")

    def _refusal_error(self, refused: RequestRefused, id: str, revision: str, path: str = "") -> EmbarkError:
        """The error for a refusal, with advice."""
        page = self._page(id)
        kind = self.kind.noun.capitalize()
        if refused.status in (401, 403):
            return EmbarkError(
                f"{kind} {id} is gated, private or not there (HTTP {refused.status}): accept its "
                f"terms at {page} and set HF_TOKEN to a token of yours, or log in with `hf auth login`."
            )
        if refused.status != 404:
            return EmbarkError(f"{page} answered {refused}.")
        try:
            newest = str(self._get(f"{self._api}/{id}")[0].get("sha"))
        except (RequestRefused, TemporaryFailure, AttributeError):
            return EmbarkError(f"There is no {self._spoken(id)} at {self.endpoint}.")
        if path and newest == revision:
            return EmbarkError(f"File '{path}' of {self._spoken(id)} is gone from revision {revision}.")
        return EmbarkError(f"Revision {revision} of {self._spoken(id)} is gone (the hub has {newest}).")


class _ByteBar:
    """A progress bar for huggingface_hub: it counts the bytes of several files, and can stop the downloads."""

    def __init__(self, advance: Callable[[int], object] | None) -> None:
        self.advance = advance
        self.stopped = threading.Event()

    def __call__(self, *args: object, **options: object) -> _ByteBar:
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
