"""Wave files are measured and cut by their bytes, whatever their encoding."""

from __future__ import annotations

import pytest

from embark.items import wav as waves
from embark.types import EmbarkError
from hub import wav


def test_wave_files_of_other_formats_are_cut_too() -> None:
    form = b"\xfe\xff" + wav()[22:36] + b"\0" * 4  # extensible, which the standard library does not read
    data = b"RIFF\0\0\0\0WAVEjunk\x03\0\0\0abc\0fmt " + len(form).to_bytes(4, "little") + form + wav()[36:]
    assert waves.duration(data) == pytest.approx(0.1)
    assert waves.cut(data, 0.05, 0.06)[-320:] == wav()[44 + 1600 : 44 + 1920]
    assert waves.duration(waves.cut(data, 0.2, 0.2)) == 1 / 16_000  # never empty
    with pytest.raises(EmbarkError, match="wave"):
        waves.duration(b"OggS" + bytes(40))
