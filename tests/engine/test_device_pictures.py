"""The engine over a model that decodes JPEGs itself: what arrives there, and what becomes of damage."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import ExifTags, Image

from device_pictures import StandIn, damaged, jpeg, means
from embark import items
from embark.engine.workers import preparing
from embark.engine.workers.preparing import byte_size, prepare, prepare_files, prepare_named
from embark.engine.workers.preparing_processes import Preparer
from embark.items import Items, as_keys, lazy_media
from embark.items.decoding import UnreadableMedia
from embark.items.lazy_items import MediaItems, Numbered
from embark.items.lazy_media import ParquetColumn
from embark.models.encoder import Encoder, cuda_pixels
from embark.planning import Need, Needs, plan, task_demand
from embark.store import Store
from embark.types import Dataset, EmbarkError, Encoded, Groups, Item, Side, Source, Task
from lengths import needs, run
from tiny import picture


def stored(data: bytes) -> Item:
    return items.media("image", data)


def drawing(at: int) -> Item:
    out = io.BytesIO()
    picture(at, (31, 20)).save(out, "PNG")
    return stored(out.getvalue())


def test_vectors_are_those_of_pillow_whatever_decodes(store: Store) -> None:
    wanted = [stored(jpeg(at, (20 + at, 44)).data) for at in range(12)] + [drawing(1), drawing(2), items.text("abc")]
    stand_in = StandIn()
    vectors = []
    for encoder in (means(), cuda_pixels(means(stand_in))):
        planned = needs(encoder, wanted)
        report, space = run(store, encoder, planned, batch_size=5, workers=2)
        assert (report.embedded, report.unreadable) == (15, {})
        vectors.append(np.asarray(space.read(as_keys([need.key for need in planned]))))
    assert np.array_equal(*vectors)
    assert sum(stand_in.batches) == 12


def test_a_damaged_jpeg_costs_no_other_item(store: Store) -> None:
    encoder = cuda_pixels(means())
    wanted = [stored(jpeg(at).data) for at in range(6)]
    wanted[2] = stored(damaged(2).data)
    wanted[4] = stored(jpeg(4).data[:300])
    planned = needs(encoder, wanted)
    report, space = run(store, encoder, planned, batch_size=6, self_check=True)
    assert report.embedded == 4
    assert report.unreadable.keys() == {planned[2].key, planned[4].key}
    assert "does not decode" in report.unreadable[planned[2].key]
    present = space.has(as_keys([need.key for need in planned]))
    assert present.tolist() == [True, True, False, True, False, True]


def test_what_workers_hand_over() -> None:
    plain, other = means(), cuda_pixels(means())
    need = needs(plain, [stored(jpeg(0).data)])[0]
    [(kind, value)] = prepare(other, need)
    assert (kind, value) == ("image", jpeg(0))
    assert byte_size([(kind, value)]) == len(jpeg(0).data)
    [(_, pixels)] = prepare(plain, need)
    assert not isinstance(pixels, Encoded)
    assert isinstance(Image.fromarray(pixels["pixel_values"]), Image.Image)


# ── pictures in a parquet file, a chunk at a time ────────────────────────────────────────────────────────────────────


def column(folder: Path, content: Sequence[bytes | None], turned: bool = False) -> MediaItems:
    path = folder / "pictures.parquet"
    pq.write_table(pa.table({"image": pa.array(content, pa.binary())}), path, row_group_size=5)
    rows = np.flatnonzero([data is not None for data in content])
    return MediaItems("image", ParquetColumn(str(path), str(folder / "digests"), "image"), rows, turned=turned)


def planned(encoder: Encoder, *sides: Items) -> Needs:
    """The needs of one task whose sides are these."""
    data = Dataset(
        {f"side{number}": Side(Numbered(np.arange(len(rows))), rows) for number, rows in enumerate(sides)},
        Groups(np.zeros(len(sides[0]), np.int64), ("all",)),
    )
    task = Task("Items", "Own", "clustering", "labelled", Source("items", "1"), "nmi", "clustering", ())
    demand = task_demand(task, "test", "default", data, encoder)
    return plan([demand], lambda keys: np.zeros(len(keys), bool)).needs


def turned_jpeg(at: int, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    out = io.BytesIO()
    picture(at, (40, 30)).convert("RGB").save(out, "JPEG", exif=exif)
    return out.getvalue()


@pytest.mark.parametrize("turned", [False, True])
def test_a_chunk_of_files_is_prepared_as_its_items_are(tmp_path: Path, turned: bool) -> None:
    encoder = cuda_pixels(means())
    content = [turned_jpeg(at, 1 + at % 8) for at in range(12)]
    content[4] = bytes(drawing(1).parts[0].read()[0])  # type: ignore[union-attr]
    content[7] = b"no picture"
    alone = partial(prepare_named, encoder, name=lambda need: need.key.hex())
    wanted = planned(encoder, column(tmp_path, content, turned))
    assert len(wanted) == 12
    values = prepare_files(encoder, wanted[:9], alone)
    assert values is not None
    for value, need in zip(values, wanted[:9], strict=True):
        expected = alone(need)
        if isinstance(expected, UnreadableMedia):
            assert isinstance(value, UnreadableMedia)
        elif isinstance(expected[0][1], Encoded):
            assert value == expected
            assert value[0][1].orientation == (need.row % 8 + 1 if turned else 1)
        else:
            assert np.array_equal(value[0][1]["pixel_values"], expected[0][1]["pixel_values"])


def test_which_chunks_are_prepared_item_by_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = cuda_pixels(means())
    content = [jpeg(at).data for at in range(6)]
    pictures = column(tmp_path, [bytes(data) for data in content])
    wanted = planned(encoder, pictures)

    def nothing(need: Need) -> Any:
        raise AssertionError

    values = prepare_files(encoder, wanted, nothing)
    assert values == [[("image", jpeg(at))] for at in range(6)]
    assert prepare_files(encoder, list(wanted), nothing) is None
    assert prepare_files(encoder, planned(encoder, items.as_items([stored(bytes(content[0]))])), nothing) is None
    assert planned(encoder, pictures, items.as_items([items.text("abc")])).pictures() is None
    monkeypatch.setattr(preparing, "MOST_TOGETHER", sum(map(len, content)) - 1)
    assert prepare_files(encoder, wanted, nothing) is None


def test_the_engine_prepares_chunks_of_files(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*args: Any, **options: Any) -> Any:
        raise AssertionError("an item was prepared by itself")

    encoder = cuda_pixels(means())
    wanted = planned(encoder, column(tmp_path, [bytes(jpeg(at).data) for at in range(12)]))
    monkeypatch.setattr(preparing, "prepare_named", nothing)
    report, space = run(store, encoder, wanted, workers=2)
    assert report.embedded == 12
    assert space.has(wanted.keys).all()


def test_the_look_at_pictures_reads_few_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = cuda_pixels(means())
    data = bytes(jpeg(0).data)
    content = [data[:2] + b"\xff\xfe\x00\x04%02d" % at + data[2:] for at in range(100)]  # with a comment each
    wanted = planned(encoder, column(tmp_path, content))
    groups: list[int] = []
    load = lazy_media._RowGroups._load

    def counted(self: Any, path: str, name: str, group: int) -> Any:
        groups.append(group)
        return load(self, path, name, group)

    monkeypatch.setattr(lazy_media._RowGroups, "_load", counted)
    with Preparer(2, start=lambda *facts: True) as preparer:
        preparer.begin(encoder, wanted)
        assert preparer.processes is None
    assert groups == [0, 1, 10, 11]  # of twenty


def test_a_cell_without_bytes_is_named(tmp_path: Path, store: Store) -> None:
    encoder = cuda_pixels(means())
    pictures = column(tmp_path, [bytes(jpeg(at).data) for at in range(6)])
    wanted = planned(encoder, pictures)
    holes = [bytes(jpeg(at).data) if at != 3 else None for at in range(6)]
    pq.write_table(pa.table({"image": pa.array(holes, pa.binary())}), tmp_path / "other.parquet")
    (tmp_path / "other.parquet").replace(tmp_path / "pictures.parquet")
    lazy_media.parquet_metadata.cache_clear()
    with pytest.raises(EmbarkError, match="has no bytes in row 3"):
        run(store, encoder, wanted, workers=2)


def test_processes_prepare_what_the_device_does_not_decode() -> None:
    encoder = cuda_pixels(means())
    drawings = needs(encoder, [drawing(1), stored(jpeg(2).data), drawing(3)])
    with Preparer(2, start=lambda *facts: True) as preparer:
        preparer.begin(encoder, needs(encoder, [stored(jpeg(at).data) for at in range(3)]))
        assert preparer.processes is None
        preparer.begin(encoder, drawings)
        assert preparer.processes is not None
        values = [preparer.prepare(encoder, need) for need in drawings]
    assert values[1] == prepare(encoder, drawings[1]) == [("image", jpeg(2))]
    for row in (0, 2):
        [(_, sent)], [(_, here)] = values[row], prepare(encoder, drawings[row])
        assert np.array_equal(sent["pixel_values"], here["pixel_values"])
