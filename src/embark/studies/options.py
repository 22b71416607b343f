"""Options that several studies declare."""

from __future__ import annotations

from embark.types import Option

BY = Option(str, "Group tasks by category (the default), type, capability, domain… or task.")
CORRELATION = Option(("spearman", "pearson"), "Default: spearman.")
MODELS = Option(list[str], "Only these models: names or patterns, '*siglip*'.")
WHERE = Option(list[str], "Only models with this on their card: architecture=vit, data=400..2000 (millions).")
