"""How time and memory grow with the number of items, of tasks and of documents, with an encoder that costs nothing.

python benchmarks/growth.py [--only items,tasks,corpus,sharing] [--dim 512] [--quick] [--json]
python benchmarks/growth.py --stream [--items 2000000] [--tasks 40] [--json]

Each case is an `embark.evaluate` over tables made on the spot, in a process of its own; its peak of anonymous memory
(of all its processes; mapped files do not count) is sampled from outside. An exponent is the slope of the logarithm
over that of the size: 1 is linear, 0 does not grow. What embark does besides the encoder is held against a bare loop in
the same run: a script that reads the column, hashes every text, encodes, writes one file and scores it.

`--stream` is one evaluation of many items, half of them pictures of 50 KB and more: its peak memory, how much of the
data had been read when the first score was there, and whether the scores are those of the tasks one by one.
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CLASSES = 16
VECTORS = 16_384  # distinct ones
BATCH = 1024  # of the bare loop
PICTURE_BYTES = 50_000
QUERIES = 500
GROUP = 1000  # rows that parquet tables keep together
SAMPLE_SECONDS = 0.02
SIZES = {  # of each axis: sizes, and those of --quick
    "items": ((10_000, 100_000, 1_000_000), (2_000, 20_000)),
    "tasks": ((1, 8, 64), (1, 8)),
    "corpus": ((10_000, 100_000, 300_000), (2_000, 20_000)),
    "sharing": ((1, 4, 16), (1, 4)),
}
TEXTS_OF_TASKS = (128_000, 8_000)  # that all tasks of an axis have together
BARE = "texts/s of the bare loop"
LIMITS = {"ten times": 11.0, "bare": 0.5, "sharing": 1.01, "peak MB": 1500.0, "first score": 0.25}


def main() -> int:
    """Measure, print; status 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SIZES), help="axes, with commas between")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--items", type=int, default=2_000_000, help="of --stream")
    parser.add_argument("--tasks", type=int, default=40, help="of --stream")
    parser.add_argument("--folder", type=Path, help="on the disk to use; a temporary folder if not given")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--case", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        run_case(args.case)
        return 0
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        if args.stream:
            items, tasks = (20_000, 12) if args.quick else (args.items, args.tasks)
            report = stream(Path(name), items, tasks, args.dim)
        else:
            report = growth(Path(name), args.only.split(","), args.dim, args.quick)
    print(json.dumps(report, indent=2)) if args.json else show(report)
    return 0 if all(claim["holds"] for claim in report["claims"]) else 1


def claim(name: str, value: float, limit: float, at_least: bool = False) -> dict[str, Any]:
    """A figure, its limit, and whether it holds."""
    holds = value >= limit if at_least else value <= limit
    return {"claim": name, "value": value, "limit": limit, "least": at_least, "holds": bool(holds)}


def show(report: dict[str, Any]) -> None:
    """Print the rows, the exponents and the claims."""
    for axis, part in report.get("axes", {}).items():
        for row in part["rows"]:
            words = f"{axis:8} {row['size']:>10,}  {row['seconds']:8.2f} s  {row['peak MB']:8.0f} MB"
            rate = f"  {row['items'] / row['seconds']:10,.0f} items/s  {row['encoded']:>9,} encoded"
            bare = f"  {row[BARE]:10,.0f} a bare loop" if BARE in row else ""
            print(words + rate + bare)
        print(f"{axis:8} exponents: time {part['exponents']['seconds']:.2f}, memory {part['exponents']['memory']:.2f}")
    for name, value in report.get("stream", {}).items():
        print(f"{name:32} {value:14,.2f}" if isinstance(value, float) else f"{name:32} {value!s:>14}")
    for row in report["claims"]:
        word = "at least" if row["least"] else "at most"
        holds = "holds" if row["holds"] else "DOES NOT HOLD"
        print(f"{row['claim']}: {row['value']:.3g} ({word} {row['limit']:g}): {holds}")


# ── the axes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def growth(folder: Path, only: Sequence[str], dim: int, quick: bool) -> dict[str, Any]:
    """Every axis at its sizes, the exponents, and the claims."""
    axes: dict[str, Any] = {}
    claims = []
    for axis in only:
        rows = [measure_size(folder, axis, size, dim, quick) for size in SIZES[axis][quick]]
        sizes = [row["size"] for row in rows]
        extra = [max(row["peak MB"] - row["start MB"], 1) for row in rows]
        exponents = {"seconds": exponent(sizes, [row["seconds"] for row in rows]), "memory": exponent(sizes, extra)}
        axes[axis] = {"rows": rows, "exponents": exponents}
        if axis == "items":
            ratio = rows[-1]["seconds"] / rows[-2]["seconds"]
            claims.append(claim("10 times the items take so many times as long", ratio, LIMITS["ten times"]))
            share = rows[-1]["items"] / rows[-1]["seconds"] / rows[-1][BARE]
            claims.append(claim("a free encoder, of the bare loop's rate", share, LIMITS["bare"], at_least=True))
        if axis == "sharing":
            ratio = rows[-1]["encoded"] / rows[0]["encoded"]
            name = f"items encoded for {rows[-1]['size']} tasks on the same items, of those for one"
            claims.append(claim(name, ratio, LIMITS["sharing"]))
    return {"dim": dim, "cores": os.cpu_count(), "axes": axes, "claims": claims}


def measure_size(folder: Path, axis: str, size: int, dim: int, quick: bool) -> dict[str, Any]:
    """One size of one axis; small ones twice, and the quicker counts."""
    total = TEXTS_OF_TASKS[quick]
    tables = folder / "tables"
    if axis == "corpus":
        tasks = [text_retrieval(tables, 0, size)]
    elif axis == "tasks":
        tasks = [text_classes(tables, number, total // size) for number in range(size)]
    elif axis == "sharing":
        tasks = [text_classes(tables, 0, total, template=number) for number in range(size)]
    else:
        tasks = [text_classes(tables, 0, size)]
    case = {"kind": "evaluate", "tasks": tasks, "dim": dim, "tables": str(tables)}
    turns = 1 if quick or size > 100_000 else 2
    row = min((measure(folder, case) for _ in range(turns)), key=lambda measured: float(measured["seconds"]))
    row = {"size": size} | {name: value for name, value in row.items() if name not in ("reads", "began", "first score")}
    if axis == "items":
        bare = [measure(folder, {**case, "kind": "bare"}) for _ in range(turns)]
        row[BARE] = size / min(measured["seconds"] for measured in bare)
        if (ours := row["scores"]["Classes0-0"]) != (theirs := bare[0]["scores"]["Classes0-0"]):
            raise SystemExit(f"The bare loop scores {theirs}, embark {ours}.")
    shutil.rmtree(tables)
    return row


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


# ── many items in one run ────────────────────────────────────────────────────────────────────────────────────────────


def stream(folder: Path, items: int, count: int, dim: int) -> dict[str, Any]:
    """All tasks in one evaluation, and one by one."""
    tables = folder / "tables"
    kinds = (text_classes, picture_classes, text_retrieval, picture_retrieval)
    tasks = [kinds[number % len(kinds)](tables, number, items // count) for number in range(count)]
    case = {"kind": "evaluate", "tasks": tasks, "dim": dim, "tables": str(tables), "pictures": True}
    together = measure(folder, case)
    singly = measure(folder, {**case, "kind": "singly"})
    equal = sum(together["scores"][name] == score for name, score in singly["scores"].items())
    reads = together.pop("reads")
    first = together.pop("first score")
    read = sum(rows for at, rows in reads if at <= first) / max(1, sum(rows for _, rows in reads))
    figures = {key: value for key, value in together.items() if key != "scores"}
    figures |= {"first score after s": first - together["began"], "read by then": read}
    figures |= {"seconds one by one": singly["seconds"], "peak MB one by one": singly["peak MB"]}
    claims = [
        claim("peak anonymous memory in MB", together["peak MB"], LIMITS["peak MB"]),
        claim("share of the data that was read before the first score", read, LIMITS["first score"]),
        claim("scores that equal those of single evaluations", equal, len(tasks), at_least=True),
    ]
    return {"dim": dim, "cores": os.cpu_count(), "tasks": count, "stream": figures, "claims": claims}


# ── a case in a process of its own ───────────────────────────────────────────────────────────────────────────────────


def measure(folder: Path, case: dict[str, Any]) -> dict[str, Any]:
    """Run a case in a fresh home; what it reports, and the peak of its anonymous memory in MB."""
    home = folder / "home"
    path = folder / "case.json"
    path.write_text(json.dumps({**case, "home": str(home)}))
    words = [sys.executable, str(Path(__file__).resolve()), "--case", str(path)]
    out = folder / "out.txt"
    first = 0.0
    peak = 0.0
    with out.open("w") as file:
        process = subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT, cwd=folder)
        while process.poll() is None:
            peak = max(peak, anonymous(process.pid))
            first = first or first_result(home)
            time.sleep(SAMPLE_SECONDS)
    if process.returncode:
        raise SystemExit(f"A case failed:\n{out.read_text()[-4000:]}")
    report: dict[str, Any] = json.loads(path.read_text())
    shutil.rmtree(home, ignore_errors=True)
    return report | {"peak MB": peak, "first score": first or time.time()}


def first_result(home: Path) -> float:
    """Now, if there is a result; else 0."""
    return time.time() if next(home.glob("results/**/*.json"), None) else 0.0


def anonymous(process: int) -> float:
    """The anonymous memory of a process and those that it started, in MB; pages that they share count for each."""
    total = 0
    waiting = [process]
    while waiting:
        folder = Path("/proc", str(waiting.pop()))
        try:
            status = (folder / "status").read_text()
            waiting += [int(child) for path in folder.glob("task/*/children") for child in path.read_text().split()]
        except (OSError, ValueError):  # it has just ended
            continue
        total += sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:"))
    return total / 1024


def run_case(path: Path) -> None:
    """What the process of a case does; its report replaces the case's file."""
    case = json.loads(path.read_text())
    report = CASES[case["kind"]](case)
    path.write_text(json.dumps(report))


def evaluate_case(case: dict[str, Any]) -> dict[str, Any]:
    """All tasks in one call."""
    return evaluated(case, [case["tasks"]])


def singly_case(case: dict[str, Any]) -> dict[str, Any]:
    """Each task in a call and a home of its own."""
    return evaluated(case, [[task] for task in case["tasks"]])


def evaluated(case: dict[str, Any], groups: list[list[str]]) -> dict[str, Any]:
    """Evaluate groups of tasks, each in a home of its own."""
    import embark
    from embark import readers

    reads: list[tuple[float, int]] = []
    reader = readers.read

    def counting(*words: Any) -> Any:
        data = reader(*words)
        reads.append((time.time(), sum(map(len, data.sides.values()))))
        return data

    readers.read = counting
    encode = FreeEncoder(case["dim"])
    model = (
        pictures_encoder(encode)
        if case.get("pictures")
        else embark.encoder(text=encode, name="free/encoder", revision="1")
    )
    loaded = []
    for number, tasks in enumerate(groups):
        file = Path(case["tables"], f"{number}.toml")
        file.write_text("".join(tasks))
        loaded.append(embark.load_tasks(file))
    evaluate = embark.evaluate  # imports what it needs
    start_memory = anonymous(os.getpid())
    began = time.time()
    start = time.perf_counter()
    scores: dict[str, float] = {}
    for number, tasks in enumerate(loaded):
        home = Path(case["home"], *[str(number)] * (len(loaded) > 1))
        settings = embark.load_settings(home=home, results=home / "results")
        run = evaluate(model, tasks, settings=settings, show_progress=False)
        if run.skipped:
            raise SystemExit(str(run.skipped))
        scores |= {result.task: result.score for result in run.results}
        if len(loaded) > 1:
            shutil.rmtree(home)
    seconds = time.perf_counter() - start
    items = sum(rows for _, rows in reads)
    report = {"seconds": seconds, "items": items, "encoded": encode.items, "start MB": start_memory}
    return report | {"began": began, "reads": reads, "scores": scores}


def bare_case(case: dict[str, Any]) -> dict[str, Any]:
    """The first task as a plain script does it: no store, no intervals, nothing kept of it but one file."""
    encode = FreeEncoder(case["dim"])
    start = time.perf_counter()
    table = pq.read_table(Path(case["tables"], "classes0", "test.parquet"))
    texts = table["text"].to_pylist()
    names = sorted(set(table["label"].to_pylist()))
    digests = [hashlib.sha256(text.encode()).digest() for text in texts]
    distinct = len(set(digests))
    path = Path(case["tables"], "vectors.bin")
    with path.open("wb") as file:
        for begin in range(0, len(texts), BATCH):
            file.write(encode(texts[begin : begin + BATCH]).astype(np.float32).data)
        file.write(b"".join(digests))
        file.flush()
        os.fsync(file.fileno())  # once: embark's vectors are safe, too, when it scores them
    prompts = unit(encode([PROMPT.format(0, name) for name in names]).astype(np.float32))
    vectors = np.memmap(path, np.float32, "r", shape=(len(texts), case["dim"]))
    numbers = {name: number for number, name in enumerate(names)}
    labels = np.array([numbers[label] for label in table["label"].to_pylist()])
    right = 0
    for begin in range(0, len(texts), BATCH):
        likeness = unit(vectors[begin : begin + BATCH].astype(np.float32)) @ prompts.T
        right += int((likeness.argmax(axis=1) == labels[begin : begin + BATCH]).sum())
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "items": distinct, "scores": {"Classes0-0": right / len(texts)}}


def unit(rows: Any) -> Any:
    """Rows of length one."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


CASES = {"evaluate": evaluate_case, "singly": singly_case, "bare": bare_case}


# ── the encoder ──────────────────────────────────────────────────────────────────────────────────────────────────────


class FreeEncoder:
    """The vector of a text is a row of a table, chosen by its last word; it counts what it is given."""

    def __init__(self, dim: int) -> None:
        self.table = np.random.default_rng(0).standard_normal((VECTORS, dim), np.float32)
        self.items = 0

    def __call__(self, texts: Sequence[str]) -> Any:
        """One vector for each text."""
        self.items += len(texts)
        return self.table[[zlib.crc32(text[text.rfind(" ") + 1 :].encode()) % VECTORS for text in texts]]


def pictures_encoder(encode: FreeEncoder) -> Any:
    """An encoder of texts and of pictures by what their comment says; it takes the pictures as they are encoded."""
    from embark.models.encoder import Capabilities, Encoder
    from embark.types import ModelCard

    class Free(Encoder):
        capabilities = Capabilities(encoded=frozenset({"image"}))
        card = ModelCard("free/encoder", "1", "functions", ("text", "image"), dim=encode.table.shape[1])

        def prepare(self, contents: Sequence[Any], mode: str) -> str:
            value = contents[0].value
            if isinstance(value, str):
                return value
            comment = bytes(value.data[COMMENT : COMMENT + 40]) if hasattr(value, "data") else value.info["comment"]
            return str(comment[: comment.index(b"\0")].decode())

        def embed(self, batch: Sequence[str]) -> Any:
            return encode(batch)

    return Free()


# ── the data ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PROMPT = "template {} of a text about {}"
TABLE = """
[[task]]
name = "{name}"
evaluator = "{evaluator}"
reader = "{reader}"
source = {{ id = "{folder}" }}
modalities = {modalities}
{more}
"""


def text_classes(tables: Path, number: int, count: int, template: int = 0) -> str:
    """A zero-shot task of texts, as it stands in a file of tasks; its table is written unless it is there."""
    folder = tables / f"classes{number}"
    if not folder.exists():
        write(folder / "test.parquet", range(count), lambda rows: {"text": texts(number, rows), "label": labels(rows)})
    return _classes(f"Classes{number}-{template}", folder.name, '["text"]', "text", template)


def picture_classes(tables: Path, number: int, count: int) -> str:
    """A zero-shot task of pictures."""
    folder = tables / f"pictures{number}"
    write(folder / "test.parquet", range(count), lambda rows: {"image": pictures(number, rows), "label": labels(rows)})
    return _classes(f"Pictures{number}", folder.name, '["text", "image"]', "image", 0)


def _classes(name: str, folder: str, modalities: str, column: str, template: int) -> str:
    prompt = PROMPT.format(template, "{}")
    more = f'columns = {{ {column} = "{column}", label = "label" }}\ntemplates = ["{prompt}"]\n'
    more += 'options = { equal = "apart" }'
    return TABLE.format(
        name=name, evaluator="zeroshot", reader="labelled", folder=folder, modalities=modalities, more=more
    )


def text_retrieval(tables: Path, number: int, count: int) -> str:
    """Texts that are searched by other texts."""
    folder = tables / f"search{number}"
    write(folder / "corpus.parquet", range(count), lambda rows: {"id": ids("d", rows), "text": texts(number, rows)})
    return _retrieval(f"Search{number}", folder, number, count, '["text"]')


def picture_retrieval(tables: Path, number: int, count: int) -> str:
    """Pictures that are searched by texts."""
    folder = tables / f"gallery{number}"
    write(folder / "corpus.parquet", range(count), lambda rows: {"id": ids("d", rows), "image": pictures(number, rows)})
    return _retrieval(f"Gallery{number}", folder, number, count, '["text", "image"]')


def _retrieval(name: str, folder: Path, number: int, count: int, modalities: str) -> str:
    wanted = np.random.default_rng(number).choice(count, min(QUERIES, count // 4), replace=False).tolist()
    queries = {"id": ids("q", wanted), "text": [f"find {word(number, row)}" for row in wanted]}
    write(folder / "queries.parquet", wanted, lambda rows: queries)
    qrels = {"query-id": ids("q", wanted), "corpus-id": ids("d", wanted), "score": [1] * len(wanted)}
    write(folder / "qrels" / "test.parquet", wanted, lambda rows: qrels)
    return TABLE.format(
        name=name, evaluator="retrieval", reader="beir", folder=folder.name, modalities=modalities, more=""
    )


def ids(letter: str, rows: Sequence[int]) -> list[str]:
    """Ids of items."""
    return [f"{letter}{row}" for row in rows]


def labels(rows: Sequence[int]) -> list[str]:
    """The classes of items."""
    return [f"class{row % CLASSES}" for row in rows]


def word(number: int, row: int) -> str:
    """The word that chooses an item's vector."""
    return f"t{number}-{row}"


def texts(number: int, rows: Sequence[int]) -> list[str]:
    """Short texts."""
    words = "is about as long as captions of pictures usually are"
    return [f"text {row} of set {number} {words} {word(number, row)}" for row in rows]


def pictures(number: int, rows: Sequence[int]) -> Any:
    """Small JPEGs with a comment of 50 KB: the item's word and zeros, which a table compresses and no hash skips."""
    empty = (PICTURE_BYTES + 2).to_bytes(2, "big") + bytes(PICTURE_BYTES)
    one = np.frombuffer(JPEG[:2] + b"\xff\xfe" + empty + JPEG[2:], np.uint8)
    content = np.tile(one, (len(rows), 1))
    for line, row in zip(content, rows, strict=True):
        name = word(number, row).encode()
        line[COMMENT : COMMENT + len(name)] = np.frombuffer(name, np.uint8)
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * len(one)
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(content)])


def jpeg() -> bytes:
    """A picture of 32 × 32."""
    from PIL import Image

    out = io.BytesIO()
    Image.linear_gradient("L").resize((32, 32)).convert("RGB").save(out, "JPEG")
    return out.getvalue()


JPEG = jpeg()
COMMENT = 6  # where a comment before all else begins


def write(path: Path, rows: Sequence[int], columns: Callable[[Sequence[int]], dict[str, Any]]) -> None:
    """A parquet table of `columns(rows)`, made in groups of rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = None
    for begin in range(0, len(rows), GROUP):
        table = pa.table(columns(rows[begin : begin + GROUP]))
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=False)
        writer.write_table(table)
    if writer:
        writer.close()


if __name__ == "__main__":
    sys.exit(main())
