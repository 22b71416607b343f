"""A stranger's results folder, and data of the hub that is not free: nothing private is opened, or gets onto a page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.hub import Hub
from embark.protocol import fingerprint_of
from embark.results import META, OURS, Results
from embark.results.schema import CHECKSUM, _checksum, result_bytes
from embark.results.task_rows import from_json, known_tasks
from embark.settings import load_settings
from embark.site.thumbnails import may_show
from embark.types import ClaimedTask, EmbarkError, Task
from folders import two_tasks
from hub import FakeHub, parquet, png

CANARY = "CANARY7f3"
COLORS = ("red", "green", "blue")
TABLE = "file,caption,label\n" + "".join(f"{color}.png,a {color} page of {CANARY},{color}\n" for color in COLORS)
CREDENTIALS = json.dumps([{"caption": f"{CANARY} {color}", "label": color} for color in COLORS])

Change = Callable[[dict[str, Any], Path], None]


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A home with credentials, and pictures that have captions and classes."""
    folder = tmp_path / "alice"
    (folder / "photos").mkdir(parents=True)
    (folder / "photos" / "metadata.csv").write_text(TABLE)
    for color in COLORS:
        (folder / "photos" / f"{color}.png").write_bytes(png(color))
    (folder / "photos" / f"{CANARY}.txt").write_text(CANARY)
    (folder / "credentials.json").write_text(CREDENTIALS)
    (folder / "labels.csv").write_text(f"topic,query_id,{CANARY}\na,b,c\n")
    pq.write_table(
        pa.table({name: [CANARY] * 3 for name in ("split", "subset", "id", "label")}), folder / "private.parquet"
    )
    return folder


@pytest.fixture
def hostile(private: Path, tiny: embark.Encoder, tmp_path: Path) -> Path:
    """Results of a stranger whose rows name that folder: what an evaluation on a machine alike would have written."""
    settings = load_settings(tmp_path / "stranger", tmp_path / "hostile")
    embark.evaluate(
        tiny, embark.folder_task(private / "photos", kinds="retrieval"), settings=settings, show_progress=False
    )
    return settings.results


def rewrite(path: Path, change: Change, private: Path) -> None:
    """Change the row of a result as somebody would who knows how files are checked."""
    content = json.loads(path.read_bytes())
    change(content[OURS]["row"], private)
    with suppress(Exception):
        row = from_json(content[OURS]["row"])
        split, subset = row.parts[0]
        entries = next(iter(content["scores"].values()))
        entries[0][OURS]["fingerprint"] = fingerprint_of(row, split, subset)
        entries[0]["hf_subset"] = subset
        content["scores"] = {split: entries}
    content[OURS].pop(CHECKSUM, None)
    content[OURS].pop("outcomes", None)
    content[OURS][CHECKSUM] = _checksum(content)
    path.write_text(json.dumps(content))


def of_source(**facts: Any) -> Change:
    """A change of the source; {} in texts is the private folder."""

    def change(row: dict[str, Any], private: Path) -> None:
        row["source"] |= {
            name: value.replace("{}", str(private)) if isinstance(value, str) else value
            for name, value in facts.items()
        }

    return change


def credentials(row: dict[str, Any], private: Path) -> None:
    row["source"] |= {"id": str(private), "revision": "1", "files": {"test": ["credentials.json"]}}
    row |= {"columns": {"text": "caption", "label": "label"}, "reader": "labelled", "evaluator": "zeroshot"}
    row |= {"modalities": ["text"], "metric": "accuracy", "templates": ["{}"], "labels": list(COLORS)}


def labels_file(row: dict[str, Any], private: Path) -> None:
    row |= {"reader": "ark", "columns": {"topic": "topic", "query": "id", "document": "id"}}
    row["options"] = {"topic": "a", "labels": str(private / "labels.csv")}


def listing(row: dict[str, Any], private: Path) -> None:
    row["source"] |= {"id": str(private / "photos"), "revision": "1", "files": {}, "config": "nothing"}


def folder_reader(row: dict[str, Any], private: Path) -> None:
    row |= {"reader": "folder", "columns": {"file": "file", "caption": "caption"}, "options": {"allow_outside": True}}
    row["source"] |= {"revision": "1", "files": {}}


def conditions(row: dict[str, Any], private: Path) -> None:
    row["options"] = {"reader": row["reader"], "conditions": {"noise": {"image": "file"}}, **row["options"]}
    row |= {"reader": "conditions", "evaluator": "robustness", "params": {"base": "retrieval"}}


def hidden_variants(row: dict[str, Any], private: Path) -> None:
    row["variants"] = {"paper": {"source": dict(row["source"])}, "other": {"reader": "folder"}}


def unclaimed(row: dict[str, Any], private: Path) -> None:
    row["claimed"] = False
    row["source"]["claimed"] = False


CHANGES: dict[str, Change] = {
    "content": lambda row, private: None,
    "any revision": of_source(revision="1"),
    "no revision": of_source(revision=""),
    "a dotted path": of_source(id="{}/../alice/photos", revision="1"),
    "home": of_source(id="~/photos", revision="1"),
    "a file address": of_source(id="file://{}/photos", revision="1"),
    "a Windows share": of_source(id=r"\\evil.example\share", revision="1"),
    "a drive": of_source(id="C:\\Users\\alice", revision="1"),
    "files elsewhere": of_source(id="{}/photos", revision="1", files={"test": ["../credentials.json"]}),
    "a number": of_source(id=7),
    "nothing": of_source(id=None),
    "an empty path": of_source(id=""),
    "a long path": of_source(id="/" + "a/" * 3000),
    "a null": of_source(id="/\0"),
    "credentials": credentials,
    "labels": labels_file,
    "listing": listing,
    "folder": folder_reader,
    "conditions": conditions,
    "variants": hidden_variants,
    "unclaimed": unclaimed,
    "another name": lambda row, private: row.update(name="PocketFlagZeroShot"),
    "an unknown reader": lambda row, private: row.update(reader="nobody's"),
    "an unknown evaluator": lambda row, private: row.update(evaluator="nobody's"),
    "texts for tables": lambda row, private: row.update(columns="file", options="x", params=3, subsets=["a"]),
    "lists for texts": lambda row, private: row.update(family=["a"], category={"a": 1}, metric=None),
    "a deep value": lambda row, private: row.update(tags=json.loads("[" * 200 + "]" * 200)),
}  # fmt: skip

opened: list[str] | None = None


def note(event: str, arguments: tuple[Any, ...]) -> None:
    if opened is not None and event in ("open", "os.scandir", "os.listdir", "glob.glob", "pathlib.Path.glob"):
        opened.extend(os.fsdecode(name) for name in arguments[:1] if isinstance(name, (str, bytes)))


sys.addaudithook(note)


@contextmanager
def watched(private: Path) -> Iterator[None]:
    """A block in which nothing of the private folder is opened or listed."""
    global opened
    opened = []
    try:
        yield
        assert not [name for name in opened if str(private) in name or str(private) in os.path.realpath(name)]
    finally:
        opened = None


def said(*words: str | Path) -> str:
    """All that a command says, whether it works or not."""
    result = CliRunner().invoke(app, [*map(str, words)])
    assert isinstance(result.exception, (EmbarkError, SystemExit, type(None))), result.exc_info
    return f"{result.output} {result.exception}"


def written(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its path."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def has_nothing(private: Path, files: Mapping[str, bytes], words: str = "") -> None:
    """No canary, and no picture, of the private folder is in what was written or said."""
    pictures = [path.read_bytes() for path in (private / "photos").glob("*.png")]
    for name, content in files.items():
        assert CANARY.encode() not in content, name
        assert not any(picture in content for picture in pictures), name
        assert "/media/" not in name
    assert CANARY not in words


# ── a stranger's results ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_of_a_result_opens_nothing(
    name: str, private: Path, hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where all media are wanted."""
    monkeypatch.setenv("HOME", str(private))
    for path in hostile.glob("*/*/photosRetrieval.json"):
        rewrite(path, CHANGES[name], private)
    with watched(private):
        words = said(
            "site",
            "-o",
            tmp_path / "page",
            "--include",
            "own",
            "--with-media",
            "--results",
            hostile,
            "--home",
            tmp_path / "home",
        )
    has_nothing(private, written(tmp_path / "page"), words)


def test_the_same_results_show_their_pictures_to_whoever_ran_the_task(
    private: Path, hostile: Path, tiny: embark.Encoder, tmp_path: Path
) -> None:
    """The control: their owner's home knows the row, and so does a home that names the folder again."""
    own = said(
        "site", "-o", tmp_path / "page", "--include", "own", "--results", hostile, "--home", tmp_path / "stranger"
    )
    assert any("/media/" in name for name in written(tmp_path / "page")), own
    settings = load_settings(tmp_path / "home", hostile)
    page = embark.site.export(tmp_path / "later", include="own", settings=settings)
    assert "run --folder" in items(page.folder, "photosRetrieval")["note"]
    run = embark.evaluate(tiny, two_tasks(private / "photos"), settings=settings, show_progress=False)
    assert run.computed == 1  # zero-shot classification, which had no score yet
    page = embark.site.export(tmp_path / "later", include="own", settings=settings)
    assert items(page.folder, "photosRetrieval")["note"] == ""
    assert any("/media/" in name for name in written(page.folder))


def items(page: Path, task: str) -> dict[str, Any]:
    """The gallery of a task."""
    [path] = (page / "data" / "items").glob(f"{task.lower()}-*.js")
    return dict(json.loads(path.read_text().removeprefix("embark(...").removesuffix(");\n"))[1])


def test_a_known_name_with_another_folder_opens_neither(
    private: Path, hostile: Path, tiny: embark.Encoder, tmp_path: Path, pictures: Callable[..., Path]
) -> None:
    """A stranger's row of the name of a task that this home has run; the home's own row stays, and it alone is read."""
    settings = load_settings(tmp_path / "home", hostile)
    mine = embark.folder_task(pictures("photos"), kinds="retrieval")
    embark.evaluate(tiny, mine, settings=load_settings(settings.home, tmp_path / "mine"), show_progress=False)
    for path in hostile.glob("*/*/photosRetrieval.json"):
        content = json.loads(path.read_bytes())
        content["date"] = 1e12
        path.write_text(json.dumps(content))
        rewrite(path, CHANGES["any revision"], private)
    with watched(private):
        said("site", "-o", tmp_path / "page", "--include", "own", "--results", hostile, "--home", settings.home)
    has_nothing(private, written(tmp_path / "page"))


@pytest.mark.parametrize("name", ["truncate", "geometry", "vectors"])
def test_a_claimed_row_is_no_protocol_of_an_own_task(
    name: str, private: Path, hostile: Path, tiny: embark.Encoder, tmp_path: Path, pictures: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The home's own row is opened, and what a stranger states of the same task under another protocol is not."""
    [path] = hostile.glob("*/*/photosRetrieval.json")
    content = json.loads(path.read_bytes())
    content[OURS]["protocol"] = content[OURS]["row"]["protocol"] = "mteb2"
    path.write_text(json.dumps(content))
    rewrite(path, CHANGES["content"], private)
    path.rename(path.with_name("photosRetrieval@mteb2.json"))
    assert {result.protocol for result in Results(hostile).all()} == {"mteb2"}
    settings = load_settings(tmp_path / "home", hostile)
    mine = embark.folder_task(pictures("photos"), kinds="retrieval")
    embark.evaluate(tiny, mine, settings=settings, show_progress=False)
    [row] = mine
    assert known_tasks(Results(hostile).all(), settings.home)["photosRetrieval"] == row
    monkeypatch.setenv("EMBARK_RESULTS", str(hostile))
    monkeypatch.setenv("EMBARK_HOME", str(settings.home))
    filled = [word.format(out=tmp_path / "out", results=hostile) for word in COMMANDS[name]]
    with watched(private):
        words = said(*filled, "--protocol", "mteb2")
    assert "No such option" not in words
    has_nothing(private, written(tmp_path / "out") if (tmp_path / "out").is_dir() else {}, words)


def test_a_name_of_the_catalogue_is_not_taken(private: Path, hostile: Path, tmp_path: Path) -> None:
    [path] = hostile.glob("*/*/photosRetrieval.json")
    rewrite(path, lambda row, private: row.update(name="PocketFlagZeroShot"), private)
    results = Results(hostile)
    assert list(results.all()) == []
    assert "its row is of another task" in results.notes[0]


def test_no_results_folder_rewrites_what_this_home_has_run(private: Path, hostile: Path, tmp_path: Path) -> None:
    """Rows of homes are found by all that they say: a row that says anything else is another."""
    home = tmp_path / "stranger"
    [result] = Results(hostile).all()
    assert result.row is not None
    own = known_tasks([result], home)["photosRetrieval"]
    assert type(own) is Task
    for change in (
        {"columns": {"image": "file", "text": "label"}},
        {"options": {**result.row.options, "allow_outside": True}},
        {"reader": "labelled"},
        {"source": replace(result.row.source, files={"test": ("other.csv",)})},
        {"source": replace(result.row.source, id=f"{result.row.source.id}/")},
        {"source": replace(result.row.source, id=result.row.source.id.upper())},
        {"source": replace(result.row.source, revision="1")},
    ):
        claimed = replace(result, row=replace(result.row, **change))
        assert type(known_tasks([claimed], home)["photosRetrieval"]) is ClaimedTask, change
    for path in (home / "tasks").iterdir():  # a file of the home under the name of another row
        path.write_text(path.read_text().replace("photos", "secret"))
    assert type(known_tasks([result], home)["photosRetrieval"]) is ClaimedTask


COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", "--include", "own", "-o", "{out}"),
    "show": ("show", "photosRetrieval"),
    "results": ("leaderboard", "-t", "photosRetrieval"),
    "compare": ("compare", "test/tiny", "test/tiny@1"),
    "diagnose ark": ("diagnose", "ark", "-m", "embark/handmade", "-t", "photosRetrieval", "--out", "{out}"),
    "diagnose omni": ("diagnose", "omni", "-m", "embark/handmade", "-t", "photosRetrieval", "--out", "{out}"),
    "verify": ("verify", "-m", "embark/handmade", "-t", "photosRetrieval", "--against", "{results}"),
    "truncate": ("analyze", "truncate", "-m", "embark/handmade", "-t", "photosRetrieval", "--embed"),
    "geometry": ("analyze", "geometry", "-m", "embark/handmade", "-t", "photosRetrieval", "--embed"),
    "confusion": ("analyze", "confusion", "-t", "photosRetrieval"),
    "ranked": ("export", "ranked", "-o", "{out}", "-m", "embark/handmade", "-t", "photosRetrieval"),
    "inputs": ("export", "inputs", "-o", "{out}", "--for", "caption", "-t", "photosRetrieval"),
    "vectors": ("vectors", "export", "-o", "{out}/v.parquet", "-m", "embark/handmade", "-t", "photosRetrieval"),
    "vectors in": ("vectors", "import", "{results}/v.parquet", "-t", "photosRetrieval", "--as", "me/mine"),
    "flips": ("compare", "test/tiny", "test/tiny@1", "--show", "photosRetrieval"),
    "run": ("run", "-m", "embark/handmade", "-t", "photosRetrieval"),
    "plan": ("plan", "-m", "embark/handmade", "-t", "photosRetrieval"),
    "fetch": ("fetch", "-t", "photosRetrieval"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_opens_what_a_result_names(
    name: str, private: Path, hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBARK_RESULTS", str(hostile))
    monkeypatch.setenv("EMBARK_HOME", str(tmp_path / "home"))
    filled = [word.format(out=tmp_path / "out", results=hostile) for word in COMMANDS[name]]
    with watched(private):
        words = said(*filled)
    assert "No such option" not in words
    assert "Missing option" not in words
    has_nothing(private, written(tmp_path / "out") if (tmp_path / "out").is_dir() else {}, words)


def test_no_row_of_a_result_asks_a_hub(
    private: Path, hostile: Path, hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a private data set, with the user's token, nor an address."""
    monkeypatch.setenv("HF_TOKEN", hub.token)
    monkeypatch.setenv("EMBARK_RESULTS", str(hostile))
    commit = hub.add("alice/private", {"test.parquet": parquet({"file": [png()], "caption": [CANARY]})})
    [path] = hostile.glob("*/*/photosRetrieval.json")
    for id in ("alice/private", f"{hub.endpoint}/datasets/alice/private"):
        for revision in (commit, "main"):
            rewrite(path, of_source(id=id, revision=revision, files={"test": ["test.parquet"]}), private)
            for command in (
                ("site", "-o", str(tmp_path / "page"), "--include", "own", "--with-media"), ("show", "photosRetrieval"),
                ("analyze", "truncate", "-m", "embark/handmade", "-t", "photosRetrieval", "--embed"),
                ("verify", "-m", "test/tiny", "-t", "photosRetrieval", "--against", str(hostile)),
            ):  # fmt: skip
                words = said(*command)
                assert hub.requests == [], command
                assert CANARY not in words
    has_nothing(private, written(tmp_path / "page"))


def test_links_in_a_results_folder_lead_nowhere(
    private: Path, hostile: Path, scored: embark.Settings, tmp_path: Path
) -> None:
    """Outcomes, cards, results and reports that are links to files elsewhere; and a pipe, which is not waited for."""
    [result] = hostile.glob("*/*/photosRetrieval.json")
    content = json.loads(result.read_bytes())
    del content[OURS]["outcomes"], content[OURS][CHECKSUM]
    result.write_bytes(result_bytes(content))
    for path, target in (
        (result.with_suffix(".parquet"), private / "private.parquet"),
        (result.with_name(META), private / "card.json"),
        (result.with_name("Other.json"), private / "credentials.json"),
    ):
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    card = {OURS: {"name": CANARY, "revision": "1", "loader": "functions", "modalities": ["text"]}}
    (private / "card.json").write_text(json.dumps(card))
    report = {"date": 1.0, "title": CANARY, "sentences": [CANARY], "sections": []}
    (private / "report.json").write_text(json.dumps(report))
    (hostile / "reports").mkdir()
    (hostile / "reports" / "one.json").symlink_to(private / "report.json")
    (hostile / "models").symlink_to(private)
    os.mkfifo(hostile / "reports" / "pipe.json")
    with watched(private):
        words = said(
            "site", "-o", tmp_path / "page", "--include", "own", "--results", hostile, "--home", tmp_path / "home"
        )
        words += said("show", "test/tiny")
    has_nothing(private, written(tmp_path / "page"), words)
    result.with_suffix(".parquet").unlink()
    os.mkfifo(result.with_suffix(".parquet"))
    said("site", "-o", tmp_path / "page", "--include", "own", "--results", hostile, "--home", tmp_path / "home")


def test_a_page_that_is_served_opens_nothing_either(
    private: Path, hostile: Path, tmp_path: Path, served: Callable[..., dict[str, bytes]]
) -> None:
    with watched(private):
        files = served(with_media=True, settings=load_settings(tmp_path / "home", hostile))
    assert any("/items/photosretrieval" in name for name in files)
    has_nothing(private, files)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, bytes]]:
    """Serves a page and gets every file of it."""

    def get(**options: Any) -> dict[str, bytes]:
        server = embark.site.serve(port=0, **options)
        Thread(target=server.serve_forever, daemon=True).start()
        files = {}
        for path in server.page.rglob("*"):
            if path.is_file():
                name = f"/{path.relative_to(server.page).as_posix()}"
                with closing(HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)) as connection:
                    connection.request("GET", name)
                    files[name] = connection.getresponse().read()
        server.shutdown()
        server.server_close()
        return files

    return get


@pytest.mark.slow
def test_a_real_process_shows_nothing_private(private: Path, hostile: Path, tmp_path: Path) -> None:
    [path] = hostile.glob("*/*/photosRetrieval.json")
    rewrite(path, credentials, private)
    words = [sys.executable, "-m", "embark", "site", "-o", str(tmp_path / "page"), "--include", "own", "--with-media"]
    words += ["--results", str(hostile), "--home", str(tmp_path / "home")]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    has_nothing(private, written(tmp_path / "page"), ran.stdout + ran.stderr)


# ── data of the hub ──────────────────────────────────────────────────────────────────────────────────────────────────

FREE = "---\nlicense: cc-by-4.0\n---\n"
CARDS = {
    "non-commercial": "---\nlicense: cc-by-nc-4.0\n---\n",
    "no derivatives": "---\nlicense: cc-by-nd-4.0\n---\n",
    "unknown": "---\nlicense: unknown\n---\n",
    "other": "---\nlicense: other\nlicense_name: mine\n---\n",
    "one of two": "---\nlicense: [mit, cc-by-nc-4.0]\n---\n",
    "restricted in words": "---\nlicense: mit (research only)\n---\n",
    "a restricted use": "---\nlicense: openrail\n---\n",
    "no license": "# Pages\n\nlicense: mit\n",
    "gated": FREE,
    "private": FREE,
    "silent": FREE,
}


def hub_task(hub: FakeHub, kind: str, card: str) -> Task:
    """A data set of pictures, captions and classes that has the canary in all of them."""
    columns = {
        "image": [png(color) for color in COLORS],
        "text": [f"a {color} page of {CANARY}" for color in COLORS],
        "label": [0, 1, 2],
    }
    table = parquet(columns, classes={"label": [f"{CANARY} {color}" for color in COLORS]})
    hub.add("owner/pages", {"test.parquet": table}, card=card)
    return embark.task("owner/pages", kind, {"image": "image", "text" if kind == "retrieval" else "label":
                                             "text" if kind == "retrieval" else "label"})  # fmt: skip


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("kind", ["retrieval", "zeroshot"])
def test_hub_data_that_are_not_known_to_be_free_show_ids_and_scores(
    name: str, kind: str, hub: FakeHub, tiny: embark.Encoder, tmp_path: Path, served: Callable[..., dict[str, bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("HF_TOKEN", hub.token)
    if name in ("gated", "private", "silent"):
        getattr(hub, name).add("owner/pages")
    task = hub_task(hub, kind, CARDS[name])
    settings = load_settings(tmp_path / "home", tmp_path / "results")
    run = embark.evaluate(tiny, [task], settings=settings, show_progress=False)
    assert run.results, run.notes
    asked = len(hub.requests)
    page = embark.site.export(tmp_path / "page", include="own", settings=settings)
    files = written(page.folder) | (served(settings=settings) if kind == "retrieval" else {})
    embark.report(include="own", settings=settings).write(tmp_path / "report")
    files |= written(tmp_path / "report")
    for path, content in files.items():
        assert CANARY.encode() not in content, path
        assert "/media/" not in path
    gallery = items(page.folder, task.name)
    assert gallery["items"]
    assert gallery["items"][0]["id"]
    assert "free" in gallery["note"]
    assert len(hub.requests) == asked  # a page asks nobody
    shown = embark.site.export(tmp_path / "all", include="own", with_media=True, settings=settings)
    assert any("/media/" in path for path in written(shown.folder))


def test_free_hub_data_are_shown_without_a_network(hub: FakeHub, tiny: embark.Encoder, tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "home", tmp_path / "results")
    task = hub_task(hub, "zeroshot", FREE)
    embark.evaluate(tiny, [task], settings=settings, show_progress=False)
    hub.close()
    page = embark.site.export(tmp_path / "page", include="own", settings=settings)
    assert any("/media/" in path for path in written(page.folder))
    assert items(page.folder, task.name)["items"][0]["label"].startswith(CANARY)
    for path in (settings.home / "hub").glob("*/terms-*.json"):
        path.unlink()  # nobody knows
    again = embark.site.export(tmp_path / "page", include="own", settings=settings)
    assert not any("/media/" in path for path in written(again.folder))


def test_fetching_again_records_the_terms_of_what_is_here(hub: FakeHub, tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "home", tmp_path / "results")
    task = hub_task(hub, "zeroshot", FREE)
    embark.fetch([task], settings=settings, show_progress=False)
    [terms] = (settings.home / "hub").glob("*/terms-*.json")
    terms.write_text("{")
    embark.fetch([task], settings=settings, show_progress=False)
    assert json.loads(terms.read_text()) == {"licenses": ["cc-by-4.0"], "open": True}
    asked = len(hub.requests)
    embark.fetch([task], settings=settings, show_progress=False)
    assert len(hub.requests) == asked


def test_a_row_s_own_words_make_no_data_free(hub: FakeHub, tmp_path: Path) -> None:
    """Nor do they hide what the card forbids: both must say it."""
    settings = load_settings(tmp_path / "home", tmp_path / "results")
    task = hub_task(hub, "zeroshot", CARDS["non-commercial"])
    assert not may_show(replace(task, source=replace(task.source, license="mit")), Hub(settings))
    free = hub_task(hub, "zeroshot", FREE)
    assert may_show(free, Hub(settings))
    assert not may_show(replace(free, source=replace(free.source, license="CC BY-NC 4.0")), Hub(settings))


def test_warnings_name_items_of_the_hub_by_their_ids(hub: FakeHub, tiny: embark.Encoder, tmp_path: Path) -> None:
    """A text of the data would get into results, and onto pages."""
    columns = {"image": [*map(png, COLORS), b"torn"], "text": [f"a {color} {CANARY}" for color in (*COLORS, "torn")]}
    hub.add("owner/pages", {"test.parquet": parquet(columns)}, card=CARDS["unknown"])
    task = replace(
        embark.task("owner/pages", "retrieval", {"query_text": "text", "corpus_image": "image", "corpus_text": "text"}),
        unreadable="skip",
    )
    settings = load_settings(tmp_path / "home", tmp_path / "results")
    model = embark.encoder(
        text=lambda texts: [[1.0, 2.0]] * len(texts), image=lambda images: [[1.0, 2.0]] * len(images), name="test/both"
    )
    run = embark.evaluate(model, [task], settings=settings, show_progress=False)
    assert "left out 1 unreadable items: document 'image+text-00003'" in " ".join(run.results[0].warnings), run.notes
    page = embark.site.export(tmp_path / "page", include="own", settings=settings)
    assert not [path for path, content in written(page.folder).items() if CANARY.encode() in content]
