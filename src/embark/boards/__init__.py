"""Boards: results that may be compared, the families' rules, leaderboards, and the papers' tables re-derived."""
