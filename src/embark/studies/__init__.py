"""Studies: one analysis a module; scores or vectors in, a table and a figure out."""
