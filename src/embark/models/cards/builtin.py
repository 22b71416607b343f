"""The models that need no download: the pocket model, two baselines, and recorded outputs for the pocket ARK."""

from __future__ import annotations

from typing import Literal

from embark.types import MODALITIES, ModelCard


def _recorded(name: str, file: str, kind: Literal["generator", "reranker"], description: str) -> ModelCard:
    """Outputs of a file that comes with the package: its revision is found when it is loaded."""
    return ModelCard(
        name=f"embark/{name}",
        revision="1",
        loader="recorded" if kind == "generator" else "recorded-scores",
        modalities=MODALITIES,
        dim=1,
        stored="uint8" if kind == "generator" else "float32",
        options={"file": file},
        kind=kind,
        parameters=0,
        trained_on=(),
        license="Apache-2.0",
        description=f"{description} of the pocket ARK, recorded: written by rule with errors, by no model.",
    )


CARDS = (
    ModelCard(
        name="embark/pocket",
        revision="ee07b84c239c",  # the hash of its weights file begins so
        loader="pocket",
        modalities=MODALITIES,
        dim=256,
        fusion="unit-sum",
        parameters=3_387_568,
        trained_on=("drawings of emoji but Noto's", "names of emoji", "spoken names of emoji"),
        license="Apache-2.0",
        description="Drawings, names in 38 languages and spoken names of emoji in one space; ships with embark.",
    ),
    ModelCard(
        name="embark/handmade",
        revision="1",
        loader="handmade",
        modalities=MODALITIES,
        dim=256,
        fusion="unit-sum",
        parameters=0,
        trained_on=(),
        license="Apache-2.0",
        description="Spelling, colours, edges and spectra, without any training; at chance across modalities.",
    ),
    ModelCard(
        name="embark/random",
        revision="1",
        loader="random",
        modalities=MODALITIES,
        dim=256,
        fusion="unit-sum",
        parameters=0,
        trained_on=(),
        license="Apache-2.0",
        description="A random direction for each content: the floor of every task.",
    ),
)

RECORDED = (
    _recorded("pocket-captions", "captions.jsonl", "generator", "Captions"),
    _recorded("pocket-rewrites", "rewrites.jsonl", "generator", "Rewritten queries"),
    _recorded("pocket-judgements", "judgements.jsonl", "reranker", "Scores of pairs"),
)
