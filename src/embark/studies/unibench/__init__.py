"""The studies of UniBench's paper, for any benchmark."""

from __future__ import annotations

from embark.seams import Study
from embark.studies.options import BY, MODELS, WHERE
from embark.types import Option

STUDIES = (
    Study(
        "gains",
        "The gain from scale in every group of tasks, relative to the gain on ImageNet.",
        "embark.studies.unibench.gains:gains",
        "scores",
        {
            "against": Option(("data", "parameters"), "Default: data (training examples)."),
            "by": Option(str, "Group tasks by this tag (default: capability, else category)."),
            "reference": Option(str, "The task to compare with (ImageNet)."),
            "models": MODELS,
            "where": WHERE,
        },
        (
            "embark analyze gains --by type --against parameters --plot gains.svg",
            "embark analyze gains -b UniBench --include own --where architecture=vit",
        ),
    ),
    Study(
        "medians",
        "The median over models on every task, against chance.",
        "embark.studies.unibench.medians:medians",
        "scores",
        {"by": BY, "models": MODELS, "where": WHERE},
        (
            "embark analyze medians -b UniBench --plot medians.svg",
            "embark analyze medians --where parameters=..500 --format latex",
        ),
    ),
    Study(
        "extremes",
        "The mean, the best and the worst model in every group of tasks, and how far those differ in scale.",
        "embark.studies.unibench.extremes:extremes",
        "scores",
        {"by": BY, "models": MODELS, "where": WHERE},
        (
            "embark analyze extremes --by type",
            "embark analyze extremes -b UniBench --include own --by capability --format latex",
        ),
    ),
    Study(
        "answers",
        "Generative models as classifiers: their answers about the items of zero-shot tasks, matched to the classes, "
        "or the class whose name is their likeliest answer.",
        "embark.studies.unibench.answers:answers",
        "generators",
        {
            "by": Option(("answer", "likelihood", "mean-likelihood"), "How they choose; default: answer."),
            "prompt": Option(str, "The question; {classes} are the names of the classes."),
        },
        (
            "embark analyze answers -m Qwen/Qwen2-VL-2B-Instruct -t UniBench/mnist",
            "embark analyze answers -m Qwen/Qwen2-VL-2B-Instruct -t UniBench/mnist --by likelihood",
            "embark analyze answers -m MODEL -t PocketGroupZeroShot --prompt 'Is it one of {classes}? Which?'",
        ),
    ),
)
