"""How long a text a model reads, in tokens: one decision for every loader that has a tokeniser.

Padding needs no decision: loaders pad to the longest text of a batch. Only graphs that take one length, or that cannot
mask padding, are given more (see `onnx.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from embark.models.checkpoints import read_json
from embark.types import EmbarkError

UNLIMITED = 1 << 20  # tokens; this and larger numbers (transformers writes 1e30) stand for "no limit"
CARD = "the card"
TOKENIZER = "tokenizer_config.json"
OFFSET = (  # model types that count positions from the one after padding's: 514 positions are 512 tokens
    "roberta", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm", "camembert", "mpnet", "longformer",
    "data2vec-text", "ibert", "xmod", "luke", "mluke", "layoutlmv3", "altclip_text_model",
)  # fmt: skip


class TextLength(NamedTuple):
    """The longest text that a model reads, in tokens with the special ones, and what says so; None: no limit."""

    tokens: int | None
    stated_by: str = ""

    @property
    def record(self) -> dict[str, Any]:
        """The facts that results record."""
        return {"tokens": self.tokens, "tokens stated by": self.stated_by}


def text_length(folder: Path, config: Mapping[str, Any], stated: Any = None) -> TextLength:
    """The decision for a checkpoint folder. `config` is the content of its config.json; `stated` is the card's number.

    The card comes first, then max_seq_length of sentence-transformers, then model_max_length of tokenizer_config.json.
    No text is longer than the model's table of positions. Computed positions (RoPE, ALiBi) bound model_max_length
    alone: such models read longer texts where the card or sentence-transformers says so. The truncation in
    tokenizer.json counts only where nothing else states a length: exporters leave it behind.
    """
    if not (stated is None or (_is_number(stated) and stated >= 1)):
        raise EmbarkError(f"tokens={stated!r} is no length of a text; write a whole number of tokens, such as 512.")
    claims = [(_count(stated), CARD), *_claims(folder)]
    tokens, source = next(((tokens, source) for tokens, source in claims if tokens), (None, ""))
    positions = position_count(config)
    if positions and (tokens is None or (tokens > positions and (_has_table(config) or source == TOKENIZER))):
        return TextLength(positions, "config.json")
    if tokens is None:
        truncation = _read(folder / "tokenizer.json").get("truncation") or {}
        tokens, source = _count(truncation.get("max_length")), "tokenizer.json"
    return TextLength(tokens, source if tokens else "")


def position_count(config: Mapping[str, Any]) -> int | None:
    """The tokens that a model has positions for, by its config.json; None where it does not say."""
    positions = _count(config.get("max_position_embeddings"))
    if positions and config.get("model_type") in OFFSET:
        positions -= 1 + max(1, config.get("pad_token_id") or 0)
    return positions


def _read(path: Path) -> dict[str, Any]:
    """The content of a JSON file; nothing where there is none."""
    return read_json(path) if path.is_file() else {}


def _claims(folder: Path) -> Iterator[tuple[int | None, str]]:
    """The lengths that a folder's files state, the first of them first."""
    for path in sorted(folder.glob("sentence_*_config.json")):  # sentence_bert_config.json, or an older name
        config = _read(path)
        for arguments in ("processor_kwargs", "tokenizer_args"):
            yield _count((config.get(arguments) or {}).get("model_max_length")), path.name
        yield _count(config.get("max_seq_length")), path.name
    yield _count(_read(folder / TOKENIZER).get("model_max_length")), TOKENIZER


def _count(value: Any) -> int | None:
    """A number of tokens; None for whatever is none, and for those that stand for "no limit"."""
    return int(value) if _is_number(value) and 1 <= value < UNLIMITED else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _has_table(config: Mapping[str, Any]) -> bool:
    """Whether positions are rows of a table, beyond which nothing can be read; others are computed."""
    is_rotary = any("rope" in name or "rotary" in name for name in config)
    kind = config.get("position_embedding_type", "absolute")
    return not is_rotary and kind not in ("rope", "rotary", "alibi") and config.get("position_biased_input", True)
