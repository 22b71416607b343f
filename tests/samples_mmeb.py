"""Small datasets of the shape that MMEB's media have on the hub, made from a task's own row: a few rows and files."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from embark.data.readers import _mmeb
from embark.tasks.mmeb import MVBENCH
from embark.types import Dataset, Qrels, Task, Text
from hub import FakeHub, parquet, png, tar, wav

Files = dict[str, bytes]
ASKED = 3
V3, V2 = _mmeb.MEDIA


def publish(hub: FakeHub, task: Task) -> None:
    """Put on the hub all that a task reads."""
    group = task.tags["group"]
    if group in ("audio", "omniset") or task.options["parser"] == "mcmr":
        hub.add(task.source.id, {task.options["archive"]: PACKED[task.options["parser"]](task)}, V3.revision)
        return
    rows, card, media = (_images if group == "image" else _films)(task)
    hub.add(task.source.id, rows, card=card)
    hub.add(V3.id, media, V3.revision)


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


def _images(task: Task) -> tuple[Files, str, Files]:
    """Rows of ziyjiang/MMEB_Test_Instruct, a config a dataset, and the archive of all images."""
    name = str(task.source.config)
    rows = [_image_row(task, name, at) for at in range(ASKED)]
    shown = {path for row in rows for path in (row["qry_img_path"], *row["tgt_img_path"]) if path}
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    path = f"{name}/test-00000-of-00001.parquet"
    media = {"image_tasks/mmeb_v1.tar.gz": tar({f"MMEB/{one}": picture(one) for one in sorted(shown)}, "w:gz")}
    return {path: parquet(columns)}, card({f"{name}/test-*": (name, "test")}), media


def _image_row(task: Task, name: str, at: int) -> dict[str, Any]:
    """The first candidate is right; the others are the right ones of other rows."""
    parser, order = task.options["parser"], [(at + step) % ASKED for step in range(ASKED)]
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


def _products(task: Task) -> bytes:
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
        for at in range(4)
    ]
    queries = [
        {"qid": "q0", "query": "a lamp", "pos_ids": ["B0", "B2"]},
        {"qid": "q1", "query": "a strong lamp", "pos_ids": '["B3"]'},
        {"qid": "q2", "query": "a table", "pos_ids": ["B99"]},
    ]
    pictures = {f"MCMR/images/{at}.jpg": picture("product", at) for at in range(4)}
    return tar(
        {"MCMR/query.jsonl": lines(queries), "MCMR/candidates.jsonl": lines(products), **pictures},
        "w:gz",
    )


# ── films ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def frames(folder: str, count: int = 11) -> Files:
    """Frames whose names do not sort as their numbers do."""
    return {f"{folder}/{at}.jpeg": picture(folder, at) for at in range(count)}


def _films(task: Task) -> tuple[Files, str, Files]:
    """Rows of one of VLM2Vec's datasets, and an archive of frames, in parts or whole."""
    parser, name = task.options["parser"], _mmeb.dataset_name(task)
    rows, folders, other = FILMS[parser](task)
    archive, root = {
        "V-CLS": ("video_cls", {"SmthSmthV2": "SSv2"}.get(name, name)),
        "V-QA": ("video_qa", f"video_qa/{'egoschema' if name == 'EgoSchema' else name}"),
        "V-RET": ("video_ret", f"data/ziyan/video_retrieval/{name}/frames"),
        "V-MR": ("video_mret", name),
    }[task.category]
    members = {path: data for folder in folders for path, data in frames(f"{root}/{folder}").items()}
    packed = tar({**members, **{f"{root}/{path}": data for path, data in other.items()}}, "w:gz")
    path = f"video_tasks/frames/{archive}.tar.gz"
    half = len(packed) // 2
    parts = {f"{path}-00": packed[:half], f"{path}-01": packed[half:]} if archive == "video_qa" else {path: packed}
    split = task.source.splits[0]
    if parser == "mvbench":
        held = {f"json/{config}.json": json.dumps(rows).encode() for config in MVBENCH}
        return held, card({f"json/{config}.json": (config, split) for config in MVBENCH}), parts
    config = task.source.config or "default"
    held = {f"data/{split}.jsonl": lines(rows)}
    return held, card({f"data/{split}.jsonl": (config, split)}), parts


Film = tuple[list[dict[str, Any]], list[str], Files]  # rows, folders of frames, other files


def _classes(task: Task) -> Film:
    names = list(task.labels[:2]) or ["Moving something", "Folding something"]
    rows = [{"video_id": f"v{at}", "pos_text": names[at % 2], "neg_text": names[::-1]} for at in range(ASKED)]
    if task.options["parser"] != "ssv2":
        rows = [{key: row[key] for key in ("video_id", "pos_text")} for row in rows]
    return rows, [f"v{at}" for at in range(ASKED)], {}


def _captions(task: Task) -> Film:
    names = [f"clip.{at}" for at in range(ASKED)]
    made = {
        "msrvtt": lambda at: {"video_id": names[at], "video": f"{names[at]}.mp4", "caption": f"scene {at}"},
        "msvd": lambda at: {"video_id": names[at], "video": f"{names[at]}.avi", "caption": [f"scene {at}", "another"]},
        "didemo": lambda at: {"video": f"/data/didemo/{names[at]}.mp4", "caption": f"scene {at}"},
        "vatex": lambda at: {"videoID": names[at], "enCap": [f"scene {at}", "another"]},
        "youcook2": lambda at: {"id": names[at], "video_path": f"x/{names[at]}.mp4", "sentence": f"scene {at}"},
    }[task.options["parser"]]
    return [made(at) for at in range(ASKED)], names, {}


def _asked(task: Task) -> Film:
    name, options = task.options["parser"], ["a cup", "a book", "a lamp"]
    lettered = [f"{'ABC'[at]}. {option}." for at, option in enumerate(options)]
    made = {
        "mvbench": {"video": "film.mp4", "question": "What is it?", "candidates": options, "answer": "a book"},
        "videomme": {"videoID": "film", "question": "What is it?", "options": lettered, "answer": "B"},
        "egoschema": {"video_idx": "film", "question": "What is it?", "option": lettered, "answer": "1"},
        "activitynetqa": {"video_name": "film", "question": "is it a book", "answer": "no"},
        "nextqa": {"video": 4010069381, "question": "what is it", "answer": 1}
        | {f"a{at}": text for at, text in enumerate([*options, "a hat", "a cup of tea"])},
    }[name]
    folder = {"activitynetqa": "v_film", "nextqa": "4010069381"}.get(name, "film")
    return [made], [f"{config}/film.mp4" for config in MVBENCH] if name == "mvbench" else [folder], {}


def _moments(task: Task) -> Film:
    rows = [{"query": f"scene {at}", "video_path": f"videos/take_{at}.mp4"} for at in range(2)]
    clips = ["query", "positive_0", *(f"negative_{at}" for at in range(9))]
    return rows, [f"take_{at}/{clip}" for at in range(2) for clip in clips], {}


def _seeking(task: Task) -> Film:
    clips = [f"movie/{at}_{at + 1}.mp4" for at in range(10)]
    listed = [{"output_path": clip} for clip in clips]
    rows = [
        {"query": f"scene {at}", "input_frames": beside, "positive_frames": listed[:2], "negative_frames": listed[2:]}
        for at, beside in enumerate(("", "still.jpg", "movie/part.mp4"))
    ]
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


def _classified(task: Task) -> bytes:
    names = ["dog bark", "siren"]
    labels = [names[at % 2] for at in range(ASKED)]
    name = _mmeb.dataset_name(task)
    if name == "NSynth":  # its sounds were stored decoded
        cells = [
            {
                "array": np.sin(np.arange(1600) * (at + 1) / 50).round(4).tolist(),
                "path": f"{at}.wav",
                "sampling_rate": 16_000,
            }
            for at in range(ASKED)
        ]
        table = parquet({"query-id": list("abc"), "audio": cells, "label": labels, "label_id": [0, 1, 0]}, rows=2)
        return tar({"nsynth-1k/eval/query.parquet": table})
    if name == "ESC-50":
        halves = ((0, 1), (2,))
        tables = [
            parquet(
                {
                    "target": [at % 2 for at in half],
                    "category": [labels[at] for at in half],
                    "audio": [sound(at) for at in half],
                }
            )
            for half in halves
        ]
        return tar({f"esc50/data/train-0000{at}-of-00002.parquet": table for at, table in enumerate(tables)})
    if name == "UrbanSound8K":
        told = "slice_file_name,fold,classID,class\n" + "".join(
            f"{at}.wav,{at + 1},{at % 2},{labels[at]}\n" for at in range(ASKED)
        )
        sounds = {f"urbansound8k/audio/fold{at + 1}/{at}.wav": sound(at) for at in range(ASKED)}
        return tar({"urbansound8k/csv_files/test.csv": told.encode(), **sounds})
    if name == "SpeechCommands":  # its paths are those of the machine where it was made, its bytes are missing
        paths = [f"/data/someone/audio-tasks/speechcommand/{labels[at]}/{at}.wav" for at in range(ASKED)]
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        cells = [{"bytes": None, "path": path} for path in paths]
        table = parquet(
            {"audio": cells, "audio_path": paths, "label": labels, "label_id": [0, 1, 0]}, types={"audio": kind}
        )
        sounds = {f"speechcommand-1k/{labels[at]}/{at}.wav": sound(at) for at in range(ASKED)}
        return tar({"speechcommand-1k/query_eval.parquet": table, **sounds})
    table = parquet(
        {"audio": [sound(at) for at in range(ASKED)], "label": [at % 2 for at in range(ASKED)]},
        classes={"label": names},
    )
    return tar({"creamD/data/train-00000-of-00001.parquet": table})


def _clotho(task: Task) -> bytes:
    head = "file_name," + ",".join(f"caption_{at}" for at in range(1, 6))
    told = [f"{at} a.wav," + ",".join(f'"sound {at}, told {turn}"' for turn in range(5)) for at in range(ASKED)]
    sounds = {f"clotho/clotho/evaluation/{at} a.wav": sound(at) for at in range(ASKED)}
    return tar({"clotho/clotho/clotho_captions_evaluation.csv": "\n".join([head, *told]).encode(), **sounds})


def _sounddescs(task: Task) -> bytes:
    """Four sounds, of which one answers no query."""
    queries = parquet({"query-id": ["q0", "q1"], "text": ["rain", "a train"]})
    judged = parquet({"query-id": ["q0", "q1"], "corpus-id": ["2", "0"], "score": [1, 1]})
    cells = {
        "corpus-id": ["0", "1", "2", "2"],
        "audio_path": list("abcd"),
        "audio_bytes": [sound(at) for at in range(4)],
    }
    corpus = parquet(cells)
    return tar(
        {
            f"sounddescs-1k/eval/{name}.parquet": data
            for name, data in (("query", queries), ("qrels", judged), ("corpus", corpus))
        }
    )


def _speechcoco(task: Task) -> bytes:
    queries = parquet({"id": ["0_a", "1_b"], "audio": [sound(0), sound(1)], "image_id": ["7", "9"]})
    corpus = parquet({"corpus-id": ["9", "8", "7"], "image": [picture("coco", at) for at in (9, 8, 7)]})
    return tar({"speechcoco-1k/query_test.parquet": queries, "speechcoco-1k/corpus_test_10k.parquet": corpus})


def _ave(task: Task) -> bytes:
    """Two events; a third's film is gone."""
    told = "Category&VideoID&Quality&StartTime&EndTime\nBus&a1&good&0&10\nCat&b-2&good&2&7\nDog&gone&good&0&3\n"
    sounds = {"a1_a1_0_10": sound(0), "b-2_b-2_2_7": sound(1)}
    films = frames("AVE/AVE_Dataset/frames/a1") | frames("AVE/AVE_Dataset/frames/b-2")
    held = {"AVE/AVE_Dataset/testSet.txt": told.encode(), **films}
    return tar(held | {f"AVE/AVE_Dataset/audios/{name}.wav": data for name, data in sounds.items()})


def _events(task: Task) -> bytes:
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


def _tuples(task: Task) -> bytes:
    """Two queries with two hard negatives each, one of them shared; films as frames, or whole for the last."""
    images = (18046, 80130, 3067, 42, 7)
    queries = [
        {"image_id": 18046, "qry_text": "a cat on a mat", "hard_negatives": [3067, 42]},
        {"image_id": 80130, "qry_text": "a dog in the fog", "hard_negatives": [42, 7]},
    ]
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
