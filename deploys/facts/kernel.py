"""What the kernel does now: features, settings, swap."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

from typing_extensions import override

from deploys.facts.framed import Framed
from gpuboot.fact_output import Fields

_SYSCTLS = "/proc/sys/"


@dataclass(frozen=True)
class KernelState:
    """Which features are in the kernel now, built in or loaded; and values of settings."""

    features: tuple[str, ...] = ()
    sysctls: dict[str, str] = field(default_factory=dict)


class Kernel(Framed[KernelState]):
    """Features and settings of the running kernel. lsmod is no help: it hides what is built in."""

    default = KernelState

    @override
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

    @override
    def process(self, output: list[str]) -> KernelState:
        values = Fields(output, separator=" ", last=None)
        found = {key.replace("/", "."): text for key, text in values.pairs("sysctl").items()}
        return KernelState(tuple(values.all("feature")), found)


@dataclass(frozen=True)
class SwapState:
    """Swap in use, and lines of fstab that would bring it back."""

    active: tuple[str, ...] = ()
    fstab: tuple[str, ...] = ()


class Swap(Framed[SwapState]):
    """Active swap areas, and those that fstab names."""

    default = SwapState

    @override
    def command(self, fstab: str) -> str:
        path = shlex.quote(fstab)
        return (
            "awk 'NR > 1 { print \"active \" $1 }' /proc/swaps; "
            f"test ! -e {path} || "
            f'awk \'$1 !~ /^#/ && $3 == "swap" {{ print "fstab " $1 }}\' {path}'
        )

    @override
    def process(self, output: list[str]) -> SwapState:
        values = Fields(output, separator=" ", last=None)
        return SwapState(tuple(values.all("active")), tuple(values.all("fstab")))


class HostsBlock(Framed[list[str]]):
    """The lines of /etc/hosts between our two marks; nothing when the marks are not there."""

    default = list

    @override
    def command(self, begin: str, end: str) -> str:
        return (
            f"awk -v b={shlex.quote(begin)} -v e={shlex.quote(end)} "
            "'$0 == e { on = 0 } on { print } $0 == b { on = 1 }' /etc/hosts"
        )

    @override
    def process(self, output: list[str]) -> list[str]:
        return output
