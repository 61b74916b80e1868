"""`python -m lab`: see `scripts/lab`."""

import sys

from lab.cli import main

sys.exit(main(sys.argv[1:]))
