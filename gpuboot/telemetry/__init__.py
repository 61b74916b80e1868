"""GPU metrics: the table of DCGM fields, and what is made from it."""

from gpuboot.telemetry.collectors import (
    choose,
    collected,
    collectors,
    collectors_csv,
    parse_collectors,
)
from gpuboot.telemetry.expressions import ExpressionError, metric_names, not_collected
from gpuboot.telemetry.fields import BY_NAME, FIELDS, OPT_IN, OURS, UPSTREAM, Field, UnknownField

__all__ = [
    "BY_NAME",
    "FIELDS",
    "OPT_IN",
    "OURS",
    "UPSTREAM",
    "ExpressionError",
    "Field",
    "UnknownField",
    "choose",
    "collected",
    "collectors",
    "collectors_csv",
    "metric_names",
    "not_collected",
    "parse_collectors",
]
