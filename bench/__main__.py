"""`python -m bench`: what scripts/bench runs."""

import sys

from bench.cli import main

sys.exit(main(sys.argv[1:]))
