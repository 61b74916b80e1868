"""The table of populations: every kind of GPU that verdicts and alerts are tried on."""

from __future__ import annotations

from tests.populations import ampere, hopper, other
from tests.populations.model import Population

POPULATIONS: dict[str, Population] = {
    one.name: one for one in (*ampere.POPULATIONS, *hopper.POPULATIONS, *other.POPULATIONS)
}
