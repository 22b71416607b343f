"""The page: leaderboards, comparisons, tasks, models and runs as a static bundle, written to a folder or served."""
