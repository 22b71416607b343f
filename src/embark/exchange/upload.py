"""Results to a repository of the hub: shown first, uploaded when told so, in one commit."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from embark import http
from embark.catalogue import check_name, counted, listed
from embark.exchange.card_section import results_of
from embark.field_types import checked
from embark.outgoing import parquet_bytes
from embark.paths import UnsafePath, read_file
from embark.redaction import Private, redacted, this_machine
from embark.results import (
    LARGEST_BYTES,
    LARGEST_CARD,
    LARGEST_OUTCOMES,
    META,
    Damaged,
    Results,
    TaskResult,
    outcomes_in,
    outgoing_card,
    outgoing_result,
    parse_card,
    parse_result,
)
from embark.results.task_rows import known_tasks
from embark.settings import Settings, load_settings
from embark.tables import Exact, Noted, Row, Table
from embark.tasks import TASKS, Tasks, choose_tasks
from embark.types import EmbarkError

REPO_TYPES = ("dataset", "model")
REPO = re.compile(r"([\w.-]+/)?[\w.-]+", re.ASCII)
FOLDER = "results"  # of the repository
NO_TOKEN = "There is no token: set HF_TOKEN to one that may write, or log in with `hf auth login`."


@dataclass(frozen=True)
class Upload(Noted):
    """Files for a repository of the hub, by their place in it; `commit` is the page of the commit, once uploaded."""

    repo: str
    repo_type: str
    endpoint: str
    files: Mapping[str, bytes]
    commit: str = ""

    def table(self) -> Table:
        """One row per file: its place, size and hash, which are those of what is uploaded."""
        rows = [
            Row((name, Exact(len(content), f"{len(content):,}"), hashlib.sha256(content).hexdigest()))
            for name, content in self.files.items()
        ]
        return Table(("file", "bytes", "sha256"), tuple(rows))

    def sentence(self) -> str:
        """The upload in words."""
        where = f"the {self.repo_type} {self.repo} at {self.endpoint}"
        files = counted(len(self.files), "file")
        return f"{files} uploaded to {where}: {self.commit}" if self.commit else f"{files} for {where}."


@checked
def push(
    model: str,
    repo: str,
    tasks: Tasks = None,
    *,
    repo_type: Literal["dataset", "model"] = "dataset",
    outcomes: bool = False,
    create: bool = False,
    upload: bool = False,
    settings: Settings | None = None,
) -> Upload:
    """A model's results for a repository of the hub; nothing is sent unless `upload` is true.

    The files are those of the results folder: scores and the model's card, and with `outcomes` what became of every
    item. Each is read once, and made anew from the fields that embark knows, without folders, hosts, users and keys.
    Outcomes go along only if they are those that their result recorded (by hash). A link, or anything else that is no
    plain file, is an error. Results on data of your own hold the names of its items: they go along only if `tasks`
    names them. The token is HF_TOKEN, or that of `hf auth login`. `create` makes a private repository if there is none.
    """
    check_name("type of repository", repo_type, REPO_TYPES)
    if not REPO.fullmatch(repo):
        raise EmbarkError(f"'{repo}' is no repository of the hub: write organization/name.")
    settings = settings or load_settings()
    stored = Results(settings.results)
    own = [result for result in stored.all() if result.made_by == "embark"]
    try:
        results = results_of(model, own, settings)
    except EmbarkError as error:
        raise EmbarkError(f"{error}{_links(stored.root)}") from error
    if tasks is not None:
        chosen = {task.name for task in choose_tasks(tasks, known=known_tasks(results, settings.home))}
        results = [result for result in results if result.task in chosen]
    sampled = [result.task for result in results if result.sampled]
    results = [result for result in results if not result.sampled]
    private = [result.task for result in results if result.task not in TASKS] if tasks is None else []
    results = [result for result in results if result.task not in private]
    if not results:
        raise EmbarkError(
            f"{model} has no results to upload on these tasks: tasks on your own data must be named (-t), and samples "
            f"(--limit) are not uploaded.{_links(stored.root)}"
        )
    notes = list(stored.notes)
    if sampled:
        notes.append(f"left out, because they are samples (--limit): {listed(list(dict.fromkeys(sampled)))}")
    if private:
        notes.append(f"left out, because they contain names of your own data: {listed(private)} (name them to upload)")
    files, unread = _files(results, stored, outcomes, this_machine(settings))
    if unread:
        notes.append(f"outcomes without a recorded hash are left out: {listed(unread)} (run the tasks again)")
    wanted = Upload(repo, repo_type, settings.endpoint, files, notes=tuple(notes))
    return _uploaded(wanted, model, create, settings) if upload else wanted


def _files(
    results: list[TaskResult], stored: Results, outcomes: bool, private: Private
) -> tuple[dict[str, bytes], list[str]]:
    """The files by their place in the repository, and the tasks whose outcomes are left out; an error for odd files."""
    files: dict[str, bytes] = {}
    unread: list[str] = []
    refused: list[str] = []
    for result in results:
        try:
            files |= _files_of(result, stored, outcomes, unread, private)
        except UnsafePath as error:
            refused.append(str(error))
    refused += [name for name in _odd_files(results, stored.root) if not any(name in reason for reason in refused)]
    if refused:
        why = f"Nothing can be uploaded from {stored.root}: {listed(list(dict.fromkeys(refused)))}."
        raise EmbarkError(f"{why} A file of results is a plain file: copy or delete what is none.")
    return files, unread


def _files_of(
    result: TaskResult, stored: Results, outcomes: bool, unread: list[str], private: Private
) -> dict[str, bytes]:
    """The files of one result, made from what its files hold now; each is read once."""
    assert result.path is not None
    name = result.path.relative_to(stored.root).as_posix()
    if any(redacted(word, private) != word for word in (result.model, result.revision, result.task)):
        raise UnsafePath(f"{name} is named after a folder or a user of this machine")
    if result.path != stored.file(result):
        raise UnsafePath(f"{name} holds the result of {result.model} on {result.task}, whose file has another name")
    folder = name.rpartition("/")[0]
    try:
        current = parse_result(read_file(stored.root, name, LARGEST_BYTES), result.path)
    except Damaged as damage:
        raise UnsafePath(f"{name} is damaged ({damage.reason})") from damage
    if current is None or current != result:
        raise UnsafePath(f"{name} was written while it was read")
    files: dict[str, bytes] = {}
    if outcomes:
        table = _outcomes(current, stored.root, f"{name.removesuffix('.json')}.parquet")
        if table is None:
            unread.append(result.task)
        else:
            data = parquet_bytes(table, private)
            files[f"{FOLDER}/{name.removesuffix('.json')}.parquet"] = data
            current = replace(current, checksum=hashlib.sha256(data).hexdigest())
    card = None
    if os.path.lexists(result.path.with_name(META)):
        card = parse_card(read_file(stored.root, f"{folder}/{META}", LARGEST_CARD))
    if card is not None and (card.name, card.revision) != (result.model, result.revision):
        raise UnsafePath(f"{folder}/{META} is the card of {card.name}, not of {result.model}")
    meta = outgoing_card(result.model, result.revision, card, private)
    return {f"{FOLDER}/{folder}/{META}": meta, f"{FOLDER}/{name}": outgoing_result(current, private), **files}


def _outcomes(result: TaskResult, root: Path, name: str) -> pa.Table | None:
    """The outcomes of a result, if they are those that it recorded; None where it recorded none."""
    if not result.checksum:  # as in an export, which has scores alone
        return None
    data = read_file(root, name, LARGEST_OUTCOMES)
    if hashlib.sha256(data).hexdigest() != result.checksum:
        raise UnsafePath(f"{name} is not what was written with the scores")
    try:
        return outcomes_in(data, root / name, result, parts=True)
    except Damaged as damage:
        raise UnsafePath(f"{name} is damaged ({damage.reason})") from damage


def _links(root: Path) -> str:
    """A sentence about links in the results folder, which are not read: what was looked for may be behind one."""
    paths = (path for depth in ("*", "*/*", "*/*/*") for path in sorted(root.glob(depth)) if path.is_symlink())
    linked = [f"{path.relative_to(root).as_posix()} is a link" for path in paths]
    return f" Not read: {listed(linked)}. Put the files themselves there." if linked else ""


def _odd_files(results: list[TaskResult], root: Path) -> list[str]:
    """What lies in the folders of these results and is no plain file."""
    folders = {result.path.parent for result in results if result.path is not None}
    return [
        f"{Path(entry.path).relative_to(root).as_posix()} is a link, or no plain file"
        for folder in sorted(folders)
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
        if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)
    ]


def _uploaded(wanted: Upload, model: str, create: bool, settings: Settings) -> Upload:
    import huggingface_hub as hf

    if settings.offline:
        raise EmbarkError("Nothing can be uploaded offline: leave out --offline, EMBARK_OFFLINE and HF_HUB_OFFLINE.")
    http.guard_huggingface_hub(settings.endpoint)
    if hf.get_token() is None:
        raise EmbarkError(NO_TOKEN)
    api = hf.HfApi(endpoint=settings.endpoint, library_name="embark")
    additions = [hf.CommitOperationAdd(name, content) for name, content in wanted.files.items()]
    about: dict[str, Any] = {"repo_id": wanted.repo, "repo_type": wanted.repo_type}
    try:
        if create:
            api.create_repo(**about, private=True, exist_ok=True)
        commit = api.create_commit(**about, operations=additions, commit_message=f"Scores of {model}")
    except EmbarkError:
        raise
    except Exception as error:
        raise EmbarkError(_refusal(error, wanted)) from error
    return replace(wanted, commit=str(commit.commit_url))


def _refusal(error: Exception, wanted: Upload) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    where = f"the {wanted.repo_type} {wanted.repo} at {wanted.endpoint}"
    if status == 404:
        return f"Your token has no access to {where.removeprefix('the ')}: check the name, or create it (--create)."
    if status in (401, 403):
        return f"Your token may not write to {where} (HTTP {status}): use one with that right."
    reason = http.hub_message(getattr(error, "server_message", None) or str(error)) or type(error).__name__
    return f"Nothing was uploaded to {where}: {reason}"
