"""Analyses of scores, stored vectors and answers: the functions of `embark.analyze`, one for each study.

Each takes the names of a benchmark or tasks (and models, for stored vectors) and returns an `Analysis`: `print` shows
its table, `.to_frame()` is a DataFrame, `.plot("file.svg")` draws it, and `.notes` say what was left out. Those of
stored vectors share some arguments: `embark.studies.stored_tasks.SharedArguments`.

Studies of plug-ins are functions here like ours: `embark.analyze.mine("Pocket")`, or by name `run("mine", "Pocket")`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embark import public
from embark.catalogue import check_name
from embark.field_types import checked
from embark.studies.analysis import Analysis
from embark.studies.registry import STUDIES
from embark.types import EmbarkError

if TYPE_CHECKING:  # at run time, a function is imported when it is asked for
    from embark.studies.ark import diagnose_ark as diagnose_ark
    from embark.studies.breakdown import breakdown as breakdown
    from embark.studies.calibration import calibration as calibration
    from embark.studies.confusion import confusion as confusion
    from embark.studies.correlate import correlate as correlate
    from embark.studies.distill import distill as distill
    from embark.studies.geometry import geometry as geometry
    from embark.studies.groups import heatmap as heatmap
    from embark.studies.groups import profile as profile
    from embark.studies.languages import languages as languages
    from embark.studies.maps import map as map
    from embark.studies.mieb.external_scores import mllm as mllm
    from embark.studies.mieb.rendering import rendering as rendering
    from embark.studies.omni import diagnose_omni as diagnose_omni
    from embark.studies.pareto import pareto as pareto
    from embark.studies.predict import predict as predict
    from embark.studies.scaling import scaling as scaling
    from embark.studies.search_cost import index as index
    from embark.studies.task_variants import prompts as prompts
    from embark.studies.task_variants import robustness as robustness
    from embark.studies.task_variants import shots as shots
    from embark.studies.task_variants import topk as topk
    from embark.studies.unibench.answers import answers as answers
    from embark.studies.unibench.extremes import extremes as extremes
    from embark.studies.unibench.gains import gains as gains
    from embark.studies.unibench.medians import medians as medians
    from embark.studies.vector_variants import quantize as quantize
    from embark.studies.vector_variants import similarity as similarity
    from embark.studies.vector_variants import truncate as truncate
else:

    def __getattr__(name: str) -> Any:
        if not name.startswith("_") and name in STUDIES:
            return checked(STUDIES[name].function)
        return _member(name)


_member, _members = public.names_of("analyze")


def __dir__() -> list[str]:
    return sorted([*_members(), *STUDIES])


def run(name: str, *arguments: Any, **options: Any) -> Analysis:
    """The analysis of a study by name, ours or a plug-in's, with the arguments and options of its function."""
    study = STUDIES[name]
    for option in options.keys() & study.options.keys():
        choices = study.options[option].kind
        if isinstance(choices, tuple) and options[option] is not None:
            check_name(f"{option} of the study {name}", options[option], choices)
    analysis = checked(study.function)(*arguments, **options)
    if not isinstance(analysis, Analysis):
        raise EmbarkError(f"The study '{name}' returned a {type(analysis).__name__}, and not an embark.types.Analysis.")
    return analysis
