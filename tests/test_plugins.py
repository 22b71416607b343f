"""Plug-ins as packages that are really installed: a distribution with an entry point on the path of another process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs" / "models.md"
GOOD = re.findall(r"^`my_package.py`:\n\n```py\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.S | re.M)[0]
STUDY = re.findall(r"^```py\n(.*?)```", (DOCS.parent / "analysis.md").read_text(encoding="utf-8"), flags=re.S | re.M)[0]


PLUGIN = "from embark import ModelCard; from embark.plugins import Plugin; plugin = Plugin"


def installed(folder: Path, name: str, code: str) -> Path:
    """What pip leaves behind for a package with a plug-in."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[embark]\n{name} = {name}:plugin\n")
    (folder / f"{name}.py").write_text(code)
    return folder


def run(folder: Path, code: str, *flags: str, allowed: str = "my-package,second") -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"
    env = {**os.environ, "EMBARK_PLUGINS": allowed}
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=False, env=env)


def test_a_plug_in_brings_models_families_tasks_and_benchmarks(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", GOOD)
    done = run(
        folder,
        "import embark\n"
        "from embark.cli import main\n"
        "run = embark.evaluate('me/bytes', 'Mine', show_progress=False)\n"
        "print(run.table())\n"
        "print(embark.get_model('bytes:anything').card.dim, embark.get_tasks('MyT*')[0].family)\n"
        "sys.argv = ['embark', 'models', '--loader', 'bytes']\n"
        "main()\n",
        "-W",
        "error",
    )
    assert done.returncode == 0, done.stderr
    assert "MyTask" in done.stdout
    assert "256 Mine" in done.stdout
    assert "me/bytes" in done.stdout


def test_a_plug_in_brings_a_study(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", STUDY)
    done = run(
        folder,
        "import embark\n"
        "from embark.cli import main\n"
        "by_name = embark.analyze.run('spread', 'ARK', top=2)\n"
        "assert by_name == embark.analyze.spread('ARK', top=2)\n"
        "print(by_name.table().format('csv'), end='---\\n')\n"
        f"plot = ['--plot', {str(tmp_path / 'spread.svg')!r}]\n"
        "for words in (['spread', '-b', 'ARK', '--top', '2', '--format', 'csv', *plot], ['--help']):\n"
        "    sys.argv = ['embark', 'analyze', *words]\n"
        "    try: main()\n"
        "    except SystemExit: print(end='---\\n')\n",
        "-W",
        "error",
    )
    assert done.returncode == 0, done.stderr
    by_name, printed, listed, _ = done.stdout.split("---\n")
    assert by_name.strip() == printed.strip()
    assert printed.startswith("task,spread\nARK/")
    assert len(printed.split()) == 3
    assert listed.split("Of plug-ins:\n")[1].split("\n")[0].split()[:3] == ["spread", "How", "far"]
    assert (tmp_path / "spread.svg").stat().st_size > 5_000


BROKEN = {
    "missing": ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    "raises": ("def plugin(): raise RuntimeError('out of order')", "RuntimeError: out of order"),
    "number": ("plugin = 7", "number:plugin is no embark.plugins.Plugin"),
    "empty": ("", "AttributeError"),
    "circular": ("import embark.tasks; embark.tasks.TASKS['ImageNet']", "take rows from the tables"),
    "exits": ("import sys; sys.exit('no license')", "SystemExit: no license"),
    "leaves": ("def plugin(): raise SystemExit(0)", "SystemExit: 0"),
    "card": (f"{PLUGIN}(cards=ModelCard('me/x', '1', 'x', ()))", "TypeError: its cards are no tuple of ModelCard"),
    "names": (f"{PLUGIN}(cards=('me/x',))", "TypeError: its cards are no tuple of ModelCard"),
    "tasks": (f"{PLUGIN}(tasks=ModelCard('me/x', '1', 'x', ()))", "TypeError: its tasks are no tuple of Task"),
    "nothing": (f"{PLUGIN}(benchmarks=None)", "TypeError: its benchmarks are no tuple of Benchmark"),
    "study": (f"{PLUGIN}(studies=(print,))", "TypeError: its studies are no tuple of Study"),
    "undeclared": (
        f"from embark.seams import Study; {PLUGIN}(studies=(Study('mine', 'Mine.', print, 'models'),))",
        "EmbarkError: The study 'mine' is declared wrongly: it needs scores or",
    ),
    "pair": (f"{PLUGIN}(loaders=('x', 'm:f'))", "TypeError: its loaders are no mapping"),
    "function": (f"{PLUGIN}(loaders={{'x': print}})", "TypeError: its loader 'x' is neither"),
}


@pytest.fixture(scope="module")
def beside_broken_ones(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """A process with a good plug-in among all the broken ones."""
    folder = installed(tmp_path_factory.mktemp("plug-ins"), "my_package", GOOD)
    for name, (code, _) in BROKEN.items():
        installed(folder, f"broken_{name}", code)
    return run(
        folder,
        "import embark; print(embark.get_model('me/bytes').card.name, embark.get_model('embark/pocket'))\n"
        "print(len(embark.get_tasks('Pocket*')), len(list(embark.models.MODELS)))",
        allowed=",".join(["my-package", *(f"broken-{name}" for name in BROKEN)]),
    )


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plug_in_is_named_and_left_out(
    name: str, beside_broken_ones: subprocess.CompletedProcess[str]
) -> None:
    done = beside_broken_ones
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("me/bytes")
    [told] = re.findall(rf"The embark plug-in 'broken_{name}': it is left out (.*)", done.stderr)
    assert BROKEN[name][1] in told


def test_a_name_that_is_taken_stays_with_its_owner(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", GOOD.replace("me/bytes", "embark/pocket"))
    done = run(folder, "import embark; print(embark.get_model('embark/pocket').card.loader)")
    assert done.stdout.strip() == "pocket"
    assert "its row 'embark/pocket' is left out: there is one of that name already" in done.stderr


def test_a_loader_family_stays_with_whoever_had_its_name_first(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", GOOD)
    installed(folder, "second", f"{PLUGIN}(loaders={{'bytes': 'second:load', 'pocket': 'second:load'}})")
    done = run(
        folder,
        "from embark import plugins\n"
        "from embark.models import LOADERS, get_model\n"
        "brought = plugins.loaders(tuple(LOADERS))\n"
        "print(brought, type(get_model('bytes:anything')).__module__)\n",
    )
    assert done.stdout.strip() == "{'bytes': 'my_package:load'} my_package", done.stderr
    for name in ("bytes", "pocket"):
        assert f"plug-in 'second': its loader '{name}' is left out: there is one of that name already" in done.stderr


def test_a_card_without_a_loader_is_an_error(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", GOOD.replace('{"bytes"', '{"byte"'))
    done = run(folder, "import embark; embark.get_model('me/bytes')")
    assert "There is no loader for me/bytes named 'bytes'. Did you mean byte?" in done.stderr


def test_nothing_is_looked_for_at_import(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", GOOD)
    done = run(folder, "import embark, embark.models, embark.tasks; print('my_package' in sys.modules)")
    assert done.stdout.strip() == "False"
