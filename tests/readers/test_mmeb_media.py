"""MMEB's images, films and sounds, and OmniSET: what is read from data of the real shape, and that every row runs."""

from __future__ import annotations

import io
import sys
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import embark
from embark.evaluators import evaluate
from embark.readers import _mmeb, needed_files, read
from embark.tasks import mmeb
from embark.types import Dataset, EmbarkError, Media, Qrels, Task, Text
from hub import FakeHub, client, parquet, tar, wav
from samples_mmeb import V2, V3, frames, offers, picture, publish, shown

ROWS = {task.name: task for task in (*mmeb.IMAGE, *mmeb.VIDEO, *mmeb.AUDIO, *mmeb.OMNISET)}


def row(name: str, **changes: object) -> Task:
    """A task's row, without the counts of the real data."""
    return replace(ROWS[name], rows={}, **changes)  # type: ignore[arg-type]


def loaded(hub: FakeHub, name: str, **changes: object) -> Dataset:
    task = row(name, **changes)
    publish(hub, task)
    return read(task, task.source.splits[0], "default", client())


def test_there_are_as_many_rows_as_the_benchmark_has() -> None:
    assert (len(mmeb.IMAGE), len(mmeb.VIDEO), len(mmeb.AUDIO), len(mmeb.OMNISET)) == (37, 18, 11, 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_every_row_runs_from_the_hub_to_a_score(hub: FakeHub, name: str) -> None:
    task = row(name)
    publish(hub, task)
    (result,) = embark.evaluate("embark/random", task, show_progress=False).results
    assert 0 <= result.score <= 1
    assert result.dataset_revision == hub.branches.get((task.source.id, "main"))  # a branch is told by its commit
    here = client()
    told = {(source.id, file.path) for source, files in needed_files(task, here) for file in files}
    read(task, task.source.splits[0], "default", here)
    opened = {(id, path) for (id, _), files in here.opened.items() for path in files if path != "README.md"}
    assert opened == told


# ── images ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_candidate_is_right_and_each_query_has_its_own(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/ImageNet-1K")
    assert isinstance(data.truth, Qrels)
    assert shown(data, "query") == [("image",)] * 3  # the row's instruction is the task's: models render that
    assert shown(data, "document") == [("answer 0",), ("answer 1",), ("answer 2",)]  # by name, once
    assert offers(data)[1] == {"answer 1": 1, "answer 2": 0, "answer 0": 0}


def test_a_question_follows_its_image(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/OK-VQA")
    assert shown(data, "query")[0] == ("image", "question 0")
    first = data.sides["query"].items[0].parts[0]
    assert isinstance(first, Media)
    assert first.read() == (picture("OK-VQA/asked-0.png"),)


def test_images_are_named_by_path_and_captions_follow_them(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/WebQA")
    assert shown(data, "query")[0] == ("question 0",)
    assert shown(data, "document")[0] == ("image", "answer 0")
    assert data.sides["document"].ids[0] == "WebQA/shown-0.png"


def test_objects_of_one_image_are_told_apart_by_their_captions(hub: FakeHub) -> None:
    task = row("MMEB/RefCOCO-Matching")
    columns = {
        "qry_inst": ["<|image_1|> Select the portion of the image that follows the language expressions:"],
        "qry_text": ["the left dog"],
        "qry_img_path": ["RefCOCO-Matching/a.png"],
        "tgt_inst": ["<|image_1|> Pick out another expression:"],
        "tgt_text": [['"dog on the left"', "the cat", '"dog on the left"']],
        "tgt_img_path": [["RefCOCO-Matching/a.png"] * 3],
    }
    hub.add(task.source.id, {"RefCOCO-Matching/test-00000-of-00001.parquet": parquet(columns)})
    images = {"image-tasks/mmeb_v1.tar.gz": tar({"MMEB/RefCOCO-Matching/a.png": picture("a")}, "w:gz")}
    hub.add(V3.id, {"README.md": b""}, V3.revision)
    hub.add(V2.id, images, V2.revision)  # the older dataset has the archive too
    data = read(task, "test", "default", client())
    assert shown(data, "query") == [("image", "the left dog")]
    assert list(offers(data)[0].values()) == [1, 0]
    assert shown(data, "document")[1] == ("image", "Pick out another expression: the cat")  # not the task's: kept


def test_long_names_make_short_ids(hub: FakeHub) -> None:
    corpus = _mmeb.Corpus()
    for text in ("a" * 200, "a" * 199 + "b", "short"):
        corpus.add(text, lambda: _mmeb.compose(None, "x"))
    data = _mmeb.dataset(row("MMEB/OVEN"), [_mmeb.Query(_mmeb.compose(None, "q"), ["short"])], corpus)
    ids = data.sides["document"].ids
    assert len(set(ids)) == 3
    assert max(map(len, ids)) < 100


@pytest.mark.parametrize(("right", "offered"), [(["b"], ["a"]), (["c"], []), ([], [])])
def test_a_query_without_its_right_candidate_is_an_error(right: list[str], offered: list[str]) -> None:
    corpus = _mmeb.Corpus({name: _mmeb.compose(None, name) for name in "ab"})
    with pytest.raises(EmbarkError, match=r"relevant to query 0 but no candidate|query 0 has no relevant"):
        _mmeb.dataset(row("MMEB/OVEN"), [_mmeb.Query(_mmeb.compose(None, "q"), right, offered)], corpus)


@pytest.mark.parametrize(
    ("own", "text", "fixed", "said"),
    [
        ("<|image_1|> Identify the object.\n", "", "Identify the object", ""),
        ("", "<|image_1|>\nIdentify the object: a dog\n", "Identify the object:", "a dog"),
        ("Look closely:", "a dog", "Identify the object", "Look closely: a dog"),
        (None, "a dog", "", "a dog"),
    ],
)
def test_what_the_task_tells_is_not_told_twice(own: str, text: str, fixed: str, said: str) -> None:
    assert _mmeb.join_instruction(own, text, fixed) == said


def test_an_image_that_is_not_there_is_named(hub: FakeHub) -> None:
    task = row("MMEB/VOC2007")
    publish(hub, task)
    hub.add(V3.id, {"image_tasks/mmeb_v1.tar.gz": tar({"MMEB/VOC2007/other.png": picture(1)}, "w:gz")}, V3.revision)
    with pytest.raises(EmbarkError, match="asked-0"):
        read(task, "test", "default", client())


def test_several_products_may_be_right(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/MCMR")
    assert isinstance(data.truth, Qrels)
    assert offers(data)[:2] == [{"B0": 1, "B2": 1}, {"B3": 1}]
    assert shown(data, "document")[1] == ("image", "title: lamp 1\ndescription: a lamp of 1 watts\nprice: 9.5")


def test_a_wish_without_a_present_product_is_a_miss(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/MCMR")
    assert isinstance(data.truth, Qrels)
    assert len(data.sides["query"]) == 3
    assert data.truth.outside is not None
    assert data.truth.outside.tolist() == [[0], [0], [1]]
    assert data.skipped == ("1 queries have no product among the candidates and are misses: q2",)
    eye = np.eye(4, dtype=np.float32)
    scores = evaluate("retrieval", data.truth, {"query": eye[[0, 3, 1]], "document": eye}, {"metric": "hit_rate_at_1"})
    assert scores.value == pytest.approx(2 / 3)
    options = {name: value for name, value in ROWS["MMEB/MCMR"].options.items() if name != "unknown"}
    other = loaded(hub, "MMEB/MCMR", options=options)
    assert len(other.sides["query"]) == 2
    assert other.skipped == ("1 queries have no product among the candidates and are left out: q2",)


# ── films ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_frames_come_in_the_order_of_their_numbers(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/HMDB51")
    film = data.sides["query"].items[0].parts[0]
    assert isinstance(film, Media)
    assert film.kind == "video"
    assert film.read() == tuple(frames("HMDB51/v0").values())


def test_classes_that_no_query_shows_are_candidates_too(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/K700")
    assert isinstance(data.truth, Qrels)
    assert len(data.sides["document"]) == 700
    assert shown(data, "query") == [("video",)] * 3


def test_names_that_come_with_the_row_are_all_that_is_offered(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/SmthSmthV2")
    assert offers(data)[0] == {"Folding something": 0, "Moving something": 1}


@pytest.mark.parametrize(
    ("name", "asked", "answers"),
    [
        (
            "MVBench",
            "What is it?\nOptions:\n(A) a cup\n(B) a book\n(C) a lamp",
            ["(A) a cup", "(B) a book", "(C) a lamp"],
        ),
        ("Video-MME", "What is it?\nA. a cup.\nB. a book.\nC. a lamp.", ["a cup", "a book", "a lamp"]),
        ("EgoSchema", "What is it?A. a cup. B. a book. C. a lamp.", ["a cup", "a book", "a lamp"]),
        ("ActivityNetQA", "is it a book? (A) yes; (B) no.", ["yes", "no"]),
        (
            "NExTQA",
            "what is it\nOptions:\n(A) a cup\n(B) a book\n(C) a lamp\n(D) a hat\n(E) a cup of tea",
            ["a cup", "a book", "a lamp", "a hat", "a cup of tea"],
        ),
    ],
)
def test_questions_list_their_options(hub: FakeHub, name: str, asked: str, answers: list[str]) -> None:
    data = loaded(hub, f"MMEB/{name}")
    assert shown(data, "query")[0] == ("video", asked)
    assert [text for (text,) in shown(data, "document")] == answers
    assert list(offers(data)[0].values()) == [int(at == 1) for at in range(len(answers))]
    assert len(data.sides["query"]) == (20 if name == "MVBench" else 1)


@pytest.mark.parametrize("answer", ["-1", "3", "B"])
def test_an_answer_that_is_none_of_the_choices_is_an_error(hub: FakeHub, answer: str) -> None:
    task = row("MMEB/EgoSchema")
    publish(hub, task)
    files = hub.data[task.source.id, hub.branches[task.source.id, "main"]]
    wrong = {path: data.replace(b'"answer": "1"', f'"answer": "{answer}"'.encode()) for path, data in files.items()}
    assert hub.add(task.source.id, wrong) != hub.add("org/other", files)
    with pytest.raises(EmbarkError, match=r"answer to 'What is it\?.*' is none of its 3 choices|EgoSchema.*ValueError"):
        read(task, task.source.splits[0], "default", client())


@pytest.mark.parametrize("name", ["MSR-VTT", "MSVD", "DiDeMo", "VATEX", "YouCook2"])
def test_a_first_caption_finds_its_film_among_all(hub: FakeHub, name: str) -> None:
    data = loaded(hub, f"MMEB/{name}")
    assert isinstance(data.truth, Qrels)
    assert shown(data, "query")[1] == ("scene 1",)
    assert offers(data)[1] == {"clip.1": 1}
    assert shown(data, "document") == [("video",)] * 3


def test_the_clips_of_a_film_are_its_candidates(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/Charades-STA")
    assert shown(data, "query")[0] == ("video", "scene 0")
    first, second = offers(data)
    assert len(first) == 10
    assert [name for name, grade in first.items() if grade] == ["take_0/positive_0"]
    assert set(first).isdisjoint(second)


def test_moments_are_sought_with_words_images_and_films(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/MomentSeeker")
    told = ROWS["MMEB/MomentSeeker"].options["instructions"]
    assert shown(data, "query") == [
        (f"{told['text']} scene 0",),
        ("image", f"{told['image']} scene 1"),
        ("video", f"{told['video']} scene 2"),
    ]
    assert [sum(one.values()) for one in offers(data)] == [2, 2, 2]  # several may be right
    assert len(data.sides["document"]) == 10


# ── sounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["NSynth", "ESC-50", "UrbanSound8K", "SpeechCommands", "CREMA-D"])
def test_sounds_are_found_wherever_they_are_kept(hub: FakeHub, name: str) -> None:
    data = loaded(hub, f"MMEB/{name}")
    assert shown(data, "query") == [("audio",)] * 3
    assert shown(data, "document") == [("dog bark",), ("siren",)]
    assert [one["siren"] for one in offers(data)] == [0, 1, 0]
    heard = [part.read()[0] for item in data.sides["query"].items for part in item.parts if isinstance(part, Media)]
    if name == "NSynth":
        with wave.open(io.BytesIO(heard[1])) as sound:
            assert (sound.getframerate(), sound.getnframes()) == (16_000, 1600)
            wanted = np.sin(np.arange(1600) * 2 / 50).round(4)
            np.testing.assert_allclose(np.frombuffer(sound.readframes(1600), "<i2") / 32768, wanted, atol=1 / 32768)
    else:
        assert heard == [wav(200.0 + 50 * at) for at in range(3)]


def test_class_numbers_that_no_row_has_are_candidates_as_in_the_public_code(hub: FakeHub) -> None:
    """ESC-50 with classes 1 and 3 alone: the public code fills 0 and 2 with their digits."""
    task = row("MMEB/ESC-50")
    table = parquet({"target": [3, 1, 3], "category": ["siren", "dog", "siren"], "audio": [wav(200.0)] * 3})
    archive = tar({"esc50/data/train-00000-of-00001.parquet": table})
    hub.add(task.source.id, {"audio_tasks/esc50.tar": archive}, task.source.revision)
    data = read(replace(task, rows={}), "test", "default", client())
    assert shown(data, "document") == [("0",), ("dog",), ("2",), ("siren",)]
    assert [one["siren"] for one in offers(data)] == [1, 0, 1]
    plain = replace(task, options={name: value for name, value in task.options.items() if name != "pool"}, rows={})
    assert shown(read(plain, "test", "default", client()), "document") == [("dog",), ("siren",)]


def test_each_of_five_captions_asks_for_the_sound(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/Clotho")
    assert len(data.sides["query"]) == 15
    assert shown(data, "query")[6] == ("sound 1, told 1",)
    assert offers(data)[6] == {"1 a.wav": 1}


def test_the_whole_corpus_is_ranked_unless_only_the_judged_sounds_are_wanted(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/SoundDescs")
    assert offers(data)[0] == {"0": 0, "1": 0, "2": 1}  # the second sound of a name is not a candidate
    options = {**ROWS["MMEB/SoundDescs"].options, "judged": True}
    assert offers(loaded(hub, "MMEB/SoundDescs", options=options))[0] == {"0": 0, "2": 1}


def test_speech_finds_its_image(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/SpeechCOCO")
    assert shown(data, "document") == [("image",)] * 3
    assert offers(data) == [{"7": 1}, {"9": 1}]


def test_films_that_are_gone_are_no_candidates(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/AVE")
    assert shown(data, "query") == [("audio",)] * 2
    assert offers(data) == [{"a1": 1, "b-2": 0}, {"a1": 0, "b-2": 1}]
    assert data.skipped == ("left out 1 videos that are not in the archive: gone",)


def test_sounds_are_cut_from_films_where_they_do_not_lie_beside_them(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = row("MMEB/AVE")
    told = "Category&VideoID&Quality&StartTime&EndTime\nBus&a1&good&1&3\n"
    held = {"AVE/AVE_Dataset/testSet.txt": told.encode(), "AVE/AVE_Dataset/AVE/a1.mp4": b"film"}
    hub.add(task.source.id, {task.options["archive"]: tar(held)}, V3.revision)
    monkeypatch.setitem(sys.modules, "av", FakeAv)
    data = read(task, "test", "default", client())
    heard = data.sides["query"].items[0].parts[0]
    assert isinstance(heard, Media)
    with wave.open(io.BytesIO(heard.read()[0])) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getnframes()) == (16_000, 1, 32_000)
        assert set(np.frombuffer(sound.readframes(32_000), "<i2")) == {1, 2}  # the second and third seconds
    film = data.sides["document"].items[0].parts[0]
    assert isinstance(film, Media)
    assert film.read() == (b"film",)


class FakeAv:
    """As much of PyAV as is used: four seconds, whose samples are their second's number."""

    def __init__(self, **wanted: object) -> None:
        assert wanted == {"format": "s16", "layout": "mono", "rate": 16_000}

    AudioResampler: type[FakeAv]

    @staticmethod
    @contextmanager
    def open(data: io.BytesIO) -> Iterator[SimpleNamespace]:
        assert data.read() == b"film"
        yield SimpleNamespace(decode=lambda audio: range(4))

    def resample(self, second: int | None) -> list[SimpleNamespace]:
        if second is None:
            return []
        plane = np.full(16_000, second, "<i2").tobytes() + b"padding"
        return [SimpleNamespace(planes=[plane], samples=16_000)]


FakeAv.AudioResampler = FakeAv


def test_sounds_of_a_table_without_folders_are_found_by_name(hub: FakeHub) -> None:
    task = row("MMEB/CREMA-D")
    held = {"creamD/processed.csv": b"file,emotion\n1.wav,anger\n2.wav,fear\n"}
    held |= {f"creamD/AudioWAV/{at}.wav": wav(100.0 * at) for at in (1, 2)}
    hub.add(task.source.id, {task.options["archive"]: tar(held)}, V3.revision)
    data = read(task, "test", "default", client())
    assert offers(data) == [{"anger": 1, "fear": 0}, {"anger": 0, "fear": 1}]


def test_an_event_is_sought_among_events_and_quiet_windows(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/TUTSound")
    assert shown(data, "query")[0] == ("audio", "car")
    cars, _, children, brakes = offers(data)
    path = "audio/street/a.wav|"
    assert [name.removeprefix(path) for name, grade in cars.items() if grade] == ["0.500-1.500", "4.000-5.000"]
    assert [name.removeprefix(path) for name, grade in children.items() if grade] == [
        "2.000-2.050"
    ]  # no length: 0.05 s
    quiet = [name.removeprefix(path) for name in list(cars)[3:]]
    assert quiet[:3] == ["1.500-2.500", "2.000-3.000", "2.500-3.500"]
    assert quiet[-1] == "7.000-8.000"
    assert list(brakes.values()) == [1]  # the recording is shorter than a window


def test_the_hard_variant_takes_only_the_event_itself(hub: FakeHub) -> None:
    found = offers(loaded(hub, "MMEB/TUTSound_hard"))
    assert [sum(one.values()) for one in found] == [1, 1, 1, 1]


def test_segments_are_cut_from_the_recording(hub: FakeHub) -> None:
    data = loaded(hub, "MMEB/TUTSound")
    segment, recording = data.sides["document"].items[0].parts[0], data.sides["query"].items[0].parts[0]
    assert isinstance(segment, Media)
    assert isinstance(recording, Media)
    with wave.open(io.BytesIO(segment.read()[0])) as part, wave.open(io.BytesIO(recording.read()[0])) as whole:
        assert part.getnframes() == 16_000
        whole.setpos(8_000)
        assert part.readframes(16_000) == whole.readframes(16_000)
    assert segment.read() == segment.read()


# ── OmniSET ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("task", mmeb.OMNISET, ids=lambda task: task.name)
def test_a_query_ranks_all_modalities_of_its_tuple_and_of_hard_negatives(hub: FakeHub, task: Task) -> None:
    data = loaded(hub, task.name)
    names = {
        kind: f"COCO_val2014_{18046:012d}.{end}"
        for kind, end in (("text", "txt"), ("image", "jpg"), ("video", "mp4"), ("audio", "wav"))
    }
    first, second = offers(data)
    assert len(first) == len(second) == 4 * 3
    assert [name for name, grade in first.items() if grade] == [names[task.options["target"]]]
    own = data.sides["document"].items[list(data.sides["document"].ids).index(names[task.options["query"]])]
    assert data.sides["query"].items[0] == own  # what is asked with is on the list
    shared = {f"COCO_val2014_{42:012d}.{end}" for end in ("txt", "jpg", "mp4", "wav")}
    assert set(first) & set(second) == shared


def test_each_text_candidate_is_the_caption_of_its_own_image(hub: FakeHub) -> None:
    data = loaded(hub, "OmniSET/I2T")
    side = data.sides["document"]
    texts = {
        name: part.text
        for name, item in zip(side.ids, side.items, strict=True)
        for part in item.parts
        if isinstance(part, Text)
    }
    assert list(texts.values()) == [
        "a cat on a mat",
        "caption of 3067",
        "caption of 42",
        "a dog in the fog",
        "caption of 7",
    ]


def test_films_are_their_frames_where_there_are_any(hub: FakeHub) -> None:
    side = loaded(hub, "OmniSET/T2V").sides["document"]
    films = [part for item in side.items for part in item.parts if isinstance(part, Media) and part.kind == "video"]
    assert [len(film.chunks) for film in films] == [3, 3, 3, 3, 1]
