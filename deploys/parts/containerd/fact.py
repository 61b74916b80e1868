"""containerd's configuration: as it ought to be, and as it is. And the CDI specification."""

import shlex
from base64 import b64decode
from dataclasses import dataclass, field

from deploys.engine.framed import Framed, script
from gpuboot.hosts.fact_output import Fields


@dataclass(frozen=True)
class ContainerdState:
    """Wanted and present configuration of one host.

    + absent: program that is not installed yet ("" when all are)
    + version: configuration version that this containerd writes
    + expected: text by file (config, nvidia, proxy); "" for a file that must not be there
    + differs: files that are not as expected
    + error: why the expected configuration is none; "" when containerd accepts it
    + edited: settings in the present root file that gpuboot did not write
    + foreign: other people's drop-ins, which stay in force
    + stale: why the running containerd does not know the present files
    """

    absent: str = ""
    version: str = ""
    expected: dict[str, str] = field(default_factory=dict)
    differs: tuple[str, ...] = ()
    error: str = ""
    edited: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()


class Containerd(Framed[ContainerdState]):
    """The configuration that a root file and NVIDIA's toolkit give on this very host."""

    default = ContainerdState

    def command(self, root: str, proxy: str, toolkit: str) -> str:
        return script("containerd/fact.sh", root=root, proxy=proxy, toolkit=toolkit)

    def process(self, output: list[str]) -> ContainerdState:
        values = Fields(output, separator=" ", last=None)
        expected = {
            name: b64decode(text).decode() for name, text in values.pairs("expected").items()
        }
        return ContainerdState(
            absent=values.first("absent"),
            version=values.first("version"),
            expected=expected,
            differs=tuple(values.all("differs")),
            error="\n".join(values.raw("error")),
            edited=tuple(values.all("edited")),
            foreign=tuple(values.all("foreign")),
            stale=tuple(values.all("stale")),
        )


@dataclass(frozen=True)
class CdiState:
    """Whether the CDI specification of the GPUs is there and current."""

    installed: bool = False
    current: bool = False
    error: str = ""


class Cdi(Framed[CdiState]):
    """Compares a CDI specification with the one that nvidia-ctk makes now."""

    default = CdiState

    def command(self, path: str) -> str:
        spec = shlex.quote(path)
        return (
            "if command -v nvidia-ctk >/dev/null; then echo installed; now=$(mktemp); "
            'if said=$(nvidia-ctk cdi generate 2>&1 >"$now"); then '
            f'cmp -s "$now" {spec} && echo current; '
            'else echo "$said" | tail -n 3 | sed \'s/^/error /\'; fi; rm -f "$now"; fi'
        )

    def process(self, output: list[str]) -> CdiState:
        values = Fields(output, separator=" ", last=None)
        return CdiState("installed" in values, "current" in values, "\n".join(values.raw("error")))
