"""Image–text pairs: within a sample of a few images and texts, is every image matched with its text, and vice versa?

Text j belongs to image j; an image or text without a partner is a distractor. Ties go to the lower index, or
count as wrong where the protocol is `strict` (Winoground's). An image and a text are compared by their vectors (one
each, or of tokens: maxsim of the text over the image), by pair scores of a model that reads both, or by their sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from embark.evaluators.similarity import check, exact, has_token_vectors, whole
from embark.seams import Evaluator
from embark.types import Array, EmbarkError, Matches, Option, Scores

PARAMS = {"strict": Option(bool, "Ties count as wrong (Winoground's rule); else they go to the lower index.")}


class PairScores(NamedTuple):
    """Scores of every image with every text of a sample, (samples, images, texts), of a model that reads both.

    `added`: they are added to the similarity of the vectors; else they stand alone.
    """

    scores: Array
    added: bool


def evaluate(truth: Matches, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Shares of samples in which all images, all texts, or both find their partners.

    Parameters: similarity, strict, metric. `vectors` may hold `PairScores` under "pairs".
    """
    if not len(truth.image):
        raise EmbarkError("There are no samples of images and texts to match.")
    similarity = params.get("similarity", "cosine")
    strict = bool(params.get("strict", False))
    scores = _compare(truth, vectors, similarity)
    by_image = _all_right(scores, strict)
    by_text = _all_right(scores.swapaxes(1, 2), strict)
    right = {"text_acc": by_image, "image_acc": by_text, "accuracy": by_image & by_text}
    main = PAIRS.metric(params)
    return Scores(
        {name: float(value.mean()) for name, value in right.items()},
        main,
        "image",
        truth.image[:, 0],  # a sample is identified by its first image
        {name: value.astype(np.float64) for name, value in right.items()},
        counts={"samples": len(scores), "images": scores.shape[1], "texts": scores.shape[2]},
        warnings=_impossible(main, *scores.shape[1:]),
    )


def _compare(truth: Matches, vectors: Mapping[str, Any], similarity: str) -> Array:
    """(samples, images, texts): how well each text fits each image.

    As exact as ranks are: texts of one direction tie, whatever their lengths were.
    """
    pairs: PairScores | None = vectors.get("pairs")
    if pairs is not None and not pairs.added:
        return pairs.scores
    shape = (*truth.image.shape, truth.text.shape[1])
    image = np.broadcast_to(truth.image[:, :, None], shape).ravel()
    text = np.broadcast_to(truth.text[:, None, :], shape).ravel()
    if similarity == "maxsim" and has_token_vectors(vectors["image"]):
        scores = exact(vectors["text"], vectors["image"], text, image, similarity)
    else:
        similarity = "cosine" if similarity == "maxsim" else similarity  # items have one vector here, as in `whole`
        for side in ("image", "text"):
            check(vectors[side], similarity)
        scores = exact(whole(vectors["image"], "dot"), whole(vectors["text"], "dot"), image, text, similarity)
    scores = scores.reshape(shape)
    return scores if pairs is None else scores + pairs.scores


def _all_right(scores: Array, strict: bool) -> Array:
    """Whether every row i of a sample picks column i; a row without a column of its own is wrong."""
    right = scores.argmax(axis=2) == np.arange(scores.shape[1])
    if strict:
        right &= (scores == scores.max(axis=2, keepdims=True)).sum(axis=2) == 1
    return np.asarray(right.all(axis=1))


def constant(truth: Matches, params: Mapping[str, Any]) -> tuple[float, list[str]] | None:
    """The value of the main measure where it is the same for every model, and the measures that tell something."""
    images, texts = truth.image.shape[1], truth.text.shape[1]
    main = PAIRS.metric(params)
    possible = _possible(images, texts)
    telling = [name for name in possible if possible[name] and max(images, texts) > 1]
    return None if main in telling else (float(possible[main]), telling)


def _possible(images: int, texts: int) -> dict[str, bool]:
    """Whether a sample can be right by each measure."""
    return {"text_acc": images <= texts, "image_acc": texts <= images, "accuracy": images == texts}


def _impossible(main: str, images: int, texts: int) -> tuple[str, ...]:
    """A warning if the main measure is 0 by definition: published tables have such zeros."""
    possible = _possible(images, texts)
    if possible[main]:
        return ()
    others = ", ".join(name for name, is_possible in possible.items() if is_possible)
    return (f"'{main}' is 0 by definition with {images} images × {texts} texts a sample; {others} can be scored.",)


PAIRS = Evaluator(
    "pairs",
    (__doc__ or "").strip(),
    (Matches,),
    evaluate,
    measures=dict.fromkeys(("accuracy", "text_acc", "image_acc"), "mean"),
    main="accuracy",
    version=2,
    params=PARAMS,
    constant=constant,
)
