"""The twelve directions between text, image, video and audio, and OmniSET's words for each."""

from __future__ import annotations

from embark.types import Modality

KINDS: tuple[Modality, ...] = ("text", "image", "video", "audio")
DIRECTIONS: dict[str, tuple[Modality, Modality]] = {
    f"{query}-to-{target}": (query, target) for query in KINDS for target in KINDS if query != target
}


def instruction(query: str, target: str) -> str:
    """What a model is told with a query: which modality it is to find."""
    return f"Find the {target} that best matches the given {query}: "


INSTRUCTIONS = {
    f"query:{name}": instruction(*direction) for name, direction in DIRECTIONS.items()
}  # of a row's subsets
