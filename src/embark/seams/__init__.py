"""The seams: what anybody may add to embark, as frozen values. Ours and those of plug-ins stand in the same registries.

    Reader     source rows → items and truth          embark.readers.READERS
    Evaluator  vectors and truth → scores             embark.registries.EVALUATORS
    Loader     a card → a model                       embark.models.LOADERS
    Rule       task scores → a benchmark's table      embark.boards.rules.RULES
    Study      scores or vectors → an analysis        embark.studies.STUDIES

A value says all that embark wants to know about it; nothing is looked up in its module. What it declares is checked
when it is made.
"""

from typing import TYPE_CHECKING

from embark import public
from embark.seams.evaluator import AT_K, BASE_VERSION, COMMON_PARAMS, STATISTICS, Evaluator, Params
from embark.seams.loader import Loader
from embark.seams.reader import Files, Read, Reader
from embark.seams.rule import Average, Rule, SecondAxis, Subtotal
from embark.seams.study import Study

if TYPE_CHECKING:  # public names that later rooms have: loaded at first use
    from embark.declarations import reference as reference
else:
    __getattr__, __dir__ = public.names_of("seams")

__all__ = [
    "AT_K", "BASE_VERSION", "COMMON_PARAMS", "STATISTICS", "Average", "Evaluator", "Files", "Loader", "Params", "Read",
    "Reader", "Rule", "SecondAxis", "Study", "Subtotal",
]  # fmt: skip
