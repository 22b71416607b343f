"""Build the published tables that the package ships: one Parquet file a family, in one long format.

    python tools/published/build.py FACTS [OUT]

FACTS is a folder of the papers' tables as CSV (mieb/results, mmeb/tables, ark/tables, unibench); OUT is the package's
own folder unless given. MIEB's Tables 2 and 22 lie beside this file, as transcribed from the paper.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from embark.tasks import TASKS

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "src" / "embark" / "published"
TEXT = pa.dictionary(pa.int16(), pa.string())
SCHEMA = pa.schema(
    [(name, TEXT) for name in ("table", "model", "revision", "name", "kind", "metric", "split", "subset", "protocol")]
    + [("value", pa.float64()), ("parts", pa.int16())]
)
Row = dict[str, Any]

METRICS = {
    "R@1": "recall_at_1", "R@5": "recall_at_5", "R@10": "recall_at_10", "nDCG@5": "ndcg_at_5", "nDCG@10": "ndcg_at_10",
    "nDCG@20": "ndcg_at_20", "hit@1": "hit_rate_at_1", "hit@5": "hit_rate_at_5", "hit@10": "hit_rate_at_10",
    "ndcg@5": "ndcg_at_5", "ndcg_linear@5": "ndcg_at_5", "ndcg_linear@10": "ndcg_at_10", "map@10": "map_at_10",
    "ndcg_exponential@5": "ndcg_exponential_at_5", "recall@1": "recall_at_1", "recall@5": "recall_at_5",
    "recall@10": "recall_at_10", "mrr@10": "mrr_at_10", "mrr": "mrr", "mixed_mean": "mean",
}  # fmt: skip


def row(table: str, model: str, name: str, kind: str, metric: str, value: float, **more: Any) -> Row:
    """A cell; `value` is a fraction, or a correlation."""
    rest = {"revision": "", "split": "", "subset": "", "protocol": "paper", "parts": None}
    return {"table": table, "model": model, "name": name, "kind": kind, "metric": metric, "value": value} | rest | more


def percent(text: str) -> float:
    """A printed percentage as a fraction, without the noise of the division."""
    return round(float(text) / 100, 6)


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mieb(facts: Path) -> Iterator[Row]:
    """Every public result by task, split and subset; Tables 2 and 22."""
    for r in read(facts / "mieb" / "results" / "mieb_results.csv"):
        more = {"revision": r["revision"], "split": r["split"], "subset": r["subset"]}
        yield row("MIEB results", r["model"], r["task"], "task", TASKS[r["task"]].metric, float(r["value"]), **more)
    for part, r in [("", r) for r in read(HERE / "mieb_table22.csv")] + [
        (r.pop("part"), r) for r in read(HERE / "mieb_table2.csv")
    ]:
        table = {"": "MIEB Table 22", "full": "MIEB Table 2", "lite": "MIEB Table 2 (lite)"}[part]
        model = r.pop("model")
        for name, value in r.items():
            yield row(table, model, name, "aggregate", "mean", percent(value))


def mmeb(facts: Path) -> Iterator[Row]:
    """Tables 2 to 10 of MMEB-V3, and the score files of the three MMEB-V2 releases."""
    folder = facts / "mmeb" / "tables"
    known = {m["name"]: m["hub_id"] for m in json.loads((facts / "mmeb" / "models.json").read_text())["models"]}
    known |= {Path(hub).name: hub for hub in known.values()}
    known |= {"VLM2Vec-V1-Qwen2VL-7B": known["VLM2Vec-Qwen2VL-7B"], "VLM2Vec-V2.0-Qwen2VL-2B": known["VLM2Vec-V2.0-2B"]}
    for number in range(2, 11):
        table = f"MMEB-V3 Table {number}"
        for r in read(folder / f"table{number}.csv"):
            if not r["value"] or r["metric"].startswith("top10"):
                continue
            model, metric, value = known[r["model"]], METRICS[r["metric"]], percent(r["value"])
            if r.get("row_kind") == "task":
                yield row(table, model, f"MMEB/{r['task']}", "task", metric, value)
            elif "direction" in r:
                yield row(table, model, f"OmniSET/{r['direction']}", "task", metric, value)
            else:
                name, parts = r.get("task") or r["column"], r.get("n_tasks_stated") or r["n_datasets_stated"]
                yield row(table, model, name, "aggregate", metric, value, parts=int(parts))
    for r in read(folder / "v2_scores.csv"):
        if r["metric"] != "num_data":
            release = r["release"].split("-")[0]
            cell = (known[r["model"]], f"MMEB/{r['dataset']}", "task", METRICS[r["metric"]], float(r["value"]))
            yield row(f"MMEB-V2 scores {release}", *cell, protocol=f"mmeb-{release}")


def ark(facts: Path) -> Iterator[Row]:
    """Tables 2, 3 and 8 to 19: knowledge by subtype, reasoning by skill and demand, rewriting and re-ranking."""
    listed = json.loads((facts / "ark" / "models.json").read_text())
    known = {m["table_name"]: m["id"] for m in listed["embedding_models"]}
    files = {int(p.name.split("_")[0].removeprefix("table")): p for p in (facts / "ark" / "tables").glob("*.csv")}
    for number, path in sorted(files.items()):
        for r in read(path) if number != 4 else ():  # Table 4 compares benchmarks: no scores
            axis, metric, value = r["axis"].split()[0], METRICS[r["metric"]], percent(r["value"])
            average = r["column"] in ("Avg.", "Average")
            name = f"{'knowledge' if axis == 'knowledge' else 'reasoning'} axis" if average else r["column"].lower()
            task = axis == "knowledge" and not average
            model = known[r.get("model") or r["retriever"]]
            if "retriever" in r:
                steps = ["rewrite"] * (r["query_rewrite"] == "True") + [r["reranker"]] * (r["reranker"] != "none")
                protocol = "+".join(steps).lower() or "paper"
            else:  # text models see captions in place of pictures
                protocol = "captions" if r["model_group"] == "text" else "paper"
            kind = "task" if task else "aggregate"
            name = f"ARK/{r['column']}" if task else name
            yield row(f"ARK Table {number}", model, name, kind, metric, value, protocol=protocol)


def unibench(facts: Path) -> Iterator[Row]:
    """The accuracies that the authors' notebooks show, Tables 1 to 5, and another table for the same checkpoint."""
    folder = facts / "unibench"
    for r in read(folder / "results.csv"):
        name = f"UniBench/{r['benchmark']}"
        yield row("UniBench results", r["model"], name, "task", TASKS[name].metric, float(r["value"]))
    for r in read(folder / "crosscheck_eva01_g14_vs_openclip.csv"):
        cell = (f"UniBench/{r['benchmark']}", "task", "accuracy", float(r["openclip_published"]))
        yield row("open_clip results", "eva01_vitG14_400m", *cell, protocol="open_clip")
    for table, path in (("UniBench Table 1", "table1_types.csv"), ("UniBench Table 5", "table5_capabilities.csv")):
        for r in read(folder / "tables" / path):
            group = r["axis_value"] if "types" in path else r["axis_value"].lower().replace("overall", "Overall")
            for model, part in (("mean of models", "mean"), (r["top_model"], "top"), (r["worst_model"], "worst")):
                value = percent(r[f"{part}_performance"])
                yield row(table, model, group, "aggregate", "accuracy", value, subset=part)
    for r in read(folder / "tables" / "table2_llava.csv"):
        name = r["benchmark_type"].replace("natural", "Natural")
        yield row(
            "UniBench Table 2", r["model"], name, "aggregate", "accuracy", percent(r["value"]), protocol="llm-style"
        )
    for number, path in ((3, "table3_type_representatives.csv"), (4, "table4_capability_representatives.csv")):
        for r in read(folder / "tables" / path):
            group, subset = r.get("benchmark_type") or r["capability"], f"UniBench/{representative(r['benchmark'])}"
            cell = (group, "aggregate", "correlation", float(r["correlation"]))
            yield row(f"UniBench Table {number}", "", *cell, subset=subset)


def representative(printed: str) -> str:
    """A benchmark's key from the way that Tables 3 and 4 write it."""
    key = printed.lower().replace(" ", "_").replace("imagenet-", "imagenet").replace("dspr_position", "dspr_y_position")
    if f"UniBench/{key}" not in TASKS:
        raise SystemExit(f"UniBench has no benchmark '{printed}'.")
    return key


FAMILIES = {"mieb": mieb, "mmeb": mmeb, "ark": ark, "unibench": unibench}


def main() -> None:
    """Write every family's file."""
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    facts, out = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else PACKAGE
    for family, rows in FAMILIES.items():
        table = pa.Table.from_pylist(list(rows(facts)), SCHEMA)
        path = out / f"{family}.parquet"
        pq.write_table(table, path, compression="zstd", compression_level=19)
        print(f"{path.name}: {table.num_rows} rows, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
