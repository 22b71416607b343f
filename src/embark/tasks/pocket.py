"""The Pocket family: 40 small tasks over emoji that come with the package, one or more of every kind, for use offline."""

from __future__ import annotations

from typing import Any

from embark.tasks.omni import DIRECTIONS, INSTRUCTIONS
from embark.types import Modality, Source, Task

SOURCE = Source(
    id="embark/pocket",
    revision="ae7392ef8dc0",  # of sha256 over emoji.parquet, then speech.parquet
    license="Apache-2.0 (pictures), Unicode-3.0 (names, keywords), MIT (capitals, continents)",
    reference="https://github.com/googlefonts/noto-emoji",
)

# Name column → ISO 639-3.
LANGUAGES = {
    "ar": "ara", "bg": "bul", "bn": "ben", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "et": "est",
    "fa": "fas", "fi": "fin", "fil": "fil", "fr": "fra", "he": "heb", "hi": "hin", "hr": "hrv", "hu": "hun", "id": "ind", "it": "ita",
    "ja": "jpn", "ko": "kor", "mi": "mri", "nl": "nld", "no": "nor", "pl": "pol", "pt": "por", "quz": "quz", "ro": "ron", "ru": "rus",
    "sv": "swe", "sw": "swa", "te": "tel", "th": "tha", "tr": "tur", "uk": "ukr", "vi": "vie", "zh": "zho",
}  # fmt: skip

CONDITIONS = ("noise", "grey", "dark-background", "occlusion", "low-resolution", "rotation", "low-contrast")
MODALITIES: tuple[Modality, ...] = ("text", "image", "video", "audio")
METRICS = {
    "retrieval": "hit_rate_at_1", "choice": "accuracy", "zeroshot": "accuracy", "probe": "accuracy", "multilabel": "lrap",
    "clustering": "nmi", "pairs": "accuracy", "sts": "cosine_spearman", "robustness": "mean_corrupted",
}  # fmt: skip

TWINS = "25 emoji share their drawing with another (flags of territories, families); each of the equal ones is a right answer."
SYNTHETIC = "Speech is synthetic (espeak-ng), so scores say nothing about human voices."
PROXY = "Keyword overlap stands in for human judgement; keywords often repeat the words of the name."


def _row(
    name: str,
    evaluator: str,
    reader: str,
    category: str,
    modalities: str,
    capability: str,
    chance: float | None,
    *notes: str,
    **more: Any,
) -> Task:
    if evaluator == "probe":
        more["variants"] = {"sound": {"params": {**more.get("params", {}), "probe": "sound"}}}
    return Task(
        name="Pocket" + name, family="Pocket", evaluator=evaluator, reader="pocket-" + reader, source=SOURCE, metric=more.pop("metric", METRICS[evaluator]),
        category=category, modalities=tuple(modality for modality in MODALITIES if modality in modalities.split()), chance=chance,
        tags={"capability": capability, "domain": "emoji"}, notes=notes, **more,
    )  # fmt: skip


TASKS: tuple[Task, ...] = (
    # ── retrieval ──
    _row("NameToImage", "retrieval", "names", "Retrieval", "text image", "alignment", 1 / 1906,
         "English names to the 1,906 pictures without skin tone.", TWINS,
         options={"query": "text", "document": "image"}),
    _row("ImageToName", "retrieval", "names", "Retrieval", "image text", "alignment", 1 / 1906,
         "Pictures to the 1,906 English names.", TWINS,
         options={"query": "image", "document": "text"}),
    _row("HeldOutNameToImage", "retrieval", "names", "Retrieval", "text image", "generalisation", 1 / 1906,
         "The 406 English names that the pocket model was not trained on; for other models a subset like any other.", TWINS,
         options={"query": "text", "document": "image", "held_out": True}),
    _row("OtherSkinTone", "retrieval", "tones", "Retrieval", "image", "invariance", 1 / 1906,
         "Dark-toned pictures to the same pictures without a tone: sameness in spite of colour.",
         options={"tone": "dark"}),
    _row("NamesIn38Languages", "retrieval", "names", "Multilingual retrieval", "text image", "multilinguality", 1 / 1906,
         "Names in 38 languages, always against all 1,906 pictures.", TWINS,
         "Danish, Quechua and Māori name fewer emoji; some names equal the English ones (389 in Filipino).",
         options={"query": "text", "document": "image"}, subsets={code: (language,) for code, language in LANGUAGES.items()}),
    _row("ComposedSkinTone", "retrieval", "composed-tones", "Composed retrieval", "image text", "composition", 1 / 2875,
         "A picture plus \"dark skin tone\" (light, medium) to the changed picture among all 2,875.",
         mixed=True, instructions={"query": "Find the picture after this change."}),
    _row("ClockArithmetic", "retrieval", "clock-sums", "Composed retrieval", "image text", "reasoning", 1 / 24,
         "A clock face plus \"two hours later\" to the right one of 24 clock faces.",
         mixed=True, instructions={"query": "Find the clock that shows the time after this change."}),
    _row("NamePages", "retrieval", "pages", "Documents", "text image", "reading", 1 / 251,
         "A name to the page it is printed on, among 251; only a model that reads can do it.",
         options={"show": "names"}),
    _row("PictureSheets", "retrieval", "pages", "Documents", "text image", "layout", 1 / 251,
         "A list of names to the sheet with those pictures, among 251.",
         options={"show": "pictures"}),
    # ── labels ──
    _row("GroupProbe", "probe", "probe", "Linear probe", "image", "recognition", 1 / 9,
         "The nine Unicode groups; gender and hair forms of one emoji are all in training or all in test.",
         options={"view": "image", "label": "group"}),
    _row("KeywordProbe", "multilabel", "keywords", "Linear probe", "image", "recognition", 0.22,
         "The 40 commonest English keywords, several an item; emoji with none of them are left out.",
         options={"labels": 40}),
    _row("GroupClustering", "clustering", "groups", "Clustering", "image", "recognition", 0.01,
         "Pictures by the nine Unicode groups.",
         options={"view": "image", "label": "group"}),
    _row("SubgroupClustering", "clustering", "groups", "Clustering", "image", "fine-grained recognition", 0.20,
         "Pictures by the 98 Unicode subgroups; with so many clusters, NMI is far above zero by chance.",
         options={"view": "image", "label": "subgroup"}),
    _row("NameClustering", "clustering", "groups", "Clustering", "text", "text semantics", 0.01,
         "English names by the nine Unicode groups: what the text side alone knows.",
         options={"view": "text", "label": "group"}),
    _row("GroupZeroShot", "zeroshot", "zeroshot", "Zero-shot", "image text", "recognition", 1 / 9,
         "Pictures by the name of their Unicode group, one prompt each.",
         options={"view": "image", "label": "group"}, templates=("{}",)),
    _row("SubgroupZeroShot", "zeroshot", "zeroshot", "Zero-shot", "image text", "fine-grained recognition", 1 / 98,
         "98 subgroups, an ensemble of three prompts each; several names are editors' terms (\"other object\").",
         options={"view": "image", "label": "subgroup"}, templates=("{}", "a picture of {}", "an emoji of {}")),
    _row("FlagZeroShot", "zeroshot", "zeroshot", "Zero-shot", "image text", "fine-grained recognition", 1 / 262,
         "262 flags by their English names; 9 territories fly the flag of another row, so that about 97 % is the ceiling.",
         options={"view": "flag", "label": "name"}, templates=("{}",)),
    _row("ContinentZeroShot", "zeroshot", "zeroshot", "Knowledge", "image text", "knowledge", 1 / 7,
         "252 flags by the continent of their country: the picture does not show it.",
         options={"view": "flag", "label": "continent"}, templates=("a flag from {}",)),
    # ── compositionality ──
    _row("GenderPairs", "pairs", "swaps", "Compositionality", "image text", "attribute binding", 1 / 6,
         "Two pictures and two names that differ in gender only; right when all four comparisons are.",
         options={"attribute": "gender", "swaps": (("male", "female"),)}),
    _row("SkinTonePairs", "pairs", "swaps", "Compositionality", "image text", "attribute binding", 1 / 6,
         "Light against dark skin tone.",
         options={"attribute": "tone", "swaps": (("light", "dark"),)}),
    _row("HairPairs", "pairs", "swaps", "Compositionality", "image text", "attribute binding", 1 / 6,
         "Red against white hair, curly against bald; 24 samples only.",
         options={"attribute": "hair", "swaps": (("red", "white"), ("curly", "bald"))}),
    _row("Negation", "choice", "negation", "Compositionality", "text image", "negation", 1 / 3,
         "\"… but not …\": a bag of words picks the picture that it was told to avoid and falls below chance.",
         options={"questions": 300}),
    # ── looking closely ──
    _row("ClockReading", "choice", "clocks", "Vision-centric QA", "image text", "fine detail", 1 / 4,
         "24 clock faces, each asked 8 times against other wrong times, so that answers are not independent.",
         options={"turns": 8}, instructions={"query": "What time does this clock show?"}),
    _row("Counting", "choice", "counting", "Vision-centric QA", "image text", "counting", 1 / 4,
         "One to six equal animals or fruits in a scene.",
         options={"scenes": 240}, instructions={"query": "How many are there?"}),
    _row("Grounding", "choice", "grounding", "Vision-centric QA", "image text", "grounding", 1 / 9,
         "A sheet of nine pictures and a name to the cut-out that is meant; the name alone is enough to answer.",
         options={"sheets": 40}, mixed=True, instructions={"query": "Find the part of this picture that the text names."}),
    _row("FlagCapital", "choice", "capitals", "Knowledge", "image text", "knowledge", 1 / 4,
         "A flag to its capital among three of the same continent; flags with twins and capitals like Luxembourg are left out.",
         instructions={"query": "What is the capital of this country?"}),
    # ── similarity ──
    _row("NameSTS", "sts", "sts", "Visual STS", "text", "text semantics", 0.0,
         "Names as text; the same pairs as PocketPictureSTS and PocketRenderedSTS.", PROXY,
         options={"view": "text", "pool": 300}),
    _row("PictureSTS", "sts", "sts", "Visual STS", "image", "image semantics", 0.0,
         "Pictures in place of the names.", PROXY,
         options={"view": "image", "pool": 300}),
    _row("RenderedSTS", "sts", "sts", "Visual STS", "image", "reading", 0.0,
         "Names drawn as pictures: the distance to PocketNameSTS is what reading costs.", PROXY,
         options={"view": "label", "pool": 300}),
    # ── robustness ──
    _row("Robustness", "robustness", "robustness", "Robustness", "text image", "robustness", 1 / 300,
         "English names to 300 pictures, clean and under seven corruptions.",
         "The main score, mean_corrupted, is the mean hit rate at 1 over the corrupted conditions.",
         options={"sample": 300, "conditions": CONDITIONS}, params={"base": "retrieval", "base_metric": "hit_rate_at_1"}),
    # ── video ──
    _row("NameToVideo", "retrieval", "names", "Video", "text video", "alignment", 1 / 200,
         "English names to 200 clips of one moving emoji each.",
         options={"query": "text", "document": "video"}),
    _row("MotionProbe", "probe", "probe", "Video", "video", "motion", 1 / 4,
         "Left, right, up or down; a model that averages frames cannot tell a direction from its opposite.",
         options={"view": "video", "label": "motion"}),
    _row("MomentRetrieval", "choice", "moments", "Video", "video text", "temporal grounding", 1 / 4,
         "A film of four emoji and a name to the part that shows it; 40 questions over 10 films.",
         options={"films": 10}, mixed=True, instructions={"query": "Find the part of this film that the text names."}),
    # ── audio ──
    _row("SpokenNameToText", "retrieval", "names", "Audio", "audio text", "speech recognition", 1 / 1906,
         "468 spoken English names to the 1,906 written ones.", SYNTHETIC,
         options={"query": "audio", "document": "text"}),
    _row("SpokenNameToImage", "retrieval", "names", "Audio", "audio image", "alignment", 1 / 1906,
         "468 spoken English names to the 1,906 pictures.", TWINS, SYNTHETIC,
         options={"query": "audio", "document": "image"}),
    _row("SpokenIn4Languages", "retrieval", "names", "Audio", "audio image", "multilinguality", 1 / 1906,
         "40 spoken names in each of four more languages to the 1,906 pictures.", TWINS, SYNTHETIC,
         options={"query": "audio", "document": "image"}, subsets={code: (LANGUAGES[code],) for code in ("de", "es", "fr", "it")}),
    _row("SpokenGroupZeroShot", "zeroshot", "zeroshot", "Audio", "audio text", "speech semantics", 1 / 9,
         "Spoken English names by the name of their Unicode group.", SYNTHETIC,
         options={"view": "audio", "label": "group"}, templates=("{}",)),
    _row("SpokenGroupProbe", "probe", "probe", "Audio", "audio", "speech semantics", 1 / 9,
         "Spoken English names by Unicode group.", SYNTHETIC,
         options={"view": "audio", "label": "group"}),
    _row("SpokenLanguageProbe", "probe", "probe", "Audio", "audio", "language identification", 1 / 5,
         "40 spoken names of each of five languages; every language but English has one voice, so voice and language coincide.", SYNTHETIC,
         options={"view": "audio", "label": "language"}, subsets={"default": ("deu", "eng", "spa", "fra", "ita")}),
    # ── all four ──
    _row("Omni", "choice", "omni", "Omni-modal", "text image video audio", "modality following", sum(1 / rank for rank in range(2, 65)) / 63,
         "200 emoji in four modalities, all 12 directions between them as subsets, as in OmniSET: 64 candidates of every modality, the query itself among them.",
         "A model that does not read which modality to find ranks the query itself first: its hit rate at 1 is zero, so the main score is MRR.", SYNTHETIC,
         metric="mrr_at_1000", instructions=INSTRUCTIONS, options={"negatives": 15}, subsets=dict.fromkeys(DIRECTIONS, ("eng",))),
)  # fmt: skip
