"""The loaded NVIDIA driver: the version that settings ask for, with every GPU."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host, inventory, state

from deploys.facts.details import GpuPods
from deploys.facts.driver import Driver, DriverState
from deploys.lib import changes
from deploys.lib.answers import read
from deploys.lib.commands import Commands, executing, fail, report_failure, shell_message
from deploys.lib.cordon import cordoned, is_member, uncordon, wait_until_rejoined
from deploys.lib.operation import operation
from deploys.lib.remote import RemoteError, read_fact
from deploys.operations.reboot import RebootError, reboot
from gpuboot.plan import Change, Effect

# without the persistence daemon the first call initialises every GPU
_SMI_S = 120


@operation()
def loaded(
    version: str, may_reboot: bool, timeout_s: int, node: str = "", leader: str = ""
) -> Commands:
    """Ensure the kernel runs the installed driver; reboots only when another one is loaded.

    Run it with `_serial=True`: machines go away one after the other.

    + version: the driver of the version lock, which is installed
    + may_reboot: `settings.driver.reboot` allows it
    + timeout_s: how long the machine may take to come back
    + node: its name in Kubernetes
    + leader: inventory name of the host that cordons it for the reboot; "" for none. A node that
      an earlier run cordoned, and did not come to uncordon, is uncordoned as well
    """
    driver = read(Driver, timeout_s=_SMI_S)
    if driver.loaded == version and driver.uvm:
        if driver.cordoned_by_gpuboot and leader:
            subject = f"node {node}"
            changes.record(Change(subject=subject, field="unschedulable", old=True, new=False))
            yield FunctionCommand(_uncordon, (node, leader), {})
        else:
            host.noop(f"driver {version} is loaded")
        return
    other = driver.loaded if driver.loaded != version else ""
    other = other or ("nouveau" if driver.nouveau else "")
    if other:
        name = other if other == "nouveau" else f"driver {other}"
        reason = f"{name} is loaded, {version} is installed"
        if not may_reboot:
            yield fail(reason, 'reboot the machine, or set driver.reboot = "when-needed"')
            return
    changes.record(Change(subject="NVIDIA driver", field="loaded", old=other or None, new=version))
    if other:
        changes.record(*_reboot_effects(node, leader))
        yield FunctionCommand(_reboot, (reason, timeout_s, node, leader), {})
    # after a boot udev may have loaded it; loading it again does nothing
    yield _load()


def _load() -> StringCommand:
    return StringCommand(
        "modprobe nvidia && modprobe nvidia-uvm || { dmesg 2>/dev/null | grep -iE "
        "'nvrm|nvidia|lockdown|module verification' | tail -n 15 >&2;",
        shell_message(
            "the NVIDIA kernel module does not load",
            "see the kernel's messages above; with Secure Boot the module's key must be enrolled "
            "(mokutil)",
        ),
        "; exit 1; }",
    )


def _reboot_effects(node: str, leader: str) -> list[Effect]:
    """The cordon and the reboot of this host, with the pods on GPUs that end with it."""
    reboots = Effect(kind="reboot", target=f"host {host.name}", gpu_pods=())
    if not leader:
        return [reboots]
    pods = None if state.is_executing else read_fact(inventory.get_host(leader), GpuPods, node=node)
    note = "its pods stop, and start again after the boot"
    reboots = replace(reboots, target=f"node {node}", note=note, gpu_pods=pods)
    if leader == host.name:
        return [reboots]
    cordon = Effect(kind="cordon", target=f"node {node}", note="no new pods until it is back")
    return [cordon, reboots]


def _reboot(state: State, host: Host, reason: str, timeout_s: int, node: str, leader: str) -> bool:
    """A FunctionCommand's body; pyinfra passes the first two by these names. False: it failed."""
    lead = state.inventory.get_host(leader) if leader else None
    try:
        member = lead is not None and is_member(lead, node)
        # a cluster of one node, or without its leader, could not be told to let pods back in
        keep_off = cordoned(lead, node, host) if lead and leader != host.name else nullcontext()
        with keep_off:
            boot_id = reboot(host, reason, timeout_s)
            if lead and member:
                wait_until_rejoined(lead, node, boot_id)
    except (RebootError, RemoteError) as error:
        return report_failure(host, str(error))
    return True


def _uncordon(state: State, host: Host, node: str, leader: str) -> bool:
    try:
        uncordon(state.inventory.get_host(leader), node, host)
    except RemoteError as error:
        return report_failure(host, str(error))
    return True


@operation()
def checked(version: str, gpus: int) -> Commands:
    """Check that the loaded driver is the one asked for and shows every promised GPU.

    Changes nothing; a host where it does not hold fails with cause and remedy.

    + version: driver version, or "" for any
    + gpus: how many GPUs the inventory promises
    """
    if not executing():
        return
    driver = read(Driver, timeout_s=_SMI_S)
    problem = verdict(driver, version, gpus)
    if problem:
        yield fail(*problem)
    else:
        host.noop(f"driver {driver.loaded} shows {len(driver.gpus)} GPUs")


def verdict(driver: DriverState, version: str, gpus: int) -> tuple[str, str] | None:
    """Cause and remedy when a driver is not as promised; None when it is."""
    if not driver.loaded:
        return "no NVIDIA driver is loaded", "run `modprobe nvidia` and look at dmesg"
    if version and driver.loaded != version:
        return (
            f"driver {driver.loaded} is loaded, the version lock asks for {version}",
            "reboot the machine",
        )
    if driver.module and driver.module != driver.loaded:
        return (
            f"driver {driver.loaded} is loaded, but the module on disk is {driver.module}",
            "reboot the machine, and see `dkms status` for the module of this kernel",
        )
    if len(driver.gpus) != gpus:
        message = f" ({driver.smi})" if driver.smi else ""
        return (
            f"nvidia-smi lists {len(driver.gpus)} GPUs, the inventory promises {gpus}{message}",
            "look for XIDs in dmesg (a lost GPU needs a reboot or a new card), or correct gpus",
        )
    return None
