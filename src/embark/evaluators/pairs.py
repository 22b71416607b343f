"""Image–text pairs: within a sample of a few images and texts, is every image matched with its text, and vice versa?

Text j belongs to image j; an image or text without a partner is a distractor. Ties go to the lower index, or
count as wrong where the protocol is `strict` (Winoground's).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embark.evaluators.similarity import check, exact, whole
from embark.types import Array, EmbarkError, Matches, Scores

VERSION = 2
PARAMS = {"strict": bool}


def evaluate(truth: Matches, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Shares of samples in which all images, all texts, or both find their partners.

    Parameters: similarity, strict, metric.
    """
    if not len(truth.image):
        raise EmbarkError("There are no samples of images and texts to match.")
    similarity = params.get("similarity", "cosine")
    strict = bool(params.get("strict", False))
    similarity = "cosine" if similarity == "maxsim" else similarity  # items have one vector here, as in `whole`
    for side in ("image", "text"):
        check(vectors[side], similarity)
    images, texts = whole(vectors["image"], "dot"), whole(vectors["text"], "dot")
    scores = _scores(images, texts, truth.image, truth.text, similarity)
    by_image = _all_right(scores, strict)
    by_text = _all_right(scores.swapaxes(1, 2), strict)
    right = {"text_acc": by_image, "image_acc": by_text, "accuracy": by_image & by_text}
    main = params.get("metric", "accuracy")
    if main not in right:
        raise EmbarkError(f"Pairs have no measure '{main}'; they have {', '.join(right)}.")
    return Scores(
        {name: float(value.mean()) for name, value in right.items()},
        main,
        "image",
        truth.image[:, 0],  # a sample is identified by its first image
        {name: value.astype(np.float64) for name, value in right.items()},
        counts={"samples": len(scores), "images": scores.shape[1], "texts": scores.shape[2]},
        warnings=_impossible(main, *scores.shape[1:]),
    )


def _scores(images: Any, texts: Any, image: Array, text: Array, similarity: str) -> Array:
    """(samples, images, texts). As exact as ranks are: texts of one direction tie, whatever their lengths were."""
    shape = len(image), image.shape[1], text.shape[1]
    query = np.broadcast_to(image[:, :, None], shape)
    document = np.broadcast_to(text[:, None], shape)
    return exact(images, texts, query.ravel(), document.ravel(), similarity).reshape(shape)


def _all_right(scores: Array, strict: bool) -> Array:
    """Whether every row i of a sample picks column i; a row without a column of its own is wrong."""
    right = scores.argmax(axis=2) == np.arange(scores.shape[1])
    if strict:
        right &= (scores == scores.max(axis=2, keepdims=True)).sum(axis=2) == 1
    return np.asarray(right.all(axis=1))


def _impossible(main: str, images: int, texts: int) -> tuple[str, ...]:
    """A warning if the main measure is 0 by definition: published tables have such zeros."""
    possible = {"text_acc": images <= texts, "image_acc": texts <= images, "accuracy": images == texts}
    if possible[main]:
        return ()
    others = ", ".join(name for name, is_possible in possible.items() if is_possible)
    return (f"'{main}' is 0 by definition with {images} images × {texts} texts a sample; {others} can be scored.",)
