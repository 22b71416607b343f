"""Plug-ins as packages that are really installed: a distribution with an entry point on the path of another process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from embark.readers import READERS

DOCS = Path(__file__).parents[1] / "docs"
PLUGINS = (DOCS / "plugins.md").read_text(encoding="utf-8")
GOOD = re.findall(r"^`my_package.py`:\n\n```py\n(.*?)```", PLUGINS, flags=re.S | re.M)[0]
STUDY = re.findall(r"^```py\n(.*?)```", (DOCS / "analysis.md").read_text(encoding="utf-8"), flags=re.S | re.M)[0]


LOADER = "__import__('embark.seams').seams.Loader"
PLUGIN = "from embark.types import ModelCard; from embark.plugins import Plugin; plugin = Plugin"


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


READER = re.findall(r"`my_readers.py`:\n\n```py\n(.*?)```", (DOCS / "data.md").read_text(encoding="utf-8"), flags=re.S)[
    0
]
ROW = """
[[task]]
name = "Own"
evaluator = "choice"
reader = "triplets"
modalities = ["text"]
columns = { query = "query", near = "near", far = "far" }
source = { id = "triplets" }
"""


def test_a_plug_in_brings_a_reader_and_rows_of_it(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_readers", READER)
    (folder / "triplets").mkdir()
    (folder / "triplets" / "test.csv").write_text("query,near,far\nred apple,apple,car\nfast car,car,apple\n")
    (folder / "own.toml").write_text(ROW)
    (folder / "wrong.toml").write_text(ROW.replace("choice", "sts") + "metric = 'cosine_spearman'\n")
    (folder / "odd.toml").write_text(ROW + "options = { order = 1 }\n")
    done = run(
        folder,
        "import embark\n"
        "from embark.readers import READERS\n"
        f"folder = {str(folder)!r}\n"
        "tasks = ['Triplets', *embark.load_tasks(folder + '/own.toml')]\n"
        "run = embark.evaluate('embark/pocket', tasks, show_progress=False)\n"
        "print(*(result.task for result in run.results), run.skipped)\n"
        "print(READERS['triplets'].version, 'triplets' in embark.seams.reference('reader').rows)\n"
        "print(embark.seams.reference('reader', 'triplets').table())\n"
        "for name in ('wrong', 'odd'):\n"
        "    try:\n"
        "        embark.load_tasks(f'{folder}/{name}.toml')\n"
        "    except embark.EmbarkError as error:\n"
        "        print(error)\n",
        "-W",
        "error",
        allowed="my-readers",
    )
    assert done.returncode == 0, done.stderr
    assert "Triplets Own []" in done.stdout
    assert "1 True" in done.stdout
    assert re.search("column +near +the nearer texts", done.stdout)
    assert "'triplets' serves choice, not 'sts'" in done.stdout
    assert "There is no option of 'triplets' named 'order'" in done.stdout


def test_results_of_a_plug_in_that_is_not_allowed_any_more_are_left_out_and_named(tmp_path: Path) -> None:
    """Those on a task of the plug-in, and those on a row of the user's that names its reader; all others stay."""
    folder = installed(tmp_path, "my_readers", READER)
    (folder / "triplets").mkdir()
    (folder / "triplets" / "test.csv").write_text("query,near,far\nred apple,apple,car\nfast car,car,apple\n")
    (folder / "own.toml").write_text(ROW)
    allowed = run(
        folder,
        "import embark\n"
        f"tasks = ['Triplets', 'PocketFlagZeroShot', *embark.load_tasks({str(folder / 'own.toml')!r})]\n"
        "embark.evaluate(['embark/pocket', 'embark/handmade'], tasks, show_progress=False)\n",
        allowed="my-readers",
    )
    assert allowed.returncode == 0, allowed.stderr
    after = run(
        folder,
        "import embark\n"
        "found = embark.load_results(include='own')\n"
        "print({result.task for result in found.results}, *found.notes, sep='\\n')\n"
        "print(embark.show('embark/pocket').more['results'])\n"
        "print(*embark.compare('embark/pocket', 'embark/handmade').notes, sep='\\n')\n"
        "for ask in (lambda: embark.leaderboard(tasks='Own'), lambda: embark.leaderboard(tasks='Triplets')):\n"
        "    try:\n"
        "        ask()\n"
        "    except embark.EmbarkError as error:\n"
        "        print(error)\n",
        allowed="",
    )
    assert after.returncode == 0, after.stderr
    here = "here (is a plug-in not installed, or not allowed?)"
    no_reader, no_task = f"there is no reader named 'triplets' {here}", f"there is no task of that name {here}"
    kept, *notes = after.stdout.splitlines()
    assert kept == "{'PocketFlagZeroShot'}"
    assert notes[:2] == [
        f"left out, because {no_reader}: Own of embark/handmade, Own of embark/pocket",
        f"left out, because {no_task}: Triplets of embark/handmade, Triplets of embark/pocket",
    ]
    assert notes[2].startswith("{'PocketFlagZeroShot': ")
    assert notes[3] == f"left out, because {no_task}: Triplets"
    assert no_reader in notes[4]
    assert "There is no task or benchmark named 'Triplets'" in notes[5]


def test_a_row_of_a_plug_in_that_its_reader_is_not_for_is_not_scored(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_readers", READER)
    (folder / "triplets").mkdir()
    (folder / "triplets" / "test.csv").write_text("query,near,far\nred apple,apple,car\nfast car,car,apple\n")
    done = run(
        folder,
        "import embark\n"
        "from dataclasses import replace\n"
        "[task] = embark.get_tasks('Triplets')\n"
        "for row in (task, replace(task, options={'missed': 'skip'}), replace(task, evaluator='retrieval')):\n"
        "    try:\n"
        "        print(len(embark.evaluate('embark/pocket', [row], show_progress=False).results))\n"
        "    except embark.EmbarkError as error:\n"
        "        print(error)\n",
        allowed="my-readers",
    )
    assert done.stdout.startswith("1\n"), done.stderr
    assert "There is no option of 'triplets' named 'missed'. Did you mean missing?" in done.stdout
    assert "Task Triplets: 'triplets' serves choice, not 'retrieval'." in done.stdout


def test_a_reader_of_a_plug_in_takes_no_name_of_ours(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_readers", READER.replace('"triplets",\n    "Three', '"paired",\n    "Three'))
    (folder / "triplets").mkdir()
    done = run(
        folder,
        "from embark.readers import READERS; print(len(list(READERS)), READERS['paired'].version)",
        allowed="my-readers",
    )
    assert done.stdout.strip() == f"{len(READERS.own)} 2", done.stderr
    assert "its reader 'paired' is left out: there is one of that name already" in done.stderr


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


def test_a_plug_in_brings_a_rule_for_benchmarks_and_boards(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", GOOD)
    done = run(
        folder,
        "import embark\n"
        "from embark.cli import main\n"
        "embark.evaluate(['me/bytes', 'embark/random'], 'Mine', show_progress=False)\n"
        "board = embark.leaderboard('Mine')\n"
        "print(board.rule, list(board.entries[0].model.totals))\n"
        "print(embark.leaderboard(tasks='MyTask', rule='worst-task').rule.total)\n"
        "sys.argv = ['embark', 'show', '--rule', 'worst-task']\n"
        "main()\n",
        "-W",
        "error",
    )
    assert done.returncode == 0, done.stderr
    assert "worst-task ['worst']\nworst\n" in done.stdout
    assert "worst-task: The worst of a model's tasks." in done.stdout
    assert "my_package:worst" in done.stdout


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
    "readers": (f"{PLUGIN}(readers=(print,))", "TypeError: its readers are no tuple of Reader"),
    "evaluators": (f"{PLUGIN}(evaluators=('mine',))", "TypeError: its evaluators are no tuple of Evaluator"),
    "rules": (f"{PLUGIN}(rules=({{}},))", "TypeError: its rules are no tuple of Rule"),
    "rule": (
        "from embark.seams import Rule; from embark.plugins import Plugin\n"
        "def plugin(): return Plugin(rules=(Rule('mine', 'A rule.', by='type'),))",
        "EmbarkError: The rule 'mine' is declared wrongly: its `by`",
    ),
    "study": (f"{PLUGIN}(studies=(print,))", "TypeError: its studies are no tuple of Study"),
    "undeclared": (
        f"from embark.seams import Study; {PLUGIN}(studies=(Study('mine', 'Mine.', print, 'models'),))",
        "EmbarkError: The study 'mine' is declared wrongly: its `needs` must be scores",
    ),
    "reader": (
        f"{PLUGIN}; from embark.seams import Files, Reader; Reader('mine', 'Mine.', print, 'choice', Files())",
        "EmbarkError: The reader 'mine' is declared wrongly: its `evaluators` must be a tuple of texts",
    ),
    "pair": (f"{PLUGIN}(loaders=('x', 'm:f'))", "TypeError: its loaders are no tuple of Loader"),
    "path": (f"{PLUGIN}(loaders=({LOADER}('x', 'function'),))", "its `load` must be a function or 'module:function'"),
    "kind": (f"{PLUGIN}(loaders=({LOADER}('x', 'm:f', kind='judge'),))", "`kind` must be embedder, reranker or"),
    "colon": (f"{PLUGIN}(loaders=({LOADER}('x:y', 'm:f'),))", "its `name` must have letters, digits"),
    "version": (f"{PLUGIN}(loaders=({LOADER}('x', print, version=0),))", "declared wrongly: its `version` must be"),
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
    loaders = ", ".join(f"{LOADER}('{name}', 'second:load')" for name in ("bytes", "pocket"))
    installed(folder, "second", f"{PLUGIN}(loaders=({loaders}))")
    done = run(
        folder,
        "from embark.models import LOADERS, get_model\n"
        "print([LOADERS[name].load for name in ('bytes', 'pocket')], list(LOADERS)[-1])\n"
        "print(type(get_model('bytes:anything')).__module__)\n",
    )
    assert done.stdout.split("\n")[0] == "['my_package:load', 'embark.models.pocket:load'] bytes", done.stderr
    assert done.stdout.split("\n")[1] == "my_package"
    for name in ("bytes", "pocket"):
        assert f"plug-in 'second': its loader '{name}' is left out: there is one of that name already" in done.stderr


def test_a_loader_of_a_plug_in_recognizes_folders(tmp_path: Path) -> None:
    """Its own, and none that ours recognize; a function is as good as its name; its version is part of the identity."""
    recognizing = """load, version=4, recognize=lambda folder, config: config.get("model_type") in ("bytes", "bert")"""
    folder = installed(tmp_path, "my_package", GOOD.replace('"my_package:load"', recognizing))
    for model_type in ("bytes", "bert", "letters"):
        (tmp_path / model_type).mkdir()
        (tmp_path / model_type / "config.json").write_text(f'{{"model_type": "{model_type}"}}')
    done = run(
        folder,
        "import embark\n"
        f"card = embark.get_model({str(tmp_path / 'bytes')!r}).card\n"
        "print(card.loader, card.name, card.options, card.dim)\n"
        f"print(embark.models.find_card({str(tmp_path / 'bert')!r}).loader)\n"
        f"embark.get_model({str(tmp_path / 'letters')!r})\n",
    )
    assert done.stdout == "bytes local/bytes {'loader': 4} 256\ntext\n", done.stderr
    assert "model type 'letters', which no loader recognizes" in done.stderr


def test_a_card_without_a_loader_is_an_error(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", GOOD.replace('Loader("bytes"', 'Loader("byte"'))
    done = run(folder, "import embark; embark.get_model('me/bytes')")
    assert "There is no loader for me/bytes named 'bytes'. Did you mean byte?" in done.stderr


def test_plug_ins_that_are_allowed_run_in_the_processes_that_this_one_starts(tmp_path: Path) -> None:
    """Workers that embed, and a cluster of this process: they look the model up, too."""
    folder = installed(tmp_path, "my_package", GOOD)
    child = f"import sys; sys.path.insert(0, {str(folder)!r}); import embark; print(embark.get_model('me/bytes').card)"
    done = run(
        folder,
        "import subprocess\n"
        "from embark import plugins\n"
        "plugins.allow('My.Package')\n"
        f"subprocess.run([sys.executable, '-W', 'error', '-c', {child!r}], check=True)\n",
        allowed="second",
    )
    assert done.returncode == 0, done.stderr
    assert "name='me/bytes'" in done.stdout


def test_nothing_is_looked_for_at_import(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", GOOD)
    done = run(folder, "import embark, embark.models, embark.tasks; print('my_package' in sys.modules)")
    assert done.stdout.strip() == "False"


ALIKE = re.findall(r"^An evaluator is added with.*?```py\n(.*?)```", PLUGINS, flags=re.S | re.M)[0]
EVALUATOR = f"""
{ALIKE}

from dataclasses import replace
from embark.plugins import Plugin
from embark.tasks.pocket import TASKS

sts = next(task for task in TASKS if task.name == "PocketNameSTS")
task = replace(sts, name="MyPairs", family="Mine", evaluator="alike", metric="agreement")
plugin = Plugin(evaluators=(ALIKE,), tasks=(task,))
"""


def test_an_evaluator_of_a_plug_in_scores_with_an_interval_and_is_shown(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", EVALUATOR)
    done = run(
        folder,
        "import embark\n"
        "from dataclasses import replace\n"
        "[result] = embark.evaluate('embark/pocket', 'MyPairs', show_progress=False).results\n"
        "[record] = result.records\n"
        "low, high = result.interval\n"
        "assert 0.5 < low < result.score < high < 1, result\n"
        "assert (record.metric, record.statistic) == ('agreement', 'mean')\n"
        "embark.evaluate('embark/handmade', 'MyPairs', show_progress=False)\n"
        "[pair] = embark.compare('embark/pocket', 'embark/handmade', tasks='MyPairs').pairs\n"
        "assert pair.p < 0.05, pair\n"
        "print([entry.name for entry in embark.seams.reference('evaluator', 'alike').entries])\n"
        "print('alike' in embark.seams.reference('evaluator').rows)\n"
        "[task] = embark.get_tasks('MyPairs')\n"
        "try:\n"
        "    embark.evaluate('embark/pocket', replace(task, metric='agreements'), show_progress=False)\n"
        "except embark.EmbarkError as error:\n"
        "    print(error)\n",
        "-W",
        "error",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['agreement']",
        "True",
        "Task MyPairs cannot be scored. 'alike' has no measure 'agreements'; it has agreement.",
    ]


def test_an_evaluator_that_is_declared_wrongly_is_named_and_left_out(tmp_path: Path) -> None:
    folder = installed(tmp_path, "my_package", EVALUATOR.replace('"mean"', '"median"'))
    installed(folder, "second", f"{PLUGIN}(evaluators=('alike',))")
    done = run(folder, "from embark.registries import EVALUATORS; print('alike' in EVALUATORS)")
    assert done.stdout.strip() == "False"
    assert "plug-in 'my_package': it is left out (EmbarkError: The evaluator 'alike' is declared wrongly" in done.stderr
    assert "'agreement' has the unknown statistic 'median'; known: mean, runs, " in done.stderr
    assert "plug-in 'second': it is left out (TypeError: its evaluators are no tuple of Evaluator" in done.stderr
