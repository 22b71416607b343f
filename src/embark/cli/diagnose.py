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
    ProtocolName,
    ResultsFolder,
    Save,
    Select,
    StoredPrecision,
    StorePlace,
    TaskNames,
    Trust,
    emit,
    finish,
    say,
)
from embark.cli.run import Prompt, Rerank, Rewrite, TasksFile, named_tasks, prompt_files, reranker_and_depth

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
Model = Annotated[str, typer.Option("-m", "--model", metavar="NAME", help="Model, checkpoint folder or LOADER:ID.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for report.md, tables and figures.")]
Figures = Annotated[str, typer.Option("--figures", metavar="FORMAT", help="svg, pdf or png.")]
Method = Annotated[str, typer.Option("--method", metavar="NAME", help="Of maps: tsne, umap or pca.")]
Captions = Annotated[
    str | None, typer.Option("--captions", metavar="NAME", help="A generator that puts media into words.")
]


@app.callback()
def start() -> None:
    """Why a model fails: a report, tables and figures in a folder. What is stored is not embedded again."""


@app.command("omni", cls=Command)
def omni(
    model: Model,
    task: TaskNames = None,
    tasks_file: TasksFile = None,
    out: Out = Path("diagnosis"),
    figures: Figures = "svg",
    method: Method = "tsne",
    protocol: ProtocolName = None,
    device: Device = "auto",
    dtype: Precision = None,
    stored_dtype: StoredPrecision = None,
    trust: Trust = None,
    offline: Offline = False,
    save: Save = False,
    style: Format = "text",
    select: Select = None,
    home: Home = None,
    store: StorePlace = None,
    results: ResultsFolder = None,
) -> None:
    """Does a model find the modality that it is told to find? OmniSET's diagnosis: which modalities it retrieves, what
    an instruction does to a query, whether it leads to the target, and which directions are harder than their reverse.

    Without a task: the pocket's small set, offline. Your own set: see embark build omni.

    \b
    embark diagnose omni -m embark/pocket --out diagnosis --save
    embark diagnose omni -m MODEL -t OmniSET --out diagnosis --figures pdf
    """
    settings = embark.load_settings(home, results, offline=offline or None, store=store)
    tasks = named_tasks(task, None, tasks_file) if tasks_file else task
    diagnosis = embark.analyze.diagnose_omni(
        model,
        *([tasks] if tasks else ()),
        out=out,
        figures=figures,
        method=method,
        protocol=protocol,
        loading=embark.Loading(device=device, dtype=dtype, trust=trust, stored_dtype=stored_dtype),
        settings=settings,
    )
    if save:
        say(f"kept: {embark.site.save_report(diagnosis, settings=settings)}")
    say(*diagnosis.notes)
    emit(diagnosis.table(), style, columns=select)
    finish(*diagnosis.findings, f"written: {out / 'report.md'}")


@app.command("ark", cls=Command)
def ark(
    model: Model,
    benchmark: BenchmarkName = None,
    task: TaskNames = None,
    captions: Captions = None,
    rewrite: Rewrite = None,
    rerank: Rerank = None,
    prompt: Prompt = None,
    out: Out = Path("diagnosis"),
    figures: Figures = "svg",
    device: Device = "auto",
    dtype: Precision = None,
    stored_dtype: StoredPrecision = None,
    trust: Trust = None,
    offline: Offline = False,
    save: Save = False,
    style: Format = "text",
    select: Select = None,
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
    settings = embark.load_settings(home, results, offline=offline or None, store=store)
    reranker, depth = reranker_and_depth(rerank)
    diagnosis = embark.analyze.diagnose_ark(
        model,
        benchmark or task or None,
        captions=captions,
        rewrite=rewrite,
        rerank=reranker,
        depth=depth,
        prompts=prompt_files(prompt or []),
        out=out,
        figures=figures,
        settings=settings,
        loading=embark.Loading(device, dtype, trust=trust, stored_dtype=stored_dtype),
    )
    if save:
        say(f"kept: {embark.site.save_report(diagnosis, settings=settings)}")
    say(*diagnosis.notes)
    emit(diagnosis.table(), style, columns=select)
    finish(f"written: {out / 'report.md'}")
