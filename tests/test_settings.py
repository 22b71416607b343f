"""Settings come from the option, else the environment, else a settings file, else a default."""

from __future__ import annotations

from pathlib import Path

import pytest

from embark.settings import Settings, item_limits, load_settings
from embark.types import EmbarkError


@pytest.fixture
def bare(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is set anywhere."""
    for name in ("EMBARK_HOME", "EMBARK_RESULTS", "EMBARK_WORKERS", "EMBARK_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    return elsewhere


def in_user_file(root: Path, text: str) -> None:
    (root / "config" / "embark").mkdir(parents=True)
    (root / "config" / "embark" / "settings.toml").write_text(text)


def test_defaults(bare: Path) -> None:
    found = load_settings()
    assert found.home == bare / "cache" / "embark"
    assert found.store == found.home / "store"
    assert found.results == Path("results")
    assert found.workers >= 1


def test_option_before_environment_before_file_before_default(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_user_file(bare, 'home = "/user"\nworkers = 99\n')
    assert load_settings().home == Path("/user")
    assert load_settings().workers == 99
    Path("embark.toml").write_text("workers = 98\n")
    assert load_settings().home == Path("/user")
    assert load_settings().workers == 98  # the folder's file counts before the user's, each setting by itself
    monkeypatch.setenv("EMBARK_HOME", "/environment")
    monkeypatch.setenv("EMBARK_WORKERS", "5")
    assert load_settings().home == Path("/environment")
    assert load_settings().workers == 5
    assert load_settings(home="/option", workers=7) == Settings(Path("/option"), Path("results"), 7)


def test_an_empty_variable_is_as_good_as_none(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBARK_RESULTS", "")
    assert load_settings().results == Path("results")


def test_a_tilde_is_the_home_folder(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(bare))
    assert load_settings(home="~/vectors").home == bare / "vectors"


def test_memory_is_a_number_too(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().memory == 512
    Path("embark.toml").write_text("memory = 64\n")
    assert load_settings().memory == 64
    monkeypatch.setenv("EMBARK_MEMORY", "none")
    with pytest.raises(EmbarkError, match="'memory' must be a whole number"):
        load_settings()


def test_the_limits_of_an_item(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert item_limits() == {"item_memory": 4096, "item_seconds": 120}
    in_user_file(bare, "item_memory = 8192\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(bare / "config"))
    monkeypatch.setenv("EMBARK_ITEM_SECONDS", "")
    assert item_limits() == {"item_memory": 8192, "item_seconds": 120}
    monkeypatch.setenv("EMBARK_ITEM_MEMORY", "100")
    monkeypatch.setenv("EMBARK_ITEM_SECONDS", "5")
    assert item_limits() == {"item_memory": 100, "item_seconds": 5}


@pytest.mark.parametrize("stated", ["many", "0", "1.5"])
def test_wrong_limits_of_an_item_are_an_error_before_anything_is_read(
    stated: str, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBARK_ITEM_MEMORY", stated)
    with pytest.raises(EmbarkError, match="'item_memory' must be"):
        load_settings()


def test_bad_toml_is_an_error_that_names_the_file(bare: Path) -> None:
    Path("embark.toml").write_text("home = \n")
    with pytest.raises(EmbarkError, match=r"embark\.toml is not valid TOML"):
        load_settings()


def test_an_unknown_setting_is_an_error_that_names_the_known_ones(bare: Path) -> None:
    in_user_file(bare, 'hom = "/there"\n')
    with pytest.raises(EmbarkError, match=r"has unknown settings hom; known: home, results, workers, memory"):
        load_settings()


@pytest.mark.parametrize("workers", ["many", "2.5", "0", "-1"])
def test_workers_must_be_a_whole_number_above_zero(workers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBARK_WORKERS", workers)
    with pytest.raises(EmbarkError, match="'workers' must be"):
        load_settings()


@pytest.mark.parametrize("workers", ["[4]", "2.5", "true", '"many"'])
def test_workers_of_a_wrong_type_in_the_file_are_an_error(workers: str, bare: Path) -> None:
    Path("embark.toml").write_text(f"workers = {workers}\n")
    with pytest.raises(EmbarkError, match="'workers' must be a whole number"):
        load_settings()


@pytest.mark.parametrize("text", ["home = 3", "results = []"])
def test_a_folder_of_a_wrong_type_in_the_file_is_an_error(text: str, bare: Path) -> None:
    Path("embark.toml").write_text(text)
    with pytest.raises(EmbarkError, match="must be a path"):
        load_settings()


def test_a_settings_file_that_is_not_text_is_an_error(bare: Path) -> None:
    Path("embark.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(EmbarkError, match=r"embark\.toml is not valid TOML"):
        load_settings()


def test_the_hub(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (load_settings().endpoint, load_settings().offline) == ("https://huggingface.co", False)
    in_user_file(bare, 'endpoint = "https://mirror.example/hf/"\noffline = true\n')
    assert (load_settings().endpoint, load_settings().offline) == ("https://mirror.example/hf", True)
    monkeypatch.setenv("EMBARK_ENDPOINT", "http://localhost:1")
    monkeypatch.setenv("EMBARK_OFFLINE", "no")
    assert (load_settings().endpoint, load_settings().offline) == ("http://localhost:1", False)
    assert load_settings(offline=True).offline


def test_the_variables_of_huggingface_hub_count_where_nothing_else_is_said(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert (load_settings().endpoint, load_settings().offline) == ("https://mirror.example", True)
    monkeypatch.setenv("EMBARK_ENDPOINT", "http://localhost:1")
    monkeypatch.setenv("EMBARK_OFFLINE", "0")
    assert (load_settings().endpoint, load_settings().offline) == ("http://localhost:1", False)


def test_settings_of_the_hub_that_make_no_sense_are_errors(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbarkError, match="'endpoint' must be an address"):
        load_settings(endpoint="huggingface.co")
    monkeypatch.setenv("EMBARK_OFFLINE", "perhaps")
    with pytest.raises(EmbarkError, match="'offline' must be true or false, not 'perhaps'"):
        load_settings()
    Path("embark.toml").write_text("offline = 1\n")
    with pytest.raises(EmbarkError, match="'offline' must be true or false, not 1 as in"):
        load_settings()


def test_limits_of_an_account_are_none_unless_stated(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (load_settings().requests_per_minute, load_settings().tokens_per_minute) == (None, None)
    Path("embark.toml").write_text("tokens_per_minute = 10000\n")
    monkeypatch.setenv("EMBARK_REQUESTS_PER_MINUTE", "3")
    assert (load_settings().requests_per_minute, load_settings().tokens_per_minute) == (3, 10_000)
    with pytest.raises(EmbarkError, match="'tokens_per_minute' must be at least 1, not 0"):
        load_settings(tokens_per_minute=0)


def test_vectors_may_live_elsewhere(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(bare))
    assert load_settings(store="~/vectors").store == bare / "vectors"
    assert load_settings(store="file:///shared/vectors").store == Path("/shared/vectors")
    in_user_file(bare, 'store = "s3://bucket/user/"\n')
    assert load_settings().store == "s3://bucket/user"
    assert load_settings().home == bare / "cache" / "embark"
    monkeypatch.setenv("EMBARK_STORE", "gs://bucket")
    assert load_settings().store == "gs://bucket"
    for wrong, why in [("s3://key:secret@bucket", "holds a password"), ("s3:///prefix", "must be a folder or an add")]:
        with pytest.raises(EmbarkError, match=why) as error:
            load_settings(store=wrong)
        assert "secret" not in str(error.value)


def test_a_folder_says_nothing_about_where_vectors_live(bare: Path) -> None:
    Path("embark.toml").write_text('store = "s3://attacker/bucket"\n')
    with pytest.raises(EmbarkError, match=r"must not set 'store', as a folder may come from anybody: set EMBARK_STORE"):
        load_settings()


def test_where_models_run(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (load_settings().engine, load_settings().address) == ("local", None)
    in_user_file(bare, 'engine = "ray:gpus=1"\naddress = "auto"\n')
    assert (load_settings().engine, load_settings().address) == ("ray:gpus=1", "auto")
    monkeypatch.setenv("EMBARK_ADDRESS", "head:6379")
    assert load_settings().address == "head:6379"
    assert load_settings(engine="local", address="ray://head:10001").address == "ray://head:10001"


@pytest.mark.parametrize("line", ['address = "attacker:6379"', 'engine = "ray"'])
def test_a_folder_says_nothing_about_where_models_run(line: str, bare: Path) -> None:
    Path("embark.toml").write_text(line)
    with pytest.raises(EmbarkError, match=r"must not set '(address|engine)', as a folder may come from anybody: set"):
        load_settings()
