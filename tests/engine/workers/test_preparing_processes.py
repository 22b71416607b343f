"""Items prepared by worker processes: the values of threads, to the bit, whatever becomes of the processes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import ExifTags, Image, ImageFile
from tokenizers import Tokenizer, models, pre_tokenizers

import embark
import worker_functions
from embark import processes
from embark.engine.batching.batches import BatchSize, by_kind
from embark.engine.local import embed
from embark.engine.workers import preparing_processes
from embark.engine.workers.preparing import prepare
from embark.engine.workers.preparing_processes import Preparer, pays, prepared
from embark.items import media, text
from embark.items.decoding import UnreadableMedia
from embark.items.lazy_items import Numbered, Texts, text_array
from embark.items.lazy_media import LazyBytes, ParquetColumn
from embark.items.upright import UprightMedia
from embark.models.encoder import Capabilities, Encoder, Tower, Towers, image_towers
from embark.models.pixels import BytePreprocessor, Fit, LibraryPreprocessor
from embark.models.tokens import FastTokenizer
from embark.planning import Need, Needs, plan, task_demand
from embark.processes import WorkersDie
from embark.store import Store
from embark.types import (
    Array,
    Content,
    Dataset,
    EmbarkError,
    Groups,
    Item,
    Media,
    Modality,
    ModelCard,
    Side,
    Source,
    Style,
    Task,
)
from tiny import film, item, picture, sound
from worker_functions import FAILS, KILLS, STALLS

CARD = ModelCard("test/pixels", "1", "functions", ("image", "video"), dim=3, stored="float32")


def always(kind: str, items: int, workers: int, slow_start: bool) -> bool:
    return True


@pytest.fixture(scope="module")
def preparer() -> Iterator[Preparer]:
    with Preparer(2, always) as own:
        yield own


def batches_of(items: int) -> BatchSize:
    """A size of batches; those who prepare look at nothing else of it."""
    return cast(BatchSize, SimpleNamespace(now=items))


def means(rows: list[Array]) -> Array:
    return np.stack([row.reshape(-1, 3).mean(0) for row in rows]).astype(np.float32) + 1


def pictured() -> Towers:
    return Towers(CARD, image_towers(means, worker_functions.pixels))


def plain(color: tuple[int, int, int], size: int = 8) -> Item:
    data = io.BytesIO()
    Image.new("RGB", (size, size), color).save(data, "PNG")
    return media("image", data.getvalue())


def needs_of(items: Sequence[Item], style: Style | None = None) -> list[Need]:
    return [Need(row.to_bytes(32, "big"), thing, "document", None, 0, row, style) for row, thing in enumerate(items)]


def ready(encoder: Encoder, needs: Sequence[Need], preparer: Preparer | None) -> list[tuple[Need, Any, int]]:
    """Each need with its prepared value and its bytes."""
    if preparer is not None:
        preparer.begin(encoder, needs)
    with closing(prepared(encoder, needs, 2, batches_of(4), lambda need: f"item {need.row}", preparer)) as out:
        chunks = [zip(chunk.rows.tolist(), chunk.values, chunk.sizes.tolist(), strict=True) for chunk in out]
    return [(needs[row], value, size) for chunk in chunks for row, value, size in chunk]


def same(a: Any, b: Any) -> bool:
    """Whether two prepared values are equal to the last bit."""
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return bool(a == b)


def compare(encoder: Encoder, needs: Sequence[Need], preparer: Preparer) -> None:
    """Each kind of needs has the same values from threads and from processes."""
    for _, group in by_kind(needs):
        preparer.begin(encoder, group)
        assert preparer.takes(encoder, group[0])
        assert same(preparer.prepare(encoder, group[0]), prepare(encoder, group[0]))
        ours = ready(encoder, group, preparer)
        theirs = ready(encoder, group, None)
        assert [(need.row, size) for need, _, size in ours] == [(need.row, size) for need, _, size in theirs]
        assert all(same(a, b) for (_, a, _), (_, b, _) in zip(ours, theirs, strict=True))
    assert preparer.processes is not None
    assert preparer.processes.deaths == []


PICTURES = [item(picture(row, (20 + row, 30), "RGBA" if row % 3 == 0 else "RGB")) for row in range(30)]


@pytest.mark.parametrize("name", ["embark/pocket", "embark/handmade", "embark/random"])
def test_values_of_our_models_are_those_of_threads(name: str, preparer: Preparer) -> None:
    films = [item(film(row)) for row in range(3)]
    sounds = [item(sound(row)) for row in range(3)]
    encoder = embark.get_model(name)
    compare(encoder, needs_of([*PICTURES, *films, *sounds]), preparer)


def test_values_of_plain_processors_and_styles_are_those_of_threads(preparer: Preparer) -> None:
    from embark.models.pixels import styled_preparations

    card = replace(CARD, styles={"unibench": {"pixels": "openai-16"}})
    preprocessor = BytePreprocessor(Fit(16, (16, 16), Image.Resampling.BICUBIC), np.zeros((3, 256), np.float32))
    encoder = Towers(card, image_towers(means, preprocessor.prepare, styled_preparations(card)))
    compare(encoder, needs_of(PICTURES), preparer)
    compare(encoder, needs_of(PICTURES, Style("unibench")), preparer)


@pytest.mark.slow  # processes import transformers
def test_values_of_transformers_processors_are_those_of_threads() -> None:
    transformers = pytest.importorskip("transformers")
    processor = transformers.ConvNextImageProcessorPil(size={"shortest_edge": 16})
    encoder = Towers(CARD, image_towers(means, LibraryPreprocessor(processor).prepare))
    with Preparer(1, always) as own:
        compare(encoder, needs_of(PICTURES[:6]), own)


def test_bytes_of_files_and_parquet_columns_are_read(preparer: Preparer, tmp_path: Path) -> None:
    files = []
    turned = Image.Exif()
    turned[ExifTags.Base.Orientation] = 6
    for row in range(10):
        picture(row).save(tmp_path / f"{row}.png", exif=turned)
        files.append(tmp_path / f"{row}.png")
    table = pa.table({"image": [{"bytes": path.read_bytes(), "path": None} for path in files]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=4)
    column = ParquetColumn(str(tmp_path / "rows.parquet"), str(tmp_path), "image")
    rows = [Item((Media("image", (LazyBytes(column, row),)),)) for row in range(10)]
    encoder = pictured()
    compare(encoder, needs_of([media("image", path) for path in files]), preparer)
    compare(encoder, needs_of(rows), preparer)
    compare(
        encoder, needs_of([Item((UprightMedia("image", row.parts[0].chunks, row.parts[0]),)) for row in rows]), preparer
    )  # type: ignore
    assert same(
        [value for _, value, _ in ready(encoder, needs_of(rows), preparer)],
        [value for _, value, _ in ready(encoder, needs_of([media("image", path) for path in files]), None)],
    )


def test_vectors_and_reports_are_those_of_threads(store: Store) -> None:
    broken = [media("image", b"no picture"), media("image", plain((9, 9, 9)).parts[0].read()[0][:40])]  # type: ignore[union-attr]
    needs = needs_of([*PICTURES, *broken])
    reports, vectors = [], []
    keys = np.frombuffer(b"".join(need.key for need in needs[: len(PICTURES)]), "V32")
    with Preparer(2, always) as own:
        for number, preparer in enumerate((own, Preparer(2, lambda *_: False))):
            space = store.space(f"{number}")
            with space.writer() as writer:
                reports.append(embed(pictured(), needs, writer, preparer=preparer))
            space.refresh()
            vectors.append(space.read(keys)[np.arange(len(keys))])
        assert own.processes is not None
    np.testing.assert_array_equal(*vectors)
    assert reports[0].embedded == reports[1].embedded == len(PICTURES)
    reasons = [[reason.partition(" <_io")[0] for reason in report.unreadable.values()] for report in reports]
    assert reasons[0] == reasons[1]
    assert len(reasons[0]) == 2


@pytest.mark.slow
def test_items_that_kill_or_stall_are_unreadable_and_the_others_go_on(store: Store) -> None:
    items = [plain((100, row, 0)) for row in range(30)]
    items[0] = plain(KILLS)  # one of the self-check
    items[20] = plain(STALLS)
    space = store.space("5")
    with Preparer(2, always, seconds=0.7) as own, space.writer() as writer:
        report = embed(pictured(), needs_of(items), writer, self_check=True, preparer=own)
    assert report.embedded == 28
    assert {int.from_bytes(key, "big"): reason for key, reason in report.unreadable.items()} == {
        0: "it does not decode: it killed its worker twice (SIGSEGV)",
        20: "it does not decode: it took longer than 0.7 s",
    }


def test_an_error_names_the_item_as_it_does_in_threads(preparer: Preparer, tmp_path: Path) -> None:
    encoder = pictured()
    with pytest.raises(ValueError, match="an odd picture") as error:
        ready(encoder, needs_of([*PICTURES, plain(FAILS)]), preparer)
    assert error.value.__notes__[-1] == "test/pixels was preparing item 30."
    missing = [*PICTURES[:3], media("image", tmp_path / "none.png")]
    with pytest.raises(FileNotFoundError) as missing_file:
        ready(encoder, needs_of(missing), preparer)
    assert missing_file.value.__notes__[-1] == "test/pixels was preparing item 3."
    styled = needs_of([plain((0, 0, 0))], Style("odd"))
    object.__setattr__(encoder.card, "styles", {"odd": {"pixels": "openai-9"}})
    with pytest.raises(EmbarkError, match="test/pixels cannot embed item 0: test/pixels cannot prepare pictures"):
        ready(encoder, styled, preparer)
    object.__setattr__(encoder.card, "styles", {})


def test_what_cannot_go_to_a_process_stays_here() -> None:
    here = Towers(CARD, {"image": Tower(means, lambda image: np.asarray(image))})

    assert here.capabilities.preparation is None
    with Preparer(2, always) as own:
        assert not own.takes(here, needs_of(PICTURES))
        assert not own.takes(embark.get_model("embark/pocket"), needs_of([text("a short text")]))
        assert not own.takes(pictured(), needs_of([item("a text", picture())]))
        assert not own.takes(embark.encoder(text=lambda texts: [[1.0]] * len(texts), name="a", revision="1"),
                             needs_of([text("x")]))  # fmt: skip
        assert own.processes is None


class Local:
    """A preparation that no other process can build."""

    threads: ClassVar[set[threading.Thread]] = set()

    def __call__(self, image: Any) -> Any:
        self.threads.add(threading.current_thread())
        return np.asarray(image)

    def __reduce__(self) -> Any:
        return worker_functions.broken, ()


def test_a_preparation_that_no_process_can_build_is_done_here() -> None:
    encoder = Towers(CARD, image_towers(means, Local()))
    needs = needs_of(PICTURES)
    with Preparer(2, always) as own:
        assert len(ready(encoder, needs, own)) == len(needs)
        assert own.processes is None
        own.begin(encoder, needs)
        assert own.processes is None  # from now on


def test_processes_live_from_call_to_call_and_change_with_the_encoder() -> None:
    encoder = pictured()
    with Preparer(1, lambda kind, items, workers, slow: items >= 40) as own:
        assert len(ready(encoder, needs_of(PICTURES), own)) == 30
        assert own.processes is None  # too few so far
        ready(encoder, needs_of(PICTURES), own)
        assert own.processes is not None
        pids = own.processes.pids
        ready(encoder, needs_of(PICTURES[:2]), own)
        assert own.processes.pids == pids
        own.begin(embark.get_model("embark/handmade"), needs_of(PICTURES))
        assert own.processes is None
    assert own.processes is None


@pytest.mark.parametrize("limit", [1, 5_000, 50_000])
def test_a_bounded_number_is_prepared_ahead(preparer: Preparer, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(preparing_processes, "MOST_BYTES", limit)
    needs = needs_of([plain((100, row, 0), 16) for row in range(120)])
    encoder = pictured()
    preparer.begin(encoder, needs)
    assert preparer.processes is not None
    submitted: list[int] = []
    consumed = 0
    submit = preparer.processes.submit

    def counting(items: Sequence[Any]) -> Any:
        submitted.append(len(items))
        return submit(items)

    preparer.processes.submit = counting  # type: ignore[method-assign]
    chunk = preparing_processes.PICTURES * 16 * 16 * 3
    try:
        for ready_chunk in preparer.prepared(encoder, needs, batches_of(8), lambda need: None):
            consumed += len(ready_chunk.values)
            if consumed > 40:  # sizes are known by then
                assert (sum(submitted) - consumed) * 16 * 16 * 3 <= max(limit, chunk) + chunk
    finally:
        del preparer.processes.submit  # type: ignore[attr-defined]
    assert consumed == 120


def test_unreadable_items_keep_their_reason(preparer: Preparer) -> None:
    (_, value, size), *_ = ready(pictured(), needs_of([media("image", b"no picture")]), preparer)
    assert isinstance(value, UnreadableMedia)
    assert "does not decode" in str(value)
    assert size == 0


def test_processes_are_started_for_many_items_only() -> None:
    assert pays("image", 2000, 2, False)
    assert pays("video", 100, 16, False)
    assert not pays("image", 1999, 16, False)
    assert not pays("image", 1_000_000, 1, False)
    assert not pays("image", 2000, 16, True)


def test_a_process_imports_neither_torch_nor_parquet(preparer: Preparer) -> None:
    ready(pictured(), needs_of(PICTURES), preparer)
    imports = "import sys, embark.engine.workers.item_worker, embark.models.pixels"
    code = f"{imports}\nprint(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert not {"torch", "transformers", "pyarrow", "pandas"} & set(ran.stdout.split())


@pytest.mark.slow
def test_many_deadly_items_in_a_row_do_not_kill_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "HOPELESS", 6)
    with Preparer(2, always) as own:
        with pytest.raises(WorkersDie, match=r"^6 worker processes died .* SIGSEGV\.$"):
            ready(pictured(), needs_of([plain(KILLS)] * 24), own)
        assert own.processes is None
        assert len(ready(pictured(), needs_of(PICTURES), own)) == len(PICTURES)  # others may work


def test_threads_do_what_no_process_can() -> None:
    preparation = Local()
    encoder = Towers(CARD, image_towers(means, preparation))
    preparation.threads.clear()
    with Preparer(2, always) as own:
        values = ready(encoder, needs_of([plain((row, 0, 0)) for row in range(100)]), own)
    assert [int(value[0][1][0, 0, 0]) for _, value, _ in values] == list(range(100))
    assert threading.main_thread() not in preparation.threads  # nobody would end it there if it stalled
    assert len(preparation.threads) > 1


@dataclass
class Odd:
    """A preparation of another's encoder: it takes texts, too, and perhaps no process."""

    pickles: bool = True
    modalities: frozenset[Modality] = frozenset({"text", "image"})

    def __call__(self, contents: Sequence[Content], mode: str) -> Any:
        return [content.kind for content in contents]

    def __reduce__(self) -> Any:
        if not self.pickles:
            raise RuntimeError("not in this house")
        return Odd, ()


class Others(Encoder):
    """An encoder with a preparation of its own."""

    def __init__(self, preparation: Odd) -> None:
        self.card = replace(CARD, modalities=("text", "image"))
        self.capabilities = Capabilities(preparation=preparation)
        self.preparation = preparation

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return self.preparation(contents, mode)


@pytest.mark.parametrize("pickles", [True, False])
def test_preparations_of_others(pickles: bool) -> None:
    encoder = Others(Odd(pickles))
    items = [text("alone"), item("with a picture", picture())]
    with Preparer(1, always) as own:
        for need in needs_of(items):
            (_, value, _), *_ = ready(encoder, [need], own)
            assert value == list(need.item.modalities)


@pytest.mark.slow
def test_what_pillow_may_decode_here_it_may_decode_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = plain((9, 9, 9), 64).parts[0].read()[0]  # type: ignore[union-attr]
    noise = io.BytesIO()
    picture(1, (64, 64)).convert("RGB").save(noise, "JPEG")
    needs = needs_of([media("image", whole), media("image", noise.getvalue()[:-200])])

    def readable(preparer: Preparer | None) -> list[bool]:
        return [not isinstance(value, UnreadableMedia) for _, value, _ in ready(pictured(), needs, preparer)]

    with Preparer(1, always) as own:
        assert readable(own) == readable(None) == [True, False]
        monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
        assert readable(own) == readable(None) == [True, True]
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
        assert readable(own) == readable(None) == [False, False]
        assert own.processes is not None


def test_formats_that_pillow_was_taught_here_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def opens(file: Any, filename: Any) -> Image.Image:
        return cast(Any, Image.new("RGB", (4, 4)))

    monkeypatch.setitem(Image.OPEN, "OWN", (opens, lambda prefix: prefix.startswith(b"OWN!")))
    monkeypatch.setattr(Image, "ID", [*Image.ID, "OWN"])
    with Preparer(1, always) as own:
        (_, value, _), *_ = ready(pictured(), needs_of([media("image", b"OWN!" * 8)]), own)
    assert not isinstance(value, UnreadableMedia)


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Reading(Towers):
    """Embeds texts by their tokens; two batches at a time, as on a GPU."""

    capabilities = Capabilities(lanes=2)


def reading(**changes: Any) -> Reading:
    words = {f"w{number}": number for number in range(50)} | {"?": 50}
    inner = Tokenizer(models.WordLevel(words, unk_token="?"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = FastTokenizer(inner.to_str())

    def vectors(rows: Sequence[list[int]]) -> Array:
        return np.array([[len(row), sum(row), 1] for row in rows], np.float32)

    tower = Tower(vectors, lambda text: tokenizer([text])[0], prepare_many=tokenizer, sendable=lambda: tokenizer)
    card = ModelCard("test/words", "1", "functions", ("text",), dim=3, stored="float32")
    return Reading(card, {"text": replace(tower, **changes)})


def planned_texts(encoder: Encoder, count: int) -> Needs:
    texts = Texts(text_array(" ".join(f"w{row * word % 50}" for word in range(1, 2 + row % 9)) for row in range(count)))
    truth = Groups(np.zeros(count, np.int64), ("all",))
    task = Task("Words", "Own", "clustering", "labelled", Source("words", "1"), "nmi", "clustering", ())
    data = Dataset({"item": Side(Numbered(np.arange(count)), texts)}, truth)
    return plan([task_demand(task, "test", "default", data, encoder)], lambda keys: np.zeros(len(keys), bool)).needs


def embedded_texts(encoder: Encoder, needs: Needs, space: Any, preparer: Preparer) -> Array:
    with space.writer() as writer:
        assert embed(encoder, needs, writer, workers=4, preparer=preparer).embedded == len(needs)
    space.refresh()
    return np.asarray(space.read(needs.keys)[np.arange(len(needs))])


def test_texts_have_the_vectors_of_threads(store: Store) -> None:
    encoder = reading()
    needs = planned_texts(encoder, 5000)
    with Preparer(4, always) as by_processes, Preparer(4, lambda *_: False) as by_threads:
        ours = embedded_texts(encoder, needs, store.space("a"), by_processes)
        assert by_processes.tokenizes(encoder)
        assert by_processes.processes is None  # those for media
        theirs = embedded_texts(encoder, needs, store.space("b"), by_threads)
        assert not by_threads.tokenizes(encoder)
    np.testing.assert_array_equal(ours, theirs)
    assert len(np.unique(ours, axis=0)) > 100


@pytest.mark.slow
def test_processes_that_tokenize_may_die(store: Store) -> None:
    encoder = reading()
    needs = planned_texts(encoder, 5000)
    with Preparer(4, always) as preparer:
        first = embedded_texts(encoder, needs, store.space("a"), preparer)
        tokenizing = preparer._tokenizing
        assert tokenizing is not None
        for process in tokenizing.pids:
            os.kill(process, signal.SIGKILL)
        second = embedded_texts(encoder, needs, store.space("b"), preparer)
        tokenizing.close()  # as if none could be started again
        third = embedded_texts(encoder, needs, store.space("c"), preparer)
        assert not preparer.tokenizes(encoder)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)


@pytest.mark.parametrize(("lanes", "workers", "changes"), [(1, 4, {}), (2, 2, {}), (2, 4, {"sendable": None})])
def test_texts_stay_where_processes_do_not_pay(lanes: int, workers: int, changes: dict[str, Any]) -> None:
    encoder = reading(**changes)
    encoder.capabilities = replace(encoder.capabilities, lanes=lanes)
    with Preparer(workers, always) as preparer:
        preparer.begin(encoder, planned_texts(encoder, 100))
        assert not preparer.tokenizes(encoder)
        assert preparer.text_parts(["w1"]) is None
    assert not pays("text", preparing_processes.ENOUGH_ITEMS["text"] - 1, 16, False)
    assert pays("text", preparing_processes.ENOUGH_ITEMS["text"], 16, False)
