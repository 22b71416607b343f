"""How well the towers do on what training never saw: the Noto style, held-out names and held-out voices. In percent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from batches import LEVELS, TrainingData, bag, cached_ids
from rows import LANGUAGES, held_out
from torch import Tensor
from towers import PocketTowers

CHUNK = 256


def _recall(queries: Tensor, gallery: Tensor, target: Tensor) -> list[float]:
    """R@1 and R@10."""
    scores = queries @ gallery.T
    rank = (scores > scores.gather(1, target[:, None])).sum(1)
    return [100 * (rank < k).float().mean().item() for k in (1, 10)]


def _both_ways(texts: Tensor, images: Tensor, asked: Tensor | None = None) -> list[float]:
    """Text to image, then image to text; `asked` limits the queries, never the gallery."""
    asked = torch.arange(len(texts)) if asked is None else asked
    return _recall(texts[asked], images, asked) + _recall(images[asked], texts, asked)


def _encoders(model: PocketTowers, device: str) -> tuple[Callable[..., Tensor], Callable[[Sequence[str]], Tensor]]:
    def chunks(items: Any) -> Iterator[Any]:
        return (items[at : at + CHUNK] for at in range(0, len(items), CHUNK))

    def run(tower: Callable[[Tensor], Tensor], items: Tensor) -> Tensor:
        return torch.cat([tower(chunk.to(device)).cpu() for chunk in chunks(items)])

    def texts(items: Sequence[str]) -> Tensor:
        return torch.cat([model.texts(*bag([cached_ids(t) for t in chunk], device)).cpu() for chunk in chunks(items)])

    return run, texts


def _languages(data: TrainingData, images: Tensor, texts: Callable[[Sequence[str]], Tensor]) -> dict[str, Any]:
    """Retrieval language by language among emoji without skin tone, over all names and over held-out names."""
    every, held = {}, {}
    for language in LANGUAGES:
        named = [i for i, row in enumerate(data.rows) if not row.skin_tone and language in row.names]
        vectors = texts([data.rows[i].names[language] for i in named])
        unseen = [position for position, i in enumerate(named) if held_out(data.rows[i].base, language)]
        every[language] = _both_ways(vectors, images[named])
        held[language] = _both_ways(vectors, images[named], torch.tensor(unseen))
    others = [language for language in LANGUAGES if language != "en"]
    return {
        "english": every["en"],
        "english_held_out": held["en"],
        "others": np.mean([every[language] for language in others], 0).tolist(),
        "others_held_out": np.mean([held[language] for language in others], 0).tolist(),
        "t2i_r10_by_language": {language: scores[1] for language, scores in every.items()},
    }


def _swap(data: TrainingData, images: Tensor, texts: Tensor, key: str, values: tuple[str, str]) -> dict[str, float]:
    """Two emoji that differ in one attribute: does each image prefer its own name to the other's?"""
    fixed = [name for name in ("gender", "skin_tone", "hair") if name != key]
    wins = []
    for family in data.families.values():
        forms: dict[tuple[str | None, ...], dict[str | None, int]] = {}
        for index in family:
            row = data.rows[index]
            alike = forms.setdefault(tuple(getattr(row, name) for name in fixed), {})
            alike.setdefault(getattr(row, key), index)
        for form in forms.values():
            if all(value in form for value in values):
                pair = [form[value] for value in values]
                scores = images[pair] @ texts[pair].T
                wins.append([bool(scores[0, 0] > scores[0, 1]), bool(scores[1, 1] > scores[1, 0])])
    won = np.array(wins)
    return {"pairs": len(won), "accuracy": 100 * won.mean(), "both": 100 * won.all(1).mean()}


@torch.no_grad()
def evaluate(model: PocketTowers, data: TrainingData) -> dict[str, Any]:
    """All measures. Retrieval is [t2i R@1, t2i R@10, i2t R@1, i2t R@10], the rest R@1 and R@10 or accuracy."""
    run, texts = _encoders(model, data.device)
    rows = data.rows
    images, names = run(model.images, data.noto), texts([row.names["en"] for row in rows])
    toneless = [i for i, row in enumerate(rows) if not row.skin_tone]
    flags = [i for i in toneless if rows[i].country]
    groups = sorted({row.group for row in rows})
    guesses = (images @ texts(groups).T).argmax(1).tolist()
    unheard = np.flatnonzero(data.clip_held)
    sounds = run(lambda clips: model.sounds(clips.float() / LEVELS), data.clips[unheard])
    place = {row: position for position, row in enumerate(toneless)}
    spoken = torch.tensor([place[row] for row in data.clip_row[unheard]])
    found = {
        **_languages(data, images, texts),
        "english_with_tones": _both_ways(names, images),
        "zero_shot_groups": 100 * np.mean([groups[g] == row.group for g, row in zip(guesses, rows, strict=True)]),
        "zero_shot_flags": _recall(images[flags], names[flags], torch.arange(len(flags))),
        "swap_gender": _swap(data, images, names, "gender", ("male", "female")),
        "swap_skin_tone": _swap(data, images, names, "skin_tone", ("light", "dark")),
        "audio_to_text": _recall(sounds, names[toneless], spoken),
        "audio_to_image": _recall(sounds, images[toneless], spoken),
    }
    return _rounded(found)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return value if isinstance(value, int) else round(float(value), 1)
