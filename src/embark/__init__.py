"""embark: what a multimodal embedding model can do, measured once, explained well.

>>> import embark
>>> run = embark.evaluate("embark/pocket")
>>> print(run.table())

Run models
    evaluate         models over tasks: scores with intervals, kept on disk with every vector
    plan             what an evaluation would embed, store and cost
    cost             what benchmarks cost on GPUs elsewhere, estimated by their rows
    fetch            the data of tasks, beforehand
    doctor           a model examined before its scores are trusted
    Monitor          a live module scored during its training, with callbacks for trainers

Read scores
    load_results     published, own and imported results that may stand together
    leaderboard      models ranked, with rank intervals and ties
    compare          two models item by item: differences, p-values, flips
    verify           a model's scores held against the published ones, with verdicts and likely causes
    recommend        models ranked for your needs, within your limits
    report           a paper-like report as HTML, Markdown and LaTeX, with figures, tables and protocols

Look up
    get_models       cards of models by name and property
    get_tasks        tasks by name and property
    get_benchmarks   benchmarks by name and family
    get_benchmark    a benchmark by its name
    show             all that is known about a task, benchmark or model

Models and tasks of your own
    get_model        a model by name, folder or card, ready to embed
    encoder          functions as a model
    Encoder          the class of models, for one of your own
    task             any data as a task: frames, tables, data sets, lists; a data set of the hub by its id
    folder_task      the tasks of a folder of images, sounds or films
    load_tasks       the tasks of a TOML file

Settings
    load_settings    the settings in force, or other ones
    Settings         folders, threads, memory, the hub
    Loading          where and how models run
    Cluster          the Ray cluster that a run uses, and how much of it
    Stages           models that work before and after a retriever
    EmbarkError      a mistake that you can mend; its message says how

embark.analyze: analyses of scores and of stored vectors
    analyze.run            a study by name; each study is also a function: analyze.correlate, analyze.geometry…
    analyze.diagnose_ark   why a model fails on ARK: both axes, and what captions, rewriting and re-ranking gain
    analyze.diagnose_omni  why a model finds, or does not find, the modality that it is told to find

embark.exchange: results, vectors, rankings and questions from and for other tools; model cards; the hub
    exchange.import_results  scores that mteb, MMEB's or UniBench's code made
    exchange.export_mteb     results as mteb reads them
    exchange.export_vectors  the stored vectors of a task as Parquet or .npy
    exchange.import_vectors  vectors made elsewhere, scored without a model
    exchange.rank            the best documents of each query, for who scores them elsewhere
    exchange.export_inputs   what a generator or re-ranker would be asked, to be filled elsewhere and recorded
    exchange.card            a model's scores for its model card
    exchange.push            results to a repository of the hub

embark.models: re-rankers, generators, and models of other libraries
    models.get_reranker                a re-ranker by name, folder or card
    models.get_generator               a captioner or rewriter, likewise
    models.reranker                    a function as a re-ranker
    models.generator                   a function as a generator
    models.Reranker                    the class of re-rankers
    models.Generator                   the class of generators
    models.from_sentence_transformers  a SentenceTransformer as a model
    models.from_open_clip              an open_clip model
    models.from_mteb                   an mteb encoder as a model

embark.plugins: packages that add rows and values of the seams
    plugins.allow   plug-ins that may run in this process
    plugins.Plugin  what a package adds

embark.published: the papers' tables
    published.tables    each table with its paper, address and license
    published.overview  the same, with its number of cells
    published.cells     the cells of a table
    published.scores    all scores of a family
    published.results   scores on tasks, as results
    published.errata    the known faults of the tables
    published.mark      the errata of a score
    published.check     every published aggregate computed again from its parts

embark.seams: the classes of readers, evaluators, loaders, rules and studies
    seams.reference  what all of these declare, as tables
    seams.Reader     source rows → items and truth
    seams.Files      the files that a reader reads
    seams.Evaluator  vectors and truth → scores
    seams.Loader     a card → a model
    seams.Rule       scores of tasks → a benchmark's table
    seams.Subtotal   one more total of a rule
    seams.Study      scores or vectors → an analysis

embark.site: the page: leaderboards, comparisons, items and runs
    site.export       the page as files that open from disk
    site.serve        the page, served on this machine; it follows runs
    site.save_report  what doctor, verify, an analysis or a diagnosis returned, kept for the page

embark.store: the stored vectors
    store.size    whose vectors are stored, how many, how large
    store.check   every byte verified, damage listed
    store.repair  damaged vectors removed, sound ones kept
    store.clean   what nobody reads deleted

embark.tasks: tasks checked, written and made
    tasks.check       the rows of tasks against what the hub has
    tasks.to_toml     a task as a table of a TOML file
    tasks.build_omni  a set like OmniSET of your pictures and captions: as text, image, film and speech

embark.types: the classes of tasks, items and cards, and of what functions return
    Analysis, ArkDiagnosis, CardSection, CheckReport, Comparison, CostReport, Diagnosis, Examination, Facts,
    FetchReport, Flips, Imported, Leaderboard, Matrix, Measurement, OmniDiagnosis, OmniSet, PageServer, PlanReport,
    PublishedCheck, Ranking, Recommendation, Record, RecordingInputs, Reference, Report, ResultSet, Run, Score, Site,
    StoreHealth, Table, TaskResult, Upload, VectorFile, Verification,
    Task, Source, Style, Pool, Benchmark, ModelCard, Option,
    Item, Text, Media, Rendered, Content, Audio, Encoded,
    Dataset, Side, Qrels, Classes, Split, Groups, Matches, Gold, Scores

What functions return has `.table()`, `.to_frame()` (pandas), a display for notebooks, and `.notes` on what was left
out; analyses have `.plot(file)`, too. Every function that reads folders takes `settings`.
"""

from __future__ import annotations

from typing import Any

from embark import public

__version__ = "0.1.0"
__all__ = sorted([*public.TOP, *public.NOUNS])


def __getattr__(name: str) -> Any:
    return public.load(name)


def __dir__() -> list[str]:
    return __all__
