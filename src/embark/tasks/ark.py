"""The ARK family: 17 subtypes of professional knowledge in 5 domains, each searched in its own gallery of pictures.

From the paper (arXiv 2602.09839, Tables 1 and 5, Appendix B) and the dataset's pages on the hub; the data itself was not seen.
"""

from __future__ import annotations

from dataclasses import replace

from embark.types import Pool, Source, Task

# "main", because only the short form of the data's one commit is known: fa796a7, "Initial release of ARK-Bench".
SOURCE = Source(
    id="XLearning-SCU/ARK-Bench",
    revision="main",
    license="Apache-2.0 (hub card); CC BY-NC-SA 4.0 (paper)",
    reference="https://arxiv.org/abs/2602.09839",
)

HIDDEN = (
    "Relevance is not published: the leaderboard scores it. Scoring here needs a file of labels (EMBARK_ARK_LABELS) with the "
    "columns topic, query_id, corpus_id and perhaps skills, demand: ids are numbers from 0 within each topic."
)
LICENCE = "The hub card says Apache-2.0, the paper CC BY-NC-SA 4.0."
INFERRED = "Columns of text and pictures, and the queries' modality, were inferred from the paper, not seen; the revision is not pinned."
GARBLED = "The copy of the paper that was read has garbled re-ranking rows (Tables 8 and 9): compare with Tables 2, 3 and 10 to 19."

# The two other axes. A query has any number of skills and one demand; both are per query and unpublished, so the sizes are derived from
# the paper's printed recalls, which are whole numbers of hits.
SKILLS = {
    "knowledge reasoning": 656, "conceptual abstraction": 190, "fine-grained visual reasoning": 92,
    "logical reasoning": 113, "spatial reasoning": 226, "symbolic reasoning": 376,
}  # fmt: skip
DEMANDS = {"perception-only": 236, "knowledge-intensive": 206, "reasoning-intensive": 327, "both": 778}


def _row(
    name: str, domain: str, queries: int, gallery: int, query: str, visual: str, skills: str, origin: str, *notes: str
) -> Task:
    return Task(
        name=f"ARK/{name}", family="ARK", evaluator="retrieval", reader="ark", metric="recall_at_1", category=domain,
        source=replace(SOURCE, files={"test": ("data/*metadata.*", f"data/*/{name}_*")}),
        modalities=("text", "image"), upright=True, mixed="image" in query, subsets={"default": ("eng-Latn",)}, chance=1 / gallery,
        columns={"topic": "topic", "query": "query_id", "document": "corpus_id"}, options={"topic": name},
        tags={"domain": domain, "skills": skills, "visual_types": visual, "query_modality": query, "adapted_from": origin, "direction": "it2i" if "image" in query else "t2i"},
        pools=(Pool("query", queries, f"{SOURCE.id}/-/queries/{name}"), Pool("document", gallery, f"{SOURCE.id}/-/gallery/{name}")),
        notes=(*notes, HIDDEN, LICENCE, INFERRED, GARBLED),
    )  # fmt: skip


COGNITION, NATURE, FORMAL = "Visual Cognition", "Natural Science", "Formal Science"
SOCIETY, TECHNOLOGY = "Humanity & Social Science", "Engineering & Technology"

TASKS: tuple[Task, ...] = (
    # ── subtype, domain, queries, gallery, query, visual types, skills, origin, notes ──
    _row("Daily-Life", COGNITION, 236, 5248, "text", "natural images", "", "COCO and Fashion200K",
         "Exactly the queries whose demand is perception-only."),
    _row("Fine-Grained", COGNITION, 92, 2101, "text", "natural images", "fine-grained visual reasoning", "DIV8K",
         "Exactly the queries with the skill fine-grained visual reasoning; pictures of about 5960 × 3900 pixels."),
    _row("Spatial-Cogmap", COGNITION, 53, 1050, "several images", "cognitive maps", "spatial reasoning", "MindCube"),
    _row("Spatial-3D", COGNITION, 131, 7500, "image + text", "3D images", "spatial reasoning", "Spatial-DISE-12K"),
    _row("Biology", NATURE, 83, 1834, "text", "natural images", "", "INQUIRE"),
    _row("Physics", NATURE, 47, 596, "text", "physics phenomenon illustrations", "knowledge reasoning", "collected by hand"),
    _row("Chemistry", NATURE, 105, 1127, "image + text", "chemical structure diagrams", "knowledge reasoning, symbolic reasoning", "EMMA"),
    _row("Mathematics", FORMAL, 152, 889, "text, may carry an image", "symbolic mathematical plots", "knowledge reasoning, symbolic reasoning", "MR2-Bench"),
    _row("Code-Drawing", FORMAL, 64, 425, "text", "code snippets, design drawings", "symbolic reasoning", "ReMI",
         "Queries are TikZ source."),
    _row("Economics", SOCIETY, 74, 2585, "text", "tables, line and bar charts", "knowledge reasoning, conceptual abstraction", "MR2-Bench"),
    _row("Comic", SOCIETY, 87, 3468, "text", "comics", "knowledge reasoning, conceptual abstraction", "Bulletin Editorial Cartoons"),
    _row("Art", SOCIETY, 100, 2101, "text", "artworks", "knowledge reasoning", "SemArt"),
    _row("Calendar", SOCIETY, 78, 377, "text", "calendars", "knowledge reasoning, logical reasoning", "collected by hand"),
    _row("Metro", SOCIETY, 37, 280, "text", "metro maps", "spatial reasoning, fine-grained visual reasoning", "collected by hand",
         "Domain as in Tables 1, 2 and 10 to 14; Table 5 says Engineering & Technology.",
         "Table 5 gives it fine-grained visual reasoning, but no query of it can carry that label; pictures of about 9858 × 9057 pixels."),
    _row("Computer-Science", TECHNOLOGY, 75, 5226, "text", "tables, line and bar charts, design drawings", "knowledge reasoning, conceptual abstraction", "arXiv"),
    _row("Mechanical", TECHNOLOGY, 82, 917, "text", "design drawings", "knowledge reasoning", "Mechanical mechanism"),
    _row("Electronics", TECHNOLOGY, 51, 306, "text, may carry an image", "circuit schematics, tables", "logical reasoning, symbolic reasoning", "ElectroVizQA"),
)  # fmt: skip
