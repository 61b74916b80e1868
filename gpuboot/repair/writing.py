"""What a step writes: the node's object, an Event, and a line of JSON."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from typing import Any

from gpuboot.cluster.repair_keys import BREAKER, PAST_KEY, STATE_KEY, TAINT_KEY
from gpuboot.repair.repair_model import Breaker, dump, dump_past, stamp
from gpuboot.repair.repair_steps import Step

Json = dict[str, Any]
EVENTS = "/api/v1/namespaces/default/events"
_LONGEST = 1000  # characters of an Event's message: the API server takes 1024


def patched(item: Mapping[str, Any], step: Step) -> Json:
    """A node object as a step leaves it, for a PUT: it fails where somebody else was faster.

    + item: as it is now, with its resource version
    """
    new = deepcopy(dict(item))
    notes = new["metadata"].setdefault("annotations", {})
    repair = replace(step.repair, before=step.before, said=step.cause) if step.repair else None
    for key, text in (
        (STATE_KEY, dump(repair) if repair else ""),
        (PAST_KEY, dump_past(step.past) if step.past else ""),
    ):
        notes.pop(key, None)
        if text:
            notes[key] = text
    spec = new.setdefault("spec", {})
    taints = [taint for taint in spec.get("taints") or () if taint["key"] != TAINT_KEY]
    if step.tainted:
        reason = step.repair.reason if step.repair else ""
        taints.append({"key": TAINT_KEY, "value": reason, "effect": "NoSchedule"})
    spec["taints"] = taints
    if step.cordoned is not None:
        spec["unschedulable"] = step.cordoned
    return new


def line(step: Step, now: float, cluster: str) -> Json:
    """A step as JSON for programs and logs. + now: when it was written"""
    repair = step.repair
    return {
        "time": stamp(now),
        "cluster": cluster,
        "node": step.node,
        "from": step.before,
        "to": step.after,
        "action": repair.action if repair else None,
        "gpus": list(repair.gpus) if repair else [],
        "why": step.cause,
    }


def event_name(step: Step, now: float) -> str:
    """The Event's name, the same whoever reports the step. + now: when it was written"""
    since = step.repair.since if step.repair else now
    digest = sha256(f"{step.before} {step.after} {step.cause}".encode()).hexdigest()[:10]
    return f"{step.node}.remediate.{int(since):x}.{digest}"


def event(step: Step, now: float) -> Json:
    """A step as an Event of the node. + now: when it was written"""
    after = step.after or "ended"
    message = f"repair of {step.node}: {step.before or 'begun'} -> {after}: {step.cause}"
    is_warning = after in ("quarantined", "failed") or step.cause.startswith("not drained")
    return {
        "metadata": {
            "name": event_name(step, now),
            "namespace": "default",
        },
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": step.node,
                           "uid": step.node},
        "reason": f"Repair{after.capitalize()}",
        "message": message[:_LONGEST],
        "type": "Warning" if is_warning else "Normal",
        "source": {"component": "gpuboot-remediate"},
        "firstTimestamp": stamp(now),
        "lastTimestamp": stamp(now),
        "count": 1,
    }  # fmt: skip


def breaker(opened: Breaker) -> Json:
    """The ConfigMap of an open breaker."""
    return {
        "metadata": {"name": BREAKER, "namespace": "kube-system"},
        "data": {"opened": stamp(opened.opened), "why": opened.cause},
    }
