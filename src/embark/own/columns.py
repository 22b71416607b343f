"""The usual names of columns of own data, and how own data is divided and probed; the same for folders and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embark.types import MODALITIES, Modality

# Role → names of columns that usually have it.
USUAL: Mapping[str, tuple[str, ...]] = {
    "image": ("image", "img", "picture", "photo", "jpg", "png", "webp"),
    "audio": ("audio", "sound", "recording", "speech", "wav", "flac"),
    "video": ("video", "film", "clip", "mp4"),
    "text": ("caption", "captions", "text", "sentence", "description", "txt"),
    "label": ("label", "labels", "class", "category", "target", "cls", "fine_label"),
    "left": ("left", "sentence1", "text1"),
    "right": ("right", "sentence2", "text2"),
    "score": ("score", "similarity_score", "similarity"),
    "question": ("question",),
    "choices": ("choices", "options"),
    "answer": ("answer",),
}
FILES = ("file", "file_name", "filename", "path")  # columns that usually name media of any kind
MEDIA: tuple[Modality, ...] = MODALITIES[1:]

DIVIDE: Mapping[str, Any] = {"train": 0.5, "seed": 42}  # what a probe learns from, where nothing is for training
PROBE: Mapping[str, Any] = {"probe": "sound", "shots": 16, "runs": 5, "seed": 42}
