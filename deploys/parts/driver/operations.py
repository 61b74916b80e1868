"""The loaded NVIDIA driver: the version that settings ask for, with every GPU."""

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, executing, fail, report_failure, shell_message
from deploys.engine.operation import operation
from deploys.engine.remote import RemoteError
from deploys.parts.cluster.cordon import wait_until_rejoined
from deploys.parts.driver.fact import Driver, DriverState
from deploys.parts.reboot.reboot import RebootError, reboot
from gpuboot.hosts.module_loading import CONFLICTING
from gpuboot.plan import Change, Effect

# without the persistence daemon the first call initialises every GPU
SMI_S = 120
REBOOT_YOURSELF = 'reboot the machine, or set driver.reboot = "when-needed"'


@operation()
def loaded(version: str, may_reboot: bool, timeout_s: int | None) -> Commands:
    """Ensure the kernel runs the installed driver; reboots only when another one is loaded.

    Run it with `_serial=True`: machines go away one after the other. Nodes of a living cluster come
    to another driver by `deploys.parts.nodes.operations`.

    + version: the driver of the version lock, which is installed
    + may_reboot: `settings.driver.reboot` allows it
    + timeout_s: how long the machine may take to come back (None: by its memory)
    """
    driver = read(Driver, timeout_s=SMI_S)
    if driver.loaded == version and driver.uvm:
        host.noop(f"driver {version} is loaded")
        return
    loaded_module = other_module(driver, version)
    reason = reboot_reason(loaded_module, version)
    if loaded_module and not may_reboot:
        yield fail(reason, REBOOT_YOURSELF)
        return
    changes.record(
        Change(subject="NVIDIA driver", field="loaded", old=loaded_module or None, new=version)
    )
    if loaded_module:
        changes.record(Effect(kind="reboot", target=f"host {host.name}"))
        yield FunctionCommand(rebooted, (reason, timeout_s), {})
    # after a boot udev may have loaded it; loading it again does nothing
    yield load()


def other_module(driver: DriverState, version: str) -> str:
    """Version or name of the driver that is loaded instead of another; "" for none."""
    if driver.loaded == version:
        return ""
    return driver.loaded or driver.conflicting


def reboot_reason(module: str, version: str) -> str:
    """Why a machine is rebooted. + module: as `other_module` gives it"""
    name = module if module in CONFLICTING else f"driver {module}"
    return f"{name} is loaded, {version} is installed"


def load() -> StringCommand:
    """Load the modules of the installed driver."""
    return StringCommand(
        "modprobe nvidia && modprobe nvidia-uvm || { dmesg 2>/dev/null | grep -iE "
        "'nvrm|nvidia|lockdown|module verification' | tail -n 15 >&2; "
        # `added`: DKMS has it and has built it for no kernel
        "dkms status 2>/dev/null | grep -i '^nvidia' >&2; "
        "for log in /var/lib/dkms/nvidia*/*/build/make.log; do if test -r $log; then "
        'echo "$log:"; grep -aE "error|Error" $log | tail -n 5; fi; done >&2;',
        shell_message(
            "the NVIDIA kernel module does not load",
            "see the messages of the kernel and of DKMS above, which name the log of a build that "
            "failed; with Secure Boot the module's key must be enrolled (mokutil)",
        ),
        "; exit 1; }",
    )


def rebooted(
    state: State, host: Host, reason: str, timeout_s: int | None, node: str = "", leader: str = ""
) -> bool:
    """Reboot a host; a FunctionCommand's body, so the first two have these names. False: it failed.

    + node, leader: a node and the host of its cluster's leader, which has to see it Ready again
    """
    try:
        boot_id = reboot(host, reason, timeout_s)
        if leader:
            wait_until_rejoined(state.inventory.get_host(leader), node, boot_id)
    except (RebootError, RemoteError) as error:
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
    driver = read(Driver, timeout_s=SMI_S)
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
