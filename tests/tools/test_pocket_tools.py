"""The pocket data is what its tools say it is: rules of the build, shipped files, and export to numpy."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import embark
from embark.models.pocket import FRAMES, MELS, SIDE, text_ids

PACKAGE = Path(embark.__file__).parent
DATA = PACKAGE / "items" / "pocket"
TOOLS = Path(__file__).parents[2] / "tools" / "pocket"


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """tools/pocket importable for one test: its modules have common names."""
    monkeypatch.syspath_prepend(TOOLS)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(TOOLS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def rows() -> ModuleType:
    return importlib.import_module("rows")


@pytest.fixture(scope="module")
def table() -> dict[str, list[Any]]:
    names = [name for name in pq.read_schema(DATA / "emoji.parquet").names if name != "image"]
    return pq.read_table(DATA / "emoji.parquet", columns=names).to_pydict()


# ── rules of the build ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("emoji", "base"),
    [
        ("👍🏿", "1F44D"),
        ("👩‍🍳", "1F9D1-200D-1F373"),
        ("👨🏽‍🍳", "1F9D1-200D-1F373"),
        ("👩‍🦰", "1F9D1"),
        ("🏃🏻‍♀️", "1F3C3"),
        ("👨‍👩‍👧", "1F468-200D-1F469-200D-1F467"),  # a family keeps its members
        ("❤️", "2764"),
        ("♀️", "2640-FE0F"),  # nothing would be left
    ],
)
def test_base_drops_tone_hair_and_gender(rows: ModuleType, emoji: str, base: str) -> None:
    assert rows.base_of("-".join(f"{ord(char):04X}" for char in emoji)) == base


@pytest.mark.parametrize(
    ("code", "name", "gender"),
    [
        ("1F3C3-200D-2640-FE0F", "woman running", "female"),
        ("1F3C3-200D-2642-FE0F", "man running", "male"),
        ("1F934", "prince", "male"),
        ("1F478-1F3FB", "princess: light skin tone", "female"),
        ("1F46B", "woman and man holding hands", None),
        ("1F9D1", "person", None),
        ("1F4AC", "talisman", None),  # a whole word, not a part of one
    ],
)
def test_gender_by_sign_then_by_name(rows: ModuleType, code: str, name: str, gender: str | None) -> None:
    assert rows.gender_of(code, name) == gender


@pytest.mark.parametrize(
    ("code", "country"),
    [
        ("1F1EB-1F1F7", "FR"),
        ("1F3F4-E0067-E0062-E0073-E0063-E0074-E007F", "GB-SCT"),
        ("1F3F4", None),
        ("1F3F4-200D-2620-FE0F", None),
        ("1F600", None),
    ],
)
def test_country_of_a_flag(rows: ModuleType, code: str, country: str | None) -> None:
    assert rows.flag_country(code) == country


def test_a_fifth_of_names_is_held_out(rows: ModuleType, table: dict[str, list[Any]]) -> None:
    pairs = {(base, language) for base in table["base"] for language in rows.LANGUAGES}
    assert np.mean([rows.held_out(*pair) for pair in pairs]) == pytest.approx(0.2, abs=0.01)
    assert [language for language in rows.LANGUAGES if rows.held_out("1F600", language)] == ["bn", "hi", "id"]


def test_shipped_attributes_follow_the_rules(rows: ModuleType, table: dict[str, list[Any]]) -> None:
    codes = table["codepoints"]
    assert table["base"] == [rows.base_of(code) for code in codes]
    assert table["gender"] == [rows.gender_of(code, name) for code, name in zip(codes, table["name_en"], strict=True)]
    assert table["country"] == [rows.flag_country(code) for code in codes]


# ── shipped files ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_shipped_files_are_the_ones_we_summed_and_stay_small() -> None:
    sums = dict(reversed(line.split("  ")) for line in (DATA / "CHECKSUMS").read_text().splitlines())
    found = {path: (PACKAGE / path).read_bytes() for path in sums}
    assert {path: hashlib.sha256(content).hexdigest() for path, content in found.items()} == sums
    assert {Path(path).name for path in sums} == {"emoji.parquet", "speech.parquet", "pocket.safetensors"}
    assert sum(map(len, found.values())) < 16e6


def test_recordings_of_the_pocket_ark_are_made_again_to_the_byte(tmp_path: Path) -> None:
    """They are found by the hashes of pictures, some of which are drawn: these must not depend on this machine."""
    importlib.import_module("recordings").main(tmp_path)
    for path in (PACKAGE / "models" / "recordings").iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_emoji_table(rows: ModuleType, table: dict[str, list[Any]]) -> None:
    names = [name for name in table if name.startswith("name_")]
    assert names == [f"name_{language}" for language in rows.LANGUAGES]
    assert len(names) == 38
    assert len(table["emoji"]) == len(set(table["emoji"])) == 2875
    assert all(table["name_en"])
    assert set(table["skin_tone"]) == {None, "light", "medium", "dark"}
    assert sum(tone is None for tone in table["skin_tone"]) == 1906
    assert pq.read_schema(DATA / "emoji.parquet").names[-1] == "image"


def test_speech_table_says_names(table: dict[str, list[Any]]) -> None:
    clips = pq.read_table(DATA / "speech.parquet").to_pylist()
    assert Counter(clip["language"] for clip in clips) == {"en": 468, "es": 40, "fr": 40, "de": 40, "it": 40}
    at = {emoji: index for index, emoji in enumerate(table["emoji"])}
    assert all(clip["text"] == table[f"name_{clip['language']}"][at[clip["emoji"]]] for clip in clips)
    assert all(clip["audio"].startswith(b"OggS") for clip in clips)


def test_shipped_voices_were_never_trained_on() -> None:
    pytest.importorskip("soundfile")
    speech = importlib.import_module("speech")
    shipped = set(pq.read_table(DATA / "speech.parquet", columns=["voice"])["voice"].to_pylist())
    assert shipped == {*speech.SHIPPED_ENGLISH, *speech.SHIPPED_OTHER.values()}
    assert shipped.isdisjoint(voice for _, voice, held in speech.VOICES if not held)


# ── export ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_exported_towers_agree_with_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    towers, export = importlib.import_module("towers"), importlib.import_module("export")
    torch.manual_seed(0)
    model = towers.PocketTowers(towers.CONFIG)
    for module in model.modules():  # folding must carry real statistics, not those of a fresh norm
        if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            for values in (module.running_mean, module.running_var, module.weight.data, module.bias.data):
                values.uniform_(0.5, 1.5)
    weights = tmp_path / "pocket.safetensors"
    export.export(model.eval(), towers.CONFIG, weights)

    random = np.random.default_rng(0)
    images = random.integers(0, 256, (5, SIDE, SIDE, 3), np.uint8)
    mels = random.random((5, FRAMES, MELS), np.float32)
    ids = [text_ids(text) for text in ("cat", "grinning face", "猫", "", "flag: Côte d'Ivoire")]
    assert max(export.parity(model, weights, images, ids, mels).values()) < 1e-3  # half precision
