"""Engines compute the vectors that a plan found missing; the only code that touches devices."""
