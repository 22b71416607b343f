"""Files are found by the row's patterns, by the dataset's card, or by the usual layouts; never by a quiet guess."""

from __future__ import annotations

import pytest

from damage import within
from embark.readers.layout import NoFiles, card_configs, choose, natural
from embark.types import EmbarkError, Source

MTEB = """---
license: mit
dataset_info:
- config_name: corpus
  features:
  - name: id
    dtype: string
configs:
- config_name: corpus
  data_files:
  - split: test
    path: corpus/test-*
- config_name: default
  data_files:
  - split: test
    path: qrels/test-*   # judgements
  - split: dev
    path:
    - "qrels/dev-0*"
    - 'qrels/dev-1*'
tags:
- mteb
---
# configs:
- nothing
"""
SHOWN = [
    {"config_name": "corpus", "data_files": [{"split": "test", "path": "corpus/test-*"}]},
    {
        "config_name": "default",
        "data_files": [
            {"split": "test", "path": "qrels/test-*"},
            {"split": "dev", "path": ["qrels/dev-0*", "qrels/dev-1*"]},
        ],
    },
]


def found(paths: list[str], split: str = "test", config: str | None = None, card: str = "", **files: str) -> list[str]:
    source = Source("org/x", "main", files={name: tuple(pattern.split()) for name, pattern in files.items()})
    return choose(source, split, config, [*paths, "README.md", ".gitattributes"], lambda: card)


def of_card(body: str) -> str:
    return f"---\nconfigs:\n{body}---\n"


# ── the card ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_configs_of_a_card() -> None:
    assert card_configs(MTEB) == SHOWN
    assert card_configs(MTEB.replace("\n", "\r\n")) == SHOWN
    indented = MTEB.replace("configs:\n", "configs:\n#\n\n").replace(
        "\n- config_name: default", "\n-\n  config_name: default"
    )
    assert card_configs(indented) == SHOWN


@pytest.mark.parametrize("front", ["", "license: mit\n", "configs: []\n", "configs:\n"])
def test_a_card_without_configs_tells_nothing(front: str) -> None:
    assert card_configs(f"---\n{front}---\n# Title\n") == []
    assert card_configs(front) == []


def test_other_ways_to_write_them() -> None:
    body = """
  - config_name: "a: b"
    data_files: "*.jsonl"
    default: true
  - data_files: [x.csv, 'y, z.csv']
    data_dir: here
  - {config_name: no, version: 1.0}
  - config_name: |
      folded
"""
    assert card_configs(of_card(body)) == [
        {"config_name": "a: b", "data_files": "*.jsonl", "default": "true"},
        {"data_files": ["x.csv", "y, z.csv"], "data_dir": "here"},
        {"config_name": "no", "version": "1.0"},
        {"config_name": "folded\n"},
    ]


@pytest.mark.parametrize(
    "body",
    [
        "- &anchor a\n",
        "- a: *anchor\n",
        "- a: {b: c\n",
        "- a: |\n  b\n c\n",
        "- a: !!python/object:os.system x\n  &b\n",
        "- a: b\n   c: d\n",
        "- a: 'b\n",
        "- plain\n",
    ],
)
def test_yaml_beyond_that_is_an_error_that_names_the_way_out(body: str) -> None:
    with pytest.raises(EmbarkError, match=r"org/x has `configs` that are not understood .*: name the files"):
        card_configs(of_card(body), "org/x")


def test_the_card_tells_the_files() -> None:
    paths = ["corpus/test-0.parquet", "qrels/test-0.parquet", "qrels/dev-00.parquet", "qrels/dev-10.parquet"]
    assert found(paths, "test", "corpus", MTEB) == paths[:1]
    assert found(paths, "test", None, MTEB) == paths[1:2]  # the default config
    assert found(paths, "dev", "default", MTEB) == paths[2:]


def test_patterns_of_a_card_are_those_of_hubs() -> None:
    paths = ["a.jsonl", "sub/b.jsonl", "sub/c.csv", "sub/deep/d.jsonl", "sub/notes.txt", "e[1].jsonl"]

    def train(pattern: str) -> list[str]:
        return found(paths, "train", None, of_card(f'- config_name: default\n  data_files: "{pattern}"\n'))

    assert train("*.jsonl") == ["a.jsonl", "e[1].jsonl"]
    assert train("**/*.jsonl") == ["a.jsonl", "e[1].jsonl", "sub/b.jsonl", "sub/deep/d.jsonl"]
    assert train("sub/*") == ["sub/b.jsonl", "sub/c.csv"]
    assert train("sub/?.{csv,json*}") == ["sub/b.jsonl", "sub/c.csv"]
    assert train("./[a-c].jsonl") == ["a.jsonl"]
    assert train("[!a]*.jsonl") == ["e[1].jsonl"]


def test_a_folder_of_a_card() -> None:
    card = of_card(
        "- config_name: en\n  data_dir: ./english/\n- config_name: de\n  data_dir: german\n  data_files: x*\n"
    )
    paths = ["english/test.csv", "german/test.csv", "german/x1.csv"]
    assert found(paths, "test", "en", card) == ["english/test.csv"]
    with pytest.raises(EmbarkError, match="has no files for split 'test' of config 'de'"):
        found(paths, "test", "de", card)
    assert found(paths, "train", "de", card) == ["german/x1.csv"]


def test_a_config_that_is_the_only_one_or_marked_needs_no_name() -> None:
    one = "- config_name: {}\n  data_files:\n  - split: test\n    path: {}.csv\n"
    assert found(["a.csv"], card=of_card(one.format("a", "a"))) == ["a.csv"]
    two = of_card(one.format("a", "a") + "  default: true\n" + one.format("b", "b"))
    assert found(["a.csv", "b.csv"], card=two) == ["a.csv"]
    assert found(["a.csv", "b.csv"], config="b", card=two) == ["b.csv"]
    with pytest.raises(EmbarkError, match="has no files for split 'test'"):
        found(["a.csv", "b.csv"], card=two.replace("  default: true\n", ""))


# ── layouts and patterns ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("config", "paths"),
    [
        (None, ["data/test-00000-of-00002.parquet", "data/test-00001-of-00002.parquet"]),
        (None, ["test-00000-of-00001.parquet"]),
        (None, ["test/0.parquet", "test/1.parquet"]),
        (None, ["test/0.tar", "test/1.tar", "test/2.tar", "test/10.tar"]),
        (None, ["test.parquet"]),
        (None, ["test.jsonl"]),
        (None, ["data/test.csv"]),
        ("default", ["data/test-0.parquet"]),
        ("en", ["en/test-00000-of-00001.parquet"]),
        ("en", ["en/test/0000.parquet"]),
        ("en", ["en/sample_test.parquet"]),
        ("en", ["en/x-test-0.parquet"]),
        ("en", ["data/en/test-0.parquet"]),
        ("en", ["en.jsonl"]),
        ("corpus", ["corpus.jsonl"]),
        ("queries", ["queries.jsonl"]),
        ("qrels", ["qrels/test.tsv"]),
        ("default", ["qrels/test.tsv"]),
    ],
)
def test_usual_layouts(config: str | None, paths: list[str]) -> None:
    others = [
        "data/train-0.parquet",
        "train/0.tar",
        "en/train-0.parquet",
        "latest/x.parquet",
        "qrels/train.tsv",
        "x.csv",
    ]
    assert found([*others, *reversed(paths)], config=config) == paths


def test_one_format_is_enough() -> None:
    assert found(["test.csv", "test.parquet", "test.jsonl"]) == ["test.parquet"]


def test_the_row_comes_first() -> None:
    paths = ["data/test-0.parquet", "odd/one.csv", "odd/two.csv", "odd/deep/two.csv"]
    assert found(paths, test="odd/*") == ["odd/deep/two.csv", "odd/one.csv", "odd/two.csv"]
    assert found(paths, test="odd/one* odd/two*") == ["odd/one.csv", "odd/two.csv"]
    assert found(paths, config="c", **{"c/test": "odd/one.csv", "test": "data/*"}) == ["odd/one.csv"]


def test_nothing_found_is_an_error_that_lists_what_is_there() -> None:
    said = r"org/x has no files for split 'dev' of config 'en'\. Its files: \.gitattributes, README\.md, test\.csv\."
    with pytest.raises(EmbarkError, match=said):
        found(["test.csv"], "dev", "en")
    with pytest.raises(EmbarkError, match=r"has no files for split 'test' \(patterns: a\*, b\*\)\. .* and 10 more"):
        found([f"x{at}.csv" for at in range(20)], test="a* b*")


@pytest.mark.parametrize("pattern", ["**/" * 12 + "x", "*a" * 12 + "b.csv", "**" * 12 + "x", "{a,b}*" * 8])
def test_a_pattern_of_a_stranger_takes_no_longer_than_others(pattern: str) -> None:
    paths = ["a/" * 20 + "a" * 40 + ".csv", "README.md"]
    with within(10), pytest.raises(NoFiles):
        choose(Source("org/data", "1"), "train", None, paths, lambda: card_with(pattern))


def test_many_stars_fit_as_few_do() -> None:
    paths = ["a/b/c-0-of-2.csv", "a/b/d/c-1-of-2.csv", "a/c-x.csv", "README.md"]
    pattern = "**/*-*-of-*.csv"
    assert choose(Source("org/data", "1"), "train", None, paths, lambda: card_with(pattern)) == paths[:2]


def test_a_pattern_that_is_none_names_the_dataset() -> None:
    with pytest.raises(EmbarkError, match="The card of dataset org/data cannot be read: bad character range"):
        choose(Source("org/data", "1"), "train", None, ["a.csv", "README.md"], lambda: card_with("[z-a].csv"))


def test_a_card_without_an_end_is_read_at_once() -> None:
    with within(10):
        assert card_configs("---" + "\n" * 100_000) == []


def test_signs_that_look_like_digits_are_no_numbers() -> None:
    assert natural("1²2.csv") < natural("10.csv")


def card_with(pattern: str) -> str:
    """A card with one pattern."""
    return f"---\nconfigs:\n- config_name: default\n  data_files: '{pattern}'\n---\n"
