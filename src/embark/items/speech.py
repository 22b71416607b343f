"""Texts spoken by espeak-ng, where it is installed: the same text and voice give the same bytes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from embark.types import EmbarkError

PROGRAM = "espeak-ng"
SPEED = 160  # words a minute
SPEECH_SECONDS = 60  # seconds that a text may take


def can_speak() -> bool:
    """Whether espeak-ng is installed."""
    return shutil.which(PROGRAM) is not None


def speech(text: str, voice: str = "en") -> bytes:
    """A text as a wave file."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise EmbarkError("Speech needs espeak-ng, which is not installed here: install it, or supply sounds.")
    with TemporaryDirectory() as folder:
        file = Path(folder, "speech.wav")
        command = [program, "-v", voice, "-s", str(SPEED), "-b", "1", "-w", str(file), "--stdin"]
        try:
            done = subprocess.run(
                command, input=text.encode(), capture_output=True, timeout=SPEECH_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise EmbarkError(f"espeak-ng spoke '{text[:60]}' for more than {SPEECH_SECONDS} seconds.") from error
        if done.returncode or not file.is_file():
            reason = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
            raise EmbarkError(f"espeak-ng cannot speak '{text[:60]}' in the voice '{voice}': {reason}")
        return file.read_bytes()
