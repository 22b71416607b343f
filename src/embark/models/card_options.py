"""The options of cards, by loader, and what they say: a card with another option is refused."""

from __future__ import annotations

TOKENS = {"tokens": "the number of tokens that a text is cut to"}
PROMPTS = {
    "prompts": "the text before an item, by role",
    "template": "the text before an item with an instruction, which stands at {instruction}",
}
STATES = {
    "pooling": "which states become the vector: last, first, mean",
    "normalise": "whether vectors have length one",
}
CAUSAL = {"causal": "whether a token sees only what is before it"}
TOKENIZER = {"tokenizer": "further arguments of the tokenizer"}
FILE = {"file": "the file, of several"}
API = {
    "endpoint": "the address of the provider",
    "dimensions": "the dimension that the provider is asked for",
    "parameters": "further fields of every request",
    "cut": "texts are cut to the card's context before they are sent; set by the loader",
}
PICTURES = {
    "pixels": "(fewest, most) of a picture",
    "frame_pixels": "(fewest, most) of a frame of a film",
    "film_pixels": "most of a whole film",
    "video": "how a film is shown: native, frames, middle",
    "fps": "the rate of frames that the model is told",
    "bare": "whether placeholders have no start and end marks",
    "resize": "the side of the squares that pictures are made first",
}
PROMPTED = {  # cards/mllm.py explains them
    "templates": "the prompt of a text, of media, of both",
    "asking": "the prompts of roles that read instructions",
    "uninstructed": "roles that read no instruction",
    "system": "the system's message where there is no instruction",
    "prefixes": "the text before an item, by role",
    "stop": "whether an instruction ends with a full stop",
    "gap": "whether the blank before an empty text stays",
    "squeeze": "whether white space becomes single blanks",
    "padding": "the side of a batch that is padded",
    "positions": "how tokens are counted: model, flat",
    "crops": "most squares that a picture is cut into",
    "base": "the model that an adapter was trained on, as ID@REVISION",
}
JUDGED = {
    "template": "the prompt of a query and a document",
    "instruction": "the instruction where a task has none",
    "yes": "the token of a document that answers the query",
    "no": "the token of another",
    "end": "tokens after the prompt",
}
TEXT_PART = {"text": "the model of texts, as ID@REVISION"}
WRITTEN = {"words": "the number of tokens of a text that is written"}

SENTENCES = {**TOKENS, **TOKENIZER, **PROMPTS}
TEXT = {**SENTENCES, **STATES, **CAUSAL, "pool_prompt": "whether the prompt is pooled, too"}
ONNX = {**FILE, **STATES, **TOKENS, **PROMPTS}
DUAL = {**TOKENS, "own_code": "whether the checkpoint brings a class of its own"}
OPEN_CLIP = {"architecture": "open_clip's name of the model", "pretrained": "open_clip's name of the weights"}
BLIP = {"tokenizer": "the vocabulary, as ID@REVISION", "untrained_heads": "the seed that heads are drawn by"}
JINA = {"code": "the revision of the code"}
VISTA = {**TEXT_PART, "weights": "the pattern of the names of files of weights"}
TIMM = {"architecture": "timm's name of the model"}
MLLM = {**PROMPTED, **STATES, **CAUSAL, **PICTURES}
JUDGE = {**JUDGED, **PICTURES}
CHAT = {**PICTURES, **WRITTEN, "template": "the prompt of a turn"}
