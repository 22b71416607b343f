"""The studies of MIEB's paper, for any benchmark with the tasks that they need."""

from __future__ import annotations

from pathlib import Path

from embark.seams import Study
from embark.studies.options import BY
from embark.types import Option

STUDIES = (
    Study(
        "mllm",
        "Whether embedding scores foretell those of multimodal LLMs built on the encoders (MIEB's Figure 4; the scores "
        "are Cambrian-1's), or any other table of yours.",
        "embark.studies.mieb.external_scores:mllm",
        "scores",
        {
            "table": Option(Path, "CSV: a column of models, then one for each measure; else Cambrian-1's."),
            "by": BY,
            "correlation": Option(("pearson", "spearman"), "Default: pearson."),
        },
        ("embark analyze mllm --plot mllm.svg", "embark analyze mllm --table mllm.csv --by type"),
    ),
    Study(
        "rendering",
        "The cost of reading: the same pairs of sentences as pictures (visual STS) and as text (their twins). Without "
        "a benchmark or tasks, all visual STS.",
        "embark.studies.mieb.rendering:rendering",
        "scores",
        {},
        (
            "embark run -m MODEL -t STS13VisualSTS -t STS13",
            "embark analyze rendering -t STS13VisualSTS",
            "embark analyze rendering -b 'MIEB(Multilingual)' --plot reading.svg",
        ),
    ),
)
