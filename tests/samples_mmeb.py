"""Small datasets of the shape that MMEB's media have on the hub, made from a task's own row: a few rows and files."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from embark.readers import _mmeb
from embark.tasks.mmeb import MVBENCH
from embark.types import Dataset, Qrels, Task, Text
from hub import FakeHub, parquet, png, tar, wav
from sizes import Size, few, pooled

Files = dict[str, bytes]
ASKED = 3
V3, V2 = _mmeb.MEDIA


def publish(hub: FakeHub, task: Task) -> None:
    """Put on the hub all that a task reads."""
    if packed(task):
        hub.add(task.source.id, {task.options["archive"]: pack(task)}, V3.revision)
        return
    rows, places, archive, members = tables_and_media(task)
    hub.add(task.source.id, rows, card=card(places))
    hub.add(V3.id, archived(archive, members), V3.revision)


def packed(task: Task) -> bool:
    """Whether a task's data are in an archive and nowhere else."""
    return task.tags["group"] in ("audio", "omniset") or task.options["parser"] == "mcmr"


def pack(task: Task, size: Size = few) -> bytes:
    """The archive of a task whose data are in one and nowhere else."""
    return PACKED[task.options["parser"]](task, size)


Made = tuple[Files, dict[str, tuple[str, str]], str, Files]


def tables_and_media(task: Task, size: Size = few) -> Made:
    """A task's tables, the config and split that the card names for each, the path of an archive, members of it."""
    return (_images if task.tags["group"] == "image" else _films)(task, size)


def archived(path: str, members: Files) -> Files:
    """An archive of images or frames, whole or in two parts."""
    data = tar(members, "w:gz")
    half = len(data) // 2
    return {f"{path}-00": data[:half], f"{path}-01": data[half:]} if "video_qa" in path else {path: data}


def shown(data: Dataset, side: str) -> list[tuple[str, ...]]:
    """Items as their modalities and texts."""
    return [
        tuple(part.text if isinstance(part, Text) else part.kind for part in item.parts)
        for item in data.sides[side].items
    ]


def offers(data: Dataset) -> list[dict[str, int]]:
    """The candidates of each query by id, with their grades."""
    truth = data.truth
    assert isinstance(truth, Qrels)
    found: list[dict[str, int]] = [{} for _ in data.sides["query"].ids]
    for query, document, grade in zip(truth.query, truth.document, truth.grade, strict=True):
        found[query][data.sides["document"].ids[document]] = int(grade)
    return found


def picture(*key: object) -> bytes:
    """A picture of its own for each key."""
    return png(tuple(np.random.default_rng(zlib.crc32(str(key).encode())).integers(0, 256, 3).tolist()), (4, 4))


def lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def card(places: Mapping[str, tuple[str, str]]) -> str:
    """A card that tells which config and split a file holds."""
    entries = [
        f"- config_name: {config}\n  data_files:\n  - split: {split}\n    path: {path}\n"
        for path, (config, split) in places.items()
    ]
    return "---\nconfigs:\n" + "".join(entries) + "---\n"


# ── images ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _images(task: Task, size: Size) -> Made:
    """Rows of ziyjiang/MMEB_Test_Instruct, a config a dataset, and members of the archive of all images."""
    name = str(task.source.config)
    asked = size(pooled(task, "query"), ASKED)
    choices = round(1 / (task.chance or 1))
    offered = min(choices, size(choices, ASKED))
    rows = [_image_row(task, name, at, offered, max(asked, offered)) for at in range(asked)]
    shown = {path for row in rows for path in (row["qry_img_path"], *row["tgt_img_path"]) if path}
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    media = {f"MMEB/{one}": picture(one) for one in sorted(shown)}
    places = {f"{name}/test-*": (name, "test")}
    return {f"{name}/test-00000-of-00001.parquet": parquet(columns)}, places, task.options["media"], media


def _image_row(task: Task, name: str, at: int, offered: int, known: int) -> dict[str, Any]:
    """The first candidate is right; the others are the right ones of other rows."""
    parser = task.options["parser"]
    of_all = offered if parser == "image_cls" else known
    order = [(at + step) % of_all for step in range(offered)]
    said = task.instructions.get
    pictured = parser in ("image_t2i", "image_i2i_vg")
    captioned = not pictured or name in ("WebQA", "EDIS", "OVEN", "RefCOCO-Matching")
    return {
        "qry_inst": f"{'' if parser == 'image_t2i' else '<|image_1|> '}{said('query', '')}".rstrip(":.") + "\n",
        "qry_text": f"question {at}" if task.mixed or parser == "image_t2i" else "",
        "qry_img_path": "" if parser == "image_t2i" else f"{name}/asked-{at}.png",
        "tgt_inst": f"<|image_1|> {said('document', '')}\n",
        "tgt_text": [f"answer {one}" if captioned else "" for one in order],
        "tgt_img_path": [f"{name}/shown-{one}.png" if pictured else "" for one in order],
    }


def _products(task: Task, size: Size) -> bytes:
    """MCMR: products with urls of their pictures, and wishes that several products meet."""
    products = [
        {
            "candidate_id": f"B{at}",
            "title": f"lamp {at}",
            "description": ["a lamp", f"of {at} watts"],
            "features": [],
            "price": 9.5 if at else None,
            "images": [{"url": f"https://example.org/i/gone-{at}.jpg"}, {"url": f"https://example.org/i/{at}.jpg?s=1"}],
        }
        for at in range(size(123_000, 4))
    ]
    queries = [
        {"qid": "q0", "query": "a lamp", "pos_ids": ["B0", "B2"]},
        {"qid": "q1", "query": "a strong lamp", "pos_ids": '["B3"]'},
        {"qid": "q2", "query": "a table", "pos_ids": ["B99"]},
    ]
    pictures = {f"MCMR/images/{at}.jpg": picture("product", at) for at in range(len(products))}
    return tar(
        {"MCMR/query.jsonl": lines(queries), "MCMR/candidates.jsonl": lines(products), **pictures},
        "w:gz",
    )


# ── films ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def frames(folder: str, count: int = 11) -> Files:
    """Frames whose names do not sort as their numbers do."""
    return {f"{folder}/{at}.jpeg": picture(folder, at) for at in range(count)}


def _films(task: Task, size: Size) -> Made:
    """Rows of one of VLM2Vec's datasets, and members of an archive of frames."""
    parser, name = task.options["parser"], _mmeb.dataset_name(task)
    rows, folders, other = FILMS[parser](task, size)
    root = {
        "V-CLS": {"SmthSmthV2": "SSv2"}.get(name, name),
        "V-QA": f"video_qa/{'egoschema' if name == 'EgoSchema' else name}",
        "V-RET": f"data/ziyan/video_retrieval/{name}/frames",
        "V-MR": name,
    }[task.category]
    members = {path: data for folder in folders for path, data in frames(f"{root}/{folder}").items()}
    members |= {f"{root}/{path}": data for path, data in other.items()}
    split = task.source.splits[0]
    if parser == "mvbench":
        held = {f"json/{config}.json": json.dumps(rows).encode() for config in MVBENCH}
        places = {f"json/{config}.json": (config, split) for config in MVBENCH}
        return held, places, task.options["media"], members
    path = f"data/{split}.jsonl"
    return {path: lines(rows)}, {path: (task.source.config or "default", split)}, task.options["media"], members


Film = tuple[list[dict[str, Any]], list[str], Files]  # rows, folders of frames, other files


def _classes(task: Task, size: Size) -> Film:
    asked = range(size(pooled(task, "query"), ASKED))
    names = list(task.labels[: max(2, len(asked) // 2)]) or ["Moving something", "Folding something"]
    rows = [{"video_id": f"v{at}", "pos_text": names[at % len(names)], "neg_text": names[::-1]} for at in asked]
    if task.options["parser"] != "ssv2":
        rows = [{key: row[key] for key in ("video_id", "pos_text")} for row in rows]
    return rows, [f"v{at}" for at in asked], {}


def _captions(task: Task, size: Size) -> Film:
    names = [f"clip.{at}" for at in range(size(pooled(task, "query"), ASKED))]
    made = {
        "msrvtt": lambda at: {"video_id": names[at], "video": f"{names[at]}.mp4", "caption": f"scene {at}"},
        "msvd": lambda at: {"video_id": names[at], "video": f"{names[at]}.avi", "caption": [f"scene {at}", "another"]},
        "didemo": lambda at: {"video": f"/data/didemo/{names[at]}.mp4", "caption": f"scene {at}"},
        "vatex": lambda at: {"videoID": names[at], "enCap": [f"scene {at}", "another"]},
        "youcook2": lambda at: {"id": names[at], "video_path": f"x/{names[at]}.mp4", "sentence": f"scene {at}"},
    }[task.options["parser"]]
    return [made(at) for at in range(len(names))], names, {}


def _asked(task: Task, size: Size) -> Film:
    name, options = task.options["parser"], ["a cup", "a book", "a lamp"]
    lettered = [f"{'ABC'[at]}. {option}." for at, option in enumerate(options)]
    stated = pooled(task, "query")
    asked = range(size(stated and stated // (len(MVBENCH) if name == "mvbench" else 1), 1))
    films = ["film", *(f"film{at}" for at in asked[1:])]
    numbers = [4010069381 + at for at in asked]
    made = {
        "mvbench": lambda at: {
            "video": f"{films[at]}.mp4", "question": "What is it?", "candidates": options, "answer": "a book",
        },
        "videomme": lambda at: {
            "videoID": films[at], "question": "What is it?", "options": lettered, "answer": "B",
        },
        "egoschema": lambda at: {
            "video_idx": films[at], "question": "What is it?", "option": lettered, "answer": "1",
        },
        "activitynetqa": lambda at: {"video_name": films[at], "question": "is it a book", "answer": "no"},
        "nextqa": lambda at: {"video": numbers[at], "question": "what is it", "answer": 1}
        | {f"a{number}": text for number, text in enumerate([*options, "a hat", "a cup of tea"])},
    }[name]  # fmt: skip
    folders = {
        "activitynetqa": [f"v_{film}" for film in films],
        "nextqa": list(map(str, numbers)),
        "mvbench": [f"{config}/{film}.mp4" for config in MVBENCH for film in films],
    }
    return [made(at) for at in asked], folders.get(name, films), {}


def _moments(task: Task, size: Size) -> Film:
    takes = range(size(pooled(task, "query"), 2))
    rows = [{"query": f"scene {at}", "video_path": f"videos/take_{at}.mp4"} for at in takes]
    clips = ["query", "positive_0", *(f"negative_{at}" for at in range(9))]
    return rows, [f"take_{at}/{clip}" for at in takes for clip in clips], {}


def _seeking(task: Task, size: Size) -> Film:
    clips = [f"movie/{at}_{at + 1}.mp4" for at in range(10)]
    listed = [{"output_path": clip} for clip in clips]
    beside = ("", "still.jpg", "movie/part.mp4")
    rows = [
        {
            "query": f"scene {at}", "input_frames": beside[at % 3],
            "positive_frames": listed[:2], "negative_frames": listed[2:],
        }
        for at in range(size(pooled(task, "query"), 3))
    ]  # fmt: skip
    folders = [f"video_frames/{clip.removesuffix('.mp4').replace('/', '_')}" for clip in (*clips, "movie/part.mp4")]
    return rows, folders, {"query_still.jpg": picture("still")}


FILMS = {
    **dict.fromkeys(("video_classification", "ssv2"), _classes),
    **dict.fromkeys(("msrvtt", "msvd", "didemo", "vatex", "youcook2"), _captions),
    **dict.fromkeys(("mvbench", "videomme", "egoschema", "activitynetqa", "nextqa"), _asked),
    "moment_retrieval": _moments,
    "momentseeker": _seeking,
}


# ── sounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def sound(at: int) -> bytes:
    return wav(200.0 + 50 * at)


def _classified(task: Task, size: Size) -> bytes:
    rows = range(size(pooled(task, "query"), ASKED))
    names = ["dog bark", "siren", *(f"sound of kind {at}" for at in range(2, pooled(task, "document") or 2))]
    names = names[: max(2, len(rows) // 4)]
    numbers = [at % len(names) for at in rows]
    labels = [names[number] for number in numbers]
    name = _mmeb.dataset_name(task)
    if name == "NSynth":  # its sounds were stored decoded
        cells = [
            {
                "array": np.sin(np.arange(1600) * (at + 1) / 50).round(4).tolist(),
                "path": f"{at}.wav",
                "sampling_rate": 16_000,
            }
            for at in rows
        ]
        ids = [chr(ord("a") + at) for at in rows]
        table = parquet({"query-id": ids, "audio": cells, "label": labels, "label_id": numbers}, rows=2)
        return tar({"nsynth-1k/eval/query.parquet": table})
    if name == "ESC-50":
        half = -(-len(rows) // 2)
        tables = [
            parquet(
                {
                    "target": [numbers[at] for at in part],
                    "category": [labels[at] for at in part],
                    "audio": [sound(at) for at in part],
                }
            )
            for part in (rows[:half], rows[half:])
        ]
        return tar({f"esc50/data/train-0000{at}-of-00002.parquet": table for at, table in enumerate(tables)})
    if name == "UrbanSound8K":
        told = "slice_file_name,fold,classID,class\n" + "".join(
            f"{at}.wav,{at % 10 + 1},{numbers[at]},{labels[at]}\n" for at in rows
        )
        sounds = {f"urbansound8k/audio/fold{at % 10 + 1}/{at}.wav": sound(at) for at in rows}
        return tar({"urbansound8k/csv_files/test.csv": told.encode(), **sounds})
    if name == "SpeechCommands":  # its paths are those of the machine where it was made, its bytes are missing
        paths = [f"/data/someone/audio-tasks/speechcommand/{labels[at]}/{at}.wav" for at in rows]
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        cells = [{"bytes": None, "path": path} for path in paths]
        table = parquet(
            {"audio": cells, "audio_path": paths, "label": labels, "label_id": numbers}, types={"audio": kind}
        )
        sounds = {f"speechcommand-1k/{labels[at]}/{at}.wav": sound(at) for at in rows}
        return tar({"speechcommand-1k/query_eval.parquet": table, **sounds})
    table = parquet({"audio": [sound(at) for at in rows], "label": numbers}, classes={"label": names})
    return tar({"creamD/data/train-00000-of-00001.parquet": table})


def _clotho(task: Task, size: Size) -> bytes:
    clips = range(size(1045, ASKED))
    head = "file_name," + ",".join(f"caption_{at}" for at in range(1, 6))
    told = [f"{at} a.wav," + ",".join(f'"sound {at}, told {turn}"' for turn in range(5)) for at in clips]
    sounds = {f"clotho/clotho/evaluation/{at} a.wav": sound(at) for at in clips}
    return tar({"clotho/clotho/clotho_captions_evaluation.csv": "\n".join([head, *told]).encode(), **sounds})


def _sounddescs(task: Task, size: Size) -> bytes:
    """Four sounds or more, of which one answers no query."""
    asked, clips = size(pooled(task, "query"), 2), size(4900, 4)
    texts = ["rain", "a train", *(f"noise {at}" for at in range(2, asked))]
    ids = [f"q{at}" for at in range(asked)]
    queries = parquet({"query-id": ids, "text": texts})
    right = ["2", "0", *(str(at + 1) for at in range(2, asked))]
    judged = parquet({"query-id": ids, "corpus-id": right, "score": [1] * asked})
    cells = {
        "corpus-id": ["0", "1", "2", "2", *(str(at - 1) for at in range(4, clips))],
        "audio_path": [chr(ord("a") + at) for at in range(clips)],
        "audio_bytes": [sound(at) for at in range(clips)],
    }
    corpus = parquet(cells)
    return tar(
        {
            f"sounddescs-1k/eval/{name}.parquet": data
            for name, data in (("query", queries), ("qrels", judged), ("corpus", corpus))
        }
    )


def _speechcoco(task: Task, size: Size) -> bytes:
    asked, shown = size(pooled(task, "query"), 2), size(10_000, 3)
    spoken = ["7", "9", *(str(10 + at) for at in range(2, asked))]
    images = [9, 8, 7, *(10 + at for at in range(2, shown - 1))]
    ids = ["0_a", "1_b", *(f"{at}_c" for at in range(2, asked))]
    queries = parquet({"id": ids, "audio": [sound(at) for at in range(asked)], "image_id": spoken})
    corpus = parquet({"corpus-id": list(map(str, images)), "image": [picture("coco", at) for at in images]})
    return tar({"speechcoco-1k/query_test.parquet": queries, "speechcoco-1k/corpus_test_10k.parquet": corpus})


def _ave(task: Task, size: Size) -> bytes:
    """Two events or more; the film of one more is gone."""
    more = [f"c{at}" for at in range(2, size(pooled(task, "query"), 2))]
    told = "Category&VideoID&Quality&StartTime&EndTime\nBus&a1&good&0&10\nCat&b-2&good&2&7\nDog&gone&good&0&3\n"
    told += "".join(f"Cow&{name}&good&0&3\n" for name in more)
    sounds = {"a1_a1_0_10": sound(0), "b-2_b-2_2_7": sound(1)}
    sounds |= {f"{name}_{name}_0_3": sound(2 + at) for at, name in enumerate(more)}
    films = {
        path: data for name in ("a1", "b-2", *more) for path, data in frames(f"AVE/AVE_Dataset/frames/{name}").items()
    }
    held = {"AVE/AVE_Dataset/testSet.txt": told.encode(), **films}
    return tar(held | {f"AVE/AVE_Dataset/audios/{name}.wav": data for name, data in sounds.items()})


def _events(task: Task, size: Size) -> bytes:
    """Two recordings; in the first an event is heard twice, and one has no length."""
    home = "tutsound/TUT-sound-events-2017-development"
    events = {
        1: "audio/street/a.wav\tstreet\t0.5\t1.5\tcar\naudio/street/a.wav\tstreet\t4.0\t5.0\tcar\n",
        2: "audio/street/a.wav\tstreet\t2.0\t2.0\tchildren\n",
        3: "audio/street/b.wav\tstreet\t0.0\t0.9\tbrakes squeaking\n",
        4: "\n",
    }
    held = {f"{home}/evaluation_setup/street_fold{at}_evaluate.txt": text.encode() for at, text in events.items()}
    sounds = {"a": wav(300, 8.0), "b": wav(400, 0.9)}
    return tar(held | {f"{home}/audio/street/{name}.wav": data for name, data in sounds.items()})


# ── OmniSET ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tuples(task: Task, size: Size) -> bytes:
    """Two queries with two hard negatives each, one of them shared; films as frames, or whole for the last.

    Further queries have each other and the first ones as hard negatives.
    """
    first = (18046, 80130, 3067, 42, 7)
    more = range(100, 100 + size(8200 // 4, 2) - 2)
    queries = [
        {"image_id": 18046, "qry_text": "a cat on a mat", "hard_negatives": [3067, 42]},
        {"image_id": 80130, "qry_text": "a dog in the fog", "hard_negatives": [42, 7]},
        *({"image_id": at, "qry_text": f"thing {at}", "hard_negatives": [*first, *more[: at - 100]]} for at in more),
    ]
    images = (*first, *more)
    catalogue = [{"image_id": image, "captions": [f"caption of {image}", "another"]} for image in images]
    held = {"omniset.jsonl": lines(queries), "catalog.jsonl": lines(catalogue)}
    for at, image in enumerate(images):
        name = f"COCO_val2014_{image:012d}"
        held |= {
            f"val2014/{name}.jpg": picture(name),
            f"audios/{name}.wav": sound(at),
            f"videos/{name}.mp4": picture(name, "film"),
        }
        held |= frames(f"frames_omni/{name}", 3) if image != 7 else {}
    return tar({f"omniset/{path}": data for path, data in held.items()}, "w:gz")


PACKED = {
    "mcmr": _products,
    "audio_cls": _classified,
    "clotho_text_audio": _clotho,
    "sounddescs_text_audio": _sounddescs,
    "audio_ret_speechcoco": _speechcoco,
    "ave_retrieval": _ave,
    "tutsound_audio_gnd": _events,
    "tutsound_audio_gnd_hard": _events,
    "omniset": _tuples,
}
