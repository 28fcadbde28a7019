"""`python -m oncue`: the command line."""

from oncue.cli import main

main()
