"""The engine over a model that decodes JPEGs itself: what arrives there, and what becomes of damage."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from device_pictures import StandIn, damaged, jpeg, means
from embark.data import items
from embark.data.items import as_keys
from embark.engine.preparing import byte_size, prepare
from embark.engine.preparing_processes import Preparer
from embark.models.encoder import cuda_pixels
from embark.store import Store
from embark.types import Encoded, Item
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
