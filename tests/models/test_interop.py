"""Objects of other libraries as encoders: the same vectors, prompts in the key, revisions by behaviour."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import embark
from embark.items import key
from embark.models.encoder import unit
from embark.protocol import vector_space
from embark.types import Array, EmbarkError
from tiny import TEXTS, film, item, one_by_one, picture, prepared, same, sound, vectors, wordpiece

torch = pytest.importorskip("torch")
ASK = "Find a sentence about an animal"
PEER = os.environ.get("EMBARK_PEER", sys.executable if find_spec("mteb") else None)


# ── sentence-transformers ────────────────────────────────────────────────────────────────────────────────────────────


def library(folder: Path, seed: int = 0) -> Any:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    tokenizer = wordpiece()
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    prompts = {"query": "a photo of: ", "document": "the text: "}
    return SentenceTransformer(modules=[Transformer(str(folder)), Pooling(16)], prompts=prompts, device="cpu")


def test_a_sentence_transformer_from_memory(tmp_path: Path) -> None:
    theirs = library(tmp_path)
    ours = embark.models.from_sentence_transformers(theirs, name="me/st", license="MIT")
    assert (ours.card.name, ours.card.dim, ours.card.modalities, ours.card.license) == ("me/st", 16, ("text",), "MIT")
    assert same(vectors(ours, TEXTS, "item"), theirs.encode(list(TEXTS)), 1e-5)
    assert same(vectors(ours, TEXTS, "query"), theirs.encode_query(list(TEXTS)), 1e-5)
    assert same(vectors(ours, TEXTS, "document"), theirs.encode_document(list(TEXTS)), 1e-5)


def test_other_weights_and_other_limits_are_other_spaces(tmp_path: Path) -> None:
    theirs, other = library(tmp_path / "a"), library(tmp_path / "b", seed=1)
    card = embark.models.from_sentence_transformers(theirs).card
    assert card.revision.startswith("probe-")
    assert vector_space(card) == vector_space(embark.models.from_sentence_transformers(theirs).card)
    assert vector_space(card) != vector_space(embark.models.from_sentence_transformers(other).card)
    theirs.max_seq_length = 8
    assert vector_space(card) != vector_space(embark.models.from_sentence_transformers(theirs).card)
    assert embark.models.from_sentence_transformers(theirs, revision="v2").card.revision == "v2"


def test_a_folder_takes_the_normal_path(tmp_path: Path) -> None:
    theirs = library(tmp_path / "plain")
    theirs.save_pretrained(str(tmp_path / "st"))
    ours = embark.models.from_sentence_transformers(str(tmp_path / "st"))
    assert ours.card.revision.startswith("local-")
    with pytest.raises(EmbarkError, match="go with an object"):
        embark.models.from_sentence_transformers(str(tmp_path / "st"), license="MIT")
    assert same(vectors(ours, TEXTS, "query"), theirs.encode_query(list(TEXTS)), 1e-5)


DOCS = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
SHOWN = next(block for block in re.findall(r"```py\n(.*?)```", DOCS, flags=re.S) if "SentenceTransformer(" in block)


def test_what_the_documentation_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library(tmp_path / "plain").save_pretrained("my-checkpoint")
    exec(compile(SHOWN, "docs", "exec"), {})
    assert re.search(r" ± \d| \[\d", capsys.readouterr().out)


# ── open_clip ────────────────────────────────────────────────────────────────────────────────────────────────────────


class TwoTowers(torch.nn.Module):  # type: ignore[misc]
    """The two methods that open_clip's models have."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.pixels = torch.nn.Embedding(256, 8), torch.nn.Linear(12, 8)
        self.dropout = torch.nn.Dropout(0.5)

    def encode_text(self, tokens: Any) -> Any:
        return self.dropout(self.words(tokens).mean(1))

    def encode_image(self, images: Any) -> Any:
        return self.dropout(self.pixels(images.flatten(1)))


def to_pixels(image: Image.Image) -> Any:
    assert image.mode == "RGB"
    return torch.from_numpy(np.asarray(image.resize((2, 2)), np.float32) / 255)


def to_tokens(texts: list[str]) -> Any:
    return torch.tensor([list(text.encode().ljust(100))[:100] for text in texts])


def test_an_open_clip_model_from_memory() -> None:
    theirs = TwoTowers()
    ours = embark.models.from_open_clip(theirs, to_pixels, to_tokens, name="me/clip")
    assert not theirs.training
    assert (ours.card.modalities, ours.card.dim, ours.card.fusion) == (("text", "image", "video"), 8, "unit-sum")
    pictures = [picture(1), picture(2, (30, 60), "RGBA")]
    with torch.no_grad():
        read = theirs.encode_text(to_tokens(list(TEXTS)))
        seen = theirs.encode_image(torch.stack([to_pixels(image.convert("RGB")) for image in pictures]))
    assert same(vectors(ours, TEXTS), read, 1e-5)
    assert same(vectors(ours, pictures), seen, 1e-5)
    assert same(one_by_one(ours, [*TEXTS, *pictures]), torch.cat([read, seen]), 1e-5)
    mixed = unit(read[0].numpy()) + unit(seen[0].numpy())
    assert same(vectors(ours, [(TEXTS[0], pictures[0])]), mixed[None], 1e-5)
    assert np.allclose(np.linalg.norm(vectors(ours, [film(1)])), 1, atol=1e-5)
    assert ours.card.revision.startswith("probe-")


# ── mteb ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class OfMteb:
    """A model of mteb's protocol, by hand: vectors tell what it was given."""

    def __init__(self, instructed: bool = True, modalities: tuple[str, ...] = ("text",)) -> None:
        self.calls: list[dict[str, Any]] = []
        self.mteb_model_meta = SimpleNamespace(
            name="me/of-mteb",
            revision="7",
            modalities=list(modalities),
            embed_dim=4,
            similarity_fn_name="dot",
            use_instructions=instructed,
        )

    def encode(
        self,
        inputs: Any,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **kwargs: Any,
    ) -> Any:
        assert isinstance(inputs, torch.utils.data.DataLoader)
        features = set(inputs.dataset.features)
        prompt = (task_metadata.prompt or {}).get(prompt_type.value if prompt_type else "query", "")
        self.calls.append({"features": features, "type": task_metadata.type, "prompt_type": prompt_type, **kwargs})
        rows = []
        for batch in inputs:
            assert all(isinstance(column, list) for column in batch.values())
            for at in range(len(next(iter(batch.values())))):
                row = {name: column[at] for name, column in batch.items()}
                told = [len(row.get("text", "")), len(prompt)]
                told.append(np.asarray(row["image"]).mean() if "image" in row else 0)
                told.append(len(row["audio"]["array"]) if "audio" in row else 0)
                rows.append(told)
        return torch.tensor(rows, dtype=torch.float32)


def numbers(*rows: tuple[float, ...]) -> Array:
    return np.array(rows, np.float32)


def test_a_model_of_mteb() -> None:
    theirs = OfMteb()
    ours = embark.models.from_mteb(theirs)
    assert (ours.card.name, ours.card.revision, ours.card.dim) == ("me/of-mteb", "7", 4)
    assert (ours.card.similarity, ours.card.instructed) == ("dot", True)
    assert same(vectors(ours, ["dog"], "query", ASK), numbers((3, len(ASK), 0, 0)))
    assert theirs.calls[-1]["features"] == {"text", "query"}
    assert (theirs.calls[-1]["prompt_type"], theirs.calls[-1]["type"]) == ("query", "Retrieval")
    assert same(vectors(ours, ["dog"], "document"), numbers((3, 0, 0, 0)))
    assert theirs.calls[-1]["features"] == {"text", "body"}
    assert same(vectors(ours, ["dog"], "left", ASK), numbers((3, len(ASK), 0, 0)))
    assert (theirs.calls[-1]["prompt_type"], theirs.calls[-1]["type"]) == (None, "STS")


def test_instructions_and_roles_are_in_the_key_where_they_matter() -> None:
    for instructed, spaces in ((True, 4), (False, 1)):
        ours = embark.models.from_mteb(OfMteb(instructed))
        asked = [("query", ASK), ("query", None), ("document", None), ("item", None)]
        keys = {key(vector_space(ours.card), ours.render(item("dog"), *how)) for how in asked}
        assert len(keys) == spaces
    assert same(vectors(ours, ["dog"], "query", ASK), numbers((3, 0, 0, 0)))


def test_rows_of_several_kinds_in_one_batch() -> None:
    ours = embark.models.from_mteb(OfMteb(modalities=("image", "text", "audio")))
    assert (ours.card.modalities, ours.card.fusion) == (("text", "image", "audio"), "native")
    shown, heard = picture(1), sound(1, 0.25)
    things = ["dog", shown, ("a dog", shown), heard, "cats"]
    mean = np.asarray(shown).mean()
    expected = numbers((3, 0, 0, 0), (0, 0, mean, 0), (5, 0, mean, 0), (0, 0, 0, 4000), (4, 0, 0, 0))
    assert same(vectors(ours, things), expected, 1e-4)
    with pytest.raises(EmbarkError, match="one image an item"):
        prepared(ours, [(shown, shown)])


def test_without_a_revision_behaviour_is_one() -> None:
    theirs = OfMteb()
    for unknown in (None, "no_revision_available"):
        theirs.mteb_model_meta.revision = unknown
        assert embark.models.from_mteb(theirs).card.revision.startswith("probe-")
    theirs.mteb_model_meta.embed_dim = 5
    with pytest.raises(EmbarkError, match="should have 5 dimensions"):
        embark.models.from_mteb(theirs)
    theirs.mteb_model_meta.similarity_fn_name = "euclidean"
    with pytest.raises(EmbarkError, match="cosine and dot"):
        embark.models.from_mteb(theirs)


@pytest.mark.slow
@pytest.mark.skipif(PEER is None, reason="needs mteb 2.26, here or where the python of EMBARK_PEER is")
def test_a_model_of_the_real_mteb(tmp_path: Path) -> None:
    """A sentence-transformers model in mteb's own wrapper, through us and through mteb's own data loaders."""
    theirs = library(tmp_path / "plain")
    theirs.save_pretrained(str(tmp_path / "st"))
    code = f"""
import json, sys
sys.path[:0] = {[str(Path(embark.__file__).parents[1]), str(Path(__file__).parents[1])]!r}
import embark, tiny
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
model = embark.models.from_mteb(SentenceTransformerEncoderWrapper({str(tmp_path / "st")!r}, device="cpu"), name="me/st")
print(json.dumps([tiny.vectors(model, tiny.TEXTS, role).tolist() for role in ("query", "document", "item")]))
"""
    done = subprocess.run([str(PEER), "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    queries, documents, items = json.loads(done.stdout.splitlines()[-1])
    assert same(np.array(queries), theirs.encode_query(list(TEXTS)), 1e-4)
    assert same(np.array(documents), theirs.encode_document(list(TEXTS)), 1e-4)
    assert same(np.array(items), theirs.encode(list(TEXTS)), 1e-4)
