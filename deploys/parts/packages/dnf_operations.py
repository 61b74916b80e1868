"""What only dnf has: module streams, and locks on packages that are not installed yet."""

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.packages.dnf_fact import PinnedDriver
from gpuboot.plan import Change

_MODULE = "nvidia-driver"


@operation()
def driver_pinned(version: str, stream: str) -> Commands:
    """Ensure that NVIDIA's driver packages can have this version alone.

    The stream chooses the branch, the lock the version: NVIDIA Driver Installation Guide,
    "Version locking".

    + version: of the driver, 595.91.07
    + stream: of NVIDIA's module, see `gpuboot.hosts.driver_packages.module_stream`
    """
    state = read(PinnedDriver, module=_MODULE)
    other_versions = [locked for locked in state.locked if locked != version]
    if state.stream == stream and version in state.locked and not other_versions:
        host.noop(f"the driver is pinned to {version}")
        return
    if state.stream != stream:
        changes.record(
            Change(
                subject=f"dnf module {_MODULE}",
                field="stream",
                old=state.stream or None,
                new=stream,
            )
        )
    if other_versions or version not in state.locked:
        old = ", ".join(state.locked) or None
        changes.record(Change(subject="NVIDIA driver", field="version lock", old=old, new=version))
    if state.stream != stream:
        # dnf refuses to go from one stream to another without a reset
        yield StringCommand(f"dnf -q -y module reset {_MODULE}")
        yield StringCommand("dnf -q -y module enable", QuoteString(f"{_MODULE}:{stream}"))
    if other_versions:
        patterns = [QuoteString(f"*nvidia*-{locked}") for locked in other_versions]
        yield StringCommand("dnf -q versionlock delete", *patterns)
    if version not in state.locked:
        yield StringCommand("dnf -q versionlock add", QuoteString(f"*nvidia*{version}*"))
