"""Draw every figure of docs/gallery.md: python examples/gallery.py [FOLDER]

Scores are the published ones; vectors are those of three small models that ship with embark; a field of 59 models
with known effects stands in for UniBench, whose scores by model were never printed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import embark
from embark import analyze
from embark.boards.matrix import Matrix
from embark.settings import load_settings
from embark.studies.extremes import group_extremes
from embark.studies.gains import relative_gains
from embark.studies.medians import field_medians
from embark.studies.scaling import fit_scaling
from embark.studies.study import Study
from embark.tasks import TASKS, get_benchmark
from embark.types import ModelCard

MODELS = ["embark/pocket", "embark/handmade", "embark/random"]
FIRST, SECOND, _ = MODELS
TASKS_EMBEDDED = [
    "PocketNameToImage", "PocketSubgroupZeroShot", "PocketGroupZeroShot", "PocketFlagZeroShot", "PocketGroupProbe",
    "PocketNameSTS", "PocketRobustness",
]  # fmt: skip
THREE = ["PocketNameToImage", "PocketNameSTS", "PocketGroupZeroShot"]
HEAD = """# Gallery

Figures of `embark analyze`, each with its command and the words that go below it in a paper (`study.caption`; they are
also in the file, as its description). This page and its drawings are made by `python examples/gallery.py`, from
published scores, from a run of three small models on Pocket tasks, and from a made-up field of 59 models on UniBench's
benchmarks (medians, gains, extremes, scaling with the architecture held fixed), whose scores by model were never
printed.

One style for all: no type below 6.5 points at the width that a figure is drawn in, which is that of a page (7 inches)
or less; the colors of Okabe and Ito first, then others with other markers; text stays text, and lines stay vectors in
`.svg` and `.pdf`; `.png` has 300 dpi."""
ARCHITECTURES = {"ViT-B/32": 151, "ViT-B/16": 150, "ViT-L/14": 428, "ViT-H/14": 986, "ConvNeXt": 200}  # million


def field(models: int = 59) -> Matrix:
    """Made-up scores on UniBench's rows: data helps recognition most, and relations, counting and space hardly."""
    rng = np.random.default_rng(0)
    tasks = tuple(TASKS.match(get_benchmark("UniBench").tasks))
    kinds = list(ARCHITECTURES)
    cards = [
        ModelCard(
            name=f"made-up/model-{number:02}", revision="1", loader="random", modalities=("text", "image"),
            architecture=kinds[number % len(kinds)], parameters=int(1e6 * ARCHITECTURES[kinds[number % len(kinds)]]),
            data=float([13, 128, 400, 2000, 12800][number // 5 % 5]),
        )
        for number in range(models)
    ]  # fmt: skip
    seen = np.log10([card.data or 1.0 for card in cards]) - 1
    size = np.log10([(card.parameters or 1) / 1e8 for card in cards])
    slow = {"relation": 0.01, "reasoning": 0.005}
    columns = []
    for task in tasks:
        slope = slow.get(task.tags["type"], 0.11)
        chance = task.chance or 0.0
        level = chance + (1 - chance) * rng.uniform(0.02, 0.3) * (slope > 0.1)
        columns.append(level + (1 - chance) * (slope * seen + slope * size) + 0.01 * rng.normal(size=models))
    own = {(card.name, "", ""): card for card in cards}
    return Matrix(tuple(own_card.name for own_card in cards), tasks, np.column_stack(columns).clip(0, 1), own_cards=own)


FIELD = ("medians", "scaling-held", "gains", "extremes")  # figures of the field above
MADE_UP = "**Made-up scores of 59 models**, with planted effects: no result. "


def figures(folder: Path) -> dict[str, tuple[str, Callable[[], Study]]]:
    """Each figure by its name: the command that draws it, and its study."""
    home = load_settings(folder / "home", folder / "results")
    stored: dict[str, Any] = {"settings": home, "show_progress": False}
    own: dict[str, Any] = {"own": True, "settings": home}
    made_up = field()
    vit = made_up.only(models=np.array([card.architecture == "ViT-B/32" for card in made_up.cards.values()]))
    calls: dict[str, tuple[str, Callable[[], Study]]] = {
        "pareto": ("pareto", analyze.pareto),
        "pareto-dim": ("pareto --against dim", lambda: analyze.pareto(against="dim")),
        "scaling": ("scaling --by type", lambda: analyze.scaling(by="type")),
        "heatmap": ("heatmap -b 'MIEB(lite)'", lambda: analyze.heatmap("MIEB(lite)")),
        "profile": (
            "profile -m '*siglip-so400m*' -m royokong/e5-v",
            lambda: analyze.profile(models=["*siglip-so400m*", "royokong/e5-v"]),
        ),
        "languages": (
            "languages -t XM3600T2IRetrieval -m '*siglip*'",
            lambda: analyze.languages(tasks="XM3600T2IRetrieval", models="*siglip*"),
        ),
        "correlate": ("correlate", analyze.correlate),
        "correlate-lite": ("correlate -b 'MIEB(lite)'", lambda: analyze.correlate("MIEB(lite)")),
        "distill": ("distill --size 51 --by type", lambda: analyze.distill(size=51, by="type")),
        "representatives": (
            "distill --representatives --by type",
            lambda: analyze.distill(representatives=True, by="type"),
        ),
        "predict": ("predict --from 'MIEB(lite)'", analyze.predict),
        "medians": ("medians -b UniBench", lambda: field_medians(made_up)),
        "scaling-held": (
            "scaling -b UniBench --against data --hold architecture",
            lambda: fit_scaling(made_up, made_up.cards, "data", hold="architecture"),
        ),
        "gains": (
            "gains -b UniBench --where 'architecture=ViT-B/32'",
            lambda: relative_gains(vit, "data", "capability"),
        ),
        "extremes": ("extremes -b UniBench", lambda: group_extremes(made_up)),
        "calibration": (
            "calibration -t 'Pocket*ZeroShot' -m embark/pocket -m embark/handmade",
            lambda: analyze.calibration(tasks="Pocket*ZeroShot", models=MODELS[:2], **own),
        ),
        "confusion": (
            "confusion -t PocketGroupZeroShot -m embark/pocket",
            lambda: analyze.confusion(tasks="PocketGroupZeroShot", models=FIRST, **own),
        ),
    }
    of_vectors: dict[str, tuple[str, list[str], list[str] | str, dict[str, str]]] = {
        "geometry": ("geometry", MODELS, "PocketNameToImage", {}),
        "map": ("map", MODELS[:2], "PocketNameToImage", {"method": "tsne"}),
        "map-labels": ("map", [FIRST], "PocketSubgroupZeroShot", {"method": "tsne", "by": "label"}),
        "truncate": ("truncate", MODELS[:2], THREE, {}),
        "quantize": ("quantize", MODELS[:2], THREE, {}),
        "topk": ("topk", MODELS[:2], ["PocketNameToImage", "PocketSubgroupZeroShot"], {}),
        "shots": ("shots", MODELS[:2], "PocketGroupProbe", {}),
        "similarity": ("similarity", [FIRST], ["PocketNameToImage", "PocketNameSTS"], {}),
        "prompts": ("prompts", [FIRST], "PocketSubgroupZeroShot", {}),
        "robustness": ("robustness", MODELS[:2], "PocketRobustness", {}),
    }
    for name, (analysis, models, tasks, options) in of_vectors.items():
        words = [f"-m {model}" for model in models]
        words += [f"-t {task}" for task in ([tasks] if isinstance(tasks, str) else tasks)]
        words += [f"--{option} {value}" for option, value in options.items()]
        study = partial(getattr(analyze, analysis), models, tasks, **options, **stored)
        calls[name] = (" ".join([analysis, *words]), study)
    return calls


def main(docs: Path, work: Path) -> None:
    """Embed, draw all figures as SVG, and write the page that shows them."""
    home = load_settings(work / "home", work / "results")
    embark.evaluate(MODELS, TASKS_EMBEDDED, settings=home, show_progress=False)
    (docs / "gallery").mkdir(parents=True, exist_ok=True)
    lines = [HEAD]
    for name, (command, study) in figures(work).items():
        drawing = study()
        path = docs / "gallery" / f"{name}.svg"
        drawing.plot(path)
        digits = re.sub(r"(\d\.\d\d)\d+", r"\1", path.read_text(encoding="utf-8"))  # more are not seen
        path.write_text(digits, encoding="utf-8")
        print(name, flush=True)
        lines += [f"## {drawing.title}", f"`embark analyze {command} --plot {name}.svg`"]
        lines += [f"![{drawing.title}](gallery/{name}.svg)", (MADE_UP if name in FIELD else "") + drawing.caption]
    (docs / "gallery.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs"
    main(folder, Path(sys.argv[2]) if len(sys.argv) > 2 else Path("gallery-work"))
