"""The plan of a run: changes, what they cost, and what nobody can know before the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gpuboot.config.support import End

HIDDEN = "(hidden)"
# variable that names the file for the plan as JSON, for the command that started pyinfra
POINTER = "GPUBOOT_PLAN_POINTER"

EffectKind = Literal["reboot", "cordon", "drain", "restart", "reload"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """A value that an operation changes on one host.

    + subject: kind and name of the thing, e.g. `package kubelet`, `file /etc/hosts`,
      `Helm release gpu-operator`, `node gpu1`
    + field: what of it, e.g. `version`, `label gpuboot.io/gpus`, a dotted path of values; "" for
      the whole thing
    + old, new: JSON values; None: not there before, not there afterwards
    + diff: for texts, the lines that differ, each beginning with + or -; old and new are then None
    + hidden: the values are secret. They are dropped here, so that nothing can show them
    """

    subject: str
    field: str = ""
    old: Any = None
    new: Any = None
    diff: tuple[str, ...] = ()
    hidden: bool = False

    def __post_init__(self) -> None:
        if self.hidden:
            object.__setattr__(self, "old", None if self.old is None else HIDDEN)
            object.__setattr__(self, "new", None if self.new is None else HIDDEN)
            object.__setattr__(self, "diff", ())

    def to_json(self) -> dict[str, Any]:
        """The change as run.json and `gpuboot plan` have it."""
        document = {"subject": self.subject, "field": self.field, "old": self.old, "new": self.new}
        return {**document, "diff": list(self.diff)} if self.diff else document


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What an operation's changes cost while they are made.

    + kind: `reboot`, `cordon`, `drain` of a node; `restart` and `reload` of a service or workload
    + target: e.g. `node gpu1`, `containerd`, `DaemonSet gpu-operator/nvidia-dcgm-exporter`
    + note: what goes on meanwhile, or stops; "" when that is not known
    + local: the target is a service of the host that the operation runs on
    + gpu_pods: pods on GPUs that it interrupts, as namespace/name; None: not known
    """

    kind: EffectKind
    target: str
    note: str = ""
    local: bool = False
    gpu_pods: tuple[str, ...] | None = ()

    def to_json(self) -> dict[str, Any]:
        """The effect as run.json and `gpuboot plan` have it."""
        pods = None if self.gpu_pods is None else list(self.gpu_pods)
        return {"kind": self.kind, "target": self.target, "note": self.note, "gpu_pods": pods}


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """Something that only the run itself can know, because it depends on an earlier change.

    + what: what is not known; + until: what has to happen before
    """

    what: str
    until: str

    def to_json(self) -> dict[str, str]:
        """The unknown as run.json and `gpuboot plan` have it."""
        return {"what": self.what, "until": self.until}


@dataclass(frozen=True, kw_only=True)
class KeptItem:
    """Something that an operation could take away or put back, and does not.

    + why: or what does; + diff: lines that differ, as a `Change` has them
    + is_known: False: nobody could read it, and `why` is the reason
    """

    what: str
    why: str
    diff: tuple[str, ...] = ()
    is_known: bool = True

    def to_json(self) -> dict[str, Any]:
        """The item as run.json and `gpuboot plan` have it."""
        document: dict[str, Any] = {"what": self.what, "why": self.why}
        document |= {} if self.is_known else {"is_known": False}
        return {**document, "diff": list(self.diff)} if self.diff else document


class Decision(KeptItem):
    """Something that somebody has set otherwise, which no run changes: plan and drift name it."""


Item = Change | Effect | Unknown | KeptItem


@dataclass(frozen=True, kw_only=True)
class Step:
    """An operation that changes something on one or more hosts.

    + phase, name: of the operation
    + hosts: inventory name -> what it changes there; nothing: it changes something that it does
      not describe
    + conditional: inventory names of hosts on which an earlier operation decides whether it runs
    """

    phase: str
    name: str
    hosts: Mapping[str, Sequence[Item]]
    conditional: frozenset[str] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """The step as `gpuboot plan` prints it."""
        return {
            "phase": self.phase,
            "operation": self.name,
            "hosts": [
                {"host": host, "conditional": host in self.conditional, **items_json(items)}
                for host, items in self.hosts.items()
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Duration:
    """How long a phase took when a run last changed the same things in it.

    + started: of that run, UTC (ISO 8601)
    + changed_more: that run changed more in this phase, so `seconds` is an upper bound
    """

    seconds: float
    started: str
    changed_more: bool = False

    def to_json(self) -> dict[str, Any]:
        """The duration as `gpuboot plan` prints it."""
        return {"seconds": self.seconds, "started": self.started, "changed_more": self.changed_more}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that a run would change, in order.

    + hosts: inventory names of all hosts of the run
    + decisions: operations that leave what somebody has set otherwise
    + unchanged: number of operations that change nothing anywhere
    + durations: phases that have been timed; the others' durations are not known
    + packages: inventory name -> packages that this run's own remove, downgrade, or change though
      they are held, as the package manager rehearsed all of it before
    + ends: when support of the locked versions and the keys of package repositories end
    """

    cluster: str
    hosts: Sequence[str]
    steps: Sequence[Step] = ()
    decisions: Sequence[Step] = ()
    unchanged: int = 0
    durations: Mapping[str, Duration] = field(default_factory=dict)
    packages: Mapping[str, Sequence[Item]] = field(default_factory=dict)
    ends: Sequence[End] = ()

    @property
    def phases(self) -> list[str]:
        """Phases that change something, in order."""
        return list(dict.fromkeys(step.phase for step in self.steps))

    @property
    def timed_phases(self) -> list[str]:
        """Phases that change something, then phases that only wait because something changes."""
        return list(dict.fromkeys([*self.phases, *self.durations]))

    @property
    def effects(self) -> list[tuple[str, Effect]]:
        """What the changes cost, each with the inventory name of the host whose operation it is."""
        return [
            (host, item)
            for step in self.steps
            for host, items in step.hosts.items()
            for item in items
            if isinstance(item, Effect)
        ]

    def to_json(self) -> dict[str, Any]:
        """The plan as `gpuboot plan` prints it; docs/reports.md documents the keys."""
        known_durations = {name: self.durations.get(name) for name in self.timed_phases}
        return {
            "schema": 1,
            "cluster": self.cluster,
            "hosts": list(self.hosts),
            "changes": bool(self.steps),
            "steps": [step.to_json() for step in self.steps],
            "decisions": [step.to_json() for step in self.decisions],
            "packages": [
                {"host": host, **items_json(items)} for host, items in self.packages.items()
            ],
            "ends": [end.to_json() for end in self.ends],
            "unchanged_operations": self.unchanged,
            "last_time": {
                name: duration and duration.to_json() for name, duration in known_durations.items()
            },
        }


def items_json(items: Sequence[Item]) -> dict[str, list[Any]]:
    """Changes, effects, unknowns and what is kept of one operation on one host, by kind.

    `kept` is there only where something is.
    """
    kinds: dict[str, type[Item]] = {"changes": Change, "effects": Effect, "unknown": Unknown}
    items_by_kind = {
        key: [item.to_json() for item in items if isinstance(item, kind)]
        for key, kind in kinds.items()
    }
    kept_items = [item.to_json() for item in items if isinstance(item, KeptItem)]
    return {**items_by_kind, **({"kept": kept_items} if kept_items else {})}
