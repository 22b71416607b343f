"""Builds a data set like OmniSET from pictures and captions: each becomes a tuple of text, image, film and speech, with
hard negatives, in a folder that the catalogue can run.

Films and sounds are supplied, or made: a camera moves over the picture, espeak-ng speaks the caption. The same pictures
give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from random import Random
from shutil import rmtree
from typing import Any

import numpy as np

from embark.atomic import atomically
from embark.catalogue import check_name, counted, listed
from embark.engine.progress import progress
from embark.evaluators.similarity import whole
from embark.hub import Hub
from embark.items import speech, tuples
from embark.items.encode import ENDINGS
from embark.items.films import camera_film, motion_of
from embark.items.limits import open_picture
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.own.folder import folder_task
from embark.own.tasks_file import to_toml
from embark.paths import component
from embark.readers import content_revision
from embark.readers._table import as_list, of_subset, open_table
from embark.readers.layout import media_kind
from embark.readers.tuples import COLUMNS
from embark.run.stored_vectors import Stored
from embark.run.workbench import Workbench
from embark.settings import Settings, load_settings
from embark.tables import Noted, Row, Table
from embark.tasks import choose_tasks
from embark.tasks.omni import DIRECTIONS, INSTRUCTIONS, KINDS
from embark.types import Array, Dataset, EmbarkError, Media, Modality, Qrels, Source, Task, Text

TABLE, CARD, TASKS = "tuples.jsonl", "README.md", "tasks.toml"
CATEGORIES = ("categories", "category", "labels", "label", "class")  # columns that usually hold them
FORMATS = {"JPEG": "jpg", "MPO": "jpg", "TIFF": "tif"}  # Pillow's names of formats, where they are no usual ending
NEAR = 0.95  # cosine of near-duplicates


def build_omni(
    source: str | Path | Task,
    out: str | Path,
    *,
    name: str | None = None,
    films: str | Path | None = None,
    sounds: str | Path | None = None,
    voice: str = "en",
    categories: str | Mapping[str, Collection[str]] | None = None,
    neighbors: str | Encoder | None = None,
    near: float = NEAR,
    negatives: int = 15,
    queries: int | None = None,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> OmniSet:
    """Build a data set of tuples in the folder `out`, which must be new or empty.

    `source` is a folder of pictures with a table of captions, or a retrieval task of texts and pictures. `films` and
    `sounds` are folders of files that are named like the pictures; without them a camera moves over each picture, and
    espeak-ng speaks each caption in a `voice`.

    Hard negatives are the `negatives` others that share most `categories` (a column of the folder's table, or for each
    picture its categories), or the nearest pictures by the vectors of the model `neighbors`. Near-duplicates are no
    negatives: pictures that look alike, or whose cosine is above `near`, and equal captions. Of all tuples, `queries`
    are drawn to be queries (default: all); what is neither a query nor a negative is left out.
    """
    settings = settings or load_settings()
    root = Path(out).expanduser()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise EmbarkError(f"{root} exists and is not empty: name a new folder.")
    if categories is not None and neighbors is not None:
        raise EmbarkError("Hard negatives are chosen by categories or by neighbors, not by both.")
    if negatives < 1 or (queries is not None and queries < 1):
        raise EmbarkError("There must be at least 1 negative a query, and 1 query.")
    row = _source_row(source)
    if neighbors is None:
        pairs = _pairs(row, Workbench(settings, show_progress=show_progress).read(row, *row.parts[0]))
        query_ids = _drawn(pairs, queries)
        chosen = _by_categories(row, pairs, query_ids, categories, negatives, Hub(settings))
        how = "others that share most categories, without pictures that look alike and equal captions"
    else:
        stored = Stored(neighbors, settings, embedding=True, loading=loading, show_progress=show_progress)
        part = stored.task(row).parts[0]
        pairs = _pairs(row, Dataset(part.sides, part.truth))
        query_ids = _drawn(pairs, queries)
        vectors = whole(part.vectors[_image_side(row, part.sides)], "cosine")
        chosen = _by_neighbors(pairs, query_ids, vectors, near, negatives)
        how = f"nearest pictures by {stored.encoder.card.name}, without cosines above {near:g} and equal captions"
    if few := [id for id in query_ids if not chosen[id]]:
        raise EmbarkError(f"No hard negative is left for {listed(few, 3)}: all others are near-duplicates.")
    members = {member for id in query_ids for member in (id, *chosen[id])}
    used = {id: pair for id, pair in pairs.items() if id in members}
    film = _camera if films is None else _supplied(Path(films), "video", used)
    sound = _spoken(voice) if sounds is None else _supplied(Path(sounds), "audio", used)
    title = component(name or row.name)
    rows = []
    origins = {
        "films": "a camera that moves over the picture" if films is None else "supplied",
        "sounds": f"espeak-ng, voice {voice}, that speaks the caption" if sounds is None else "supplied",
        "hard negatives": how,
    }
    with _emptied_on_failure(root):
        with progress(f"building {title}", len(used), show_progress) as advance:
            for id, pair in used.items():
                files = _write_media(root, id, pair, film, sound)
                rows.append({"id": id, "text": pair.caption, **files, "negatives": chosen.get(id, ())})
                advance(1)
        _write(root / TABLE, "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in rows))
        _write(root / CARD, _card(title, row, rows, origins))
        task = _omni_row(title, root, Hub(settings))
        _write(root / TASKS, to_toml(task, root))
    left_out = len(pairs) - len(used)
    notes = (f"left out, neither queries nor hard negatives: {counted(left_out, 'picture')}",) if left_out else ()
    return OmniSet(root, task, len(rows), len(query_ids), origins, notes=notes)


@dataclass(frozen=True)
class OmniSet(Noted):
    """A data set that was built: its folder, the task that runs it, and what it was made of."""

    folder: Path
    task: Task
    tuples: int
    queries: int
    origins: Mapping[str, str]  # part → how it came about

    def table(self) -> Table:
        """What it holds."""
        facts = {"tuples": f"{self.tuples:,}", "queries": f"{self.queries:,}, in 12 directions", **self.origins}
        return Table(("part", "what it is"), tuple(Row(fact) for fact in facts.items()))


@dataclass(frozen=True)
class Pair:
    """A picture and its caption."""

    name: str  # of the picture's file, without its ending
    row: int  # of the picture on its side of the source
    media: Media
    caption: str

    @property
    def picture(self) -> bytes:
        """The picture's file, which is read when it is needed."""
        return self.media.read()[0]


Maker = Callable[[Pair], tuple[str, bytes]]  # of a film or sound: its ending, and its bytes


# ── pictures and captions ────────────────────────────────────────────────────────────────────────────────────────────


def _source_row(source: str | Path | Task) -> Task:
    """A retrieval task between texts and pictures."""
    if isinstance(source, Task):
        row = source
    elif Path(source).expanduser().is_dir():
        row = folder_task(source, kinds="retrieval")[0]
    elif isinstance(source, Path):
        raise EmbarkError(f"There is no folder {source}.")
    else:
        rows = choose_tasks(source)
        row = rows[0]
        if len(rows) > 1:
            raise EmbarkError(f"'{source}' names {len(rows)} tasks: a data set is built from one.")
    if row.evaluator != "retrieval" or {*row.modalities} != {"text", "image"} or row.mixed:
        raise EmbarkError(f"{row.name} does not pair texts with pictures: name a retrieval task of both, or a folder.")
    return row


def _pairs(row: Task, data: Dataset) -> dict[str, Pair]:
    """Every picture that has a caption, with the first one, by the id of its tuple."""
    truth = data.truth
    assert isinstance(truth, Qrels)
    side = _image_side(row, data.sides)
    other = "document" if side == "query" else "query"
    relevant = truth.grade > 0
    pictures, first = np.unique(getattr(truth, side)[relevant], return_index=True)
    captions = getattr(truth, other)[relevant][first]
    out: dict[str, Pair] = {}
    for picture, caption in zip(pictures.tolist(), captions.tolist(), strict=True):
        name = _stem(data.sides[side].ids[picture])
        id = component(name) if component(name) not in out else f"{component(name)}-{picture}"
        [media] = data.sides[side].items[picture].parts
        [text] = data.sides[other].items[caption].parts
        assert isinstance(media, Media)
        assert isinstance(text, Text)
        out[id] = Pair(name, picture, media, text.text)
    if len(out) < 2:
        raise EmbarkError(f"{row.name} has {counted(len(out), 'picture')} with a caption: hard negatives need others.")
    return out


def _drawn(pairs: Mapping[str, Pair], queries: int | None) -> list[str]:
    """The ids of so many tuples, always the same ones; all without a number."""
    ids = list(pairs)
    chosen = {*ids} if queries is None or queries >= len(ids) else {*Random(0).sample(sorted(ids), queries)}
    return [id for id in ids if id in chosen]


def _image_side(row: Task, sides: Mapping[str, Any]) -> str:
    """The side that holds the pictures."""
    for name, side in sides.items():
        if side.items[0].modalities == ("image",):
            return name
    raise EmbarkError(f"{row.name} has no side of pictures.")


def _stem(id: str) -> str:
    """The name of a picture's file without folder and ending; other ids as they are."""
    return PurePosixPath(id).stem if media_kind(id) else id


# ── hard negatives ───────────────────────────────────────────────────────────────────────────────────────────────────


def _by_categories(
    row: Task,
    pairs: Mapping[str, Pair],
    queries: Sequence[str],
    categories: str | Mapping[str, Collection[str]] | None,
    count: int,
    hub: Hub,
) -> dict[str, tuple[str, ...]]:
    """The negatives that share most categories."""
    by_name = categories if isinstance(categories, Mapping) else _column(row, categories, hub)
    if missing := [pair.name for pair in pairs.values() if pair.name not in by_name]:
        raise EmbarkError(f"{counted(len(missing), 'picture')} without categories: {listed(missing, 3)}.")
    hashes = {id: tuples.picture_hash(pair.picture) for id, pair in pairs.items()}

    def alike(id: str, other: str) -> bool:
        return tuples.look_alike(hashes[id], hashes[other]) or _same_caption(pairs[id], pairs[other])

    of_ids = {id: by_name[pair.name] for id, pair in pairs.items()}
    return tuples.negatives_by_category(queries, of_ids, count, alike)


def _column(row: Task, column: str | None, hub: Hub) -> dict[str, frozenset[str]]:
    """The categories of each picture, by its name, in a column of the table: lists, or texts with commas between."""
    if row.reader != "paired" or "image" not in row.columns:
        raise EmbarkError(
            f"{row.name} has no table with categories: choose negatives by the neighbors of a model (--neighbors)."
        )
    split, subset = row.parts[0]
    table = open_table(of_subset(row, subset), split, subset, hub)
    names = table.rows.file_names(row.columns["image"])
    if column is None:
        column = next((name for name in CATEGORIES if name in table.rows.column_names), None)
        if column is None:
            raise EmbarkError(
                "Hard negatives need categories (--categories COLUMN) or a model that finds neighbors "
                f"(--neighbors MODEL); {row.source.id} has no column like {', '.join(CATEGORIES[:3])}."
            )
    check_name("column", column, table.rows.column_names)
    if names is None:
        raise EmbarkError(f"The pictures of {row.name} have no names that categories could belong to.")
    return {
        _stem(str(name)): frozenset(part.strip() for value in as_list(cell) for part in str(value).split(","))
        for name, cell in zip(names, table.rows.values(column), strict=True)
    }


def _by_neighbors(
    pairs: Mapping[str, Pair], queries: Sequence[str], vectors: Array, near: float, count: int
) -> dict[str, tuple[str, ...]]:
    """The nearest pictures by their vectors, which are those of the side of pictures."""
    ids = list(pairs)
    vectors = vectors[[pair.row for pair in pairs.values()]].astype(np.float64)

    def nearest(id: str) -> tuple[str, ...]:
        cosines = dict(zip(ids, (vectors @ vectors[ids.index(id)]).tolist(), strict=True))

        def alike(id: str, other: str) -> bool:
            return cosines[other] > near or _same_caption(pairs[id], pairs[other])

        return tuples.first_negatives(id, sorted(ids, key=lambda other: -cosines[other]), count, alike)

    return {id: nearest(id) for id in queries}


def _same_caption(pair: Pair, other: Pair) -> bool:
    return pair.caption.casefold().split() == other.caption.casefold().split()


# ── media ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _camera(pair: Pair) -> tuple[str, bytes]:
    """The picture, filmed."""
    return ".mp4", camera_film(pair.picture, motion_of(pair.name))


def _spoken(voice: str) -> Maker:
    """The caption, spoken."""
    if not speech.can_speak():
        raise EmbarkError(
            "Speech needs espeak-ng, which is not installed here: install it, or supply sounds that are named like the "
            "pictures (--sounds DIR)."
        )
    return lambda pair: (".wav", speech.speech(pair.caption, voice))


def _supplied(folder: Path, kind: Modality, pairs: Mapping[str, Pair]) -> Maker:
    """The file of a folder that is named like the picture; an error where one is missing."""
    root = folder.expanduser()
    files = {path.stem: path for path in sorted(root.rglob("*")) if ENDINGS.get(path.suffix.lower()[1:]) == kind}
    if missing := [pair.name for pair in pairs.values() if pair.name not in files]:
        raise EmbarkError(f"{root} has no {kind} for {counted(len(missing), 'picture')}: {listed(missing, 3)}.")
    return lambda pair: (files[pair.name].suffix.lower(), files[pair.name].read_bytes())


def _ending(picture: bytes) -> str:
    format = open_picture(picture).format or "png"
    return FORMATS.get(format, format.lower())


# ── the folder ───────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _emptied_on_failure(root: Path) -> Iterator[None]:
    """A block that fills a new or empty folder: where it fails or is interrupted, nothing of it stays."""
    existed = root.exists()
    try:
        yield
    except BaseException:
        for path in root.glob("*"):
            rmtree(path) if path.is_dir() else path.unlink()
        if root.exists() and not existed:
            root.rmdir()
        raise


def _write_media(root: Path, id: str, pair: Pair, film: Maker, sound: Maker) -> dict[str, str]:
    """Write the picture, film and sound of a tuple; returns their names by modality."""
    picture = pair.picture
    media = {"image": (f".{_ending(picture)}", picture), "video": film(pair), "audio": sound(pair)}
    names = {kind: f"{kind}s/{id}{ending}" for kind, (ending, _) in media.items()}
    for kind, (_, data) in media.items():
        _write(root / names[kind], data)
    return names


def _write(path: Path, content: str | bytes) -> None:
    with atomically(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _omni_row(name: str, root: Path, hub: Hub) -> Task:
    """The row of the data set: all directions as subsets."""
    row = Task(
        name=name, family="Own", evaluator="choice", reader="tuples", metric="hit_rate_at_1", category="Omni-modal",
        source=Source(str(root.resolve()), "", files={"test": (TABLE,)}), modalities=KINDS,
        columns={role: role for role in COLUMNS}, instructions=INSTRUCTIONS,
        subsets=dict.fromkeys(DIRECTIONS, ("eng",)), upright=True,
    )  # fmt: skip
    return replace(row, source=replace(row.source, revision=content_revision(row, hub)))


def _card(name: str, row: Task, rows: Sequence[Mapping[str, Any]], origins: Mapping[str, str]) -> str:
    """The data set's card: a head that the hub reads, and what it was made of."""
    queries = [entry for entry in rows if entry["negatives"]]
    sizes = {len(KINDS) * (1 + len(entry["negatives"])) for entry in queries}
    candidates = f"{min(sizes)}" if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"
    lines = [f"| {part} | {what} |" for part, what in origins.items()]
    return "\n".join([
        "---", "configs:", "- config_name: default", "  data_files:", "  - split: test", f"    path: {TABLE}", "---",
        f"# {name}", "",
        f"{counted(len(rows), 'tuple')} of one meaning as text, image, video and audio, {len(queries):,} of them "
        "queries in 12 directions, as in OmniSET. A query ranks one list of all four modalities: its own tuple, the "
        f"query itself among it, and its hard negatives; {candidates} candidates.", "",
        "| part | what it is |", "| --- | --- |",
        f"| pictures and captions | {row.name}, revision {row.source.revision} |", *lines, "",
        "Films that are made of the picture and speech that is made of the caption are near to them by construction: "
        "image–video and text–audio are the easy directions. The licence is that of the pictures and captions.", "",
        "```", f"embark run -m MODEL --tasks-file {TASKS}",
        f"embark diagnose omni -m MODEL --tasks-file {TASKS}", "```", "",
    ])  # fmt: skip
