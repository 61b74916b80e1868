"""What sets a host's clock."""

from collections.abc import Iterable, Mapping

from gpuboot.config.inventory import Node
from gpuboot.hosts.node_state import NodeState

# units by which a clock is set; phc2sys follows a PTP clock of a network card, which ptp4l sets
_SERVICES = (
    "chrony", "chronyd", "ntp", "ntpd", "ntpsec", "ntpd-rs", "openntpd", "systemd-timesyncd",
    "timemaster", "phc2sys",
)  # fmt: skip
# those that start others themselves, so that one may run beside them
_LEADING = {"timemaster": ("chrony", "chronyd", "ntpd", "phc2sys")}


def running(state: NodeState) -> tuple[str, ...]:
    """The time services that run, without those that another of them has started."""
    names = [
        unit
        for unit in state.units
        if unit.partition("@")[0] in _SERVICES and state.is_active(unit)
    ]
    started = {name for leader in names for name in _LEADING.get(leader, ())}
    return tuple(name for name in names if name.partition("@")[0] not in started)


def warnings(nodes: Iterable[Node], states: Mapping[str, NodeState]) -> list[str]:
    """A line for each host whose clock two services set, or one that reaches no server."""
    lines = []
    for node in nodes:
        state = states.get(node.host)
        if state is None or state.container:  # whose clock is its machine's
            continue
        services = running(state)
        kinds = {name.partition("@")[0] for name in services}
        if len(kinds) > 1:
            shared = ", or let phc2sys tell the other (its option `-E ntpshm`)"
            lines.append(
                f"{node.host}: {' and '.join(services)} set its clock at the same time, and may "
                "set it back and forth; remedy: keep one (`systemctl disable --now "
                f"{services[-1]}`){shared if 'phc2sys' in kinds else ''}"
            )
        elif services and not state.ntp_synchronised and "phc2sys" not in kinds:
            lines.append(
                f"{node.host}: {services[0]} runs, and its clock is not synchronised; remedy: "
                "see which servers answer (`chronyc sources`, `timedatectl timesync-status`), and "
                "name one that this host reaches"
            )
    return lines
