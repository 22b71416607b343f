"""The models that need no download: the pocket model and two baselines."""

from __future__ import annotations

from embark.types import MODALITIES, ModelCard

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
