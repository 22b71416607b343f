"""Text embedders: those of ARK's tables, and the ones that people compare with.

Revisions, sizes and licenses are those that mteb 2.26.24 lists; prompts are the authors'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embark.types import ModelCard

INSTRUCT = "Instruct: {instruction}\nQuery:"
SEARCHING = {"query": "Represent this sentence for searching relevant passages: "}
PREFIXES = {"query": "query: ", "document": "passage: ", "": "query: "}  # "query: " for symmetric tasks, says E5


def _row(
    family: str,
    name: str,
    revision: str,
    dim: int,
    parameters: int,
    context: int,
    license: str,
    architecture: str,
    description: str,
    ark: str = "",
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> ModelCard:
    return ModelCard(
        name, revision, more.pop("loader", "sentence-transformers"), ("text",), dim=dim, options=options or {},
        source=name, family=family, parameters=parameters, context=context, objective="contrastive",
        architecture=architecture, license=license, reference=f"https://huggingface.co/{name}", description=description,
        instructed="template" in (options or {}), aliases={"ARK": ark} if ark else {}, **more,
    )  # fmt: skip


def _qwen(
    family: str, name: str, revision: str, dim: int, parameters: int, context: int, of: str, ark: str = ""
) -> ModelCard:
    return _row(
        family, name, revision, dim, parameters, context, "Apache-2.0", "Qwen3 decoder, last token", of, ark,
        {"template": INSTRUCT}, dtype="bfloat16",
    )  # fmt: skip


_REASONING = "Qwen3 trained for questions whose answers take reasoning to find."
_E5 = "Weakly supervised pairs of texts, then labelled ones; prefixes tell queries from passages."
_ALL = "A small sentence encoder trained on a billion pairs."
_GTE = "General text embeddings, trained in several stages; no prompts."
_BGE = "A text encoder with a prompt for queries."

# fmt: off
CARDS = (
    # ── of ARK's tables ──
    _row("BGE", "BAAI/bge-m3", "5617a9f61b028005a4858fdac845db406aefb181", 1024, 568_000_000, 8192, "MIT",
         "XLM-RoBERTa, first token", "The dense vectors of a model for more than 100 languages.", "BGE-M3-0.6B"),
    _qwen("Qwen3-Embedding", "Qwen/Qwen3-Embedding-0.6B", "b22da495047858cce924d27d76261e96be6febc0", 1024, 595_776_512,
          32768, "Multilingual, with instructions; the smallest of three."),
    _qwen("Qwen3-Embedding", "Qwen/Qwen3-Embedding-4B", "636cd9bf47d976946cdbb2b0c3ca0cb2f8eea5ff", 2560, 4_021_774_336,
          32768, "Multilingual, with instructions; the middle of three.", "Qwen3-Embed-4B"),
    _qwen("Qwen3-Embedding", "Qwen/Qwen3-Embedding-8B", "4e423935c619ae4df87b646a3ce949610c66241c", 4096, 7_567_295_488,
          32768, "Multilingual, with instructions; the largest of three.", "Qwen3-Embed-8B"),
    _qwen("Diver", "AQ-MedAI/Diver-Retriever-0.6B", "9ce2a1e8acae4342c453e1a18b71d468c4c81e39", 1024, 595_776_512,
          32768, _REASONING),
    _qwen("Diver", "AQ-MedAI/Diver-Retriever-1.7B", "6b3242ce3928c447b66525b4f2240b6df375321b", 2048, 1_720_574_976,
          40960, _REASONING, "Diver-Embed-1.7B"),
    _qwen("Diver", "AQ-MedAI/Diver-Retriever-4B", "ff7f8bc8d1827734dcf2bbfab99f065be618069a", 2560, 4_021_774_336,
          40960, _REASONING, "Diver-Embed-4B"),
    _row("ReasonIR", "reasonir/ReasonIR-8B", "c3d0690370ff4a8c3d3882d8dfa85c43650034fa", 4096, 7_504_924_672, 131_072,
         "CC BY-NC 4.0", "Llama 3.1 decoder seeing both ways, mean of tokens",
         "Llama trained for questions whose answers take reasoning to find.", "ReasonIR-8B", {"causal": False,
         "pooling": "mean", "pool_prompt": False, "normalise": True, "tokens": 32_768,
         "template": "<|user|>\n{instruction}\n<|embed|>\n", "prompts": {"": "<|embed|>\n"}}, loader="text",
         dtype="bfloat16"),
    # ── common ones ──
    _row("BGE", "BAAI/bge-small-en-v1.5", "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a", 384, 33_400_000, 512, "MIT",
         "BERT, first token", _BGE, options={"prompts": SEARCHING}),
    _row("BGE", "BAAI/bge-base-en-v1.5", "a5beb1e3e68b9ab74eb54cfd186867f64f240e1a", 768, 109_000_000, 512, "MIT",
         "BERT, first token", _BGE, options={"prompts": SEARCHING}),
    _row("BGE", "BAAI/bge-large-en-v1.5", "d4aa6901d3a41ba39fb536a557fa166f842b0e09", 1024, 335_000_000, 512, "MIT",
         "BERT, first token", _BGE, options={"prompts": SEARCHING}),
    _row("Sentence-BERT", "sentence-transformers/all-MiniLM-L6-v2", "8b3219a92973c328a8e22fadcfa821b5dc75636a", 384,
         22_713_216, 256, "Apache-2.0", "MiniLM, mean of tokens", _ALL, data=1170.0),
    _row("Sentence-BERT", "sentence-transformers/all-MiniLM-L12-v2", "364dd28d28dcd3359b537f3cf1f5348ba679da62", 384,
         33_360_000, 256, "Apache-2.0", "MiniLM, mean of tokens", _ALL, data=1170.0),
    _row("Sentence-BERT", "sentence-transformers/all-mpnet-base-v2", "9a3225965996d404b775526de6dbfe85d3368642", 768,
         109_486_464, 384, "Apache-2.0", "MPNet, mean of tokens", _ALL, data=1170.0),
    _row("LaBSE", "sentence-transformers/LaBSE", "e34fab64a3011d2176c99545a93d5cbddc9a91b7", 768, 470_926_848, 512,
         "Apache-2.0", "BERT, first token", "Sentences of 109 languages in one space, for finding translations."),
    _row("E5", "intfloat/e5-small-v2", "dca8b1a9dae0d4575df2bf423a5edb485a431236", 384, 33_000_000, 512, "MIT",
         "BERT, mean of tokens", _E5, options={"prompts": PREFIXES}),
    _row("E5", "intfloat/e5-base-v2", "1c644c92ad3ba1efdad3f1451a637716616a20e8", 768, 109_000_000, 512, "MIT",
         "BERT, mean of tokens", _E5, options={"prompts": PREFIXES}),
    _row("E5", "intfloat/e5-large-v2", "b322e09026e4ea05f42beadf4d661fb4e101d311", 1024, 335_000_000, 512, "MIT",
         "BERT, mean of tokens", _E5, options={"prompts": PREFIXES}),
    _row("E5", "intfloat/multilingual-e5-small", "fd1525a9fd15316a2d503bf26ab031a61d056e98", 384, 118_000_000, 512,
         "MIT", "MiniLM, mean of tokens", _E5, options={"prompts": PREFIXES}),
    _row("E5", "intfloat/multilingual-e5-base", "d13f1b27baf31030b7fd040960d60d909913633f", 768, 278_000_000, 512,
         "MIT", "XLM-RoBERTa, mean of tokens", _E5, options={"prompts": PREFIXES}),
    _row("E5", "intfloat/multilingual-e5-large", "ab10c1a7f42e74530fe7ae5be82e6d4f11a719eb", 1024, 560_000_000, 512,
         "MIT", "XLM-RoBERTa, mean of tokens", _E5, options={"prompts": PREFIXES}),
    _row("E5", "intfloat/multilingual-e5-large-instruct", "baa7be480a7de1539afce709c8f13f833a510e0a", 1024, 560_000_000,
         512, "MIT", "XLM-RoBERTa, mean of tokens", "Multilingual E5 that reads an instruction before each query.",
         options={"template": f"{INSTRUCT} "}),
    # Its tokeniser must end a text with </s>, which is pooled; transformers 5 would leave it out.
    _row("E5", "intfloat/e5-mistral-7b-instruct", "07163b72af1488142a360786df853f237b1a3ca1", 4096, 7_111_000_000,
         32_768, "MIT", "Mistral decoder, last token", "A large language model turned embedder with synthetic tasks.",
         options={"template": f"{INSTRUCT} ", "tokens": 4096,
         "tokenizer": {"add_bos_token": True, "add_eos_token": True}}, dtype="float16"),
    _row("GTE", "thenlper/gte-small", "17e1f347d17fe144873b1201da91788898c639cd", 384, 33_360_512, 512, "MIT",
         "BERT, mean of tokens", _GTE),
    _row("GTE", "thenlper/gte-base", "c078288308d8dee004ab72c6191778064285ec0c", 768, 109_482_752, 512, "MIT",
         "BERT, mean of tokens", _GTE),
    _row("GTE", "thenlper/gte-large", "4bef63f39fcc5e2d6b0aae83089f307af4970164", 1024, 335_142_400, 512, "MIT",
         "BERT, mean of tokens", _GTE),
    _row("GTE", "Alibaba-NLP/gte-modernbert-base", "7ca8b4ca700621b67618669f5378fe5f5820b8e4", 768, 149_014_272, 8192,
         "Apache-2.0", "ModernBERT, first token", _GTE),
    _row("GTE", "Alibaba-NLP/gte-multilingual-base", "ca1791e0bcc104f6db161f27de1340241b13c5a4", 768, 305_368_320, 8192,
         "Apache-2.0", "its own encoder, first token", "70 languages and long texts; runs the checkpoint's own code."),
    _row("mxbai", "mixedbread-ai/mxbai-embed-large-v1", "990580e27d329c7408b3741ecff85876e128e203", 1024, 335_141_888,
         512, "Apache-2.0", "BERT, first token", _BGE, options={"prompts": SEARCHING}),
    _row("Arctic", "Snowflake/snowflake-arctic-embed-m-v1.5", "97eab2e17fcb7ccb8bb94d6e547898fa1a6a0f47", 768,
         109_482_240, 512, "Apache-2.0", "BERT, first token", _BGE, options={"prompts": SEARCHING}),
    _row("Arctic", "Snowflake/snowflake-arctic-embed-l-v2.0", "edc2df7b6c25794b340229ca082e7c78782e6374", 1024,
         567_754_752, 8192, "Apache-2.0", "XLM-RoBERTa, first token",
         "Multilingual retrieval; the checkpoint brings its prompt for queries."),
    _row("EmbeddingGemma", "google/embeddinggemma-300m", "64614b0b8b64f0c6c1e52b07e4e9a4e8fe4d2da2", 768, 307_581_696,
         2048, "Gemma", "Gemma 3 seeing both ways, mean of tokens",
         "More than 100 languages on small devices; the checkpoint brings its prompts."),
    _row("Granite", "ibm-granite/granite-embedding-english-r2", "6e7b8ce0e76270394ac4669ba4bbd7133b60b7f9", 768,
         149_014_272, 8192, "Apache-2.0", "ModernBERT, first token",
         "English texts, tables and code, from data with clear licenses."),
)
# fmt: on
