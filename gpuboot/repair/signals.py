"""What tells that a GPU has to be repaired, what does not, and when it is enough.

Two independent signs are needed for what ends programs: an XID, by which the driver told of a
fault when it happened, and a state that somebody else sees of the GPU now. Some signs are enough
alone. Alerts hold for a while before they fire, so what passes is no sign.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from gpuboot.config.settings.alerting import XidClass
from gpuboot.config.settings.remediate import Action
from gpuboot.hosts.health_watches import HEAT_AND_POWER, UNKNOWN, Card
from gpuboot.hosts.health_watches import meaning as meaning_of_watch
from gpuboot.monitoring.rules.xid import classes, meaning
from gpuboot.repair.repair_model import GpuNode

Labels = Mapping[str, str]
Overrides = Mapping[int, XidClass]
_WEIGHT: Mapping[Action | None, int] = {None: 0, "reset": 1, "reboot": 2, "manual": 3}


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A sign that a GPU has to be repaired.

    + side: `xid`: the driver told of a fault; `state`: how the GPU is now
    + uuid: of the GPU; "" where it concerns the node
    + message: for a person; reason: as the value of a taint
    + action: what it asks for; None: it only tells that something is wrong
    + sufficient: it is enough without another
    """

    node: str
    side: Literal["xid", "state"]
    message: str
    reason: str
    uuid: str = ""
    action: Action | None = None
    sufficient: bool = False


@dataclass(frozen=True, kw_only=True)
class Ignored:
    """What fires on a node and is no reason for a repair. + cause: for a person"""

    node: str
    message: str
    cause: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is known of a node that may have to be repaired.

    + action: what is to be done; None: what is seen is not enough
    + cause: what was seen, or what is missing
    """

    action: Action | None
    gpus: tuple[str, ...]
    reason: str
    cause: str


_HEAT = "heat is the room's or the machine's: no repair of the GPU cools it"
_POWER = "power is the machine's: no repair of the GPU mends it"
_PROGRAM = "a program's own fault, or how it uses the GPU"
_BLIND = "no news of a GPU is no bad news: what cannot be seen is not repaired"
# alert -> why it is never a reason to repair
NEVER: Mapping[str, str] = {
    **dict.fromkeys(("GPUThermalThrottle", "GPUThermalMarginLow", "GPUMemoryHot"), _HEAT),
    "GPUPowerBrake": _POWER,
    **dict.fromkeys(
        ("GPUXidApplication", "GPUAllocatedIdle", "GPUStraggler", "GPUMemoryNearFull"), _PROGRAM
    ),
    **dict.fromkeys(
        ("GPUExporterDown", "GPUExporterAbsent", "GPUMetricsMissing", "GPUNodeNotMonitored",
         "GPUExporterMissingCounters", "GPUExporterUnstable", "GPUMetricsFrozen"),
        _BLIND,
    ),
    "GPUHealthWarn": "a warning of DCGM: people look at it first",
    "DCGMHealthWarn": "a warning of DCGM: people look at it first",
    "GPUXidRepeated": "people look at it first",
    "GPUXidInspect": "an XID that people look at first",
}  # fmt: skip


def of_alert(labels: Labels, overrides: Overrides, card: Card = UNKNOWN) -> Signal | Ignored | None:
    """What an alert that fires says; None: nothing about a repair.

    + labels: of the alert; overrides: `settings.alerts.xid`; card: what the node's GPUs are
    """
    name, node = labels.get("alertname", ""), labels.get("node", "")
    if not node:
        return None
    if name in NEVER:
        return Ignored(node=node, message=name, cause=NEVER[name])
    if name == "GPUXidFatal":
        return _xid(labels, overrides)
    if name == "GPUHealthFail":
        return _health(labels, card)
    read = _STATES.get(name)
    return read(labels) if read else None


def of_node(node: GpuNode) -> Signal | None:
    """The signal that the kubelet does not offer all of its GPUs; None where it does.

    Where it offers none, that is no sign: a restart of the device plugin looks the same.
    """
    missing = node.capacity - node.allocatable
    if missing <= 0 or not node.allocatable or not node.ready:
        return None
    message = (
        f"the kubelet offers {node.allocatable} of {node.capacity} GPUs: the rest is unhealthy"
    )
    return Signal(node=node.name, side="state", message=message, reason="unhealthy")


def case_of(signals: Iterable[Signal]) -> Case | None:
    """What the signals of one node are enough for; None: there are none.

    An XID and a state go together when they are of the same GPU, or the state is of the node.
    """
    all_signals = tuple(signals)
    if not all_signals:
        return None
    sufficient_signals = [
        signal
        for signal in all_signals
        if signal.sufficient or any(_second(signal, two) for two in all_signals)
    ]
    worst = max(sufficient_signals, key=lambda signal: _WEIGHT[signal.action], default=None)
    if worst is None or worst.action is None:
        message = "; ".join(_signal_texts(all_signals))
        missing = "only one side tells of it: an XID and a state of the GPU are needed"
        if any(signal.sufficient for signal in all_signals) or worst:
            missing = "nothing of it asks for a reset, a reboot or a replacement"
        return Case(action=None, gpus=_gpus(all_signals), reason="", cause=f"{message} ({missing})")
    cause = "; ".join(_signal_texts(sufficient_signals))
    return Case(
        action=worst.action, gpus=_gpus(sufficient_signals), reason=worst.reason, cause=cause
    )


def stronger(first: Action | None, second: Action | None) -> Action | None:
    """The action that makes the other needless: replace before reboot before reset."""
    return max(first, second, key=lambda action: _WEIGHT[action])


def _second(first: Signal, second: Signal) -> bool:
    """Whether another signal is of the other side, and about the same GPU."""
    same_gpu = first.uuid == second.uuid or not first.uuid or not second.uuid
    return first.side != second.side and same_gpu


def _signal_texts(signals: Iterable[Signal]) -> list[str]:
    """The signals' messages, each with its GPU, without repetitions."""
    texts = (
        f"{signal.uuid}: {signal.message}" if signal.uuid else signal.message for signal in signals
    )
    return list(dict.fromkeys(sorted(texts)))


def _gpus(signals: Iterable[Signal]) -> tuple[str, ...]:
    return tuple(sorted({signal.uuid for signal in signals if signal.uuid}))


# resets of NVLink's GPUs have to be of all of them together, which a reboot is
_BY_CLASS: Mapping[XidClass, Action] = {"reset": "reset", "nvlink": "reboot", "reboot": "reboot"}


def _xid(labels: Labels, overrides: Overrides) -> Signal | Ignored:
    code = labels.get("xid", "")
    kind = classes(overrides).get(int(code)) if code.isdecimal() else None
    message = f"XID {code}"
    if kind is None or kind not in _BY_CLASS:
        return Ignored(
            node=labels["node"], message=message, cause=f"an XID of class {kind or 'unknown'}"
        )
    return Signal(
        node=labels["node"],
        uuid=labels.get("UUID", ""),
        side="xid",
        message=f"{message}, {meaning(int(code))}",
        reason=f"xid-{code}",
        action=_BY_CLASS[kind],
        sufficient=kind == "reboot",
    )


def _recovery(labels: Labels) -> Signal | Ignored:
    requested = labels.get("gpu_action", "")
    actions: Mapping[str, Action] = {"reset": "reset", "reboot": "reboot"}
    if requested not in actions:
        cause = "ending the jobs that use NVLink is for their owners"
        if requested != "drain":
            cause = "neither a reset nor a reboot of this node is what it asks for"
        return Ignored(
            node=labels["node"], message=f"the driver asks for: {requested}", cause=cause
        )
    return Signal(
        node=labels["node"],
        uuid=labels.get("UUID", ""),
        side="state",
        message=f"the driver asks for a {requested}",
        reason="recovery-action",
        action=actions[requested],
        sufficient=True,
    )


def _health(labels: Labels, card: Card) -> Signal | Ignored:
    watch, code = labels.get("health_watch", ""), labels.get("health_error_code", "")
    message = f"DCGM's health watch {watch} fails" + (f" ({code})" if code else "")
    if cause := _no_sign(watch, code, card):
        return Ignored(node=labels["node"], message=message, cause=cause)
    node, uuid = labels["node"], labels.get("UUID", "")
    return Signal(node=node, uuid=uuid, side="state", message=message, reason="health")


def _no_sign(watch: str, code: str, card: Card) -> str:
    """Why a watch that fails is no second sign beside an XID; "" where it is one."""
    known_meaning = meaning_of_watch(watch, code, card)
    if watch in HEAT_AND_POWER:
        return _HEAT if watch == "THERMAL" else _POWER
    if watch == "ALL" or (known_meaning is not None and not known_meaning.sign):
        return "DCGM says this of XIDs: it is no second sign beside an XID"
    if code and known_meaning is None:
        return "gpuboot's table of DCGM's results does not have it: people look at it first"
    if known_meaning is not None and known_meaning.fails != "critical":
        return f"DCGM says this of cards that are well, too: {known_meaning.cause}"
    return ""


def _remap(labels: Labels) -> Signal:
    return Signal(
        node=labels["node"],
        uuid=labels.get("UUID", ""),
        side="state",
        message="a memory row could not be remapped, for which NVIDIA replaces a GPU",
        reason="row-remap-failure",
        action="manual",
        sufficient=True,
    )


def _lost_gpu_signal(labels: Labels) -> Signal:
    message = "the node shows fewer GPUs than the inventory promises"
    return Signal(
        node=labels["node"], side="state", message=message, reason="lost", action="reboot"
    )


_STATES: Mapping[str, Callable[[Labels], Signal | Ignored]] = {
    "GPURecoveryAction": _recovery,
    "GPURowRemapFailure": _remap,
    "GPULost": _lost_gpu_signal,
}
