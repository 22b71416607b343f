"""Encoders that users write around a checkpoint of sentence-transformers, sound or with one planted fault, and folders
whose files say otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import embark
from embark.engine.doctor import Finding
from embark.models import Encoder
from embark.types import Array


@dataclass(frozen=True)
class Wrapper:
    """How a user's function embeds texts with the plain transformer of a folder; the defaults are sound for mean
    pooling and normalization.
    """

    pooling: str = "mean"
    tokens: int | None = None  # None: as sentence_bert_config.json says
    keep: str = "right"  # the side that is cut
    fill: int | None = None  # every text to so many tokens
    masked: bool = True
    prompt: str = ""
    normalized: bool = True
    similarity: Any = "cosine"

    def encoder(self, folder: Path) -> Encoder:
        """The user's encoder."""
        import torch
        from transformers import AutoModel, AutoTokenizer

        stated = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
        tokenizer = AutoTokenizer.from_pretrained(folder, truncation_side=self.keep)
        model = AutoModel.from_pretrained(folder).eval()
        fill = {"padding": "max_length" if self.fill else True, "max_length": self.fill or self.tokens or stated}

        @torch.no_grad()
        def embed(texts: list[str]) -> Array:
            inputs = tokenizer([self.prompt + text for text in texts], truncation=True, return_tensors="pt", **fill)
            mask = inputs["attention_mask"] if self.masked else torch.ones_like(inputs["attention_mask"])
            states = model(**{**inputs, "attention_mask": mask}).last_hidden_state.numpy()
            counted = mask.numpy()[:, :, None]
            rows = {
                "mean": lambda: (states * counted).sum(1) / counted.sum(1),
                "cls": lambda: states[:, 0],
                "last": lambda: states[np.arange(len(states)), mask.numpy().sum(1) - 1],
            }[self.pooling]()
            return rows / np.linalg.norm(rows, axis=1, keepdims=True) if self.normalized else rows

        return embark.encoder(text=embed, name="me/wrapped", revision="1", similarity=self.similarity)


@dataclass(frozen=True)
class Fault:
    """A planted fault: what is done wrong, what the folder's files say besides, and the finding that names it."""

    wrapper: Wrapper
    check: str
    words: str
    files: tuple[tuple[str, Any], ...] = ()
    verdict: str = "wrong"


PROMPTS = {"prompts": {"query": "query: ", "document": "passage: "}}
SENTENCE_TRANSFORMERS = "config_sentence_transformers.json"
NOT_NORMALIZED = ("modules.json", "without Normalize")
FAULTS = {
    "reads less text": Fault(Wrapper(tokens=32), "text: files", "texts are cut at 32 tokens"),
    "ignores the end": Fault(Wrapper(tokens=16), "text: files", "texts are cut at 16 tokens"),
    "ignores the beginning": Fault(Wrapper(keep="left"), "text: files", "1 of 8 differ, such as 'The 0th paragraph"),
    "reads less text, an odd number": Fault(Wrapper(tokens=23), "text: files", "vectors are others"),
    "padding counts": Fault(Wrapper(fill=32, masked=False), "text: files", "padding is not masked"),
    "lacks its prefix": Fault(
        Wrapper(), "text: files", "texts of the role query have no prompt; the files say the prompt 'query: '",
        ((SENTENCE_TRANSFORMERS, PROMPTS),),
    ),
    "has the other prefix": Fault(
        Wrapper(prompt="query: "), "text: files", "texts of the role document have the prompt 'query: '",
        ((SENTENCE_TRANSFORMERS, PROMPTS),),
    ),
    "has a prefix of its own": Fault(Wrapper(prompt="Represent the sentence: "), "text: files", "vectors are others"),
    "pools the first token": Fault(Wrapper(pooling="cls"), "text: files", "pools the first token"),
    "pools the last token": Fault(Wrapper(pooling="last"), "text: files", "pools the last token"),
    "is not normalized": Fault(
        Wrapper(normalized=False), "text: files", "the files say that vectors are normalized", verdict="note"
    ),
    "wrong similarity": Fault(
        Wrapper(normalized=False, similarity="dot"), "similarity", "compare vectors by cosine, the card by dot",
        ((SENTENCE_TRANSFORMERS, {"similarity_fn_name": "cosine"}), NOT_NORMALIZED),
    ),
    "another similarity that changes nothing": Fault(
        Wrapper(similarity="dot"), "similarity", "the same for vectors of unit length",
        ((SENTENCE_TRANSFORMERS, {"similarity_fn_name": "cosine"}),), "note",
    ),
}  # fmt: skip


def edited(original: Path, folder: Path, *files: tuple[str, Any]) -> Path:
    """A folder with links to the files of a checkpoint, some of which get other content (JSON)."""
    folder.mkdir(parents=True)
    for path in original.rglob("*"):
        target = folder / path.relative_to(original)
        if path.is_file():
            target.parent.mkdir(exist_ok=True)
            target.symlink_to(path.resolve())
    for name, content in files:
        path = folder / name
        if content == "without Normalize":
            content = [module for module in json.loads(path.read_text()) if not module["type"].endswith("Normalize")]
        elif isinstance(content, dict) and path.is_file():
            content = {**json.loads(path.read_text()), **content}
        path.unlink(missing_ok=True)
        path.write_text(json.dumps(content))
    return folder


def check_named(findings: Sequence[Finding], fault: Fault) -> None:
    """The fault is among the findings, and nothing else is blamed."""
    assert {finding.check for finding in findings if finding.verdict == "wrong"} <= {fault.check}, findings
    of_fault = [finding for finding in findings if (finding.check, finding.verdict) == (fault.check, fault.verdict)]
    assert any(fault.words in finding.message for finding in of_fault), findings
