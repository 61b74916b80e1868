"""The kernel as Kubernetes wants it, now; files in /etc keep it so after a boot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.facts.kernel import HostsBlock, Kernel, Swap
from deploys.lib import changes
from deploys.lib.answers import read
from deploys.lib.commands import Commands
from deploys.lib.operation import operation
from gpuboot.plan import Change
from gpuboot.plan.differences import text_change

HOSTS_BEGIN = "# gpuboot: nodes of the cluster"
HOSTS_END = "# gpuboot: end"


@operation()
def applied(features: Sequence[str], sysctls: Mapping[str, str]) -> Commands:
    """Ensure the running kernel has these features and settings.

    + features: modules to load unless the kernel has them built in: overlay, br_netfilter
    + sysctls: key -> value; keys of br_netfilter are there only once it is loaded
    """
    state = read(Kernel, sysctls=list(sysctls))
    missing = [name for name in features if name not in state.features]
    wrong = {key: value for key, value in sysctls.items() if state.sysctls.get(key) != value}
    if not missing and not wrong:
        host.noop("the kernel has its modules and settings")
        return
    changes.record(
        *[Change(subject=f"kernel module {name}", new="loaded") for name in missing],
        *[
            Change(subject="kernel", field=key, old=state.sysctls.get(key), new=value)
            for key, value in wrong.items()
        ],
    )
    if missing:
        yield StringCommand("modprobe -a", *[QuoteString(name) for name in missing])
    if wrong:
        yield StringCommand(
            "sysctl -q -w", *[QuoteString(f"{key}={value}") for key, value in wrong.items()]
        )


@operation()
def swap_off() -> Commands:
    """Ensure there is no swap, now or after a boot. Lines of fstab are commented out, not lost."""
    state = read(Swap, fstab="/etc/fstab")
    if not state.active and not state.fstab:
        host.noop("there is no swap")
        return
    changes.record(
        *[
            Change(subject=f"swap {area}", field="active", old=True, new=False)
            for area in state.active
        ],
        *[
            Change(
                subject="file /etc/fstab",
                field=f"swap {area}",
                old="active line",
                new="commented out",
            )
            for area in state.fstab
        ],
    )
    if state.active:
        yield StringCommand("swapoff -a")
    if state.fstab:
        yield StringCommand(
            r"sed -i.gpuboot -E 's/^([^#[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+swap"
            r"[[:space:]].*)$/# gpuboot: \1/' /etc/fstab"
        )


@operation()
def hosts(addresses: Mapping[str, str]) -> Commands:
    """Ensure /etc/hosts knows the nodes, in a block of our own; the rest of the file stays.

    + addresses: node name -> IP address
    """
    lines = [f"{address} {name}" for name, address in addresses.items()]
    yield from hosts_block(HOSTS_BEGIN, HOSTS_END, lines)


def hosts_block(
    begin: str, end: str, expected: Sequence[str], before: Sequence[StringCommand] = ()
) -> Commands:
    """What an operation yields that keeps lines of /etc/hosts between two marks of its own.

    + before: commands that have to succeed before they change
    """
    present = read(HostsBlock, begin=begin, end=end)
    if present == list(expected):
        host.noop("/etc/hosts is up to date")
        return
    changes.record(text_change("file /etc/hosts", "\n".join(present), "\n".join(expected)))
    yield from before
    block = "\n".join([begin, *expected, end])
    # written over, not moved: in containers /etc/hosts may be a mount
    yield StringCommand(
        f"kept=$(sed '/^{begin}$/,/^{end}$/d' /etc/hosts) && printf '%s\\n%s\\n'",
        '"$kept"', QuoteString(block), "> /etc/hosts",
    )  # fmt: skip
