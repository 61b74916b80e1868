"""What every part of the settings model is made of."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _network(value: str) -> str:
    return str(ipaddress.ip_network(value))


Cidr = Annotated[str, AfterValidator(_network)]
Label = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Url = Annotated[str, Field(pattern=r"^https?://[^\s]+[^/\s]$")]
Duration = Annotated[str, Field(pattern=r"^\d+(ms|s|m|h|d|w|y)$")]
Port = Annotated[int, Field(ge=1, le=65535)]
NodePort = Annotated[int, Field(ge=30000, le=32767)]
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}


def seconds(duration: str) -> float:
    """A `Duration` in seconds. Raises ValueError for anything else."""
    found = re.fullmatch(r"(\d+)(ms|s|m|h|d|w|y)", duration)
    if found is None:
        raise ValueError(f"{duration!r} is no duration such as 15s")
    return int(found[1]) * _UNITS[found[2]]


class Model(BaseModel):
    """Frozen, and strict about unknown keys: a typo is an error, never a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)
