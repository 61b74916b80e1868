"""The kernel as Kubernetes wants it, now; files in /etc keep it so after a boot."""

import shlex
from collections.abc import Mapping, Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.kernel.fact import HostsBlock, Kernel, Swap, SwapState
from gpuboot.hosts.sysctls import is_enough
from gpuboot.plan import Change
from gpuboot.plan.differences import text_change

HOSTS = "/etc/hosts"
HOSTS_BEGIN = "# gpuboot: nodes of the cluster"
HOSTS_END = "# gpuboot: end"
# of packages that turn swap on by themselves; zramswap is zram-tools'
SWAP_SERVICES = (
    *("dphys-swapfile.service", "swapspace.service", "systemd-swap.service"),
    *("zram-config.service", "zramswap.service"),
)
SWAP_TARGET = "swap.target"
# what has the option noauto stays: nothing starts it
WITHOUT_FSTAB = (
    r"sed -i.gpuboot -E '/[[:space:],]noauto([[:space:],]|$)/! s/^([[:space:]]*[^#[:space:]]+"
    r"[[:space:]]+[^[:space:]]+[[:space:]]+swap([[:space:]].*)?)$/# gpuboot: \1/' /etc/fstab"
)
SWAP_UNITS = "/etc/gpuboot/swap-units"  # those that `swap_off` has disabled or masked
SWAP_BACK = (
    f"if [ -e {SWAP_UNITS} ]; then while read -r unit; do case $unit in"
    f' {SWAP_TARGET}) systemctl unmask "$unit" ;;'
    ' *) ! systemctl cat "$unit" >/dev/null 2>&1 || systemctl enable "$unit" ;; esac;'
    f" done <{SWAP_UNITS} && rm {SWAP_UNITS}; fi"
)


@operation()
def applied(features: Sequence[str], sysctls: Mapping[str, str]) -> Commands:
    """Ensure the running kernel has these features and settings.

    + features: modules to load unless the kernel has them built in: overlay, br_netfilter
    + sysctls: key -> least value; keys of br_netfilter are there only once it is loaded
    """
    state = read(Kernel, sysctls=list(sysctls))
    missing = [name for name in features if name not in state.features]
    differing_values = {
        key: value for key, value in sysctls.items() if not is_enough(state.sysctls.get(key), value)
    }
    if not missing and not differing_values:
        host.noop("the kernel has its modules and settings")
        return
    changes.record(
        *[Change(subject=f"kernel module {name}", new="loaded") for name in missing],
        *[
            Change(subject="kernel", field=key, old=state.sysctls.get(key), new=value)
            for key, value in differing_values.items()
        ],
    )
    if missing:
        yield StringCommand("modprobe -a", *[QuoteString(name) for name in missing])
    if differing_values:
        yield StringCommand(
            "sysctl -q -w",
            *[QuoteString(f"{key}={value}") for key, value in differing_values.items()],
        )


@operation()
def swap_off() -> Commands:
    """Ensure there is no swap, now or after a boot.

    swap.target starts all swap units of systemd: those of fstab, of GPT partitions (which systemd
    looks for exactly where fstab names no swap) and of zram-generator. It is masked, not the units:
    names of disks change from boot to boot. Lines of fstab are commented out, not lost; services
    that turn swap on by themselves are disabled. `SWAP_BACK` takes masks and disabling back.
    """
    state = read(Swap, services=SWAP_SERVICES)
    starts = state.active or state.fstab or state.pulled
    target = [SWAP_TARGET] if starts and not state.masked else []
    if not (state.active or state.fstab or state.units or target):
        host.noop("there is no swap")
        return
    _record_swap(state, target)
    if units := [*state.units, *target]:
        names = " ".join(map(shlex.quote, units))
        yield StringCommand(f"mkdir -p /etc/gpuboot && printf '%s\\n' {names} >>{SWAP_UNITS}")
    if state.units:
        yield StringCommand("systemctl disable --now", *[QuoteString(unit) for unit in state.units])
    if target:
        yield StringCommand(f"systemctl mask {SWAP_TARGET}")
    if state.active:
        yield StringCommand("swapoff -a")
    if state.fstab:
        yield StringCommand(WITHOUT_FSTAB)


def _record_swap(state: SwapState, target: Sequence[str]) -> None:
    """Record what becomes of a host's swap. + target: swap.target where it is to be masked"""
    started = f"starts {', '.join(state.pulled)}" if state.pulled else "enabled"
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
        *[
            Change(subject=f"unit {unit}", field="boot", old="enabled", new="disabled")
            for unit in state.units
        ],
        *[
            Change(subject=f"unit {unit}", field="boot", old=started, new="masked")
            for unit in target
        ],
    )


@operation()
def hosts(addresses: Mapping[str, str], template: str = "") -> Commands:
    """Ensure /etc/hosts knows the nodes, in a block of our own; the rest of the file stays.

    + addresses: node name -> IP address
    + template: the file of which cloud-init makes /etc/hosts at each boot; "" where it does not
    """
    lines = [f"{address} {name}" for name, address in addresses.items()]
    yield from hosts_block(HOSTS_BEGIN, HOSTS_END, lines, template)


def hosts_block(
    begin: str,
    end: str,
    expected: Sequence[str],
    template: str,
    before: Sequence[StringCommand] = (),
) -> Commands:
    """What an operation yields that keeps lines of /etc/hosts between two marks of its own.

    + template: as `hosts` has it; the lines are in both files
    + before: commands that have to succeed before they change
    """
    paths = [HOSTS, *([template] if template else [])]
    present = read(HostsBlock, begin=begin, end=end, paths=paths)
    differing_paths = [path for path in paths if present.get(path, []) != list(expected)]
    if not differing_paths:
        host.noop(f"{' and '.join(paths)} {'is' if len(paths) == 1 else 'are'} up to date")
        return
    for path in differing_paths:
        old = "\n".join(present.get(path, []))
        changes.record(text_change(f"file {path}", old, "\n".join(expected)))
    yield from before
    block = "\n".join([begin, *expected, end])
    for path in differing_paths:
        # written over, not moved: in containers /etc/hosts may be a mount
        yield StringCommand(
            f"kept=$(sed '/^{begin}$/,/^{end}$/d' {path}) && printf '%s\\n%s\\n'",
            '"$kept"', QuoteString(block), f"> {path}",
        )  # fmt: skip
