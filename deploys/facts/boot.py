"""The shell functions that read what a host's next boot does to settings of ours."""

from importlib import resources

FUNCTION = resources.files("deploys.facts").joinpath("boot.sh").read_text()
