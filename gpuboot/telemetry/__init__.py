"""GPU metrics: the table of DCGM fields, and what is made from it."""

from gpuboot.telemetry.collectors import choose, collectors_csv, parse_collectors
from gpuboot.telemetry.fields import BY_NAME, FIELDS, OPT_IN, OURS, UPSTREAM, Field, UnknownField

__all__ = [
    "BY_NAME",
    "FIELDS",
    "OPT_IN",
    "OURS",
    "UPSTREAM",
    "Field",
    "UnknownField",
    "choose",
    "collectors_csv",
    "parse_collectors",
]
