"""The plan of a run: changes, what they cost, and what nobody can know before the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

HIDDEN = "(hidden)"

EffectKind = Literal["reboot", "cordon", "restart", "reload"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One value that an operation changes on one host.

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
        found = {"subject": self.subject, "field": self.field, "old": self.old, "new": self.new}
        return {**found, "diff": list(self.diff)} if self.diff else found


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What an operation's changes cost while they are made.

    + kind: `reboot` and `cordon` of a node; `restart` and `reload` of a service or workload
    + target: e.g. `node gpu1`, `containerd`, `DaemonSet gpu-operator/nvidia-dcgm-exporter`
    + note: what goes on meanwhile, or stops; "" when that is not known
    + gpu_pods: pods on GPUs that it interrupts, as namespace/name; None: not known
    """

    kind: EffectKind
    target: str
    note: str = ""
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
        """It as run.json and `gpuboot plan` have it."""
        return {"what": self.what, "until": self.until}


Item = Change | Effect | Unknown


@dataclass(frozen=True, kw_only=True)
class Step:
    """One operation that changes something on one or more hosts.

    + phase, name: of the operation
    + hosts: inventory name -> what it changes there; nothing: it changes something that it does
      not describe
    + conditional: inventory names of hosts on which an earlier operation decides whether it runs
    + last_s, last_date: how long it took when it last changed something, and the day (ISO 8601) of
      that run; None: not known
    """

    phase: str
    name: str
    hosts: Mapping[str, Sequence[Item]]
    conditional: frozenset[str] = frozenset()
    last_s: float | None = None
    last_date: str = ""

    def to_json(self) -> dict[str, Any]:
        """The step as `gpuboot plan` prints it."""
        return {
            "phase": self.phase,
            "operation": self.name,
            "hosts": [
                {"host": host, "conditional": host in self.conditional, **items_json(items)}
                for host, items in self.hosts.items()
            ],
            "last_seconds": self.last_s,
            "last_date": self.last_date or None,
        }


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that a run would change, in order.

    + hosts: inventory names of all hosts of the run
    + unchanged: operations that change nothing anywhere
    """

    cluster: str
    hosts: Sequence[str]
    steps: Sequence[Step] = field(default_factory=tuple)
    unchanged: int = 0

    def of(self, kind: type[Item]) -> list[tuple[str, Any]]:
        """All items of one type with the inventory name of their host, in order."""
        return [
            (host, item)
            for step in self.steps
            for host, items in step.hosts.items()
            for item in items
            if isinstance(item, kind)
        ]

    def to_json(self) -> dict[str, Any]:
        """The plan as `gpuboot plan` prints it; docs/reports.md documents the keys."""
        return {
            "schema": 1,
            "cluster": self.cluster,
            "hosts": list(self.hosts),
            "changes": bool(self.steps),
            "steps": [step.to_json() for step in self.steps],
            "unchanged_operations": self.unchanged,
        }


def items_json(items: Sequence[Item]) -> dict[str, list[Any]]:
    """Changes, effects and unknowns of one operation on one host, by kind."""
    kinds: dict[str, type[Item]] = {"changes": Change, "effects": Effect, "unknown": Unknown}
    return {
        key: [item.to_json() for item in items if isinstance(item, kind)]
        for key, kind in kinds.items()
    }
