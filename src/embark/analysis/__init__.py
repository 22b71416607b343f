"""What scores mean: intervals, aggregates, tables. Pure functions over results."""
