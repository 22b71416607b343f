"""Reports: a document on models and their scores; what is kept for the page."""
