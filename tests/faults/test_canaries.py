"""C: nothing that leaves this machine tells where folders are, what the machine is called, or who uses it.

Every input has a mark of its own. Each output is made by its command, and all its bytes are searched for the marks,
also inside of archives, Parquet, PNG, PDF and embedded pictures.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import socket
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

import embark
from conftest import pixels, words
from embark.cli import app
from embark.results import Results

USER, HOST, KEY = "zquserq", "zqhostq", "zqkeyq7890123456"
PLACES = (
    "root user host vectors results sources tables checkpoints working cache other bucket prefix mount windows server "
    "share tilde scratch served elsewhere key"
)
MARK = re.compile(rf"zq(?:{PLACES.replace(' ', '|')})q|192[.]168[.]17[.]4".encode(), re.IGNORECASE)
MODEL, OTHER = "test/tiny", "test/other"


@dataclass(frozen=True)
class Desk:
    """A user's machine with results, and the folder that outputs are written to."""

    out: Path
    results: Path
    tasks: tuple[str, ...]
    endpoint: str

    def run(self, *words: object) -> str:
        """The standard output of a command that ends well."""
        ran = CliRunner().invoke(app, list(map(str, words)))
        assert ran.exit_code == 0, ran.output
        return ran.stdout


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: embark.Encoder) -> Desk:
    """Two models with results on an own folder, a table and a pocket task; everything has a marked place."""
    root = tmp_path / "zqrootq"
    home = root / "home" / USER
    places = {"EMBARK_HOME": "zqvectorsq", "EMBARK_RESULTS": "zqresultsq"}
    sources = "zqsourcesq, (2024)/My Pages"  # a comma ends a path in a text
    for name in (*places.values(), sources, "zqtablesq/Names", "zqcheckpointsq/tuned", "zqworkingq"):
        (home / name).mkdir(parents=True)
    for name, place in places.items():
        monkeypatch.setenv(name, str(home / place))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HOSTNAME", f"{HOST}.internal")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    for name in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(name, USER)
    monkeypatch.chdir(home / "zqworkingq")
    pages = home / sources
    for color in ("red", "green", "blue"):
        Image.new("RGB", (4, 4), color).save(pages / f"{color}.png")
    (pages / "metadata.csv").write_text("file,caption,label\nred.png,a red page,red\ngreen.png,a green page,green\n"
                                        "blue.png,see /usr/share/doc and and/or,blue\n")  # fmt: skip
    table = home / "zqtablesq" / "Names" / "test.csv"
    table.write_text("text,label\n" + "".join(f"a {c} thing {n},{c}\n" for n in range(4) for c in ("red", "green")))
    rows = [
        *embark.folder_task(pages, kinds=["retrieval", "zeroshot"]),
        embark.task(str(table.parent), "zeroshot", name="Names"),
    ]
    for name in (MODEL, OTHER):
        tiny.card = replace(
            tiny.card, name=name, source=str(home / "zqcheckpointsq" / "tuned"),
            options={"adapter": str(home / "zqcheckpointsq" / "adapter.bin")},
        )  # fmt: skip
        embark.evaluate(tiny, [*rows, "PocketFlagZeroShot", "PocketNameToImage"], show_progress=False)
    stored = Results(home / "zqresultsq")
    for result in list(stored.all()):
        _with_messages(stored, result, home, f"http://{USER}:{KEY}@{HOST}.internal:9000/v1?api_key={KEY}")
    _state(home / "zqvectorsq" / "runs", "elsewhere", home, results=[])
    own = {record.run for result in stored.all() for record in result.records}
    for run in own:
        _state(home / "zqvectorsq" / "runs", run, home)
    embark.site.save_report(embark.doctor(), settings=embark.load_settings())
    [kept] = (home / "zqresultsq" / "reports").glob("*.json")
    report = json.loads(kept.read_text())
    said = f"Cache folder: {home}/zqcacheq/hub; run by {USER} on {HOST} ('{home}/My zqcacheq/x y.bin')."
    report["sentences"] = [said]
    kept.write_text(json.dumps(report))
    return Desk(tmp_path / "out", home / "zqresultsq", tuple(row.name for row in rows), "")


def _messages(home: Path, address: str) -> tuple[str, ...]:
    return (
        f"{home}/zqsourcesq/My Pages/red.png cannot be read by {USER}@{HOST}",
        f"PermissionError: [Errno 13] Permission denied: '{home}/zq other q/zqotherq/weights.bin' ({USER})",
        f"the server {address} at {HOST}.internal and 192.168.17.4 said no to {KEY}",
        "see s3://zqbucketq/zqprefixq/vectors and file:///mnt/zqmountq/data.bin",
        r"C:\Users\zqwindowsq\data.csv and \\zqserverq\zqshareq\data.csv and ~/zqtildeq/data.csv, ./and/or stays",
        f"{Path.cwd()}/data.csv, /scratch/zqscratchq/data.csv",
    )


def _with_messages(stored: Results, result: Any, home: Path, address: str) -> None:
    """The result written again, with warnings and facts of loading that carry all marks."""
    said = _messages(home, address)
    records = tuple(
        replace(r, warnings=(*r.warnings, *said), loaded={**r.loaded, "device": "NVIDIA H200", "node": HOST})
        for r in result.records
    )
    stored.write(replace(result, records=records), result.card(), result.path.name)


def _state(folder: Path, id: str, home: Path, **more: Any) -> None:
    folder.mkdir(exist_ok=True)
    said = _messages(home, "http://zqservedq.internal/")
    facts = {
        "id": id,
        "pid": 4,
        "started": 1.0,
        "updated": time.time(),
        "ended": False,
        "title": f"zq{id}q" * bool(more),
    }
    scores = {
        "scores": [["test/tiny", "Pages", "100.0"]],
        "skipped": [["test/tiny", "T", "failed", line] for line in said],
    }
    (folder / f"{id}.json").write_text(json.dumps({**facts, **scores, "status": said[0], **more}))


def contents(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The bytes of a file, and of all that is packed into it."""
    yield name, data
    if data.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                yield from contents(f"{name}:{member}", archive.read(member))
    elif data.startswith(b"\x1f\x8b"):
        yield from contents(f"{name}:gzip", gzip.decompress(data))
    elif data.startswith(b"PAR1"):
        table = pq.read_table(io.BytesIO(data))
        yield f"{name}:rows", repr(table.to_pylist()).encode()
        yield f"{name}:schema", repr(table.schema.metadata).encode() + str(table.schema).encode()
    elif data.startswith(b"\x89PNG"):
        with Image.open(io.BytesIO(data)) as image:
            yield f"{name}:text", repr(getattr(image, "text", {})).encode()
    elif data.startswith(b"%PDF"):
        for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL):
            try:
                plain = zlib.decompress(stream)
            except zlib.error:
                continue
            shown = b"".join(re.findall(rb"\((?:\\.|[^()\\])*\)", plain)).replace(b")(", b"")
            yield f"{name}:stream", plain + shown
    for packed in re.findall(rb"base64,([A-Za-z0-9+/=]{40,})", data):
        yield from contents(f"{name}:base64", base64.b64decode(packed))


def marks(folder: Path) -> dict[str, set[str]]:
    """The marks in each file of a folder, and in the names of its files."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*")):
        place = str(path.relative_to(folder))
        data = path.read_bytes() if path.is_file() else b""
        for name, part in (*contents(place, data), ("names", place.encode())):
            if hits := {match.decode() for match in MARK.findall(part.replace(b"\0", b""))}:
                found.setdefault(name, set()).update(hits)
    return found


def page(desk: Desk) -> None:
    desk.run("site", "-o", desk.out, "--include", "own", "--with-media")


def push(desk: Desk) -> None:
    names = [word for name in (*desk.tasks, "PocketFlagZeroShot") for word in ("-t", name)]
    files = embark.exchange.push(MODEL, "me/scores", [name for name in names if name != "-t"], outcomes=True).files
    for name, content in files.items():
        (desk.out / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.out / name).write_bytes(content)


def card(desk: Desk) -> None:
    desk.run("card", "-m", MODEL, "--readme", desk.out / "README.md")
    desk.out.mkdir(parents=True, exist_ok=True)
    (desk.out / "printed.md").write_text(desk.run("card", "-m", MODEL, "--layout", "mteb"))
    for style in ("csv", "json", "latex"):
        (desk.out / f"card.{style}").write_text(desk.run("card", "-m", MODEL, "--format", style))


def mteb(desk: Desk) -> None:
    desk.run("export", "mteb", "-o", desk.out)


def ranked(desk: Desk) -> None:
    for style in ("jsonl", "trec"):
        for ranking in embark.exchange.rank(_named_by_its_folder(desk), "PocketNameToImage", show_progress=False):
            ranking.save(desk.out, style)


def inputs(desk: Desk) -> None:
    desk.run("export", "inputs", "-o", desk.out, "--for", "caption", "-t", desk.tasks[0])


def vectors(desk: Desk) -> None:
    desk.out.mkdir(parents=True)
    for name in ("pages.parquet", "pages.npy"):
        embark.exchange.export_vectors(
            _named_by_its_folder(desk), desk.tasks[0], desk.out / name, embed=True, show_progress=False
        )


def printed(desk: Desk) -> None:
    desk.out.mkdir(parents=True)
    chosen = [word for name in desk.tasks for word in ("-t", name)]
    for style in ("csv", "json", "markdown", "latex", "html"):
        text = desk.run("leaderboard", *chosen, "--include", "own", "--by-task", "--format", style)
        text += desk.run("compare", MODEL, OTHER, *chosen, "--format", style)
        (desk.out / f"board.{style}").write_text(text)


def report(desk: Desk) -> None:
    desk.run("report", *[word for name in desk.tasks for word in ("-t", name)], "-o", desk.out)


def figures(desk: Desk) -> None:
    """A name that a figure shows holds a place: svg, pdf and png."""
    comparison = embark.compare(MODEL, OTHER, tasks=list(desk.tasks))
    marked = replace(comparison, a=f"{desk.results}/tuned") if hasattr(comparison, "a") else comparison
    for ending in ("svg", "pdf", "png"):
        marked.plot(desk.out / f"gains.{ending}")


def _named_by_its_folder(desk: Desk) -> embark.Encoder:
    return embark.encoder(text=words, image=pixels, name=str(desk.results / "tuned"), revision="1")


OUTPUTS = (page, push, card, mteb, ranked, inputs, vectors, printed)


def leaks(desk: Desk, *outputs: Callable[[Desk], None]) -> dict[str, dict[str, set[str]]]:
    """The marks in the files of each output that has any."""
    found = {}
    for output in outputs:
        here = replace(desk, out=desk.out / output.__name__)
        output(here)
        assert [path for path in here.out.rglob("*") if path.is_file()]
        if marked := marks(here.out):
            found[output.__name__] = marked
    return found


def test_no_output_tells_of_this_machine(desk: Desk) -> None:
    assert leaks(desk, *OUTPUTS) == {}


@pytest.mark.slow
def test_no_report_and_no_figure_tells_of_this_machine(desk: Desk) -> None:
    assert leaks(desk, report, figures) == {}
