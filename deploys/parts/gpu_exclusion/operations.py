"""GPUs that are not the cluster's: the NVIDIA driver leaves them out."""

from collections.abc import Sequence

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, fail
from deploys.engine.operation import operation
from deploys.parts.driver import operations as driver
from deploys.parts.files.operations import write
from deploys.parts.gpu_exclusion.fact import GpuExclusion, GpuExclusionState
from gpuboot.hosts.gpu_choice import options, unnamed
from gpuboot.hosts.module_loading import OWN_FILE
from gpuboot.plan import Change, Effect, Unknown
from gpuboot.plan.differences import text_change


@operation()
def excluded(
    cluster_gpus: Sequence[str], may_reboot: bool, timeout_s: int | None, in_use: bool
) -> Commands:
    """Ensure the driver leaves out every GPU that the host's data does not name.

    It reads its options when it is loaded, so that a change takes a reboot.

    + cluster_gpus: of the host's data; nothing: the driver leaves none out
    + may_reboot: `settings.driver.reboot` allows it
    + timeout_s: how long the machine may take to come back (None: by its memory)
    + in_use: the host is a node of a cluster, whose pods may have GPUs: a person drains it
    """
    state = read(GpuExclusion, path=OWN_FILE)
    if cluster_gpus and not state.gpus:
        # while pyinfra prepares: an operation before this one will load it
        changes.record(Unknown(what="GPUs that the driver leaves out", until="it is loaded"))
        yield fail("the NVIDIA driver is not loaded", "run `modprobe nvidia`, look at dmesg")
        return
    excluded_gpus = unnamed(cluster_gpus, state.gpus) if cluster_gpus else []
    uuids = sorted(gpu.uuid for gpu in excluded_gpus if gpu.uuid)
    text = options(uuids)
    loaded = uuids == sorted(state.excluded)
    if text == state.text and loaded:
        host.noop("the driver has the cluster's GPUs and no others")
        return
    _record(state, text, uuids)
    if text:
        yield write(OWN_FILE, text)
    elif state.text:
        yield StringCommand("rm -f", OWN_FILE)
    if not loaded:
        reason = f"the driver has to leave out {', '.join(uuids) or 'no GPU'}"
        yield _loaded_again(reason, may_reboot, timeout_s, in_use)
        # after a boot udev may have loaded it; loading it again does nothing
        yield driver.load()


def _loaded_again(
    reason: str, may_reboot: bool, timeout_s: int | None, in_use: bool
) -> FunctionCommand:
    if in_use:
        return fail(
            f"{reason}, which takes a reboot of a node in use",
            "kubectl drain it and reboot it, then run again",
        )
    if not may_reboot:
        return fail(reason, driver.REBOOT_YOURSELF)
    return FunctionCommand(driver.rebooted, (reason, timeout_s), {})


def _record(state: GpuExclusionState, text: str, uuids: Sequence[str]) -> None:
    if text != state.text:
        changes.record(text_change(f"file {OWN_FILE}", state.text or None, text or None))
    if sorted(uuids) != sorted(state.excluded):
        old, new = ", ".join(state.excluded) or None, ", ".join(uuids) or None
        changes.record(
            Change(subject="NVIDIA driver", field="GPUs left out", old=old, new=new),
            Effect(kind="reboot", target=f"host {host.name}"),
        )
