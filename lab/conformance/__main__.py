"""`python -m lab.conformance`: see `scripts/test --conformance`."""

import sys

from lab.conformance.cli import main

sys.exit(main(sys.argv[1:]))
