"""The gate: what is removed from texts that leave, and what must stay as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark import published
from embark.boards.facts import card_facts, row_facts
from embark.models import MODELS
from embark.redaction import Content, Markup, Private, distinctive, redacted, redacted_value, this_machine
from embark.settings import load_settings
from embark.tasks import BENCHMARKS, TASKS

HOME = "/home/jane doe"
PRIVATE = Private(
    folders=((HOME, "~"), (f"{HOME}/scores", "results"), ("/tmp", "tmp")),
    users=("jdoe77", "test", "a"),
    hosts=("gpu-box-7", "localhost"),
    secrets=("s3cret-value-1",),
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{HOME}/My Data/cap.csv has no row", "cap.csv has no row"),
        (f"{HOME}/My Old Photos 2023/Client X/a.png is damaged", "a.png is damaged"),
        (f"Row 1 of {HOME}/Photos (2023)/Client X/a.csv: no", "Row 1 of a.csv: no"),
        ("/Volumes/My Passport for Mac/Client X/a.png, b", "a.png, b"),
        (f"{HOME}/a.csv has no text/label column", "a.csv has no text/label column"),
        (f"{HOME}/scores/a__b/1/T.json is damaged.", "T.json is damaged."),
        (f"see {HOME}, {HOME}/scores and /tmp", "see ~, results and tmp"),
        ("at /home/bob and /Users/eve.", "at ~ and ~."),
        ("[Errno 2] No such file: '/mnt/my other disk/x y.bin'", "[Errno 2] No such file: 'x y.bin'"),
        ("/scratch/p1/run/x.pt,/scratch/p1/y.pt", "x.pt,y.pt"),
        (r"C:\Users\bob\x.txt and C:/Users/bob/y.txt", "x.txt and y.txt"),
        (r"'C:\\Users\\bob\\x.txt' on \\server\share\z.csv", r"'x.txt' on z.csv"),
        ("//server/share/z.csv, ~/models/m, ../up/m, ./m", "z.csv, m, m, m"),
        ("file:///srv/data/a.csv s3://bucket/prefix/b.npy ray://head:10001", "a.csv b.npy a private address"),
        ("https://me:pw@hub.example.com/x?token=abc&page=2", "https://hub.example.com/x?page=2"),
        ("http://mirror.corp/a http://10.1.2.3:80/b http://localhost:9/c", " ".join(["a private address"] * 3)),
        ("jdoe77@gpu-box-7 said no; JDOE77's job", "a user@a host said no; a user's job"),
        ("the job on gpu-box-7.site.edu", "the job on a host"),
        ("key s3cret-value-1, hf_abcdefghijklmnopqrstu", "key …, …"),
        (f"pa-{'aZ3_' * 11} jina_{'0f' * 16}{'aZ3k' * 7} github_pat_{'aZ3k' * 6} glpat-{'aZ3-' * 5}", "… … … …"),
        (f"AIza{'aZ3kQ' * 7} or Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4", "… or Bearer …"),
        ("[fd12:3456::1]:29500 and fe80::1%eth0, fd00::", "a private address and a private address, a private address"),
        ("node 10.0.0.5 and 192.168.1.4:8080", "node a private address and a private address:8080"),
        ("/tmp/torchinductor_jdoe77", "torchinductor_user"),
        (f"file://{HOME}/Client X/a.csv, FILE:///C:/Users/bob/b.csv, file:/srv/c.csv", "a.csv, b.csv, c.csv"),
        (r"\\?\D:\Client X\a.csv and \\?\UNC\server\share\z.csv", "a.csv and z.csv"),
        ("%2Fsrv%2Fclient%2Fa.csv and file%3A%2F%2F%2Fhome%2Fbob%2Fb.csv", "a.csv and b.csv"),
        ("https://a.org/x?to=%2Fsrv%2Fclient%2Fa.csv&at=/mnt/client/b.csv", "https://a.org/x?to=a.csv&at=b.csv"),
        ("https://a.org/x#/home/jane%20doe/Client/a.csv, file:///home/jane%20doe", "https://a.org/x#a.csv, ~"),
    ],
)
def test_what_tells_of_a_machine_is_removed(text: str, shown: str) -> None:
    assert redacted(text, PRIVATE) == shown
    assert redacted(shown, PRIVATE) == shown


@pytest.mark.parametrize(
    "text",
    [
        "and/or, n/a, /pull/5165, 1/2, 24/7, km/h, 2024/01/02, query/document/score", "openai/clip-vit-base-patch32",
        "test split of a task; contest, latest, localhost", "test/tiny and jdoe77/model stay as models",
        "https://huggingface.co/datasets/a/b/resolve/main/x.parquet", "https://a.org/api/a%2Fb, a%2Fb, 100 %20",
        "https://a.org/page#/tasks/a", "https://arxiv.org/abs/2401.00001?x=y#s",
        r"$\frac{a}{b}$ \alpha/\beta", "curand 10.3.5.147, torch 2.13.0", "a /s b / c //", "ratio -1/2 +3/4", "",
        "at 12:30:05, cafe:1, fd12:3, a::b, jina_embeddings_v5_omni_nano_retrieval_of_texts, pa-rt-of-speech",
        "results/<org>__<model>/<revision>/T.json", "</td></tr><td>x</td>", "MMEB/ImageNet-1K, VOC2007/v1.1", "(a)/(b)",
    ],
)  # fmt: skip
def test_what_is_no_place_stays(text: str) -> None:
    assert redacted(text, PRIVATE) == text


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from (*texts(name), *texts(entry))
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from texts(entry)


def test_nothing_of_the_catalogue_is_changed() -> None:
    """Names, labels, templates, notes, addresses and errata of all tasks, models and published tables."""
    known = [*map(asdict, TASKS.values()), *map(asdict, MODELS.values()), *map(asdict, BENCHMARKS.values())]
    known += [*map(row_facts, TASKS.values()), *map(card_facts, MODELS.values())]
    known += [vars(erratum) for family in published.FAMILIES for erratum in published.errata(family)]
    known += [{"tables": json.loads(json.dumps(published.tables(), default=str))}]
    private = replace(PRIVATE, users=("jdoe77", "vision", "model"), folders=(*PRIVATE.folders, ("/root", "~")))
    distinct = {text for value in known for text in texts(value)}
    assert len(distinct) > 5_000
    assert [text for text in distinct if redacted(text, private) != text] == []


def test_content_loses_only_folders_of_this_machine_and_keys() -> None:
    text = "open /etc/passwd or C:\\x\\y as jdoe77 at http://localhost/x, and/or ~/y"
    assert redacted(Content(text), PRIVATE) == text
    assert redacted(Content(f"{HOME}/pics/a.png s3cret-value-1"), PRIVATE) == "a.png …"
    assert isinstance(redacted(Content("x"), PRIVATE), Content)


def test_drawings_keep_their_tags() -> None:
    image = '<image href="data:image/png;base64,iV\n/a/b/c"/>'
    svg = f'<svg><a href="#x"/></g><g id="y">{image}<text>{HOME}/s/t.x</text></svg>'
    assert redacted(Markup(svg), PRIVATE) == svg.replace(f"{HOME}/s/t.x", "t.x")


@pytest.mark.parametrize("name", ["a", "bob", "test", "root", "Ubuntu", "1234"])
def test_names_that_are_words_stay_where_they_stand_alone(name: str) -> None:
    assert not distinctive(name)
    private = Private(users=(name,), hosts=(name,))
    assert redacted(f"the {name} split", private) == f"the {name} split"
    assert redacted(f"/home/{name}/x and /data/{name}/y", private) == "x and y"


@given(st.text(), st.text())
def test_the_gate_is_through_once(before: str, after: str) -> None:
    for text in (f"{before}{HOME}/x/y {after}", f"{before}/{after}", f'{before}"/a b/c"{after}'):
        shown = redacted(text, PRIVATE)
        assert HOME not in shown
        assert f"{HOME}/x" not in redacted(Content(text), PRIVATE)


def test_values_are_looked_into(tmp_path: Path) -> None:
    value = {f"{HOME}/k": [1, None, (f"{HOME}/v", True)], "p": tmp_path / "x"}
    assert redacted_value(value, Private(((HOME, "~"),))) == {"k": [1, None, ("v", True)], "p": "x"}


def test_this_machine_is_known_by_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scores").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "scores")
    settings = load_settings(tmp_path / "home", tmp_path / "link")
    environment = {"HOME": str(tmp_path / "me"), "USER": "jdoe77", "HOSTNAME": "box.site.edu"}
    private = this_machine(settings, environment | {"MY_API_KEY": "kkkkkkk1"})
    folders = dict(private.folders)
    assert folders[str(tmp_path / "me")] == "~"
    assert folders[str(tmp_path / "scores")] == folders[str(tmp_path / "link")] == "results"
    assert "jdoe77" in private.users
    assert {"box", "box.site.edu"} <= set(private.hosts)
    assert "kkkkkkk1" in private.secrets


@pytest.mark.parametrize(
    "piece",
    ["a.b-", "a.", "/a a", "'/", "~/", "//a", "\\\\a", "x://", "10.1.2.", "fd12:", "eyJ-", "pa-a.", f"{HOME}/a b"],
)
def test_long_texts_take_time_in_proportion(piece: str) -> None:
    """No pattern looks at a text again from each of its places: this would take minutes."""
    redacted(piece * 40_000, PRIVATE)
