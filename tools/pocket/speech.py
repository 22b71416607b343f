"""Spoken names of emoji, by espeak-ng: a few hundred clips to ship, many more as log-mels to train on."""

from __future__ import annotations

import io
import random
import subprocess
import zlib
from collections.abc import Sequence
from multiprocessing import Pool

import numpy as np
import soundfile
from rows import Row

from embark.models.pocket import FRAMES, log_mel

RATE, ESPEAK_RATE = 16_000, 22_050
WAV_HEADER = 44
# (language, espeak-ng voice, held out of training)
VOICES = [
    ("en", "en-us+m3", False),
    ("en", "en-us+f2", False),
    ("en", "en-gb+m1", False),
    ("en", "en-gb-x-rp+f4", False),
    ("en", "en-029+m7", False),
    ("en", "en-us-nyc+f1", False),
    ("en", "en-gb-x-gbclan+m4", False),
    ("en", "en-gb-scotland+f3", True),
    ("en", "en-us+m5", True),
    ("es", "es+m2", False),
    ("fr", "fr-fr+f2", False),
    ("de", "de+m3", False),
    ("it", "it+f4", False),
]
SHIPPED_ENGLISH = ("en-gb-scotland+f3", "en-us+m5")  # in turn
SHIPPED_OTHER = {"es": "es+f3", "fr": "fr-fr+m5", "de": "de+f3", "it": "it+m5"}
PER_SUBGROUP, PER_OTHER_LANGUAGE = 5, 40


def synthesise(text: str, voice: str, seed: int) -> np.ndarray:
    """A waveform at 16 kHz; the seed picks speed and pitch."""
    pick = random.Random(seed)
    options = ["-v", voice, "-s", str(pick.randint(140, 200)), "-p", str(pick.randint(30, 70)), "--stdout"]
    wav = subprocess.run(["espeak-ng", *options, text.replace(":", ",")], capture_output=True, check=True).stdout
    samples = np.frombuffer(wav[WAV_HEADER : len(wav) // 2 * 2], np.int16).astype(np.float32) / 32768
    samples = samples[: np.flatnonzero(np.abs(samples) > 0.002).max(initial=0) + 1]  # trailing silence
    length = int(len(samples) * RATE / ESPEAK_RATE)
    if length <= RATE // 10:
        raise RuntimeError(f"espeak-ng has nothing to say for {text!r} in the voice {voice}.")
    # Linear interpolation is enough for what a mel spectrogram keeps.
    times = np.arange(length) * ESPEAK_RATE / RATE
    return np.interp(times, np.arange(len(samples)), samples).astype(np.float32)


def toneless(rows: Sequence[Row]) -> list[int]:
    """Rows that are spoken: skin tones would repeat each name four times."""
    return [index for index, row in enumerate(rows) if not row.skin_tone]


# ── shipped clips ────────────────────────────────────────────────────────────────────────────────────────────────────


def clip_plan(rows: Sequence[Row]) -> list[tuple[int, str, str]]:
    """(row, language, voice): some emoji of each subgroup in English, then a sample of those in other languages."""
    pick = random.Random(0)
    subgroups: dict[str, list[int]] = {}
    for index in toneless(rows):
        subgroups.setdefault(rows[index].subgroup, []).append(index)
    english = [i for members in subgroups.values() for i in pick.sample(members, min(PER_SUBGROUP, len(members)))]
    plan = [(index, "en", SHIPPED_ENGLISH[turn % 2]) for turn, index in enumerate(english)]
    for language, voice in SHIPPED_OTHER.items():
        plan += [(index, language, voice) for index in pick.sample(english, PER_OTHER_LANGUAGE)]
    return plan


def spoken_clips(rows: Sequence[Row]) -> list[dict[str, str | bytes]]:
    """The records of speech.parquet: Ogg Opus, 1 to 2 KB each, in voices never trained on."""
    clips: list[dict[str, str | bytes]] = []
    for index, language, voice in clip_plan(rows):
        row, text = rows[index], rows[index].names[language]
        samples = synthesise(text, voice, zlib.crc32(f"clip-{index}-{language}".encode()))
        ogg = io.BytesIO()
        soundfile.write(ogg, samples, RATE, format="OGG", subtype="OPUS", compression_level=0.97)
        clips.append({"emoji": row.emoji, "language": language, "text": text, "voice": voice, "audio": ogg.getvalue()})
    return clips


# ── training clips ───────────────────────────────────────────────────────────────────────────────────────────────────


def coarse_mel(text: str, voice: str, seed: int) -> np.ndarray:
    """(frames, mels) in 16 levels, which compress well and train as well."""
    return np.round(log_mel(synthesise(text, voice, seed))[:FRAMES] * 15).astype(np.uint8)


def training_mels(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Every name in every voice that speaks its language, clips laid end to end."""
    owners, jobs = [], []
    for index in toneless(rows):
        for number, (language, voice, _) in enumerate(VOICES):
            if language in rows[index].names:
                owners.append((index, number))
                jobs.append((rows[index].names[language], voice, zlib.crc32(f"{index}-{number}".encode())))
    with Pool() as pool:
        mels = pool.starmap(coarse_mel, jobs, chunksize=64)
    print(f"speech: {len(mels)} clips", flush=True)
    return {
        "mel": np.concatenate(mels),
        "mel_frames": np.array([len(mel) for mel in mels], np.int16),
        "mel_row": np.array([row for row, _ in owners], np.int16),
        "mel_voice": np.array([voice for _, voice in owners], np.int8),
    }
