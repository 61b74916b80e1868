"""Pods that are not ready, and pods that are not even made: out of pods and events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from gpuboot.cluster.api_answers import Json, parse_answers
from gpuboot.cluster.cluster_answers import PODS
from gpuboot.cluster.cluster_state import IssueKind, PodIssue
from gpuboot.cluster.pod_crashes import crash

_EVENTS = {
    reason: f"/api/v1/events?fieldSelector=reason%3D{reason}"
    for reason in ("FailedCreate", "FailedMount", "FailedCreatePodSandBox")
}
PATHS = (PODS, *_EVENTS.values())

_NORMAL = ("", "ContainerCreating", "PodInitializing")
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_LONGEST = 400  # of a message


def parse_pod_issues(lines: Iterable[str]) -> tuple[PodIssue, ...]:
    """What the fact of `PATHS` printed. Nothing where the API server does not answer."""
    answers = parse_answers(lines, PATHS, optional=_EVENTS.values())
    events = [event for path in _EVENTS.values() for event in answers.items(path)]
    return issues_of(answers.items(PODS), events)


def issues_of(
    pods: Iterable[Mapping[str, Any]], events: Iterable[Mapping[str, Any]]
) -> tuple[PodIssue, ...]:
    """Pods that are not ready, and pods that are not made. + events: as the API has them"""
    latest: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for event in sorted(events, key=_time):
        involved = event.get("involvedObject", {})
        if event.get("reason") in _EVENTS:
            key = involved.get("kind", ""), involved.get("namespace", ""), involved.get("name", "")
            latest[key] = event
    issues = [
        _with_event(issue, pod, latest.get(("Pod", issue.namespace, issue.pod)))
        for pod in pods
        if (issue := pod_issue(pod))
    ]
    refused_issues = [
        PodIssue(namespace, name, "", _message(event), kind="refused")
        for (kind, namespace, name), event in latest.items()
        if kind != "Pod"
    ]
    return (*issues, *refused_issues)


def pod_issue(item: Mapping[str, Any]) -> PodIssue | None:
    """What keeps a pod from being ready; None for one that is, or has ended."""
    meta, status = item["metadata"], item.get("status", {})
    containers = [
        *status.get("initContainerStatuses", ()),
        *status.get("containerStatuses", ()),
    ]
    waiting = [(entry["name"], entry.get("state", {}).get("waiting", {})) for entry in containers]
    looping = crash(item)
    reasons, kind = [], _state(item)
    for name, waiting_state in waiting:
        reason = waiting_state.get("reason", "")
        if reason in _NORMAL:
            continue
        kind = _kind(reason)
        if looping and looping.container == name:
            reasons.append(str(looping))
            continue
        message = "" if kind == "crash" else str(waiting_state.get("message") or "")[:_LONGEST]
        reasons.append(f"{reason} in {name}" + (f": {message}" if message else ""))
    for entry in status.get("conditions", ()):
        if entry["type"] == "PodScheduled" and entry.get("message"):
            reasons.append(entry["message"])
            kind = "unscheduled"
    node = item.get("spec", {}).get("nodeName", "")
    unready = _unready(status)
    if not reasons and not (node and (kind or unready is not None)):
        return None
    created = _seconds(meta.get("creationTimestamp") or "")
    reason = ", ".join(reasons) or unready or ""
    return PodIssue(meta["namespace"], meta["name"], node, reason, looping, kind, created)


def _state(item: Mapping[str, Any]) -> IssueKind:
    """`creating` for a pod that its node has begun with."""
    has_started = item.get("status", {}).get("phase") == "Pending" and item["spec"].get("nodeName")
    return "creating" if has_started else ""


def _kind(reason: str) -> IssueKind:
    if reason in _IMAGE:
        return "image"
    return "crash" if reason == "CrashLoopBackOff" else "config"


def _unready(status: Json) -> str | None:
    """Why a pod that runs is not ready, by itself or its silent node's controller; None: it is."""
    conditions = {entry["type"]: entry for entry in status.get("conditions", ())}
    ready = conditions.get("Ready") or {}
    unready = status.get("phase") == "Running" and ready.get("status") == "False"
    return str(ready.get("message", "")) if unready else None


def _with_event(
    issue: PodIssue, pod: Mapping[str, Any], event: Mapping[str, Any] | None
) -> PodIssue:
    """A pod whose volumes or network cannot be made: that stands in events alone.

    An event outlives its cause: the condition tells when both have been made.
    """
    conditions = pod.get("status", {}).get("conditions", ())
    states = {entry["type"]: entry.get("status") for entry in conditions}
    if not event or issue.kind != "creating" or states.get("PodReadyToStartContainers") == "True":
        return issue
    return replace(issue, reason=f"{event.get('reason', '')}: {_message(event)}", kind="mount")


def _message(event: Mapping[str, Any]) -> str:
    return " ".join(str(event.get("message", "")).split())[:_LONGEST]


def _time(event: Mapping[str, Any]) -> str:
    return event.get("lastTimestamp") or event.get("eventTime") or ""


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
