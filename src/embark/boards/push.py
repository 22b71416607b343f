"""Results to a repository of the hub: shown first, uploaded when told so, in one commit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from embark import http
from embark.boards.card_section import results_of
from embark.catalogue import check_name, counted, listed
from embark.results import META, OURS, Results, TaskResult
from embark.results.table import Exact, Noted, Row, Table
from embark.results.task_rows import known_tasks
from embark.settings import Settings, load_settings
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
        """One row per file."""
        rows = [Row((name, Exact(len(content), f"{len(content):,}"))) for name, content in self.files.items()]
        return Table(("file", "bytes"), tuple(rows))

    def sentence(self) -> str:
        """The upload in words."""
        where = f"the {self.repo_type} {self.repo} at {self.endpoint}"
        files = counted(len(self.files), "file")
        return f"{files} uploaded to {where}: {self.commit}" if self.commit else f"{files} for {where}."


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
    item. Results on data of your own hold the names of its files and folders: they go along only if `tasks` names them.
    The folder of a checkpoint is left out of its card. The token is HF_TOKEN, or that of `hf auth login`. `create`
    makes a private repository if there is none.
    """
    check_name("type of repository", repo_type, REPO_TYPES)
    if not REPO.fullmatch(repo):
        raise EmbarkError(f"'{repo}' is no repository of the hub: write organization/name.")
    settings = settings or load_settings()
    stored = Results(settings.results)
    own = [result for result in stored.all() if result.made_by == "embark"]
    results = results_of(model, own, settings)
    if tasks is not None:
        chosen = {task.name for task in choose_tasks(tasks, known=known_tasks(results, settings.home))}
        results = [result for result in results if result.task in chosen]
    sampled = [result.task for result in results if result.sampled]
    results = [result for result in results if not result.sampled]
    private = [result.task for result in results if result.task not in TASKS] if tasks is None else []
    results = [result for result in results if result.task not in private]
    if not results:
        raise EmbarkError(
            f"{model} has no results to upload on these tasks: own tasks must be named (-t), samples (--limit) stay."
        )
    notes = list(stored.notes)
    if sampled:
        notes.append(f"left out, because they are samples (--limit): {listed(list(dict.fromkeys(sampled)))}")
    if private:
        notes.append(f"left out, because they tell names of your own data: {listed(private)} (name them to upload)")
    files = _files(results, settings.results, outcomes)
    wanted = Upload(repo, repo_type, settings.endpoint, files, notes=tuple(notes))
    return _uploaded(wanted, model, create, settings) if upload else wanted


def _files(results: list[TaskResult], root: Path, outcomes: bool) -> dict[str, bytes]:
    paths: list[Path] = []
    for result in results:
        assert result.path is not None
        beside = [result.path.with_suffix(".parquet")] if outcomes else []
        paths += [result.path.with_name(META), result.path, *beside]
    places = {f"{FOLDER}/{path.relative_to(root).as_posix()}": path for path in paths if path.is_file()}
    return {place: _public_card(path) if path.name == META else path.read_bytes() for place, path in places.items()}


def _public_card(path: Path) -> bytes:
    """The model's card without the folder that its checkpoint lies in."""
    content = path.read_bytes()
    card = json.loads(content)
    source = str(card.get(OURS, {}).get("source", ""))
    hashed = str(card.get("revision", "")).startswith(("local-", "sha256-"))  # a hash of files, wherever they are
    if not source or not (hashed or Path(source).expanduser().is_absolute()):
        return content
    card[OURS]["source"] = ""
    return (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode()


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
        return f"Your token sees no {where.removeprefix('the ')}: check the name, or create it (--create)."
    if status in (401, 403):
        return f"Your token may not write to {where} (HTTP {status}): use one with that right."
    reason = http.hub_message(getattr(error, "server_message", None) or str(error)) or type(error).__name__
    return f"Nothing was uploaded to {where}: {reason}"
