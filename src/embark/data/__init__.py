"""Data sets as items and truths: access to the hub, readers, decoding."""
