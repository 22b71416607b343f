"""Models of text and images in families of their own: Jina-CLIP, Nomic, VISTA, BGE-VL."""

from __future__ import annotations

from typing import Any

from embark.types import ModelCard


def _row(name: str, revision: str, loader: str, dim: int, **more: Any) -> ModelCard:
    return ModelCard(
        name, revision, loader, ("text", "image", "video"), dim,
        **{"source": name, "architecture": "vit", "objective": "contrastive", **more},
    )  # fmt: skip


def _jina(name: str, revision: str, dim: int, **more: Any) -> ModelCard:
    code = "39e6a55ae971b59bea6e44675d237c99762e7ee2"  # of jinaai/jina-clip-implementation, which both versions name
    return _row(
        f"jinaai/{name}", revision, "jina", dim, fusion="sum", options={"code": code}, family="Jina-CLIP",
        context=8192, **more,
    )  # fmt: skip


def _vista(size: str, dim: int, weights: str, text: str, **more: Any) -> ModelCard:
    return _row(
        f"BAAI/bge-visualized-{size}", "98db10b10d22620010d06f11733346e1c98c34aa", "vista", dim, fusion="native",
        source="BAAI/bge-visualized", options={"weights": weights, "text": text}, family="VISTA", image_size=224,
        license="unstated", reference="https://arxiv.org/abs/2406.04292",
        aliases={"MIEB": f"BAAI/bge-visualized-{size}"}, **more,
    )  # fmt: skip


def _bge_vl(size: str, revision: str, dim: int, parameters: int, **aliases: str) -> ModelCard:
    return _row(
        f"BAAI/BGE-VL-{size}", revision, "dual", dim, fusion="sum", family="BGE-VL", parameters=parameters, context=77,
        image_size=224, data=26, license="MIT", reference="https://arxiv.org/abs/2412.14475", aliases=aliases,
        description="CLIP tuned on MegaPairs: two related images and the instruction that leads from one to the other.",
    )  # fmt: skip


CARDS = (
    _jina(
        "jina-clip-v1", "06150c7c382d7a4faedc7d5a0d8cdb59308968f4", 768, parameters=222_647_041, image_size=224,
        license="Apache-2.0", reference="https://arxiv.org/abs/2405.20204", aliases={"MIEB": "jinaai/jina-clip-v1"},
        description="Trained to retrieve texts by texts as well as images by texts. Runs its own code.",
    ),
    _jina(
        "jina-clip-v2", "344d954da76eb8ad47a7aaff42d012e30c15b8fe", 1024, parameters=865_278_477, image_size=512,
        dtype="bfloat16", license="CC-BY-NC-4.0", reference="https://arxiv.org/abs/2412.08802",
        description="Jina-CLIP for many languages, with larger images. Runs its own code.",
    ),
    _row(
        "nomic-ai/nomic-embed-vision-v1.5", "af2246fffdab78d8458418480e4886a8e48b70a7", "nomic", 768,
        options={"text": "nomic-ai/nomic-embed-text-v1.5@a03db6748c80237063eb0546ac6b627eca2318cb"},
        fusion="unit-sum", family="Nomic", parameters=92_946_688, context=2048, image_size=224, license="Apache-2.0",
        reference="https://arxiv.org/abs/2406.18587", aliases={"MIEB": "nomic-ai/nomic-embed-vision-v1.5"},
        description="An image tower trained towards Nomic's text space; as in MIEB, texts get no task prefix. "
        "Parameters are the image tower's.",
    ),
    _vista(
        "base", 768, "Visualized_base_en_v1.5.pth", "BAAI/bge-base-en-v1.5@a5beb1e3e68b9ab74eb54cfd186867f64f240e1a",
        parameters=196_000_000, context=512,
        description="BGE that reads image patches of an EVA-02 tower beside words; English.",
    ),
    _vista(
        "m3", 1024, "Visualized_m3.pth", "BAAI/bge-m3@5617a9f61b028005a4858fdac845db406aefb181",
        parameters=872_909_505, context=8192,
        description="BGE-M3 that reads image patches of an EVA-02 tower beside words; many languages.",
    ),
    _bge_vl("base", "cc4c733ed997dbee4ac70ccffb911e70c9c24b93", 512, 149_620_737),
    _bge_vl("large", "40fb48217f521df22a2a5bf15edd52ed1146ef05", 768, 427_616_513, ARK="BGE-VL-0.4B"),
)  # fmt: skip
