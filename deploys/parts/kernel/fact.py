"""What the kernel does now: features, settings, swap."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

from deploys.engine.framed import Framed
from gpuboot.hosts.fact_output import Fields

_SYSCTLS = "/proc/sys/"


@dataclass(frozen=True)
class KernelState:
    """Features that are in the kernel now, built in or loaded; and values of settings."""

    features: tuple[str, ...] = ()
    sysctls: dict[str, str] = field(default_factory=dict)


class Kernel(Framed[KernelState]):
    """Features and settings of the running kernel. lsmod is no help: it hides what is built in."""

    default = KernelState

    def command(self, sysctls: Iterable[str]) -> str:
        # one program for all; the shell's own read has only the first byte of such a file
        paths = " ".join(shlex.quote(f"{_SYSCTLS}{key.replace('.', '/')}") for key in sysctls)
        return (
            "grep -qw overlay /proc/filesystems && echo feature overlay; "
            "test -d /proc/sys/net/bridge && echo feature br_netfilter; "
            "for name in mlx5_ib ib_umad; do "
            "test -d /sys/module/$name && echo feature $name; done; "
            f"grep -sH . {paths} | sed 's,^{_SYSCTLS},sysctl ,; s,:, ,'"
        )

    def process(self, output: list[str]) -> KernelState:
        values = Fields(output, separator=" ", last=None)
        kernel_settings = {
            key.replace("/", "."): text for key, text in values.pairs("sysctl").items()
        }
        return KernelState(tuple(values.all("feature")), kernel_settings)


@dataclass(frozen=True)
class SwapState:
    """Swap in use, and what would bring it back.

    + active: areas in use
    + fstab: areas that fstab names, but for those with the option noauto
    + units: enabled units that turn swap on without swap.target
    + pulled: swap units that swap.target starts, whatever has made them; and areas that gpuboot has
      commented out in fstab, which systemd may now look for by itself
    + masked: swap.target is masked
    """

    active: tuple[str, ...] = ()
    fstab: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    pulled: tuple[str, ...] = ()
    masked: bool = False


_SWAP = """
awk 'NR > 1 { print "active " $1 }' /proc/swaps
test ! -e /etc/fstab || awk '$1 !~ /^#/ && $3 == "swap" && $4 !~ /(^|,)noauto(,|$)/ {
  print "fstab " $1 }
  /^# gpuboot: / && $5 == "swap" { print "pulled " $3 }' /etc/fstab
if command -v systemctl >/dev/null; then
  systemctl show -p LoadState -p Wants -p Requires swap.target | awk -F = '
    $1 == "LoadState" && $2 == "masked" { print "masked yes" }
    $1 != "LoadState" { n = split($2, names, " ")
      for (i = 1; i <= n; i++) if (names[i] ~ /\\.swap$/) print "pulled " names[i] }'
  systemctl list-unit-files --no-legend --no-pager --state=enabled '*.swap' SERVICES |
    awk '{ print "unit " $1 }'
fi
"""


class Swap(Framed[SwapState]):
    """Active swap areas, and what a boot would activate: fstab and units of systemd."""

    default = SwapState

    def command(self, services: Iterable[str]) -> str:
        """`services`: units of programs that turn swap on by themselves."""
        return _SWAP.replace("SERVICES", " ".join(map(shlex.quote, services)))

    def process(self, output: list[str]) -> SwapState:
        values = Fields(output, separator=" ", last=None)
        return SwapState(
            tuple(values.all("active")),
            tuple(values.all("fstab")),
            tuple(values.all("unit")),
            tuple(values.all("pulled")),
            "masked" in values,
        )


class HostsBlock(Framed[dict[str, list[str]]]):
    """The lines of files between our two marks, by file; nothing when the marks are not there."""

    default = dict

    def command(self, begin: str, end: str, paths: Iterable[str]) -> str:
        return (
            f"awk -v b={shlex.quote(begin)} -v e={shlex.quote(end)} 'FNR == 1 {{ on = 0 }} "
            '$0 == e { on = 0 } on { print FILENAME "\\t" $0 } $0 == b { on = 1 }\' '
            + " ".join(map(shlex.quote, paths))
        )

    def process(self, output: list[str]) -> dict[str, list[str]]:
        blocks: dict[str, list[str]] = {}
        for line in output:
            path, _, text = line.partition("\t")
            blocks.setdefault(path, []).append(text)
        return blocks
