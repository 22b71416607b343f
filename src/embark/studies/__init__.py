"""Studies: one analysis per module; scores or vectors in, a table and a figure out."""
