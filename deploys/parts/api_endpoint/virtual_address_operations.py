"""The virtual address of the API servers: keepalived on each control plane."""

import shlex
from collections.abc import Sequence

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.engine import changes, remote
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands, executing, shell_failure
from deploys.engine.operation import operation
from deploys.engine.waiting import wait_or_fail
from deploys.parts.cluster.fact import Kubeadm
from deploys.parts.files import operations as files
from deploys.parts.files.fact import Files
from deploys.parts.packages import operations as package_operations
from deploys.parts.units import operations as units
from deploys.parts.units.fact import Units
from gpuboot.cluster.kubeadm import API_PORT, SOCKET
from gpuboot.cluster.readiness import Progress
from gpuboot.hosts.platforms import PackageManager
from gpuboot.plan import Change, Effect

CONFIG = "/etc/keepalived/keepalived.conf"
UNIT = "keepalived.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}.d/gpuboot.conf"
_PACKAGES = {"keepalived": ""}  # the distribution's
_CHECK = "keepalived --config-test --use-file"
_ANSWERS_S = 60
_HELD_S = 30
# a configuration that is not ours stays
STOP = (
    f"if grep -qs '^# Written by gpuboot' {CONFIG}; then"
    f" systemctl disable --now {UNIT} && rm -f {CONFIG} {UNIT_FILE} && systemctl daemon-reload; fi"
)
_REMEDY = (
    "see `journalctl -u keepalived` on the control planes; the network has to let them have a "
    "second address (in clouds that is a setting), and IP protocol 112 (VRRP) pass between them"
)


@operation()
def present(config: str, unit_file: str, manager: PackageManager) -> Commands:
    """Ensure keepalived runs with exactly this configuration, which is tried before it is in place.

    + config: text of its one file
    + unit_file: what is laid over the package's unit
    + manager: the program that installs it
    """
    contents = {UNIT_FILE: unit_file, CONFIG: config}
    foresee(
        [
            package_operations.question(host, _PACKAGES, manager),
            (host, Files, {"paths": list(contents)}),
            (host, Units, {"units": [UNIT]}),
        ]
    )
    yield from package_operations.installed._inner(_PACKAGES, manager)
    existing = read(Files, paths=list(contents))
    differing_texts = files.differing(contents, existing)
    if differing_texts:
        files.record_texts(differing_texts, existing)
        note = "where its address changes, nodes reach the API again after some seconds"
        changes.record(Effect(kind="restart", target="keepalived", local=True, note=note))
    if UNIT_FILE in differing_texts:
        yield files.write(UNIT_FILE, unit_file)
        yield StringCommand("systemctl daemon-reload")
    if CONFIG in differing_texts:
        yield from files.write_valid(CONFIG, config, _CHECK)
        yield StringCommand(f"systemctl reload-or-restart {UNIT}")
    yield from units.ensured([UNIT])


@operation()
def absent() -> Commands:
    """Ensure that this host does not hold a virtual address of gpuboot's, nor ever takes it."""
    if CONFIG not in read(Files, paths=[CONFIG]):
        host.noop("there is no virtual address")
        return
    changes.record(Change(subject=f"unit {UNIT}", field="state", old="active", new="stopped"))
    yield StringCommand(STOP)


@operation()
def answers(address: str) -> Commands:
    """Wait until an API server answers at the virtual address, on a host that is about to join."""
    state = read(Kubeadm, socket=SOCKET)
    if "kubelet.conf" in state.files and not state.started:
        host.noop("this host is a node of the cluster")
        return
    if not executing():
        host.noop("there is nothing to wait for before the run")
        return
    yield wait_command(address)


def wait_command(address: str) -> StringCommand:
    """The command that waits for an API server at the virtual address, as this host reaches it."""
    name = f"[{address}]" if ":" in address else address
    url = f"https://{name}:{API_PORT}/readyz"
    curl = f"curl -q -s -k -f --noproxy '*' --max-time 3 -o /dev/null '{url}'"
    script = (
        f"end=$(($(date +%s) + {_ANSWERS_S})); until {curl}; do "
        '[ "$(date +%s)" -lt "$end" ] || exit 1; sleep 1; done'
    )
    cause = f"no API server answers at the virtual address {address} within {_ANSWERS_S} s"
    return StringCommand(f"sh -c {shlex.quote(script)} ||", shell_failure(cause, _REMEDY))


@operation()
def single_holder(
    address: str, control_planes: Sequence[str], settled: bool, before: Sequence[str]
) -> Commands:
    """Make sure that one control plane has the virtual address, and no second one. On the leader.

    + control_planes: inventory names of those that are asked
    + settled: that was so before the run, and keepalived was as it has to be
    + before: names of those that had it then
    """
    if settled:
        host.noop("one control plane has the virtual address")
        return
    old = ", ".join(before) or None
    changes.record(
        Change(subject=f"virtual address {address}", field="on", old=old, new="one control plane")
    )
    yield FunctionCommand(_one_holder, (address, list(control_planes)), {})


def _one_holder(state: State, host: Host, address: str, control_planes: list[str]) -> bool:
    def probe() -> Progress:
        holders = _holders(state, address, control_planes)
        text = f"the virtual address {address} is on {', '.join(holders) or 'no control plane'}"
        return Progress(len(holders) == 1, text)

    return wait_or_fail(host, probe, _HELD_S, _REMEDY)


def _holders(state: State, address: str, control_planes: list[str]) -> list[str]:
    look = f"ip -o address show to {address}"
    return [
        name for name in control_planes if remote.run(state.inventory.get_host(name), look).strip()
    ]
