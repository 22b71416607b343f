"""The registry of studies: what each is about, needs and takes. Its module is imported when it runs."""

from __future__ import annotations

from embark.catalogue import Registry
from embark.plugins import registry
from embark.seams import Study
from embark.studies import mieb, unibench
from embark.studies.options import BY, CORRELATION, MODELS, WHERE
from embark.types import Option

DIMS = Option(list[int], "Dimensions to keep; may be given several times.")
SUBSET = Option(str, "Which subset, where there are several (the first).")

GENERAL = (
    Study(
        "correlate",
        "Which tasks rank models alike: their correlations over models, and clusters of tasks.",
        "embark.studies.correlate:correlate",
        "scores",
        {
            "correlation": CORRELATION,
            "method": Option(("hierarchical", "umap"), "Of clustering; default: hierarchical."),
            "threshold": Option(float, "Mean correlation that joins clusters (0.8)."),
        },
        (
            "embark analyze correlate -b ARK --plot ark.svg",
            "embark analyze correlate -b 'MIEB(Multilingual)' --method umap --plot map.svg",
        ),
    ),
    Study(
        "distill",
        "A lite set of tasks, and how well it stands for all: totals, ranks, models held out, and random sets beside "
        "it.\n\nWith a size, tasks are chosen whose mean follows that of their group (totals); else those that repeat "
        "another of their group are left out (repeats). Every group keeps at least one.",
        "embark.studies.distill:distill",
        "scores",
        {
            "size": Option(int, "Tasks to keep (else as the threshold says)."),
            "threshold": Option(float, "Correlation above which one of two tasks goes (0.9)."),
            "method": Option(("totals", "repeats", "average"), "Default: totals with --size, else repeats."),
            "by": BY,
            "correlation": CORRELATION,
            "representatives": Option(bool, "Instead, the most representative task of each group."),
            "check": Option(str, "Instead, judge this benchmark as a lite set of the other."),
        },
        (
            "embark analyze distill --size 51 --by type",
            "embark analyze distill --representatives --by type --plot types.svg",
            "embark analyze distill --check 'MIEB(lite)'",
        ),
    ),
    Study(
        "predict",
        "A model's full score from the tasks of a smaller benchmark, with a tested error bar.",
        "embark.studies.predict:predict",
        "scores",
        {"part": Option(str, "The benchmark whose tasks are at hand: MIEB(lite), or another.")},
        (
            "embark run -m MODEL -b 'MIEB(lite)'",
            "embark analyze predict -b 'MIEB(Multilingual)' --part 'MIEB(lite)' --plot predicted.svg",
        ),
    ),
    Study(
        "scaling",
        "Points of score for ten times the parameters, or the training data, by group.",
        "embark.studies.scaling:scaling",
        "scores",
        {
            "against": Option(("parameters", "data"), "Default: parameters; data are training examples."),
            "by": BY,
            "hold": Option(str, "Compare models with the same architecture, objective, family, data…"),
            "models": MODELS,
            "where": WHERE,
        },
        (
            "embark analyze scaling --by type --plot size.svg",
            "embark analyze scaling --against data --by type --hold architecture",
            "embark analyze scaling --by type --where architecture=vit --where data=400..2000",
            "embark analyze scaling -b UniBench --by task",
        ),
    ),
    Study(
        "pareto",
        "The models that no other beats in both score and cost.",
        "embark.studies.pareto:pareto",
        "scores",
        {"against": Option(("parameters", "dim", "price", "time"), "Default: parameters; time: of your runs.")},
        ("embark analyze pareto --plot front.svg", "embark analyze pareto -b Pocket --include own --against time"),
    ),
    Study(
        "heatmap",
        "Models × categories of tasks: the mean score of every model in every group.",
        "embark.studies.groups:heatmap",
        "scores",
        {"by": BY, "models": MODELS},
        (
            "embark analyze heatmap -b 'MIEB(lite)' --plot heatmap.svg",
            "embark analyze heatmap -b Pocket --include own --by capability --format latex",
        ),
    ),
    Study(
        "profile",
        "Where models are strong and weak: scores by group of tasks, with ranks and the median of all models.",
        "embark.studies.groups:profile",
        "scores",
        {"by": BY, "models": MODELS},
        (
            "embark analyze profile -m '*siglip-so400m*' -m royokong/e5-v --plot profile.svg",
            "embark analyze profile -b Pocket --include own -m embark/pocket",
        ),
    ),
    Study(
        "languages",
        "Scores by language, on tasks that have several.",
        "embark.studies.languages:languages",
        "scores",
        {"models": MODELS},
        (
            "embark analyze languages -t PocketNamesIn38Languages --include own --plot languages.svg",
            "embark analyze languages -t XM3600T2IRetrieval -m '*siglip*'",
        ),
    ),
    Study(
        "confusion",
        "Your zero-shot and probe tasks class by class: precision, recall, and what each class is taken for.",
        "embark.studies.confusion:confusion",
        "outcomes",
        {"models": MODELS, "matrix": Option(bool, "Instead, every pair of classes that are confused.")},
        (
            "embark analyze confusion -t PocketGroupZeroShot -m embark/pocket --plot confusion.svg",
            "embark analyze confusion -t PocketGroupProbe --matrix --format csv",
        ),
    ),
    Study(
        "calibration",
        "Whether your zero-shot models know when they are right: confidence, entropy, calibration error.",
        "embark.studies.calibration:calibration",
        "outcomes",
        {"models": MODELS},
        ("embark analyze calibration -t PocketGroupZeroShot --plot calibration.svg",),
    ),
    Study(
        "breakdown",
        "Your scores within groups of items: by skill, corruption, attribute or whatever the data tell about each.\n\n"
        "Robustness tasks have the label condition; tasks of classification have class, if it is named.",
        "embark.studies.breakdown:breakdown",
        "outcomes",
        {
            "by": Option(str, "The label to go by (default: every one)."),
            "pool": Option(bool, "The items of all tasks together: one group a value."),
        },
        (
            "embark analyze breakdown -t UniBench/imagenetc",
            "embark analyze breakdown -b 'ARK(emoji)' --by skills --pool --plot skills.svg",
            "embark analyze breakdown -t PocketRobustness --by condition",
        ),
    ),
    Study(
        "geometry",
        "The shape of a task's vectors: modality gap, hubs, anisotropy, alignment and uniformity.",
        "embark.studies.geometry:geometry",
        "vectors",
        {"subset": SUBSET},
        (
            "embark analyze geometry -m embark/pocket -t PocketNameToImage",
            "embark analyze geometry -m embark/pocket -m embark/random -t PocketNameToImage --plot geometry.svg",
        ),
    ),
    Study(
        "map",
        "A map of a task's vectors on the plane, colored by side or by label.",
        "embark.studies.maps:map",
        "vectors",
        {
            "by": Option(("side", "label"), "What colors the points; default: side."),
            "method": Option(("umap", "tsne", "pca"), "Default: umap where installed, else tsne."),
            "subset": SUBSET,
        },
        (
            "embark analyze map -m embark/pocket -t PocketNameToImage --plot map.svg",
            "embark analyze map -m embark/pocket -t PocketGroupClustering --by label --plot groups.svg",
        ),
    ),
    Study(
        "truncate",
        "Scores of shortened vectors: the first dimensions (Matryoshka), and as many principal axes.",
        "embark.studies.vector_variants:truncate",
        "vectors",
        {"dims": DIMS},
        (
            "embark analyze truncate -m embark/pocket -t PocketNameToImage --plot dims.svg --save",
            "embark analyze truncate -m embark/pocket -t 'Pocket*STS' --dims 128 --dims 32",
        ),
    ),
    Study(
        "quantize",
        "Scores of vectors in fewer bits (int8, binary), also shortened, against the bytes of an item.",
        "embark.studies.vector_variants:quantize",
        "vectors",
        {"dims": DIMS},
        ("embark analyze quantize -m embark/pocket -t PocketNameToImage --plot bytes.svg",),
    ),
    Study(
        "similarity",
        "Scores by cosine and by dot product; for similarity tasks by distances, too.",
        "embark.studies.vector_variants:similarity",
        "vectors",
        {},
        ("embark analyze similarity -m embark/pocket -t PocketNameToImage -t PocketNameSTS",),
    ),
    Study(
        "topk",
        "A ranking measure at every k: top-k accuracy of retrieval, choice and zero-shot classification.",
        "embark.studies.task_variants:topk",
        "vectors",
        {"measure": Option(("hit_rate", "recall", "precision", "ndcg", "map", "mrr"), "Default: hit_rate.")},
        ("embark analyze topk -m embark/pocket -t PocketNameToImage -t PocketSubgroupZeroShot --plot topk.svg",),
    ),
    Study(
        "shots",
        "Learning curves of probes: 1, 2, 4… examples per class, up to the row's own number.\n\n"
        "More than that needs vectors that a run does not make: --shots 64 --embed.",
        "embark.studies.task_variants:shots",
        "vectors",
        {"shots": Option(list[int], "Examples per class; may be given several times.")},
        (
            "embark analyze shots -m embark/pocket -t PocketGroupProbe --plot shots.svg",
            "embark analyze shots -m embark/pocket -t PocketGroupProbe --protocol sound --shots 16 --shots 64 --embed",
        ),
    ),
    Study(
        "prompts",
        "Zero-shot scores by prompt: all of a row's prompts together, each alone, and the bare class name.",
        "embark.studies.task_variants:prompts",
        "vectors",
        {"prompts": Option(list[str], "Another prompt to try, {} is the class; needs --embed.")},
        (
            "embark analyze prompts -m embark/pocket -t PocketSubgroupZeroShot --plot prompts.svg",
            "embark analyze prompts -m embark/pocket -t PocketFlagZeroShot --prompt 'the flag of {}' --embed",
        ),
    ),
    Study(
        "robustness",
        "The cost of each corruption: the score under every condition against the clean one.",
        "embark.studies.task_variants:robustness",
        "vectors",
        {},
        ("embark analyze robustness -m embark/pocket -t PocketRobustness",),
    ),
    Study(
        "index",
        "The cost of search: score, bytes, build time and queries a second, by exact, int8, binary or graph index.\n\n"
        "Needs usearch: pip install 'embark-bench[index]'. Times are of this machine; nothing else should run on it.",
        "embark.studies.search_cost:index",
        "vectors",
        {
            "repeats": Option(int, "Measurements of each time (5)."),
            "threads": Option(int, "That build and search (default: all cores)."),
        },
        ("embark analyze index -m embark/pocket -t PocketNameToImage --plot index.svg",),
    ),
)

STUDIES: Registry[Study] = registry(
    "study", {study.name: study for study in (*GENERAL, *unibench.STUDIES, *mieb.STUDIES)}, "studies"
)
