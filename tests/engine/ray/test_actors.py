"""What actors of a cluster send, without a cluster: jobs, and errors."""

from __future__ import annotations

import pickle

import numpy as np

from embark.engine.batching.self_check import Inconsistent
from embark.engine.ray import actors as ray_actors
from embark.engine.ray.actors import ActorJob
from embark.types import EmbarkError


def test_errors_arrive_as_what_they_are() -> None:
    class Odd(EmbarkError):
        def __init__(self, left: str, right: str) -> None:
            super().__init__(left + right)

    assert isinstance(ray_actors._portable(Inconsistent("mixed up")), Inconsistent)
    assert type(ray_actors._portable(Odd("a", "b"))) is EmbarkError
    unforeseen = ValueError("odd")
    unforeseen.add_note("It was item 3.")
    assert str(ray_actors._portable(unforeseen, "org/model: ")) == "org/model: ValueError: odd It was item 3."


def test_the_model_gets_no_items() -> None:
    job = ActorJob(("text",), np.zeros(2, "V32"), texts=["a", "b"], check=True, batch_size=8)
    light = pickle.loads(pickle.dumps(job.without_items()))
    assert (light.check, light.batch_size, light.texts, len(light.keys)) == (True, 8, None, 0)


def test_a_job_of_one_item_has_nothing_of_the_others() -> None:
    keys = np.array([b"a" * 32, b"b" * 32], "V32")
    texts = ActorJob(("text",), keys, texts=["a", "b"], check=True, batch_size=8).of_row(1)
    assert (texts.keys.tolist(), texts.texts, texts.check, texts.batch_size) == ([b"b" * 32], ["b"], False, 8)
    rows = ActorJob(("image",), keys, rows=np.array([5, 7])).of_row(0)
    assert (rows.keys.tolist(), rows.rows.tolist(), rows.texts) == ([b"a" * 32], [5], None)  # type: ignore[union-attr]
