"""Scores on data that a model was trained on are marked, can be left out, and are counted by benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark.boards.contamination import IN_PART, TRAINED, footnotes, shares
from embark.boards.leaderboards import leaderboard
from embark.cli import app
from embark.models import MODELS
from embark.models.cards.training_data import TRAINED_ON
from embark.protocol import identity
from embark.tasks import TASKS
from embark.tasks.data_sets import COLLECTIONS, TASKS_OVER, data_sets, expanded, shared
from folders import two_tasks

BLIP = "Salesforce/blip-itm-base-coco"


def test_every_name_of_the_two_tables_means_something() -> None:
    for patterns, names in ((TRAINED_ON, MODELS), *((patterns, TASKS) for patterns in TASKS_OVER.values())):
        assert [p for p in patterns if not any(fnmatchcase(name, p) for name in names)] == []
    stated = {name for sets in TRAINED_ON.values() for name in expanded(sets)}
    assert {*TASKS_OVER} <= stated  # a data set that no model states would mark nothing
    assert {*COLLECTIONS} <= stated


@pytest.mark.parametrize(
    ("model", "task", "names"),
    [
        (BLIP, "MSCOCOT2IRetrieval", ("MSCOCO",)),
        (BLIP, "UniBench/sugarcrepe", ("MSCOCO",)),
        (BLIP, "MMEB/Visual7W", ("MSCOCO", "Visual Genome")),
        (BLIP, "CIFAR10", ()),
        ("openai/clip-vit-base-patch32", "MSCOCOT2IRetrieval", ()),
        ("code-kunkun/LamRA-Ret", "InfoSeekIT2TRetrieval", ("InfoSeek",)),  # by M-BEIR
        ("facebook/dinov2-small", "Imagenet1k", ("ImageNet-1k",)),  # by ImageNet-21k
        ("vidore/colpali-v1.3-hf", "VidoreTatdqaRetrieval", ("TAT-DQA",)),
        ("vidore/colpali-v1.3-hf", "VidoreShiftProjectRetrieval", ()),
    ],
)
def test_a_models_training_sets_meet_every_task_over_them(model: str, task: str, names: tuple[str, ...]) -> None:
    stated = MODELS[model].trained_on
    assert stated is not None
    assert shared(stated, TASKS[task]) == names


def test_mmebs_in_domain_tasks_are_those_that_vlm2vec_was_trained_on() -> None:
    """The paper parts the first 36 image tasks into 20 in and 16 out of domain; some of the latter share pictures."""
    image = [task for task in embark.get_benchmark("MMEB-V3(image)").tasks if task != "MMEB/MCMR"]
    stated = MODELS["TIGER-Lab/VLM2Vec-Full"].trained_on
    assert stated is not None
    seen = [task for task in image if shared(stated, TASKS[task])]
    pictures_of_coco = ["MMEB/RefCOCO", "MMEB/RefCOCO-Matching", "MMEB/Visual7W-Pointing"]
    assert len([task for task in seen if task not in pictures_of_coco]) == 20


def test_training_sets_do_not_enter_a_models_identity() -> None:
    card = MODELS[BLIP]
    assert identity(replace(card, trained_on=None)) == identity(card)


def test_boards_mark_scores_and_means_on_data_of_the_training() -> None:
    board = leaderboard("MIEB(lite)", models=[BLIP, "openai/clip-vit-base-patch32"])
    by_model = {entry.model.model: entry.model for entry in board.entries}
    blip, clip = by_model[BLIP], by_model["openai/clip-vit-base-patch32"]
    assert {task for task, score in blip.tasks.items() if TRAINED + "MSCOCO" in score.marks} >= {"AROCocoOrder"}
    assert IN_PART in blip.mean.marks
    assert not any(mark.startswith(TRAINED) or mark == IN_PART for score in clip.tasks.values() for mark in score.marks)
    assert any("not zero-shot" in note for note in board.table().note_lines())


def test_zero_shot_only_leaves_them_out_and_says_what_is_not_stated() -> None:
    models = [BLIP, "openai/clip-vit-base-patch32", "voyageai/voyage-multimodal-3"]
    whole = leaderboard("MIEB(lite)", models=models)
    board = leaderboard("MIEB(lite)", models=models, zero_shot_only=True)
    by_model = {entry.model.model: entry.model for entry in board.entries}
    assert "AROCocoOrder" not in by_model[BLIP].tasks
    assert by_model[BLIP].mean.count == 45
    assert [len(by_model[model].tasks) for model in models[1:]] == [
        len(entry.model.tasks) for model in models[1:] for entry in whole.entries if entry.model.model == model
    ]
    assert "left out, because the model was trained on the task's data: 6 scores of 1 model" in board.notes
    assert "included, although their training data is unknown: voyageai/voyage-multimodal-3" in board.notes
    ran = CliRunner().invoke(app, ["leaderboard", "-b", "MIEB(lite)", "--zero-shot-only", "-m", BLIP])
    assert ran.exit_code == 0
    assert "not zero-shot" not in ran.stdout


def test_show_tells_the_share_of_each_benchmark() -> None:
    facts = embark.show(BLIP)
    assert facts["zero-shot"]["MIEB(lite)"] == "45 of 51 tasks; trained on MSCOCO, Visual Genome"
    assert facts["zero-shot"]["other benchmarks"] == "all tasks, as far as is known"
    assert facts["trained on"].startswith("129 million examples: MSCOCO, ")
    assert shares(MODELS["openai/text-embedding-3-small"]) == {"all benchmarks": "training data unknown"}
    assert embark.show("SugarCrepe")["over"] == ("MSCOCO",)


def test_models_and_data_of_your_own(tiny: embark.Encoder, pictures: Callable[..., Path], elsewhere: Path) -> None:
    """A card of your own names data sets, tasks, or sources; it lies beside its scores, where boards find it."""
    retrieval, zeroshot = two_tasks(pictures("Holiday"))
    tiny.card = replace(tiny.card, trained_on=(retrieval.name,))
    embark.evaluate(tiny, [retrieval, zeroshot], show_progress=False)
    [entry] = leaderboard(tasks="Holiday*", include="own").entries
    assert entry.model.tasks[retrieval.name].marks == (TRAINED + "HolidayRetrieval",)
    assert entry.model.tasks[zeroshot.name].marks == ()
    assert footnotes(entry.model.results[zeroshot.name], zeroshot) == ()
    assert retrieval.source.id in data_sets(zeroshot)


def test_blips_that_answer_questions_state_their_data() -> None:
    """They were tuned from the same BLIP as those that match and caption."""
    for name in ("Salesforce/blip-vqa-base", "Salesforce/blip-vqa-capfilt-large"):
        stated = MODELS[name].trained_on
        assert stated is not None
        assert {"MSCOCO", "Visual Genome", "VQA v2"} <= {*stated}


def test_models_without_a_common_task_are_not_sent_to_comparable() -> None:
    notes = str(leaderboard("UniBench").table())
    assert "models share none of the tasks" in notes
    assert "--comparable" not in notes
