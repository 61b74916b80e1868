"""Tables that stand beside the code that reads them."""

import tomllib
from importlib import resources
from typing import Any


def read_table(path: str) -> dict[str, Any]:
    """The content of a TOML file of the package. + path: below gpuboot/"""
    return tomllib.loads(resources.files("gpuboot").joinpath(path).read_text("utf-8"))
