"""Where sound and film files end, as they state themselves: decoders play what is left of a cut file without a word.

MP3 and MPEG streams state no length, so a cut one cannot be told.
"""

from __future__ import annotations

import struct

UNSTATED = 0x7FFFF000  # a size from which on its writer did not know it
SEGMENT = b"\x18\x53\x80\x67"  # of Matroska and WebM: it holds all of a film


def stated_end(data: bytes) -> int:
    """The length that a file states; 0 where it states none, or its format is none of those that do."""
    if data[:4] == b"RIFF":
        return _wave_end(data) if data[8:12] == b"WAVE" else _riff_end(data)
    if data[:4] == b"OggS":
        return _ogg_end(data)
    if data[:4] == b"\x1a\x45\xdf\xa3":
        return _matroska_end(data)
    return _mp4_end(data) if data[4:8] == b"ftyp" else 0


def _wave_end(data: bytes) -> int:
    """Where the samples of a wave file end."""
    offset = 12
    while offset + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, offset)
        if name == b"data":
            return 0 if size >= UNSTATED else offset + 8 + int(size)
        offset += 8 + size + size % 2
    return 0


def _riff_end(data: bytes) -> int:
    """Where the first block of an AVI file ends; large files have more of them."""
    (size,) = struct.unpack_from("<I", data.ljust(8, b"\0"), 4)
    return 0 if size >= UNSTATED else 8 + int(size)


def _mp4_end(data: bytes) -> int:
    """Where the last box of content or of its index ends."""
    offset = 0
    end = 0
    while offset + 16 <= len(data):
        size, name, long_size = struct.unpack_from(">I4sQ", data, offset)
        size = long_size if size == 1 else size
        if size < 8:  # 0: up to the end of the file
            break
        offset += size
        end = offset if name in (b"mdat", b"moov") else end
    return end


def _ogg_end(data: bytes) -> int:
    """Where the last page ends."""
    start = data.rfind(b"OggS")
    if start + 27 > len(data):
        return start + 27
    table = start + 27 + data[start + 26]
    return table + sum(data[start + 27 : table])


def _matroska_end(data: bytes) -> int:
    """Where the segment ends."""
    start = data.find(SEGMENT, 0, 4096) + len(SEGMENT)
    if start < len(SEGMENT) or start >= len(data) or not data[start]:
        return 0
    length = 9 - data[start].bit_length()  # bytes of the size: as many as the first bit that is set tells
    mask = (1 << 7 * length) - 1
    size = int.from_bytes(data[start : start + length], "big") & mask
    return 0 if size == mask else start + length + size  # all bits set: unknown
