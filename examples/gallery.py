"""Draw every figure of docs/gallery.md: python examples/gallery.py [FOLDER]

Scores are published ones; vectors are those of three small models that ship with embark. UniBench's scores by model
were never published, so its figures show synthetic scores of 59 models with known effects. Captions say so.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import embark
from embark import analyze
from embark.boards.matrix import Matrix
from embark.models.recorded import input_of
from embark.run.workbench import Workbench
from embark.settings import Settings, load_settings
from embark.studies.scaling import fit_scaling
from embark.studies.unibench.extremes import group_extremes
from embark.studies.unibench.gains import relative_gains
from embark.studies.unibench.medians import field_medians
from embark.tables.drawing import Drawn
from embark.tasks import TASKS, get_benchmark
from embark.types import Array, Classes, Content, Item, ModelCard, Rendered

MODELS = ["embark/pocket", "embark/handmade", "embark/random"]
FIRST, SECOND, _ = MODELS
TASKS_EMBEDDED = [
    "PocketNameToImage", "PocketSubgroupZeroShot", "PocketGroupZeroShot", "PocketFlagZeroShot", "PocketGroupProbe",
    "PocketNameSTS", "PocketRenderedSTS", "PocketRobustness",
]  # fmt: skip
STAGES = {
    "caption": "embark/pocket-captions", "rewrite": "embark/pocket-rewrites", "rerank": "embark/pocket-judgements",
}  # fmt: skip
THREE = ["PocketNameToImage", "PocketNameSTS", "PocketGroupZeroShot"]
HEAD = """# Gallery

This page shows every figure with its command and its caption (`analysis.caption`, which is also the description in the
file). `python examples/gallery.py` draws the figures and writes this page. The data are published scores, a run of
three small models on Pocket tasks, and synthetic scores of 59 models on UniBench's benchmarks (medians, gains,
extremes, scaling with the architecture held fixed), because UniBench's scores by model were never published. Captions
of figures with synthetic data begin with a warning.

All figures have one style: a width of at most one page (7 inches) and no text below 6.5 points at that width; the color
palette of Okabe and Ito, then further colors with other markers; text and vector lines in `.svg` and `.pdf`; 300 dpi in
`.png`."""
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


MADE_UP = {  # the warning before the caption of a figure
    **dict.fromkeys(
        ("medians", "scaling-held", "gains", "extremes"),
        "**Synthetic scores of 59 models** with known effects, not a result.",
    ),
    "answers": "**Synthetic likelihoods**, not a result.",
}
OBEDIENT = "**A synthetic model** (the pocket model, changed so that instructions have a partial effect), not a result."
Figures = dict[str, tuple[str, Callable[[], Drawn]]]


class Obedient(embark.Encoder):
    """The pocket model with a gap between modalities, across which an instruction moves a query half of the way."""

    def __init__(self) -> None:
        self.pocket = embark.get_model(FIRST)
        self.card = replace(self.pocket.card, name="made-up/obedient", revision="1", instructed=True)
        kinds = ("text", "image", "video", "audio")
        self.gaps = dict(zip(kinds, np.random.default_rng(0).normal(size=(4, 256)) / 16, strict=True))

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The item; the mode tells its modality, and the one that the instruction names first."""
        named = re.search("text|image|video|audio", instruction or "")
        own = self.pocket.render(item, role, None)
        return replace(own, mode=f"{own.mode}|{item.modalities[0]}|{named[0] if named else ''}")

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[Any, str, str]:
        """The pocket model's input, and both modalities."""
        own, kind, target = mode.split("|")
        return self.pocket.prepare(contents, own), kind, target

    def embed(self, batch: Sequence[tuple[Any, str, str]]) -> Array:
        """Vectors with the gaps."""
        vectors = np.array(self.pocket.embed([content for content, _, _ in batch]))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        for row, (_, kind, target) in enumerate(batch):
            vectors[row] += self.gaps[kind]
            if target:
                vectors[row] += 0.7 * (self.gaps[target] - self.gaps[kind])
        return vectors


def write_likelihoods(path: Path, tasks: Sequence[str], settings: Settings) -> str:
    """A recorded generator with made-up likelihoods of class names: those of the right ones are higher on average."""
    rng = np.random.default_rng(0)
    lines: dict[str, dict[str, Any]] = {}
    for name in tasks:
        data = Workbench(settings, show_progress=False).read(TASKS[name], *TASKS[name].parts[0])
        assert isinstance(data.truth, Classes)
        for item, label in zip(data.sides["item"].items, data.truth.label.tolist(), strict=True):
            line = lines.setdefault(json.dumps(input_of(item)), {"input": input_of(item), "likelihoods": {}})
            values = -6 - rng.exponential(2, len(data.truth.names))
            values[label] += 3
            line["likelihoods"] |= {text: round(v, 3) for text, v in zip(data.truth.names, values, strict=True)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines.values()), encoding="utf-8")
    return f"recorded:{path}"


def figures(folder: Path) -> Figures:
    """Each figure by its name: the command that draws it, and the call that makes it."""
    home = load_settings(folder / "home", folder / "results")
    return scores(home) | vectors(home) | verdicts(home) | diagnoses(home)


def scores(home: Settings) -> Figures:
    """Figures of scores: published, own, and made up."""
    own: dict[str, Any] = {"include": "own", "settings": home}
    made_up = field()
    vit = made_up.only(models=np.array([card.architecture == "ViT-B/32" for card in made_up.cards.values()]))
    answered = ("PocketGroupZeroShot", "PocketFlagZeroShot")

    def answers() -> Drawn:
        model = write_likelihoods(home.home / "likelihoods.jsonl", answered, home)
        return analyze.answers(model, answered, by="likelihood", settings=home, show_progress=False)

    calls: Figures = {
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
        "predict": ("predict --part 'MIEB(lite)'", analyze.predict),
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
            lambda: analyze.calibration(tasks="Pocket*ZeroShot", models=MODELS[:2], settings=home),
        ),
        "confusion": (
            "confusion -t PocketGroupZeroShot -m embark/pocket",
            lambda: analyze.confusion(tasks="PocketGroupZeroShot", models=FIRST, settings=home),
        ),
        "breakdown": (
            "breakdown -t PocketGroupZeroShot --by class",
            lambda: analyze.breakdown(tasks="PocketGroupZeroShot", by="class", settings=home),
        ),
        "rendering": ("rendering -b Pocket --include own", lambda: analyze.rendering("Pocket", **own)),
        "mllm": ("mllm", analyze.mllm),
        "answers": (
            f"answers -m recorded:likelihoods.jsonl {' '.join(f'-t {task}' for task in answered)} --by likelihood",
            answers,
        ),
    }
    return {name: (f"analyze {words} --plot {name}.svg", call) for name, (words, call) in calls.items()}


def vectors(home: Settings) -> Figures:
    """Figures of stored vectors."""
    calls: Figures = {}
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
        "index": ("index", [FIRST], "PocketNameToImage", {}),
    }
    for name, (analysis, models, tasks, options) in of_vectors.items():
        words = [f"-m {model}" for model in models]
        words += [f"-t {task}" for task in ([tasks] if isinstance(tasks, str) else tasks)]
        words += [f"--{option} {value}" for option, value in options.items()]
        study = partial(getattr(analyze, analysis), models, tasks, **options, settings=home, show_progress=False)
        calls[name] = (" ".join(["analyze", analysis, *words, f"--plot {name}.svg"]), study)
    return calls


def verdicts(home: Settings) -> Figures:
    """Figures of two models, of a model against published scores, and of a choice."""
    tasks = TASKS_EMBEDDED[:-1]
    sampled = load_settings(home.home, home.results.with_name("sampled"))
    check = partial(embark.verify, FIRST, tasks=tasks, against=home.results, limit=300, settings=sampled)
    chosen = " ".join(f"-t {task}" for task in tasks)
    return {
        "compare": (
            f"compare {FIRST} {SECOND} --plot compare.svg",
            partial(embark.compare, FIRST, SECOND, settings=home),
        ),
        "verify": (
            f"verify -m {FIRST} {chosen} --against results --limit 300 --plot verify.svg",
            partial(check, show_progress=False),
        ),
        "recommend": (
            "recommend --need 'visual sts,retrieval' --max-params 500M --plot recommend.svg",
            lambda: embark.recommend("visual sts,retrieval", max_parameters="500M"),
        ),
    }


def diagnoses(home: Settings) -> Figures:
    """Figures of diagnoses; a diagnosis is made when its first figure is."""

    @cache
    def omni() -> embark.types.Diagnosis:
        return embark.analyze.diagnose_omni(Obedient(), settings=home, show_progress=False)

    @cache
    def ark() -> embark.types.Diagnosis:
        return embark.analyze.diagnose_ark(FIRST, **STAGES, settings=home, show_progress=False)

    of_omni = ("retrieval", "modalities", "sensitivity", "shift", "shift-maps", "map", "asymmetry", "distribution")
    of_ark = ("routes", "knowledge-axis", "reasoning-axis", "gains")
    stages = " ".join(f"--{stage} {model}" for stage, model in STAGES.items())
    calls: Figures = {
        f"omni-{name}": ("diagnose omni -m MODEL --out omni", partial(lambda name: omni().analyses[name], name))
        for name in of_omni
    }
    return calls | {
        f"ark-{name}": (
            f"diagnose ark -m {FIRST} {stages} --out ark",
            partial(lambda name: ark().analyses[name], name),
        )
        for name in of_ark
    }


def shortened(svg: str) -> str:
    """A drawing whose coordinates have two decimals, as more are not seen; numbers in its texts stay as they are."""
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), svg)


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
        path.write_text(shortened(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(name, flush=True)
        lines += [f"## {drawing.title}", f"`embark {command}`"]
        warning = OBEDIENT if name.startswith("omni-") else MADE_UP.get(name, "")
        lines += [f"![{drawing.title}](gallery/{name}.svg)", f"{warning} {drawing.caption}".strip()]
    (docs / "gallery.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs"
    main(folder, Path(sys.argv[2]) if len(sys.argv) > 2 else Path("gallery-work"))
