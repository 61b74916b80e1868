"""`python -m lab.build`: see `lab.build.programs`."""

import sys

from lab.build.programs import main

sys.exit(main(sys.argv[1:]))
