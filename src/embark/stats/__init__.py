"""Statistics: intervals, paired tests, rank intervals, and means of scores. Pure functions over results."""
