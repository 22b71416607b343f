"""`embark diagnose`: why a model fails, as a report with tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import embark
from embark.cli.grammar import Command
from embark.cli.output import (
    BenchmarkName,
    Device,
    Format,
    Home,
    Offline,
    Precision,
    ResultsFolder,
    StorePlace,
    TaskNames,
    Trust,
    emit,
    say,
)
from embark.cli.run import Prompt, Rerank, Rewrite, prompt_files, reranker_and_depth

app = typer.Typer(
    help="Why a model fails: reports with tables and figures.", no_args_is_help=True, rich_markup_mode=None
)
OneModel = Annotated[str, typer.Option("-m", "--model", metavar="NAME", help="Model, checkpoint folder or LOADER:ID.")]
Captions = Annotated[
    str | None, typer.Option("--captions", "--caption", metavar="NAME", help="A generator that puts media into words.")
]
ReportFolder = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Write report.md, tables and figures there.")
]


@app.callback()
def start() -> None:
    """Why a model fails: reports with tables and figures."""


@app.command("ark", cls=Command)
def ark(
    model: OneModel,
    benchmark: BenchmarkName = None,
    task: TaskNames = None,
    captions: Captions = None,
    rewrite: Rewrite = None,
    rerank: Rerank = None,
    prompt: Prompt = None,
    out: ReportFolder = None,
    device: Device = "auto",
    dtype: Precision = None,
    trust: Trust = None,
    offline: Offline = False,
    style: Format = "text",
    home: Home = None,
    store: StorePlace = None,
    results: ResultsFolder = None,
) -> None:
    """A model on ARK's two axes, and what captions, rewriting and re-ranking gain for it.

    Each stage is run alone, then rewriting and re-ranking together; gains are query by query, with intervals. Without
    ARK's labels (EMBARK_ARK_LABELS), it is the pocket ARK. Generators are local models, openai-chat:MODEL (whatever
    speaks OpenAI's chat API) or recorded:FILE.jsonl; scores of a re-ranker are recorded-scores:FILE.jsonl.

    \b
    embark diagnose ark -m embark/pocket --rewrite embark/pocket-rewrites --rerank embark/pocket-judgements --out pocket
    embark diagnose ark -m BAAI/bge-m3 --captions Qwen/Qwen3-VL-8B-Instruct --rerank BAAI/bge-reranker-v2-m3:50 --out m3
    """
    if benchmark and task:
        raise typer.BadParameter("give either a benchmark or tasks, not both")
    reranker, depth = reranker_and_depth(rerank)
    diagnosis = embark.diagnose_ark(
        model,
        benchmark or task or None,
        captions=captions,
        rewrite=rewrite,
        rerank=reranker,
        depth=depth,
        prompts=prompt_files(prompt or []),
        out=out,
        settings=embark.load_settings(home, results, offline=offline or None, store=store),
        loading=embark.Loading(device, dtype, trust=trust),
    )
    say(*diagnosis.notes)
    emit(diagnosis.table(), style)
    if out is not None:
        say(f"report: {out / 'report.md'}")
