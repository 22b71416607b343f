"""Zero-shot classification: an item belongs to the class whose prompt is nearest.

Several prompts for a class are an ensemble: their unit vectors are averaged and scaled to unit length again. An item
with several labels counts as right if the predicted class is any of them. Ties go to the lower class number.

Outcomes keep how sure the model is of each item: the probability of its class (a softmax over the classes, at the
model's own scale of similarities), the entropy in nats, and the margin between the two best classes' similarities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embark import metrics
from embark.evaluators.similarity import BLOCK_BYTES, blocks, rows_that_fit, whole
from embark.seams import Evaluator
from embark.types import Array, Classes, EmbarkError, Scores

TOP = 5
LOGIT_SCALE = 100.0  # of models that state none, as CLIP ends up and UniBench has it
COLLAPSED = 0.9  # share of the items that get one class, from which on the score is one of collapse


def evaluate(truth: Classes, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Accuracy, top-5 accuracy, and precision, recall and F1 over classes. Parameters: similarity, metric."""
    items = vectors["item"]
    classes = len(truth.names)
    if not len(items):
        raise EmbarkError("There are no items to classify.")
    if empty := sorted(set(range(classes)) - set(truth.prompt.tolist())):
        raise EmbarkError(f"{len(empty)} classes have no prompt, the first is '{truth.names[empty[0]]}'.")
    similarity = params.get("similarity", "cosine")
    similarity = "cosine" if similarity == "maxsim" else similarity  # items have one vector here, as in `whole`
    centres = class_vectors(whole(vectors["prompt"], similarity), truth.prompt, classes)
    centres, place = np.unique(centres, axis=0, return_inverse=True)  # equal classes tie exactly
    size = max(1, min(rows_that_fit(items), BLOCK_BYTES // (4 * classes)))
    held = np.empty((min(size, len(items)), centres.shape[1]), np.float32)  # one array for all blocks
    top: Array = np.empty((len(items), min(TOP, classes)), np.int64)
    scale = float(params.get("logit_scale", LOGIT_SCALE))
    sureness = {name: np.empty(len(items), np.float32) for name in ("probability", "entropy", "margin")}
    for start, rows in blocks(items, similarity, size, held):
        scores = (np.asarray(rows) @ centres.T).take(place.ravel(), axis=1)
        for name, of_rows in sureness_of(scores, scale).items():
            sureness[name][start : start + size] = of_rows
        top[start : start + size] = best_classes(scores, top.shape[1])
    hits = truth.label[np.arange(len(top))[:, None], top] if truth.label.ndim == 2 else top == truth.label[:, None]
    right = hits[:, 0].astype(np.float64)
    top5 = np.asarray(hits.any(axis=1), np.float64)
    values = {"accuracy": float(right.mean()), "top5_accuracy": float(top5.mean())}
    outcomes = {"accuracy": right, "top5_accuracy": top5, "predicted": top[:, 0], **sureness}
    if truth.label.ndim == 1:  # where items have several labels, a class has no precision
        outcomes["label"] = truth.label
        values |= metrics.classification(truth.label, top[:, 0], classes)
    return Scores(
        values,
        ZEROSHOT.metric(params),
        "item",
        np.arange(len(items)),
        outcomes,
        counts={"items": len(items), "classes": classes},
        warnings=_collapse(truth, top[:, 0]),
    )


def sureness_of(scores: Array, scale: float) -> dict[str, Array]:
    """How sure each row of similarities is of its best class: probability, entropy (nats) and margin."""
    with np.errstate(invalid="ignore", over="ignore"):  # of vectors that are not finite
        best = scores.max(axis=1, keepdims=True)
        logits = scale * (scores - best)
        weights = np.exp(logits)
        total = weights.sum(axis=1)
        entropy = np.log(total) - (weights * np.maximum(logits, -1e4)).sum(axis=1) / total
        second = np.partition(scores, -2, axis=1)[:, -2] if scores.shape[1] > 1 else best[:, 0]
        return {"probability": 1 / total, "entropy": entropy, "margin": best[:, 0] - second}


def best_classes(scores: Array, count: int) -> Array:
    """The `count` best classes of each row of scores, which are overwritten; of equal ones the lower number first."""
    if not np.isfinite(scores).all():
        return np.argsort(-scores, axis=1, kind="stable")[:, :count]
    rows = np.arange(len(scores))
    best = np.empty((len(scores), count), np.int64)
    for place in range(count):  # much cheaper than to sort them all
        best[:, place] = scores.argmax(axis=1)
        scores[rows, best[:, place]] = -np.inf
    return best


def constant(truth: Classes, params: Mapping[str, Any]) -> tuple[float, list[str]] | None:
    """The value of the main measure where it is the same for every model, and the measures that tell something."""
    depth = TOP if params.get("metric") == "top5_accuracy" else 1
    return None if len(truth.names) > depth else (1.0, ["accuracy"] * (len(truth.names) > 1))


def _collapse(truth: Classes, predicted: Array) -> tuple[str, ...]:
    """A warning if nearly all items get one class, though they are of several."""
    several = truth.label.ndim == 2 or bool((truth.label != truth.label[0]).any())
    counts = np.bincount(predicted, minlength=len(truth.names))
    right = truth.label[:, counts.argmax()].mean() if truth.label.ndim == 2 else (truth.label == counts.argmax()).mean()
    if not several or counts.max() < COLLAPSED * len(predicted) or right >= COLLAPSED:
        return ()
    return (
        f"the classes collapsed: {counts.max():,} of {len(predicted):,} items get '{truth.names[counts.argmax()]}', "
        f"to which {right:.0%} belong; the score says little about the model",
    )


def class_vectors(prompts: Array, owner: Array, classes: int) -> Array:
    """One vector for each class, from prompts and the class that owns each; a single prompt's vector is unchanged."""
    total = np.zeros((classes, prompts.shape[1]), np.float32)
    np.add.at(total, owner, prompts)
    several = np.bincount(owner, minlength=classes) > 1
    length = np.linalg.norm(total[several], axis=1, keepdims=True)
    total[several] /= np.where(length > 0, length, 1)  # prompts may cancel out
    return total


ZEROSHOT = Evaluator(
    "zeroshot",
    (__doc__ or "").strip(),
    (Classes,),
    evaluate,
    measures={"accuracy": "mean", "top5_accuracy": "mean"},
    main="accuracy",
    version=2,
    constant=constant,
)
