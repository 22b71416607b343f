"""`embark diagnose`: why a model fails, as a report with tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import embark
from embark.cli.grammar import Command, Group
from embark.cli.options import (
    Format,
    LoadingOptions,
    ModelName,
    OutFolder,
    ProtocolName,
    Save,
    Select,
    StageOptions,
    StoreSettings,
    TaskOptions,
    expanded,
)
from embark.cli.output import emit, finish, say

app = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode=None)
Figures = Annotated[str, typer.Option("--figures", metavar="FORMAT", help="svg, pdf or png.")]
Method = Annotated[str, typer.Option("--method", metavar="NAME", help="Of maps: tsne, umap or pca.")]


@app.callback()
def start() -> None:
    """Why a model fails: a report, tables and figures in a folder. What is stored is not embedded again."""


@app.command("omni", cls=Command)
@expanded
def omni(
    model: ModelName,
    *,
    tasks: TaskOptions,
    out: OutFolder = Path("diagnosis"),
    figures: Figures = "svg",
    method: Method = "tsne",
    protocol: ProtocolName = None,
    loading: LoadingOptions,
    places: StoreSettings,
    save: Save = False,
    style: Format = "text",
    select: Select = None,
) -> None:
    """Does a model find the modality that it is told to find? OmniSET's diagnosis: which modalities it retrieves, what
    an instruction does to a query, whether it leads to the target, and which directions are harder than their reverse.

    Without a task: the pocket's small set, offline. Your own set: see embark build omni.

    \b
    embark diagnose omni -m embark/pocket --out diagnosis --save
    embark diagnose omni -m MODEL -t OmniSET --out diagnosis --figures pdf
    """
    settings = places.settings()
    chosen = tasks.chosen()
    diagnosis = embark.analyze.diagnose_omni(
        model,
        *([] if chosen is None else [chosen]),
        out=out,
        figures=figures,
        method=method,
        protocol=protocol,
        loading=loading.loading(),
        settings=settings,
    )
    if save:
        say(f"kept: {embark.site.save_report(diagnosis, settings=settings)}")
    say(*diagnosis.notes)
    emit(diagnosis.table(), style, columns=select)
    finish(*diagnosis.findings, f"written: {out / 'report.md'}")


@app.command("ark", cls=Command)
@expanded
def ark(
    model: ModelName,
    *,
    tasks: TaskOptions,
    stages: StageOptions,
    out: OutFolder = Path("diagnosis"),
    figures: Figures = "svg",
    loading: LoadingOptions,
    places: StoreSettings,
    save: Save = False,
    style: Format = "text",
    select: Select = None,
) -> None:
    """A model on ARK's two axes, and what captions, rewriting and re-ranking gain for it.

    Each stage is run alone, then rewriting and re-ranking together; gains are query by query, with intervals. Without
    ARK's labels (EMBARK_ARK_LABELS), it is the pocket ARK. Generators are local models, openai-chat:MODEL (whatever
    speaks OpenAI's chat API) or recorded:FILE.jsonl; scores of a re-ranker are recorded-scores:FILE.jsonl.

    \b
    embark diagnose ark -m embark/pocket --rewrite embark/pocket-rewrites --rerank embark/pocket-judgements --out pocket
    embark diagnose ark -m BAAI/bge-m3 --caption Qwen/Qwen3-VL-8B-Instruct --rerank BAAI/bge-reranker-v2-m3:50 --out m3
    """
    settings = places.settings()
    reranker, depth = stages.reranker()
    diagnosis = embark.analyze.diagnose_ark(
        model,
        tasks.chosen(),
        caption=stages.caption,
        rewrite=stages.rewrite,
        rerank=reranker,
        depth=depth,
        prompts=stages.prompts(),
        out=out,
        figures=figures,
        settings=settings,
        loading=loading.loading(),
    )
    if save:
        say(f"kept: {embark.site.save_report(diagnosis, settings=settings)}")
    say(*diagnosis.notes)
    emit(diagnosis.table(), style, columns=select)
    finish(f"written: {out / 'report.md'}")
