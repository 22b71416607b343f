"""embark: what a multimodal embedding model can do, measured once, explained well.

>>> import embark
>>> run = embark.evaluate("embark/pocket")
>>> print(run.table())

Run models
    evaluate         models over tasks: scores with intervals, kept on disk with every vector
    plan             what an evaluation would embed, store and cost
    cost             what benchmarks cost on GPUs elsewhere, estimated by their rows
    fetch            the data of tasks, beforehand
    check            the rows of tasks against what the hub has
    rank             the best documents of each query, for who scores them elsewhere
    doctor           a model examined before its scores are trusted
    Monitor          a live module scored during its training, with callbacks for trainers

Read scores
    load_results     published, own and imported results that may stand together
    leaderboard      models ranked, with rank intervals and ties
    compare          two models item by item: differences, p-values, flips
    verify           a model's scores held against the published ones, with verdicts and likely causes
    recommend        models ranked for your needs, within your limits
    analyze          analyses of scores and of stored vectors: analyze.correlate, analyze.geometry…
    diagnose_ark     why a model fails on ARK: both axes, and what captions, rewriting and re-ranking gain
    diagnose_omni    why a model finds, or does not find, the modality that it is told to find
    check_published  every published aggregate computed again from its parts
    published        the papers' tables: published.tables(), .cells(), .errata()
    report           a paper-like report as HTML, Markdown and LaTeX, with figures, tables and protocols
    save_report      what doctor, verify, an analysis or a diagnosis returned, kept for the page
    export_site      the page: leaderboards, comparisons, items and runs, as files that open from disk
    serve            the page, served on this machine; it follows runs

Look up
    get_tasks        tasks by name and property
    get_benchmark    a benchmark by its name
    get_benchmarks   benchmarks by name and family
    get_models       cards of models by name and property
    show             all that is known about a task, benchmark or model
    reference        what readers, evaluators, loaders, rules and studies declare

Models of your own
    get_model                   a model by name, folder or card, ready to embed
    get_reranker                a re-ranker, likewise
    get_generator               a captioner or rewriter, likewise
    encoder                     functions as a model
    reranker                    a function as a re-ranker
    generator                   a function as a generator
    from_sentence_transformers  a SentenceTransformer as a model
    from_open_clip              an open_clip model
    from_mteb                   an mteb encoder as a model

Tasks of your own
    task             any data as a task: frames, tables, data sets, lists; a data set of the hub by its id
    folder_task      the tasks of a folder of images, sounds or films
    load_tasks       the tasks of a TOML file
    to_toml          a task as a table of such a file
    build_omni       a set like OmniSET of your pictures and captions: as text, image, film and speech

The store of vectors
    store_size       whose vectors are stored, how many, how large
    check_store      every byte verified, damage listed
    repair_store     damaged vectors removed, sound ones kept
    clean_store      what nobody reads deleted

Exchange
    import_results   scores that mteb or MMEB's code made
    export_mteb      results as mteb reads them
    export_inputs    what a generator or re-ranker would be asked, to be filled elsewhere and recorded
    export_vectors   the stored vectors of a task as Parquet or .npy
    import_vectors   vectors made elsewhere, scored without a model
    card             a model's scores for its model card
    push             results to a repository of the hub

Settings
    load_settings    the settings in force, or other ones
    Settings         folders, threads, memory, the hub
    Loading          where and how models run
    Cluster          the Ray cluster that a run uses, and how much of it
    Stages           models that work before and after a retriever

What functions return
    Analysis, ArkDiagnosis, CardSection, CheckReport, Comparison, CostReport, Diagnosis, Examination, Facts,
    FetchReport, Flips, Imported, Leaderboard, Measurement, OmniDiagnosis, OmniSet, PageServer, PlanReport,
    PublishedCheck, Recommendation, RecordingInputs, Reference, Report, ResultSet, Run, Site, StoreHealth, Upload,
    VectorFile, Verification

What they are made of
    Record, TaskResult, Ranking, Matrix, Table, Score, EmbarkError

What tasks and models are
    Benchmark, Task, Source, Style, Item, Text, Media, Rendered, Content, ModelCard, Encoder, Reranker, Generator

What functions return has `.table()`, `.to_frame()` (pandas), a display for notebooks, and `.notes` on what was left
out; analyses have `.plot(file)`, too. Every function that reads folders takes `settings`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name → the module that has it, or that it is; loaded at first use, so that `import embark` costs nothing.
_HOMES = {
    "Analysis": "studies.analysis",
    "ArkDiagnosis": "studies.ark",
    "Benchmark": "types",
    "CardSection": "boards.card_section",
    "Cluster": "engine.ray.cluster",
    "Comparison": "stats.compare",
    "Content": "types",
    "CostReport": "run.costs",
    "Diagnosis": "studies.diagnosis",
    "EmbarkError": "types",
    "Encoder": "models.encoder",
    "Examination": "run.examination",
    "Facts": "boards.facts",
    "FetchReport": "run.fetching",
    "CheckReport": "run.checking",
    "Flips": "stats.compare",
    "Generator": "models.encoder",
    "Imported": "boards.exchange",
    "Item": "types",
    "Leaderboard": "boards.leaderboards",
    "Loading": "models.loading",
    "Matrix": "boards.matrix",
    "Measurement": "run.live",
    "Media": "types",
    "ModelCard": "types",
    "Monitor": "studies.monitor",
    "OmniDiagnosis": "studies.omni",
    "OmniSet": "run.build_omni",
    "PageServer": "site.server",
    "PlanReport": "run.plans",
    "PublishedCheck": "boards.rederive",
    "Ranking": "run.ranked_lists",
    "Recommendation": "studies.recommend",
    "Record": "results",
    "RecordingInputs": "run.recording_inputs",
    "Reference": "declarations",
    "Rendered": "types",
    "Report": "reports.report",
    "Reranker": "models.encoder",
    "ResultSet": "boards.comparable_results",
    "Run": "run",
    "Score": "tables",
    "Settings": "settings",
    "Site": "site.bundle",
    "Source": "types",
    "Stages": "run.stages",
    "StoreHealth": "run.store_health",
    "Style": "types",
    "Table": "tables",
    "Task": "types",
    "TaskResult": "results",
    "Text": "types",
    "Upload": "boards.push",
    "VectorFile": "run.vector_files",
    "Verification": "run.verification",
    "analyze": "studies.analyze",
    "build_omni": "run.build_omni",
    "card": "boards.card_section",
    "check_published": "boards.rederive",
    "check_store": "run.store_health",
    "clean_store": "run.store_health",
    "compare": "stats.compare",
    "cost": "run.costs",
    "diagnose_ark": "studies.ark",
    "diagnose_omni": "studies.omni",
    "doctor": "run.examination",
    "encoder": "models.functions",
    "evaluate": "run",
    "export_inputs": "run.recording_inputs",
    "export_mteb": "boards.exchange",
    "export_site": "site.bundle",
    "export_vectors": "run.vector_files",
    "fetch": "run.fetching",
    "check": "run.checking",
    "folder_task": "own.folder",
    "from_mteb": "models.interop",
    "from_open_clip": "models.interop",
    "from_sentence_transformers": "models.interop",
    "generator": "models.functions",
    "get_benchmark": "tasks",
    "get_benchmarks": "tasks",
    "get_generator": "models",
    "get_model": "models",
    "get_models": "models",
    "get_reranker": "models",
    "get_tasks": "own.names",
    "import_results": "boards.exchange",
    "import_vectors": "run.vector_files",
    "leaderboard": "boards.leaderboards",
    "load_results": "boards.comparable_results",
    "load_settings": "settings",
    "load_tasks": "own.tasks_file",
    "plan": "run.plans",
    "published": "published",
    "push": "boards.push",
    "rank": "run.ranked_lists",
    "recommend": "studies.recommend",
    "reference": "declarations",
    "repair_store": "run.store_health",
    "report": "reports.report",
    "reranker": "models.functions",
    "save_report": "reports.kept",
    "serve": "site.server",
    "show": "boards.facts",
    "store_size": "run.store_health",
    "task": "own.make_task",
    "to_toml": "own.tasks_file",
    "verify": "run.verification",
}
_MODULES = ("analyze", "published")
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'embark' has no attribute '{name}'")
    module = import_module(f"embark.{_HOMES[name]}")
    return module if name in _MODULES else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
