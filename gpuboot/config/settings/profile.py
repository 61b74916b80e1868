"""Settings of `gpuboot profile`: the numbers by which work is put into classes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import Field, field_validator

from gpuboot.config.settings.base import Model

_NVIDIA = "NVIDIA, DCGM user guide, profiling metrics"
_GPUBOOT = "gpuboot"


@dataclass(frozen=True)
class Threshold:
    """A limit of a class. + meaning: what it is compared with; source: whose number it is"""

    value: float
    meaning: str
    source: str = _GPUBOOT


# By name, as `profile.thresholds` of the settings overrides them.
TABLE: Mapping[str, Threshold] = {
    "sm_needed": Threshold(0.8, "SM active that effective use needs", _NVIDIA),
    "sm_poor": Threshold(0.5, "SM active below which use is likely ineffective", _NVIDIA),
    "dram_ceiling": Threshold(0.8, "DRAM active that can be reached in practice", _NVIDIA),
    "dram_busy": Threshold(0.75, "DRAM active as a share of its ceiling"),
    "pipe_busy": Threshold(0.5, "activity of the busiest arithmetic pipe"),
    "pipe_idle": Threshold(0.3, "activity of the busiest pipe while it waits for data"),
    "idle_engine": Threshold(0.05, "engine active of an idle GPU"),
    "idle_dram": Threshold(0.02, "DRAM active of an idle GPU"),
    "held_memory": Threshold(0.05, "share of device memory that an idle process keeps"),
    "at_work": Threshold(0.3, "engine active from which heat slows work down"),
    "hw_thermal": Threshold(0.05, "share of time slowed down by the hardware for heat"),
    "sw_thermal": Threshold(0.2, "share of time slowed down by the driver for heat"),
    "power_brake": Threshold(0.01, "share of time slowed down by the external power brake"),
    "power_cap": Threshold(0.5, "share of time held down by the power limit"),
    "link_busy": Threshold(0.5, "share of what the link can carry"),
    "engine_waits": Threshold(0.7, "engine active of a GPU that waits for input"),
    "engine_uneven": Threshold(0.5, "coefficient of variation of the engine's activity"),
    "engine_busy": Threshold(0.8, "engine active of a GPU with work at all times"),
    "iowait": Threshold(0.1, "share of the host's CPU time that waits for disks"),
    "cpu_throttled": Threshold(0.25, "share of CPU periods in which the pod hit its CPU limit"),
    "samples": Threshold(0.8, "share of the expected samples that are there"),
}


@dataclass(frozen=True)
class Thresholds:
    """The table with a site's own numbers in the place of some."""

    table: Mapping[str, Threshold]

    def __getitem__(self, name: str) -> float:
        return self.table[name].value

    def source(self, name: str) -> str:
        """The source of a threshold, whose number it is."""
        return self.table[name].source

    @property
    def busy_dram(self) -> float:
        """The share of DRAM activity from which memory limits."""
        return round(self["dram_busy"] * self["dram_ceiling"], 6)


def thresholds(site_values: Mapping[str, float] | None = None) -> Thresholds:
    """The table, with own numbers by name. Raises ValueError that names those it does not have."""
    site_values = site_values or {}
    if unknown := sorted(set(site_values) - set(TABLE)):
        raise ValueError(f"no such threshold: {', '.join(unknown)}; there are: {', '.join(TABLE)}")
    if invalid_names := sorted(name for name, value in site_values.items() if not 0 < value <= 1):
        raise ValueError(f"takes numbers above 0 and up to 1: {', '.join(invalid_names)}")
    site = {
        name: replace(TABLE[name], value=value, source="profile.thresholds")
        for name, value in site_values.items()
    }
    return Thresholds({**TABLE, **site})


class Profile(Model):
    """What puts the work of a GPU into a class (`gpuboot profile`)."""

    thresholds: dict[str, float] = Field(
        {},
        description="Own numbers in the place of some, by the names in "
        "[profile.md](profile.md#thresholds).",
    )

    @field_validator("thresholds")
    @classmethod
    def _validate_thresholds(cls, value: dict[str, float]) -> dict[str, float]:
        thresholds(value)
        return value
