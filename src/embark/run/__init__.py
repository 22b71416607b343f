"""One evaluation: read → plan → embed → score → record.

Tasks flow through these steps one behind the other, and an item that several share is embedded once; a score that is
already on disk under the same protocol and encoder is not computed again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from embark.engine.ray.cluster import Cluster, disconnect
from embark.field_types import checked
from embark.models import Loading
from embark.results.selection import select_tasks
from embark.run.cluster import cluster_of
from embark.run.evaluation import Evaluation
from embark.run.models import Models, name_models
from embark.run.outcome import NothingScored, Run, Skipped, skipped_notes
from embark.run.predictions import prediction_file, settle_prediction
from embark.run.stages import StagedWorkbench, Stages
from embark.run.workbench import Workbench
from embark.settings import Settings, load_settings
from embark.tasks import Tasks

__all__ = ["NothingScored", "Run", "Skipped", "evaluate", "skipped_notes"]


@checked
def evaluate(
    model: Models | None = None,
    tasks: Tasks = None,
    *,
    protocol: str | None = None,
    settings: Settings | None = None,
    limit: int | None = None,
    rescore: bool = False,
    batch_size: int | None = None,
    loading: Loading | None = None,
    stages: Stages | None = None,
    evict: bool = False,
    cluster: Cluster | None = None,
    show_progress: bool = True,
    name: str | Sequence[str] | None = None,
) -> Run:
    """Evaluate one or more models over tasks and keep vectors and scores.

    Without models and tasks: those that embark.toml of the working folder names, else the pocket model and two
    baselines over the pocket benchmark. `name` is what results and tables call the model (of several: one for each);
    its vectors are stored as ever.

    `protocol` names another way of scoring than the paper's, for the tasks that have it; its results are kept apart.
    `limit` scores a sample of so many queries, test items or pairs of each split and subset, always the same ones, over
    the whole corpus; such scores are marked, kept apart from full ones, and on no board.
    `rescore` computes scores again from the stored vectors, even those that are on disk. `loading` says where models
    that are given by name run, in which precision, and whose code is trusted. `stages` are models that work before and
    after: captions, rewritten queries, re-ranking. `evict` deletes what the run downloaded of a data set after the last
    task that needs it, and nothing that was there before, for disks smaller than a benchmark. `cluster` embeds on the
    nodes of a Ray cluster instead of this machine (default: the one that the settings `engine` and `address` name).

    A failure, whatever it raises, costs the tasks that need what failed or the model that cannot be loaded;
    `Run.skipped` lists them. Where that leaves no result at all, it is raised.
    """
    start = time.perf_counter()
    chosen = select_tasks(tasks, protocol, settings)
    if limit is not None:
        chosen = [task.limited(limit) for task in chosen]
    bench = Workbench(settings or load_settings(), batch_size, show_progress)
    if stages:
        bench = StagedWorkbench(stages, loading or Loading(), bench)
    models = name_models(model, name, bench.settings)
    evaluation = Evaluation(bench, chosen, models, rescore, loading, evict, cluster or cluster_of(bench.settings))
    if bench.settings.offline:
        evaluation.require_data()
    try:
        run = evaluation.evaluate()
    finally:
        disconnect()
    run.seconds = time.perf_counter() - start
    run.predicted = settle_prediction(
        prediction_file(bench.settings, evaluation.cards, chosen), run.computed, run.embedded, run.seconds
    )
    if evaluation.ledger.failed and not run.results:
        raise NothingScored(run)
    return run
