"""pyinfra reads this before the inventory: what a run is started with is checked first."""

from deploys.run import startup

startup.install()
