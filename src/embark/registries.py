"""Registries of what rooms look up that do not import each other: names of ours and of plug-ins → values."""

from __future__ import annotations

from embark import plugins
from embark.catalogue import Registry
from embark.seams import Evaluator

EVALUATORS: Registry[Evaluator] = plugins.registry(
    "evaluator",
    {
        "retrieval": "embark.evaluators.retrieval:RETRIEVAL",
        "choice": "embark.evaluators.choice:CHOICE",
        "zeroshot": "embark.evaluators.zeroshot:ZEROSHOT",
        "probe": "embark.evaluators.probe:PROBE",
        "multilabel": "embark.evaluators.multilabel:MULTILABEL",
        "clustering": "embark.evaluators.clustering:CLUSTERING",
        "pairs": "embark.evaluators.pairs:PAIRS",
        "sts": "embark.evaluators.sts:STS",
        "pair-classification": "embark.evaluators.pair_classification:PAIR_CLASSIFICATION",
        "robustness": "embark.evaluators.robustness:ROBUSTNESS",
    },
    "evaluators",
)
