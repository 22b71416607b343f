"""Re-rankers, with the prompts and options of each family.

"template" is the prompt, word for word; "instruction" is used where a task has none; "yes" and "no" are the words whose
logits are compared; "end" are tokens after the prompt; "pixels" are the fewest and most of a picture.
"""

from __future__ import annotations

from typing import Any

from embark.types import ModelCard

_JUDGE = (
    "<|im_start|>system\n"
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
QWEN3: dict[str, Any] = {
    "template": _JUDGE + "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "instruction": "Given a web search query, retrieve relevant passages that answer the query",
    "yes": "yes",
    "no": "no",
}
QWEN3_VL: dict[str, Any] = {
    "template": _JUDGE + "<Instruct>: {instruction}<Query>:{query}\n<Document>:{document}"
    "<|im_end|>\n<|im_start|>assistant\n",
    "instruction": "Given a search query, retrieve relevant candidates that answer the query.",
    "yes": "yes",
    "no": "no",
    "pixels": (4 * 32 * 32, 1280 * 32 * 32),
}
JINA: dict[str, Any] = {
    "template": "**Document**:\n{document}\n**Query**:\n{query}",
    "end": (100,),
    "pixels": (3136, 602_112),
}


def _card(name: str, loader: str, family: str, parameters: int | None, context: int, **facts: Any) -> ModelCard:
    return ModelCard(
        name, loader=loader, family=family, parameters=parameters, context=context, **{
            "revision": "main", "modalities": ("text",), "dim": 1, "stored": "float32", "kind": "reranker",
            "source": name, "license": "Apache-2.0", "objective": "relevance",
            "reference": f"https://huggingface.co/{name}", **facts,
        },
    )  # fmt: skip


_BF16: dict[str, Any] = {"dtype": "bfloat16", "instructed": True}

CARDS: tuple[ModelCard, ...] = (
    _card(
        "BAAI/bge-reranker-v2-m3", "cross-encoder", "BGE-Reranker", 567_755_777, 8192, architecture="XLM-RoBERTa large",
        aliases={"ARK": "BGE-Reranker"}, description="A multilingual cross-encoder of text.",
    ),
    _card(
        "BAAI/bge-reranker-base", "cross-encoder", "BGE-Reranker", 278_044_417, 512, architecture="XLM-RoBERTa base",
        license="MIT", description="A cross-encoder of English and Chinese text.",
    ),
    _card(
        "BAAI/bge-reranker-large", "cross-encoder", "BGE-Reranker", 559_891_457, 512, architecture="XLM-RoBERTa large",
        license="MIT", description="A cross-encoder of English and Chinese text.",
    ),
    _card(
        "cross-encoder/ms-marco-MiniLM-L6-v2", "cross-encoder", "MS MARCO", 22_713_601, 512, architecture="BERT",
        description="A small cross-encoder of English text, trained on web search.",
    ),
    *(
        _card(
            f"Qwen/Qwen3-Reranker-{size}", "yes-no", "Qwen3-Reranker", None, 8192, options=QWEN3, **_BF16,
            architecture=f"Qwen3-{size}", description="A language model that says yes or no to a pair of texts.",
        )
        for size in ("0.6B", "4B", "8B")
    ),
    *(
        _card(
            f"Qwen/Qwen3-VL-Reranker-{size}", "yes-no", "Qwen3-VL-Reranker", None, 8192, options=QWEN3_VL, **_BF16,
            modalities=("text", "image", "video"), architecture=f"Qwen3-VL-{size}", aliases=aliases,
            description="A language model with eyes that says yes or no to a pair; films as 8 frames (inferred).",
        )
        for size, aliases in (("2B", {}), ("8B", {"ARK": "Qwen3-VL-Reranker"}))
    ),
    _card(
        "jinaai/jina-reranker-m0", "jina-reranker", "Jina-Reranker", None, 10_240, options=JINA, dtype="bfloat16",
        modalities=("text", "image"), architecture="Qwen2-VL-2B", license="CC-BY-NC-4.0",
        aliases={"ARK": "Jina-Reranker"}, description="Texts and pictures of pages, by two layers over Qwen2-VL.",
    ),
)  # fmt: skip
