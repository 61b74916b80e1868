"""GPU metrics: the table of DCGM fields, and what is made from it."""

from gpuboot.telemetry.cardinality import Series, Shape, disk_bytes, memory_bytes, series
from gpuboot.telemetry.collectors import (
    CollectorsError,
    choose,
    collected,
    collectors,
    collectors_csv,
    field_numbers,
    parse_collectors,
    problems,
)
from gpuboot.telemetry.expressions import ExpressionError, metric_names, not_collected
from gpuboot.telemetry.fields import (
    BY_NAME,
    FIELDS,
    OPT_IN,
    OWN_FIELDS,
    UPSTREAM,
    Family,
    Field,
    Limit,
    UnknownField,
)

__all__ = [
    "BY_NAME",
    "FIELDS",
    "OPT_IN",
    "OWN_FIELDS",
    "UPSTREAM",
    "CollectorsError",
    "ExpressionError",
    "Family",
    "Field",
    "Limit",
    "Series",
    "Shape",
    "UnknownField",
    "choose",
    "collected",
    "collectors",
    "collectors_csv",
    "disk_bytes",
    "field_numbers",
    "memory_bytes",
    "metric_names",
    "not_collected",
    "parse_collectors",
    "problems",
    "series",
]
