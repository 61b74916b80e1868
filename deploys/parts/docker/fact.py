"""Docker on a host: its configuration, and what the running dockerd says."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from deploys.engine.framed import Framed, script
from gpuboot.hosts.fact_output import Fields


@dataclass(frozen=True)
class DockerState:
    """What was found of Docker.

    + absent: packages that are not installed yet
    + present: text of daemon.json; "" for none
    + toolkit: that text as NVIDIA's toolkit would change it; "" where it was not asked
    + error: why the toolkit could not
    + default_runtime, runtimes, version, swarm: of the running dockerd; version is "" when
      none answers
    + stale: the running dockerd was started with another proxy than its unit has now
    """

    absent: tuple[str, ...] = ()
    present: str = ""
    toolkit: str = ""
    error: str = ""
    default_runtime: str = ""
    runtimes: tuple[str, ...] = ()
    version: str = ""
    swarm: bool = False
    stale: bool = False


class Docker(Framed[DockerState]):
    """dockerd's configuration and what it runs with."""

    default = DockerState

    def command(self, toolkit: bool) -> str:
        return script("docker/fact.sh", toolkit="yes" if toolkit else "no")

    def process(self, output: list[str]) -> DockerState:
        values = Fields(output)
        words = values.first("running").split()
        is_known = len(words) == 4
        return DockerState(
            tuple(values.all("absent")),
            values.text("present"),
            values.text("toolkit"),
            values.first("error"),
            words[0] if is_known else "",
            tuple(filter(None, words[3].split(","))) if is_known else (),
            words[2] if is_known else "",
            is_known and words[1] not in {"inactive", ""},
            "stale" in values,
        )


class UntrustedMirrors(Framed[list[str]]):
    """The addresses, `host:port`, whose authority Docker does not know yet."""

    default = list

    def command(self, hosts: Sequence[str], ca_bundle: str) -> str:
        names = " ".join(shlex.quote(host) for host in hosts)
        return (
            f"for h in {names}; do "
            f'cmp -s {shlex.quote(ca_bundle)} "/etc/docker/certs.d/$h/ca.crt" || echo "$h"; done'
        )

    def process(self, output: list[str]) -> list[str]:
        return output
