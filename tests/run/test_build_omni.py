"""Sets like OmniSET of one's own pictures: films and sounds that decode again, hard negatives, the same bytes twice."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import embark
from embark import readers
from embark.cli import app
from embark.hub import Hub
from embark.items import digest, emoji, films, wav
from embark.items.decoding import decode
from embark.tasks.omni import DIRECTIONS
from embark.types import EmbarkError, Media, Qrels

COLORS = {
    "red": "#ff0000", "green": "#00ff00", "blue": "#0000ff", "yellow": "#ffff00", "purple": "#800080",
}  # fmt: skip
CATEGORIES = {"red": "warm,page", "yellow": "warm", "green": "cold,page", "blue": "cold", "purple": "cold,page"}
Build = Callable[..., embark.types.OmniSet]


def gradient(color: str, turn: int) -> Image.Image:
    """A picture of one color with waves of some length and direction, so that no two look alike."""
    across, down = np.meshgrid(np.arange(40), np.arange(40))
    wave = 0.6 + 0.4 * np.sin(((1 + turn) * across + (2 + turn % 3) * down) / 6)
    pixels = np.asarray(Image.new("RGB", (40, 40), color), float) * wave[..., None]
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = ["file,caption,category"]
    for turn, (name, color) in enumerate(COLORS.items()):
        gradient(color, turn).save(folder / f"{name}.png")
        lines.append(f'{name}.png,a {name} page,"{CATEGORIES[name]}"')
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def sounds(tmp_path: Path) -> Path:
    folder = tmp_path / "sounds"
    folder.mkdir()
    for number, name in enumerate(COLORS):
        tone = 0.5 * np.sin(2 * np.pi * (300 + 100 * number) * np.arange(4_000) / 16_000)
        (folder / f"{name}.wav").write_bytes(wav.from_samples(tone, 16_000))
    return folder


@pytest.fixture
def espeak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of espeak-ng, which is not installed everywhere: the tone's length is that of the text."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "espeak-ng"
    program.write_text(
        "#!/usr/bin/env python3\n"
        "import sys, wave\n"
        "words = sys.argv\n"
        "text = sys.stdin.read()\n"
        "if words[words.index('-v') + 1] == 'xx': sys.exit('no such voice')\n"
        "with wave.open(words[words.index('-w') + 1], 'wb') as file:\n"
        "    file.setnchannels(1); file.setsampwidth(2); file.setframerate(16000)\n"
        "    file.writeframes(bytes([0, 32, 0, 224]) * 400 * len(text))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return program


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / "tuples.jsonl").read_text().splitlines()
    return {entry["id"]: entry for entry in map(json.loads, lines)}


def test_five_pictures_become_a_data_set_that_decodes(photos: Path, espeak: Path, tmp_path: Path) -> None:
    built = embark.tasks.build_omni(photos, tmp_path / "omni", name="Pages", negatives=2, show_progress=False)
    assert (built.tuples, built.queries) == (5, 5)
    [task] = embark.load_tasks(tmp_path / "omni" / "tasks.toml")
    assert task == built.task
    data = readers.read(task, "test", "audio-to-video", Hub(embark.load_settings()))
    for item in (*data.sides["query"].items, *data.sides["document"].items):
        [content] = decode(item.parts, 8, 16_000)
        if content.kind == "video":
            assert len(content.value) == 8
            assert content.value[0].size == (256, 256)
            shown = np.stack([np.asarray(frame, float) for frame in content.value])
            assert np.abs(np.diff(shown, axis=0)).mean() > 0.5  # the camera moves
        if content.kind == "audio":
            assert len(content.value.samples) >= 800 * len("a red page")
    card = (tmp_path / "omni" / "README.md").read_text()
    assert "path: tuples.jsonl" in card
    assert "12 candidates" in card
    assert "espeak-ng, voice en" in card


@pytest.mark.slow
def test_twice_the_same_bytes(photos: Path, espeak: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        embark.tasks.build_omni(photos, tmp_path / name, name="Pages", negatives=2, show_progress=False)
    first, second = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert len(first) == 3 * 5 + 3
    assert first == second


def test_negatives_share_categories(photos: Path, sounds: Path, tmp_path: Path) -> None:
    embark.tasks.build_omni(photos, tmp_path / "omni", sounds=sounds, negatives=1, show_progress=False)
    negatives = {id: entry["negatives"] for id, entry in rows(tmp_path / "omni").items()}
    assert negatives["green"] == ["purple"]  # two categories
    assert negatives["purple"] == ["green"]
    assert negatives["yellow"] == ["red"]
    own = {name: ["light" if name in ("red", "blue") else "dark"] for name in COLORS}
    build = {"sounds": sounds, "negatives": 1, "show_progress": False}
    embark.tasks.build_omni(photos, tmp_path / "own", categories=own, **build)  # type: ignore[arg-type]
    assert rows(tmp_path / "own")["red"]["negatives"] == ["blue"]


def test_negatives_are_neighbors_without_near_duplicates(
    photos: Path, sounds: Path, tmp_path: Path, tiny: embark.Encoder
) -> None:
    gradient("#ff0400", 0).save(photos / "rose.png")
    (sounds / "rose.wav").write_bytes((sounds / "red.wav").read_bytes())
    with (photos / "metadata.csv").open("a") as table:
        table.write("rose.png,a rose page,warm\n")
    build = {"sounds": sounds, "neighbors": tiny, "negatives": 1, "show_progress": False}
    embark.tasks.build_omni(photos, tmp_path / "near", near=0.9999, **build)  # type: ignore[arg-type]
    embark.tasks.build_omni(photos, tmp_path / "all", near=1.1, **build)  # type: ignore[arg-type]
    assert rows(tmp_path / "all")["red"]["negatives"] == ["rose"]
    assert rows(tmp_path / "near")["red"]["negatives"] in (["yellow"], ["purple"])  # which have red in them


def test_pictures_that_look_alike_and_equal_captions_are_no_negatives(
    photos: Path, sounds: Path, tmp_path: Path
) -> None:
    gradient("#f00000", 0).save(photos / "rose.png")
    gradient("#123456", 3).save(photos / "twin.png")
    for name in ("rose", "twin"):
        (sounds / f"{name}.wav").write_bytes((sounds / "red.wav").read_bytes())
    with (photos / "metadata.csv").open("a") as table:
        table.write('rose.png,a rose page,"warm,page"\ntwin.png,A red  page,"warm,page"\n')
    embark.tasks.build_omni(photos, tmp_path / "omni", sounds=sounds, negatives=6, show_progress=False)
    assert sorted(rows(tmp_path / "omni")["red"]["negatives"]) == ["blue", "green", "purple", "yellow"]


def test_only_what_is_needed_is_built(photos: Path, sounds: Path, tmp_path: Path) -> None:
    built = embark.tasks.build_omni(
        photos, tmp_path / "omni", sounds=sounds, negatives=1, queries=1, show_progress=False
    )
    table = rows(tmp_path / "omni")
    assert (built.tuples, built.queries, len(table)) == (2, 1, 2)
    assert [bool(entry["negatives"]) for entry in table.values()].count(True) == 1
    assert built.notes == ("left out, neither queries nor hard negatives: 3 pictures",)
    data = readers.read(built.task, "test", "image-to-text", Hub(embark.load_settings()))
    assert (len(data.sides["query"]), len(data.sides["document"])) == (1, 8)


def test_supplied_films(photos: Path, sounds: Path, tmp_path: Path) -> None:
    clips = tmp_path / "clips"
    clips.mkdir()
    film = films.camera_film((photos / "red.png").read_bytes(), "in")
    for name in COLORS:
        (clips / f"{name}.mp4").write_bytes(film)
    embark.tasks.build_omni(photos, tmp_path / "omni", films=clips, sounds=sounds, negatives=1, show_progress=False)
    assert {(tmp_path / "omni" / entry["video"]).read_bytes() for entry in rows(tmp_path / "omni").values()} == {film}
    (clips / "red.mp4").unlink()
    with pytest.raises(EmbarkError, match="has no video for 1 picture: red"):
        embark.tasks.build_omni(photos, tmp_path / "more", films=clips, sounds=sounds, negatives=1, show_progress=False)


def test_what_cannot_be_built(
    photos: Path, sounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, espeak: Path
) -> None:
    def refused(message: str, source: Any = photos, **options: Any) -> None:
        with pytest.raises(EmbarkError, match=message):
            embark.tasks.build_omni(source, tmp_path / "omni", **{"show_progress": False, **options})

    refused("no column named 'colour'", categories="colour")
    refused("by categories or by neighbors, not by both", categories="category", neighbors="embark/pocket")
    refused("does not pair texts with pictures", source="PocketNameToVideo")
    refused("PocketNameToImage has no table with categories", source="PocketNameToImage")
    refused("cannot speak 'a red page' in the voice 'xx': no such voice", negatives=1, voice="xx")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(EmbarkError, match="exists and is not empty"):
        embark.tasks.build_omni(photos, tmp_path / "full")
    monkeypatch.setenv("PATH", str(tmp_path))
    refused(r"Speech needs espeak-ng, which is not installed here: install it, or supply sounds .* \(--sounds DIR\)")
    (photos / "metadata.csv").write_text("file,caption\n" + "".join(f"{name}.png,a {name} page\n" for name in COLORS))
    refused(r"Hard negatives need categories \(--categories COLUMN\) or a model", sounds=sounds)


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("error", [EmbarkError, KeyboardInterrupt])
def test_what_fails_on_the_way_leaves_nothing(
    photos: Path,
    sounds: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    exists: bool,
    error: type[BaseException],
) -> None:
    out = tmp_path / "omni"
    if exists:
        out.mkdir()
    made: list[Any] = []

    def camera(pair: Any) -> tuple[str, bytes]:
        made.append(pair)
        if len(made) == 3:
            assert len(list(out.rglob("*.webp"))) == 2
            raise error("the third")
        return ".webp", b"a film"

    monkeypatch.setattr("embark.run.build_omni._camera", camera)
    with pytest.raises(error, match="the third"):
        embark.tasks.build_omni(photos, out, sounds=sounds, negatives=1, show_progress=False)
    assert out.exists() == exists
    assert not exists or not any(out.iterdir())


@pytest.mark.slow
def test_a_built_set_runs_and_is_diagnosed(
    photos: Path, sounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = embark.tasks.build_omni(
        photos, tmp_path / "omni", name="Pages", sounds=sounds, negatives=2, show_progress=False
    )
    run = embark.evaluate("embark/pocket", [built.task], show_progress=False)
    assert [record.subset for record in run.results[0].records] == list(DIRECTIONS)
    diagnosis = embark.analyze.diagnose_omni(
        "embark/pocket", built.task, method="pca", embed=False, show_progress=False
    )
    assert diagnosis.title == "embark/pocket on Pages"
    assert len(diagnosis.table().rows) == 13


@pytest.mark.parametrize("motion", films.MOTIONS)
def test_cameras_move_as_they_say(motion: str) -> None:
    pixels = np.zeros((64, 96, 3), np.uint8)
    pixels[24:40, 40:56] = 255
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    frames = [np.asarray(frame.convert("L"), float) for frame in films.camera_frames(out.getvalue(), motion, 5, 96)]
    bright = [np.argwhere(frame > 128) for frame in frames]
    middles = np.array([places.mean(axis=0) for places in bright])
    areas = np.array([len(places) for places in bright])
    down, across = (middles[-1] - middles[0]).round(1)
    moved = {"left": (0, 1), "right": (0, -1), "up": (1, 0), "down": (-1, 0)}.get(motion, (0, 0))
    assert (np.sign([down, across]) == moved).all()  # what is seen goes the other way
    assert np.sign(areas[-1] - areas[0]) == {"in": 1, "out": -1}.get(motion, 0)


@pytest.mark.slow
def test_pocket_omni_is_what_the_builder_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pictures, captions, sounds and hard negatives; its films are supplied, as drawings."""
    folders = {name: tmp_path / name for name in ("pictures", "sounds", "films")}
    for folder in folders.values():
        folder.mkdir()
    cast = list(emoji.motions())
    film = films.camera_film(cast[0].art, "in")
    categories = {symbol.code: {symbol.group, symbol.subgroup, *symbol.keywords} for symbol in cast}
    lines = []
    for symbol in cast:
        sound = emoji.views("audio")[symbol.code].parts[0]
        assert isinstance(sound, Media)
        (folders["pictures"] / f"{symbol.code}.webp").write_bytes(symbol.art)
        (folders["sounds"] / f"{symbol.code}.ogg").write_bytes(sound.read()[0])
        (folders["films"] / f"{symbol.code}.mp4").write_bytes(film)
        lines.append(json.dumps({"file": f"{symbol.code}.webp", "caption": symbol.name}))
    (folders["pictures"] / "metadata.jsonl").write_text("\n".join(lines) + "\n")
    built = embark.tasks.build_omni(
        folders["pictures"], tmp_path / "omni", films=folders["films"], sounds=folders["sounds"],
        categories=categories, show_progress=False,
    )  # fmt: skip
    hub = Hub(embark.load_settings())
    own, shipped = (
        readers.read(task, "test", "audio-to-image", hub) for task in (built.task, embark.get_tasks("PocketOmni")[0])
    )
    assert _truth(own) == _truth(shipped)
    assert _contents(own) == _contents(shipped)


def _truth(data: Any) -> set[tuple[str, str, int]]:
    truth = data.truth
    assert isinstance(truth, Qrels)
    queries, documents = data.sides["query"].ids, data.sides["document"].ids
    links = zip(truth.query.tolist(), truth.document.tolist(), truth.grade.tolist(), strict=True)
    return {(queries[query], documents[document], grade) for query, document, grade in links}


def _contents(data: Any) -> dict[str, bytes]:
    side = data.sides["document"]
    return {id: digest(item.parts) for id, item in zip(side.ids, side.items, strict=True) if not id.endswith("video")}


@pytest.mark.slow
def test_from_the_command_line(photos: Path, sounds: Path, tmp_path: Path) -> None:
    omni = tmp_path / "omni"
    built = CliRunner().invoke(app, ["build", "omni", str(photos), "--sounds", str(sounds), "--out", str(omni)])
    assert built.exit_code == 0, built.output
    assert "hard negatives" in built.stdout
    assert f"Run it: embark diagnose omni -m MODEL --tasks-file {omni / 'tasks.toml'}" in built.stderr
    words = ["-m", "embark/pocket", "--tasks-file", str(omni / "tasks.toml"), "--method", "pca", "--figures", "png"]
    out = tmp_path / "diagnosis"
    diagnosed = CliRunner().invoke(app, ["diagnose", "omni", *words, "--out", str(out)])
    assert diagnosed.exit_code == 0, diagnosed.output
    assert "direction" in diagnosed.stdout
    assert f"written: {out / 'report.md'}" in diagnosed.stderr
    assert len(list(out.rglob("*.png"))) == len(list(out.rglob("*.csv"))) == 8


def test_photographs_with_a_preview_in_them_are_jpegs(photos: Path, sounds: Path, tmp_path: Path) -> None:
    """Telephones write several pictures into one file, which Pillow calls MPO."""
    picture = Image.open(photos / "red.png").convert("RGB")
    picture.save(photos / "red.png", format="MPO", save_all=True, append_images=[picture.resize((8, 8))])
    built = embark.tasks.build_omni(photos, tmp_path / "set", sounds=sounds, categories="category", show_progress=False)
    assert (built.folder / "images" / "red.jpg").is_file()
