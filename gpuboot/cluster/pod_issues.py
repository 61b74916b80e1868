"""Pods that are not ready, and pods that are not even made: out of pods and events."""

from collections.abc import Iterable
from dataclasses import replace

from gpuboot.cluster.api_answers import parse_answers
from gpuboot.cluster.cluster_answers import PODS
from gpuboot.cluster.cluster_state import IssueKind, PodIssue
from gpuboot.cluster.objects import Condition, Event, parse_event
from gpuboot.cluster.pod_crashes import crash
from gpuboot.cluster.pods import Pod, parse_pod

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
    events = [parse_event(item) for path in _EVENTS.values() for item in answers.items(path)]
    return issues_of(map(parse_pod, answers.items(PODS)), events)


def issues_of(pods: Iterable[Pod], events: Iterable[Event]) -> tuple[PodIssue, ...]:
    """Pods that are not ready, and pods that are not made."""
    latest = {
        (event.kind, event.key): event
        for event in sorted(events, key=lambda event: event.at)
        if event.reason in _EVENTS
    }
    issues = [
        _with_event(issue, pod, latest.get(("Pod", pod.key)))
        for pod in pods
        if (issue := pod_issue(pod))
    ]
    refused_issues = [
        PodIssue(event.namespace, event.name, "", _message(event), kind="refused")
        for event in latest.values()
        if event.kind != "Pod"
    ]
    return (*issues, *refused_issues)


def pod_issue(pod: Pod) -> PodIssue | None:
    """What keeps a pod from being ready; None for one that is, or has ended."""
    looping = crash(pod)
    reasons: list[str] = []
    kind: IssueKind = "creating" if pod.phase == "Pending" and pod.node else ""
    for container in pod.containers:
        if container.state != "waiting" or container.reason in _NORMAL:
            continue
        kind = _kind(container.reason)
        if looping and looping.container == container.name:
            reasons.append(str(looping))
            continue
        message = "" if kind == "crash" else container.message[:_LONGEST]
        text = f"{container.reason} in {container.name}"
        reasons.append(f"{text}: {message}" if message else text)
    if pod.waits:
        reasons.append(pod.waits)
        kind = "unscheduled"
    unready = _unready(pod)
    if not reasons and not (pod.node and (kind or unready is not None)):
        return None
    reason = ", ".join(reasons) or unready or ""
    return PodIssue(pod.namespace, pod.name, pod.node, reason, looping, kind, pod.created)


def _kind(reason: str) -> IssueKind:
    if reason in _IMAGE:
        return "image"
    return "crash" if reason == "CrashLoopBackOff" else "config"


def _unready(pod: Pod) -> str | None:
    """Why a pod that runs is not ready, by itself or its silent node's controller; None: it is."""
    ready = pod.conditions.get("Ready", Condition())
    return ready.message if pod.phase == "Running" and ready.status == "False" else None


def _with_event(issue: PodIssue, pod: Pod, event: Event | None) -> PodIssue:
    """A pod whose volumes or network cannot be made: that stands in events alone.

    An event outlives its cause: the condition tells when both have been made.
    """
    is_set_up = pod.conditions.get("PodReadyToStartContainers", Condition()).status == "True"
    if not event or issue.kind != "creating" or is_set_up:
        return issue
    return replace(issue, reason=f"{event.reason}: {_message(event)}", kind="mount")


def _message(event: Event) -> str:
    return " ".join(event.message.split())[:_LONGEST]
