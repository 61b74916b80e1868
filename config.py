"""pyinfra reads this before the inventory: what a run is started with is checked first."""

import sys

# pyinfra switches it off, for deploy files; ours are packages, compiled anew at every start then
sys.dont_write_bytecode = False

from deploys.run import startup  # noqa: E402

startup.install()
