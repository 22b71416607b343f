"""The facts about checkpoints, as tables."""
