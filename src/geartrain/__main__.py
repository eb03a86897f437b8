"""`python -m geartrain` is the command `geartrain`."""

from geartrain.cli.main import main

main()
