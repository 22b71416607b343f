"""The examples: scripts that people copy, run as they stand on a folder of pictures."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from embark.cli import app
from embark.items import emoji
from embark.tables import Note, Table

EXAMPLES = Path(__file__).parents[1] / "examples"
CLASSES = ("animals & nature", "flags", "food & drink")
WRITTEN = {"confusion.png", "differences.png", "map.png", "results", "table.tex"}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty emoji of each of three groups, a folder each."""
    folder = tmp_path_factory.mktemp("pictures")
    for group in CLASSES:
        place = folder / group.partition(" ")[0]
        place.mkdir()
        symbols = [symbol for symbol in emoji.untoned() if symbol.group.casefold() == group]
        for symbol in symbols[:40]:
            (place / f"{symbol.code}.png").write_bytes(symbol.art)
    return folder


def ran(out: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """An example, with embark's command on the path and vectors of its own."""
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": commands, "EMBARK_HOME": str(out / "home")}
    return subprocess.run(
        [*map(str, words)], capture_output=True, text=True, env=environment, cwd=out, timeout=300, check=False
    )


@pytest.mark.slow
def test_own_data_in_the_shell_and_in_python(pictures: Path, tmp_path: Path) -> None:
    shell = ran(tmp_path, "sh", EXAMPLES / "own_data.sh", pictures, "shell")
    assert shell.returncode == 0, shell.stderr
    assert "passed: embark/pocket is not worse than embark/handmade" in shell.stderr
    assert {path.name for path in (tmp_path / "shell").iterdir()} == WRITTEN
    python = ran(tmp_path, sys.executable, EXAMPLES / "own_data.py", pictures, "python")
    assert python.returncode == 0, python.stderr
    assert {path.name for path in (tmp_path / "python").iterdir()} == WRITTEN
    latex = [(tmp_path / form / "table.tex").read_text() for form in ("shell", "python")]
    assert latex[0] == latex[1]
    assert latex[0].count(r"\mathbf") == 3  # the best mean, probe and zero-shot score
    assert "tie" not in latex[0]  # a column that is not there is not explained
    assert len((EXAMPLES / "own_data.py").read_text().splitlines()) <= 40


@pytest.mark.slow
def test_the_gate_of_the_examples_closes(pictures: Path, tmp_path: Path) -> None:
    for words in (["sh", EXAMPLES / "own_data.sh"], [sys.executable, EXAMPLES / "own_data.py"]):
        gate = ran(tmp_path, *words, pictures, "out", "embark/random", "embark/pocket")
        assert gate.returncode == 1, gate.stderr
        losses = re.findall(r"(\w[\w ]*): -\d\d\.\d points \(p < 0\.0001", gate.stderr)
        assert sorted(losses) == ["PicturesProbe", "PicturesZeroShot", "mean of 2 tasks"], gate.stderr


@pytest.mark.slow
def test_the_plug_in_is_installed_and_its_parts_work_in_every_command(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, EXAMPLES / "plugin"]
    assert subprocess.run(pip, check=False, timeout=300).returncode == 0
    place = {"PYTHONPATH": str(site), "EMBARK_HOME": str(tmp_path / "home")}

    def embark(*words: str) -> str:
        command = [sys.executable, "-m", "embark", "--plugins", "embark-colors", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | place, cwd=tmp_path, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run = embark("run", "-m", "colors/mean", "-m", "embark/random", "-t", "ColorFamilies")
    assert re.search(r"ColorFamilies +share_alike +14\.3 +83\.3 \[70\.8, 91\.2\] ", run)
    assert "colors/mean is better than embark/random on 1" in embark("compare", "colors/mean", "embark/random")
    assert re.search(r"1 +1 +A +colors/mean +83\.3 \[70\.8, 91\.2\]", embark("leaderboard", "-b", "Colors"))
    assert re.search(r"skyblue +0\.000", embark("analyze", "hardest", "-t", "ColorFamilies", "--top", "5"))
    embark("site", "-b", "Colors", "-o", "page")
    assert "colors/mean" in "".join(path.read_text() for path in (tmp_path / "page").rglob("*.js"))
    for kind, name in (("evaluator", "neighbors"), ("reader", "colors"), ("study", "hardest")):
        assert embark("show", f"--{kind}", name).startswith(f"{name}: ")
    assert "embark_colors:load" in embark("show", "--loader", "mean-color")


def test_explanations_of_columns_go_with_them() -> None:
    table = Table(("model", "tie"), (), (Note("tie: models with the same letter", column="tie"), "2 tasks"))
    assert table.only("model").notes == ("2 tasks",)
    assert table.only("*").notes == table.notes


# ── clusters ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CLUSTERS = ("kuberay.yaml", "slurm.sh")
RUN = get_command(app).commands["run"]  # type: ignore[attr-defined]
HAS_ENGINES = any("--engine" in parameter.opts for parameter in RUN.params)  # else they are checked once it has


def commands(text: str) -> list[list[str]]:
    """The words of the embark commands of a shell script, without `embark`."""
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.strip().startswith("embark ")]


def parsed(words: list[str]) -> dict[str, Any]:
    """What `embark run` understands; nothing is run."""
    name, *rest = words
    stated = {option: rest[rest.index(option) + 1] for option in ("--engine", "--address")}
    assert (name, stated["--engine"].partition(":")[0], stated["--address"]) == ("run", "ray", "auto")
    if not HAS_ENGINES:
        rest = [word for word in rest if word not in {*stated, *stated.values()}]
    with RUN.make_context(name, rest) as context:
        return dict(context.params)


def kuberay() -> Any:
    return yaml.safe_load((EXAMPLES / "kuberay.yaml").read_text(encoding="utf-8"))


def test_the_commands_of_the_cluster_files_are_understood() -> None:
    [kubernetes] = commands(kuberay()["spec"]["entrypoint"])
    [slurm] = commands((EXAMPLES / "slurm.sh").read_text(encoding="utf-8"))
    for words in (kubernetes, slurm):
        options = parsed(words)
        assert len(options["model"]) == 1
        assert options["benchmark"]
    assert parsed(kubernetes)["store"].startswith("s3://")


def test_the_slurm_script_parses_and_names_what_it_needs() -> None:
    script = EXAMPLES / "slurm.sh"
    subprocess.run(["bash", "-n", script], check=True, timeout=30)
    environment = {"PATH": os.environ["PATH"]}
    run = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode != 0
    assert "MODEL: name a model" in run.stderr
    options = re.findall(r"^#SBATCH (--[a-z-]+)", script.read_text(encoding="utf-8"), flags=re.M)
    assert {"--nodes", "--ntasks-per-node", "--gpus-per-node", "--cpus-per-task", "--time", "--requeue"} <= {*options}


def test_the_rayjob_has_what_kuberay_asks_for() -> None:
    job = kuberay()
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    [workers] = cluster["workerGroupSpecs"]
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    pods = [group["template"]["spec"] for group in (cluster["headGroupSpec"], workers)]
    images = {container["image"] for pod in pods for container in pod["containers"]}
    assert len(images) == 1  # Ray's nodes must have the same versions
    for pod in pods:
        mounted = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
    [container] = pods[1]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1


@pytest.mark.parametrize("name", CLUSTERS)
def test_what_to_replace_is_explained_at_the_top(name: str) -> None:
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    top = [line for line in lines if line.startswith("#")]
    placeholders = set(re.findall(r"YOUR-[A-Z]+", "\n".join(lines)))
    assert placeholders
    assert placeholders <= set(re.findall(r"YOUR-[A-Z]+", "\n".join(top)))
    assert any("never ran on a real cluster" in line for line in top)
