"""Resemblyzer's voice encoder as a function of ours: scikit-learn gives the same score of who speaks.

The licence file in its wheel is Apache-2.0. The clips are the pocket's, which espeak-ng speaks in six voices.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import embark
from embark.types import Array
from real.proof import SOUNDS
from real.test_efficientnet import LARGEST, MAX_ITER, RUNS, SEED, SHOTS, accuracy

pytestmark = pytest.mark.real

RATE = 16_000
PARTIAL = 160  # frames of a spectrogram that the network hears at once; shorter clips are filled up with silence
SPEECH = Path(embark.__file__).parent / "items" / "pocket" / "speech.parquet"
CLIPS = 30  # of each voice to learn from; the next ten are tested
TESTED = 10
Rows = list[tuple[tuple[Array, int], str]]  # ((samples, rate), voice)


class Voices:
    """The network of resemblyzer/voice_encoder.py with its weights: the first 1.6 seconds of a clip."""

    def __init__(self, weights: Path) -> None:
        import torch
        from transformers.audio_utils import mel_filter_bank

        stored = torch.load(weights / "resemblyzer" / "pretrained.pt", map_location="cpu", weights_only=True)
        state = stored["model_state"]
        self.lstm = torch.nn.LSTM(40, 256, 3, batch_first=True)
        self.linear = torch.nn.Linear(256, 256)
        for name, module in (("lstm", self.lstm), ("linear", self.linear)):
            module.load_state_dict({key.partition(".")[2]: state[key] for key in state if key.startswith(name)})
        self.filters = mel_filter_bank(201, 40, 0, RATE / 2, RATE, norm="slaney", mel_scale="slaney")

    def __call__(self, clips: list[Array]) -> Array:
        return np.stack([self.one(clip) for clip in clips])

    def one(self, samples: Array) -> Array:
        """The vector of a clip, alone in its batch."""
        import torch
        from transformers.audio_utils import spectrogram, window_function

        length = PARTIAL * RATE // 100
        samples = np.pad(samples[:length], (0, max(0, length - len(samples))))
        mel = spectrogram(
            samples, window_function(400, "hann"), 400, 160, power=2.0, pad_mode="constant", mel_filters=self.filters
        )
        with torch.inference_mode():
            _, (hidden, _) = self.lstm(torch.from_numpy(mel.T[None, :PARTIAL].astype(np.float32)))
            vector = torch.relu(self.linear(hidden[-1]))[0]
            return np.asarray((vector / vector.norm()).numpy())


def clips() -> tuple[Rows, Rows]:
    """Clips of every voice to learn from and to test, decoded by soundfile."""
    import soundfile

    by_voice: dict[str, Rows] = {}
    for row in pq.read_table(SPEECH, columns=["voice", "audio"]).to_pylist():
        known = by_voice.setdefault(row["voice"], [])
        if len(known) < CLIPS + TESTED:
            known.append((soundfile.read(io.BytesIO(row["audio"]), dtype="float32"), row["voice"]))
    learnt, tested = ([row for rows in by_voice.values() for row in rows[part]]
                      for part in (slice(CLIPS), slice(CLIPS, None)))  # fmt: skip
    return learnt, tested


def test_scikit_learn_has_the_same_score_of_voices(weights: Path, prove: Callable[..., None]) -> None:
    voices = Voices(weights)
    train, test = clips()
    params = {"probe": "published", "shots": SHOTS, "runs": RUNS, "seed": SEED, "max_iter": MAX_ITER}
    task = embark.task({"train": train, "test": test}, "probe", name="VoiceProbe", params=params)
    model = embark.encoder(audio=voices, name="test/resemblyzer", revision="0.1.4")
    [result] = embark.evaluate(model, task, show_progress=False).results
    vectors, others = (voices([samples for (samples, _), _ in rows]) for rows in (train, test))
    labels, other_labels = (np.array([voice for _, voice in rows]) for rows in (train, test))
    score = accuracy(vectors, labels, others, other_labels)
    difference = 100 * (result.score - score)
    prove(
        SOUNDS, "VoiceProbe", "accuracy", f"{100 * score:.1f}", f"{100 * result.score:.1f}",
        f"{round(difference, 1) + 0.0:+.1f}", "`make test-real`",
    )  # fmt: skip
    assert abs(difference) <= LARGEST
    assert result.score > 0.6
