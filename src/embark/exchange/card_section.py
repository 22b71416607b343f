"""The scores of a model for its model card: `model-index` metadata as the hub reads it, and a table for people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from embark.boards.comparable_results import load_results
from embark.catalogue import UnknownName, check_name
from embark.field_types import checked
from embark.outgoing import write_bytes
from embark.redaction import redacted, redacted_value, this_machine
from embark.results import Record, TaskResult
from embark.settings import Settings, load_settings
from embark.stats.intervals import LEVEL
from embark.stats.means import score_table
from embark.tables import Noted, Table
from embark.tasks import TASKS, Tasks
from embark.types import EmbarkError, Task

BEGIN = "<!-- embark: scores begin -->"
END = "<!-- embark: scores end -->"
METADATA = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)  # the metadata of a card
INDEX = re.compile(  # that key of it, with all below
    r"""^(["']?)model-index\1[ \t]*:.*\n(?:(?:#.*\n|\n)*[ \t-].*\n)*""", re.MULTILINE
)
OPEN = re.compile(r"---[ \t]*\n")
LAYOUTS = ("hub", "mteb")
OTHER = "feature-extraction"  # where the hub has no name of its own for a kind of task
TYPES = {  # the hub's names by evaluator and by the first of these modalities that a task has
    "retrieval": {"audio": OTHER, "video": OTHER, "image": "visual-document-retrieval", "text": "text-retrieval"},
    "rerank": {"audio": OTHER, "video": OTHER, "image": OTHER, "text": "text-ranking"},
    "zeroshot": {
        "audio": "audio-classification",
        "video": "video-classification",
        "image": "zero-shot-image-classification",
        "text": "zero-shot-classification",
    },
    "probe": {kind: f"{kind}-classification" for kind in ("audio", "video", "image", "text")},
    "multilabel": {kind: f"{kind}-classification" for kind in ("audio", "video", "image", "text")},
    "sts": {"image": OTHER, "text": "sentence-similarity"},
    "choice": {"image": "visual-question-answering"},
}


@dataclass(frozen=True)
class CardSection(Noted):
    """A model's scores as a section of its card; `results` are those behind it.

    `layout` is "hub" (one entry a task, with its interval) or "mteb" (one a split and subset, as mteb writes them).
    """

    model: str
    tasks: tuple[Task, ...]
    results: tuple[TaskResult, ...]
    layout: str = "hub"

    def table(self) -> Table:
        """One row per task: its score with its interval, and the mean of the categories."""
        return score_table(self.tasks, self.results)

    def model_index(self) -> list[dict[str, Any]]:
        """The value of `model-index`, as huggingface_hub's ModelCardData has it."""
        rows = {task.name: task for task in self.tasks}
        entries = [entry for result in self.results for entry in self._entries(result, rows)]
        return [redacted_value({"name": self.model, "results": entries}, this_machine())]

    def _entries(self, result: TaskResult, rows: Mapping[str, Task]) -> list[dict[str, Any]]:
        task = rows[result.task]
        if self.layout == "mteb":
            return [_mteb_entry(result, record, task) for record in result.records]
        ends = {"interval": [_rounded(end) for end in result.interval], "level": LEVEL}
        metric = {"type": result.metric, "value": _rounded(result.score), "name": result.metric, "args": ends}
        kind = {"type": _hub_type(task), "name": task.category}
        # The hub takes entries of one data set, config and split for one: the config tells tasks apart.
        data = {"name": task.name, **_source(result, task), "config": task.name, "split": ", ".join(task.source.splits)}
        return [{"task": kind, "dataset": data, "metrics": [metric]}]

    def metadata(self) -> str:
        """The metadata alone, as YAML."""
        return _yaml({"model-index": self.model_index()})

    def section(self) -> str:
        """The section for people, between marks."""
        revisions = ", ".join(sorted({result.revision for result in self.results}))
        versions = ", ".join(sorted({record.versions.get("embark", "") for r in self.results for record in r.records}))
        by = f"Scored by embark {versions} at revision `{revisions}`; in percent, with 95 % intervals over the items."
        private = this_machine()
        table = self.table().outgoing(private).format("markdown")
        return "\n".join([BEGIN, "## Scores", "", table, "", redacted(by, private), END, ""])

    def __str__(self) -> str:
        return self.merged("")

    def merged(self, readme: str) -> str:
        """A card with these scores: in its metadata, and between the marks or at its end; all else stays as it is."""
        head = METADATA.match(readme)
        if head is None and OPEN.match(readme):
            raise EmbarkError("The metadata of the card begins with --- and never ends: add a line --- below it.")
        metadata = head[1] if head else ""
        body = readme[head.end() :] if head else readme
        known = _known(metadata)
        index = _merged_index(known.get("model-index") or [], self.model_index())
        block = _yaml({"model-index": index})
        merged = INDEX.sub(lambda match: block, metadata, 1) if INDEX.search(metadata) else metadata + block
        if _known(merged) != known | {"model-index": index}:
            raise EmbarkError("The metadata of the card has no place for model-index: give each key lines of its own.")
        return f"---\n{merged}---\n{self._into(body)}"

    def _into(self, body: str) -> str:
        begin, end = body.find(BEGIN), body.find(END)
        if (begin < 0) != (end < 0) or end < begin or body.count(BEGIN) > 1 or body.count(END) > 1:
            raise EmbarkError(f"The card has not one pair of marks, {BEGIN} and {END}: delete them, or add the other.")
        if begin < 0:
            return "\n".join([body.rstrip("\n"), "", self.section()] if body.strip() else [self.section()])
        return body[:begin] + self.section().rstrip("\n") + body[end + len(END) :]

    def write(self, path: Path | str) -> None:
        """Put the scores into a card, which may be there already."""
        path = Path(path)
        try:
            readme = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
        except UnicodeDecodeError:
            raise EmbarkError(f"{path} is not UTF-8 text: save it as that first.") from None
        merged = self.merged(readme.replace("\r\n", "\n"))
        ends = "\r\n" if "\r\n" in readme else "\n"
        write_bytes(path, merged.replace("\n", ends).encode())  # our section is redacted, the rest is the user's own


@checked
def card(
    model: str,
    tasks: Tasks = None,
    *,
    layout: Literal["hub", "mteb"] = "hub",
    protocol: str | None = None,
    settings: Settings | None = None,
) -> CardSection:
    """The scores of a model for its card, from the results folder: of tasks, or all that it has.

    A model is named as in its results, or as name@revision where it has several.
    """
    check_name("layout of a card", layout, LAYOUTS)
    settings = settings or load_settings()
    loaded = load_results(tasks, protocol=protocol, include="own", settings=settings)
    results = results_of(model, [result for result in loaded.results if result.made_by == "embark"], settings)
    by_task = {result.task: result for result in results}
    rows = tuple(task for task in loaded.tasks if task.name in by_task)
    ordered = tuple(by_task[task.name] for task in rows)
    return CardSection(results[0].model, rows, ordered, layout, notes=loaded.notes)


def results_of(model: str, results: Sequence[TaskResult], settings: Settings) -> list[TaskResult]:
    """A model's results; where there are several revisions, the name must say which."""
    named = [result for result in results if model in (result.model, f"{result.model}@{result.revision}")]
    if not results:
        raise EmbarkError(f"There are no such results in {settings.results}. Make some: embark run -m {model}")
    if not named:
        raise UnknownName("model in the results folder", model, {result.model for result in results})
    if len(revisions := sorted({result.revision for result in named})) > 1:
        raise EmbarkError(f"{model} has several revisions; name {' or '.join(f'{model}@{r}' for r in revisions)}.")
    return named


def _mteb_entry(result: TaskResult, record: Record, task: Task) -> dict[str, Any]:
    return {
        "task": {"type": _hub_type(task), "name": task.tags.get("type", task.category)},
        "dataset": {
            "name": f"{task.name} ({record.subset})",
            **_source(result, task),
            "config": record.subset,
            "split": record.split,
        },
        "metrics": [{"type": record.metric, "value": _rounded(record.score), "name": record.metric}],
    }


def _source(result: TaskResult, task: Task) -> dict[str, str]:
    """The data set and its commit; of own data the task's name, because cards are public and folders are not."""
    if task.name not in TASKS:
        return {"type": task.name}
    return {"type": task.source.id, "revision": result.dataset_revision}


def _hub_type(task: Task) -> str:
    kinds = TYPES.get(task.evaluator, {})
    return next((name for kind, name in kinds.items() if kind in task.modalities), OTHER)


def _rounded(value: float) -> float:
    return round(value, 6)


def _known(metadata: str) -> dict[str, Any]:
    """A card's metadata by key."""
    import yaml

    try:
        known = yaml.safe_load(metadata) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = f"line {mark.line + 2}: {error.problem}" if mark else str(error).splitlines()[0]
        raise EmbarkError(f"The metadata of the card cannot be read ({reason}): correct it first.") from None
    if not isinstance(known, dict):
        raise EmbarkError("The metadata of the card has no keys: write lines such as license: mit.")
    try:
        for model in known.get("model-index") or []:
            _ = model["name"], [_place(entry) for entry in model["results"]]
    except (AttributeError, KeyError, TypeError):
        raise EmbarkError(
            "The card's model-index is not as the hub has it, a list of models with name and results (task, dataset, "
            "metrics): correct or delete it first."
        ) from None
    return known


def _merged_index(known: list[dict[str, Any]], own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The index with our entries; others' entries stay, and those about the same data in the same measure are ours."""
    [ours] = own
    places = [_place(entry) for entry in ours["results"]]
    of_model = [model for model in known if model["name"] == ours["name"]]
    foreign = [entry for model in of_model for entry in model["results"] if _place(entry) not in places]
    others = [model for model in known if model["name"] != ours["name"]]
    return [*others, {"name": ours["name"], "results": [*foreign, *ours["results"]]}]


def _place(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """What an entry is about."""
    data = entry["dataset"]
    measures = tuple(metric["type"] for metric in entry["metrics"])
    return data["type"], data.get("name"), data.get("config"), data.get("split"), measures


def _yaml(value: Any) -> str:
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
