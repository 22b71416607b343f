"""Analyses of scores and stored vectors: the functions of `embark.analyze`, one per command of `embark analyze`.

Each takes the names of a benchmark or tasks (and models, for stored vectors) and returns an `Analysis`: `print` shows
its table, `.to_frame()` is a DataFrame, `.plot("file.svg")` draws it, and `.notes` say what was left out. Those of
stored vectors share some arguments: `embark.studies.stored_tasks.SharedArguments`.
"""

from embark.studies.answers import answers
from embark.studies.breakdown import breakdown
from embark.studies.calibration import calibration
from embark.studies.confusion import confusion
from embark.studies.correlate import correlate
from embark.studies.distill import distill
from embark.studies.external_scores import mllm
from embark.studies.extremes import extremes
from embark.studies.gains import gains
from embark.studies.geometry import geometry
from embark.studies.groups import heatmap, profile
from embark.studies.languages import languages
from embark.studies.maps import map
from embark.studies.medians import medians
from embark.studies.pareto import pareto
from embark.studies.predict import predict
from embark.studies.rendering import rendering
from embark.studies.scaling import scaling
from embark.studies.search_cost import index
from embark.studies.task_variants import prompts, robustness, shots, topk
from embark.studies.vector_variants import quantize, similarity, truncate

__all__ = [
    "answers",
    "breakdown",
    "calibration",
    "confusion",
    "correlate",
    "distill",
    "extremes",
    "gains",
    "geometry",
    "heatmap",
    "index",
    "languages",
    "map",
    "medians",
    "mllm",
    "pareto",
    "predict",
    "profile",
    "prompts",
    "quantize",
    "rendering",
    "robustness",
    "scaling",
    "shots",
    "similarity",
    "topk",
    "truncate",
]
