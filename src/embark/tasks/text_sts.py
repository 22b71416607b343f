"""The text twins of MIEB's visual STS: the same pairs as plain text, as mteb's text benchmark has them (MIEB, Table 4).

Text minus picture is what rendering costs a model (`embark analyze rendering`). No board of MIEB lists these rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embark.tasks.mieb import ENGLISH, STS17, STSB, _spoken
from embark.types import Pool, Source, Task

SAME = "The pairs of {} as plain text: not compared, inferred from equal sizes and a common origin."
REVISIONS = {  # by data set, as mteb pins them
    "mteb/sts12-sts": ("a0d554a64d88156834ff5ae9920b964011b16384", "https://www.aclweb.org/anthology/S12-1051.pdf"),
    "mteb/sts13-sts": ("7e90230a92c190f1bf69ae9002b8cea547a64cca", "https://www.aclweb.org/anthology/S13-1004/"),
    "mteb/sts14-sts": ("6031580fec1f6af667f0bd2da0a551cf4f0b2375", "https://www.aclweb.org/anthology/S14-1002"),
    "mteb/sts15-sts": ("ae752c7c21bf194d8b67fd573edf7ae58183cbe3", "https://www.aclweb.org/anthology/S15-2010"),
    "mteb/sts16-sts": ("4d8694f8f0e0100860b497b999b3dbed754a0513", "https://www.aclweb.org/anthology/S16-1001"),
    "mteb/sts17-crosslingual-sts": (
        "faeb762787bd10488a50c8b5be4a3b82e411949c", "https://alt.qcri.org/semeval2017/task1/",
    ),
    "mteb/stsbenchmark-sts": ("b0fddb56ed78048fa8b90373c8a3cfc37b684831", "https://aclanthology.org/S17-2001"),
    "mteb/stsb_multi_mt": ("29afa2569dcedaaa2fe6a3dcfebab33d28b82e8c", "https://github.com/PhilipMay/stsb-multi-mt/"),
}  # fmt: skip

TWINS: Mapping[str, str] = {  # the visual task → its text twin; parts of both have the same names
    **{f"STS{year}VisualSTS": f"STS{year}" for year in range(12, 17)},
    "VisualSTS17Eng": "STS17",
    "VisualSTS17Multilingual": "STS17",
    "STS17MultilingualVisualSTS": "STS17",
    "VisualSTS-b-Eng": "STSBenchmarkMultilingualSTS",
    "VisualSTS-b-Multilingual": "STSBenchmarkMultilingualSTS",
    "STSBenchmarkMultilingualVisualSTS": "STSBenchmarkMultilingualSTS",
    "PocketRenderedSTS": "PocketNameSTS",
}


def _row(
    name: str, data: str, rows: Mapping[str, int], *notes: str, subsets: Mapping[str, tuple[str, ...]] = ENGLISH,
    splits: tuple[str, ...] = ("test",), score: str = "score", **more: Any,
) -> Task:  # fmt: skip
    """`rows` are pairs by "subset/split", or by split."""
    revision, reference = REVISIONS[data]
    pools = []
    for key, pairs in rows.items():
        config, _, split = key.rpartition("/")
        pools += [
            Pool(side, pairs, f"{data}/{config or '-'}/{split}/sentence{number}")
            for number, side in enumerate(("left", "right"), 1)
        ]
    return Task(
        name=name, family="MTEB", evaluator="sts", reader="rendered-sts", metric="cosine_spearman", category="STS",
        modalities=("text",), chance=0.0, subsets=subsets, rows=rows, pools=tuple(pools), notes=notes,
        source=Source(data, revision, splits=splits, license="not specified", reference=reference),
        columns={"left": "sentence1", "right": "sentence2", "score": score}, tags={"type": "STS"}, **more,
    )  # fmt: skip


TASKS: tuple[Task, ...] = (
    *(
        _row(f"STS{year}", f"mteb/sts{year}-sts", {"test": pairs}, SAME.format(f"STS{year}VisualSTS"))
        for year, pairs in ((12, 3108), (13, 1500), (14, 3750), (15, 3000), (16, 1186))
    ),
    _row(
        "STS17", "mteb/sts17-crosslingual-sts", {f"{code}/test": pairs for code, pairs in STS17.items()},
        SAME.format("STS17MultilingualVisualSTS and its two parts"), subsets=_spoken(STS17),
    ),
    _row("STSBenchmark", "mteb/stsbenchmark-sts", {"test": 1379}, SAME.format("VisualSTS-b-Eng")),
    _row(
        "STSBenchmarkMultilingualSTS", "mteb/stsb_multi_mt",
        {f"{code}/{split}": pairs for split, pairs in (("dev", 1500), ("test", 1379)) for code in STSB},
        SAME.format("STSBenchmarkMultilingualVisualSTS and its two parts"),
        subsets=_spoken(STSB), splits=("dev", "test"), score="similarity_score",
    ),
)  # fmt: skip
