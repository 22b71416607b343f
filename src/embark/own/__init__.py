"""Data of the user's own as tasks: folders, tables, TOML files, data frames and lists; one vocabulary of columns."""
