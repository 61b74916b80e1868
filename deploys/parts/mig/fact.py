"""The MIG layout of a Docker host's GPUs beside the one that it is to have; MIG profiles."""

import shlex
from dataclasses import dataclass

from deploys.engine.framed import Framed
from deploys.parts.driver.nvidia_fact import BOUNDED
from gpuboot.docker import docker_mig
from gpuboot.hosts import driver_mig
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.mig_profiles import Counts


@dataclass(frozen=True)
class MigState:
    """What was found.

    + differs: index of each GPU with another layout -> its profiles, `none` or `off`
    + used: index of such a GPU, and the process or container that uses it and is not gpuboot's
    + restarts: units and containers that watch GPUs, and stop while a layout is changed
    + error: why that cannot be told; "" when it can
    """

    differs: tuple[tuple[int, str], ...] = ()
    used: tuple[tuple[int, str], ...] = ()
    restarts: tuple[str, ...] = ()
    error: str = ""


class MigLayout(Framed[MigState]):
    """Asks the program that makes layouts, which need not be on the host yet. Needs root."""

    @staticmethod
    def default() -> MigState:
        return MigState(error="it did not answer")

    def command(self, layout: str) -> str:
        """`layout`: the text of the program's file."""
        script = shlex.quote(docker_mig.program())
        return f"printf %s {shlex.quote(layout)} | sh -c {script} gpuboot-mig look -"

    def process(self, output: list[str]) -> MigState:
        values = Fields(output)
        return MigState(
            tuple(_numbered(line) for line in values.all("gpu")),
            tuple(_numbered(line) for line in values.all("used")),
            tuple(values.all("restarts")),
            values.first("error"),
        )


def _numbered(line: str) -> tuple[int, str]:
    number, _, text = line.partition(" ")
    return int(number), text


class MigProfiles(Framed[dict[int, Counts]]):
    """PCI device id of a host's GPUs -> the MIG profiles that its driver has for them."""

    default = dict

    def command(self) -> str:
        queries = {"device": "--query-gpu=index,pci.device_id --format=csv,noheader"}
        queries["profile"] = "mig -lgip"
        lines = (
            f"bounded 30 nvidia-smi {words} | sed 's/^/{key}\t/'" for key, words in queries.items()
        )
        return "\n".join([BOUNDED, "export LC_ALL=C", *lines, "printf 'end\\tok\\n'"])

    def process(self, output: list[str]) -> dict[int, Counts]:
        return driver_mig.parse(Fields(output))
