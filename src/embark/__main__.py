"""`python -m embark`."""

from embark.cli import main

main()
