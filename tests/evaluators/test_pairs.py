"""Image–text pairs: samples on a plane, ties, and samples with more of one kind than of the other.

Parity with mteb's scores is in tests/test_parity.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.evaluators import evaluate, pairs
from embark.types import Array, EmbarkError, Matches, Scores


def score(images: Array, texts: Array, **params: object) -> Scores:
    """Of (samples, n, dim) and (samples, m, dim)."""
    images, texts = np.asarray(images, np.float32), np.asarray(texts, np.float32)
    image, text = (np.arange(len(a) * a.shape[1]).reshape(a.shape[:2]) for a in (images, texts))
    vectors = {"image": images.reshape(-1, images.shape[2]), "text": texts.reshape(-1, texts.shape[2])}
    return evaluate("pairs", Matches(image, text), vectors, params)


def turned(*degrees: float) -> list[list[float]]:
    return [[float(np.cos(np.radians(d))), float(np.sin(np.radians(d)))] for d in degrees]


def test_three_samples_worked_out_by_hand() -> None:
    images = np.array([turned(0, 90), turned(0, 90), turned(0, 90)])
    texts = np.array([turned(10, 80), turned(10, 20), turned(80, 10)])
    # The second: both images find their texts (90° is nearer to 20°), but both texts take the first image.
    found = score(images, texts)
    assert found.outcomes["text_acc"].tolist() == [1, 1, 0]
    assert found.outcomes["image_acc"].tolist() == [1, 0, 0]
    assert found.outcomes["accuracy"].tolist() == [1, 0, 0]
    assert found.metrics == pytest.approx({"text_acc": 2 / 3, "image_acc": 1 / 3, "accuracy": 1 / 3})
    assert (found.main, found.unit, found.rows.tolist(), found.statistic) == ("accuracy", "image", [0, 2, 4], "mean")
    assert found.counts == {"samples": 3, "images": 2, "texts": 2}
    assert score(images, texts, metric="text_acc").value == pytest.approx(2 / 3)


def test_ties_go_to_the_lower_index_unless_strict() -> None:
    same = np.array([turned(30, 30)])
    one = np.array([turned(0)])
    assert score(one, same, metric="text_acc").value == 1
    assert score(one, same, metric="text_acc", strict=True).value == 0
    assert score(one, same[:, :1], strict=True).value == 1  # nothing to tie with
    apart = np.array([turned(0, 90)])
    assert score(apart, apart, strict=True).value == 1
    assert score(apart, same, strict=False).metrics == {"text_acc": 0, "image_acc": 0, "accuracy": 0}


def test_distractors_make_the_other_side_impossible() -> None:
    images, texts = np.array([turned(0)]), np.array([turned(5, 60, 120)])
    found = score(images, texts)
    assert found.metrics == {"text_acc": 1, "image_acc": 0, "accuracy": 0}
    assert found.warnings == (
        "'accuracy' is 0 by definition with 1 images × 3 texts a sample; text_acc can be scored.",
    )
    assert score(images, texts, metric="text_acc").warnings == ()
    found = score(texts, images, metric="image_acc")
    assert (found.metrics, found.warnings) == ({"text_acc": 0, "image_acc": 1, "accuracy": 0}, ())


@given(st.integers(1, 4), st.integers(1, 4), st.booleans(), st.integers(0, 10**6))
def test_against_every_sample_by_itself(n: int, m: int, strict: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    images, texts = rng.integers(-1, 2, (9, n, 2)), rng.integers(-1, 2, (9, m, 2))  # many ties

    def picks(scores: Array, i: int) -> bool:
        if i >= len(scores):
            return False
        others = np.delete(scores, i)
        return bool((scores[i] > others).all() if strict else scores.argmax() == i)

    found = score(images, texts, similarity="dot", strict=strict)
    for sample, (a, b) in enumerate(zip(images, texts, strict=True)):
        s = a @ b.T
        assert found.outcomes["text_acc"][sample] == all(picks(s[i], i) for i in range(n))
        assert found.outcomes["image_acc"][sample] == all(picks(s[:, j], j) for j in range(m))
    assert (found.outcomes["accuracy"] == found.outcomes["text_acc"] * found.outcomes["image_acc"]).all()


def test_blocks_and_shared_items_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from embark.evaluators import similarity

    rng = np.random.default_rng(0)
    vectors = {"image": rng.normal(size=(6, 5)), "text": rng.normal(size=(8, 5)).astype(np.float16)}
    truth = Matches(rng.integers(0, 6, (50, 2)), rng.integers(0, 8, (50, 2)))
    whole = evaluate("pairs", truth, vectors, {})
    monkeypatch.setattr(similarity, "BLOCK_BYTES", 256 * 7 * 20)
    blocked = evaluate("pairs", truth, vectors, {})
    assert whole.metrics == blocked.metrics
    assert blocked.rows.tolist() == truth.image[:, 0].tolist()


def test_bad_inputs_are_errors() -> None:
    images = np.array([turned(0, 90)])
    with pytest.raises(EmbarkError, match="no measure 'group'; it has accuracy, text_acc, image_acc"):
        score(images, images, metric="group")
    with pytest.raises(EmbarkError, match="no samples"):
        score(images[:0], images[:0])
    with pytest.raises(EmbarkError, match="Unknown similarity 'euclid'"):
        score(images, images, similarity="euclid")
    with pytest.raises(EmbarkError, match="not finite, the first at row 1"):
        score(images, images * [[[1], [np.nan]]])


def test_captions_of_one_direction_tie_whatever_their_lengths() -> None:
    """Strict pairs whose captions differ in length alone scored 11.7 % instead of 0, by rounding."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(400, 2, 64))
    direction = rng.normal(size=(400, 1, 64))
    texts = direction.astype(np.float16) * np.array([1.0, 3.0])[:, None]  # halves, so that the product is exact
    assert score(images, texts, strict=True, metric="text_acc").value == 0


def test_pair_scores_are_added_or_stand_alone() -> None:
    """A model that reads image and text together (BLIP's matching head, a re-ranker) is a scorer of pairs."""
    truth = Matches(np.array([[0], [1]]), np.array([[0, 1], [2, 3]]))
    vectors = {"image": np.array(turned(0, 0)), "text": np.array(turned(10, 40, 10, 40))}
    logits = np.array([[[0.0, 0.1]], [[0.0, 2.0]]], np.float32)
    scored = {
        kind: evaluate("pairs", truth, {**vectors, "pairs": given}, {"metric": "text_acc"})
        .outcomes["text_acc"]
        .tolist()
        for kind, given in {
            "cosine": None,
            "added": pairs.PairScores(logits, added=True),
            "alone": pairs.PairScores(logits, added=False),
        }.items()
    }
    assert scored == {"cosine": [1, 1], "added": [1, 0], "alone": [0, 0]}


def test_late_interaction_scores_pairs_by_maxsim() -> None:
    truth = Matches(np.array([[0]]), np.array([[0, 1]]))
    image = [np.array(turned(0, 90), np.float32)]
    texts = [np.array(turned(2, 88), np.float32), np.array(turned(45, 45, 45), np.float32)]
    found = evaluate("pairs", truth, {"image": image, "text": texts}, {"metric": "text_acc", "similarity": "maxsim"})
    expected = [2 * np.cos(np.radians(2)), 3 * np.cos(np.radians(45))]
    assert found.value == float(np.argmax(expected) == 0)
    scores = pairs._compare(truth, {"image": image, "text": texts}, "maxsim")
    assert scores[0, 0].tolist() == pytest.approx(expected)
