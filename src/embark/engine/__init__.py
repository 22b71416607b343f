"""Engines compute the vectors that a plan needs; the only code that touches devices."""
