"""A verification in the cluster: its lock, and the namespace of its pods."""

from __future__ import annotations

import contextlib
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpuboot.cluster import stuck
from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.objects import Event, Json, parse_event
from gpuboot.cluster.pod_issues import issues_of
from gpuboot.cluster.pods import Pod
from gpuboot.verify.concurrently import concurrently
from gpuboot.verify.evidence import VERIFY_PREFIX
from gpuboot.verify.lease import VerificationLock
from gpuboot.verify.pod_feed import PodFeed
from gpuboot.verify.pod_results import PodIssue, pod_issue

_LONGEST = 100  # of a node's name in a pod's: far from any limit, and from cutting names alike
# a cluster may refuse other pods by default, and a namespace that is new carries nobody's exception
_PRIVILEGED = {"pod-security.kubernetes.io/enforce": "privileged"}
LABELS = {"app.kubernetes.io/managed-by": "gpuboot", "app.kubernetes.io/component": "verify"}
_NAMESPACES = "/api/v1/namespaces"
_POLL_S = 1.0
_GONE_S = 60.0  # for pods that are deleted
_ACCOUNT_S = 30.0  # a control plane under load takes its time
_EVENTS_EVERY_S = 5.0


@dataclass(frozen=True)
class Namespace:
    """What the namespace of a session is called and carries.

    + prefix: of its name
    + labels: by which those that were left are found; of its pods as well
    """

    prefix: str = VERIFY_PREFIX
    labels: Mapping[str, str] = field(default_factory=lambda: LABELS)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def selector(self) -> dict[str, str]:
        """The query for all namespaces of this kind."""
        return {"labelSelector": ",".join(f"{key}={value}" for key, value in self.labels.items())}


OF_VERIFICATION = Namespace()


def pod_name(purpose: str, node: str, number: int | None = None) -> str:
    """Name of a pod that does something on one node, of a number of them."""
    end = "" if number is None else f"-{number}"
    return f"{purpose}-{node.replace('.', '-')[:_LONGEST].rstrip('-')}{end}"


OVERTAKEN = "another verification took over: this one was not heard of for too long"


class Session:
    """What one verification makes in the cluster; all of it is gone after `close`.

    + progress: takes lines of progress
    + patience_s: how long a container may print nothing
    """

    def __init__(
        self,
        cluster: Cluster,
        progress: Callable[[str], None],
        patience_s: float,
        kind: Namespace = OF_VERIFICATION,
    ) -> None:
        self.namespace = f"{kind.prefix}{secrets.token_hex(3)}"
        self._kind = kind
        self._cluster = cluster
        self._progress = progress
        self._lock = VerificationLock(cluster, self.namespace, progress)
        self._patience_s = patience_s
        self._namespace_created = False
        self._feed: PodFeed | None = None
        self._patience: dict[str, stuck.Patience] = {}
        self._events: list[Event] = []
        self._events_read_at = -math.inf

    def is_lost(self) -> bool:
        """Whether another verification took this session for dead, and removed its pods.

        Raises `ClusterError`.
        """
        return self._lock.is_lost()

    def loss(self) -> str:
        """Why a pod of this session is not there any more. Raises `ClusterError`."""
        if self.is_lost():
            return OVERTAKEN
        return "somebody deleted the pod"

    def begin(self, patience_s: float) -> str:
        """Wait for other verifications to end, and remove what killed ones left behind.

        Returns "", or why no pods may be started. Raises `ClusterError`.
        """
        if blocked := self._lock.acquire(patience_s):
            return blocked
        self._remove_leftovers()
        return ""

    def _remove_leftovers(self) -> None:
        leftovers = [item["metadata"]["name"] for item in self._namespaces()]
        if not leftovers:
            return
        self._progress(f"removing what was left of a killed verification: {', '.join(leftovers)}")
        for name in leftovers:
            delete_namespace(self._cluster, name)
        until = time.monotonic() + _GONE_S
        while any(map(self._pods, leftovers)) and time.monotonic() < until:
            time.sleep(_POLL_S)

    def _namespaces(self) -> list[Any]:
        """Other verifications' namespaces, but for those that are being deleted and empty."""
        return [
            item
            for item in self._cluster.json(_NAMESPACES, self._kind.selector)["items"]
            if item["status"].get("phase") != "Terminating" or self._pods(item["metadata"]["name"])
        ]

    def create(self, pods: Sequence[dict[str, Any]]) -> None:
        """Start pods. Raises `ClusterError`."""
        if pods and self._feed is None:
            self._create_namespace()
            self._feed = PodFeed(self._cluster, self.namespace, self._patience_s)
            self._feed.start()
        if self._feed:
            for created_pod in concurrently(partial(self._create, pod) for pod in pods):
                self._feed.add(created_pod)

    def create_secret(self, secret: dict[str, Any]) -> None:
        """Make a Secret for the pods, which goes with them. Raises `ClusterError`."""
        self._create_namespace()
        self._cluster.send("POST", f"{_NAMESPACES}/{self.namespace}/secrets", secret)

    def _create_namespace(self) -> None:
        if not self._namespace_created:
            kind = self._kind
            metadata = {"name": self.namespace, "labels": {**kind.labels, **_PRIVILEGED}}
            metadata |= {"annotations": dict(kind.annotations)} if kind.annotations else {}
            self._namespace_created = True
            self._cluster.send("POST", _NAMESPACES, {"metadata": metadata})

    def _create(self, pod: dict[str, Any]) -> Json:
        """Create a pod, again where the new namespace has no service account for an instant."""
        until = time.monotonic() + _ACCOUNT_S
        while True:
            try:
                created_pod: Json = self._cluster.send(
                    "POST", f"{_NAMESPACES}/{self.namespace}/pods", pod
                )
                return created_pod
            except ClusterError as error:
                if error.status != 403 or "serviceaccount" not in str(error):
                    raise
                if time.monotonic() > until:
                    raise ClusterError(
                        f"{error}; kube-controller-manager has made none for {_ACCOUNT_S:.0f} s",
                        error.status,
                    ) from error
            time.sleep(0.1)

    def delete(self, pod: str) -> None:
        """End a pod, and wait until the node has ended it: its GPUs are free then."""
        assert self._feed is not None
        path = f"{_NAMESPACES}/{self.namespace}/pods/{pod}"
        self._cluster.send("DELETE", path, {"gracePeriodSeconds": 1}, missing_ok=True)
        until = time.monotonic() + _GONE_S
        while pod in self._feed.pods() and time.monotonic() < until:
            self._feed.wait(_POLL_S)

    def pods(self) -> Mapping[str, Pod]:
        """The pods there are, by name. Raises `ClusterError`."""
        return self._feed.pods() if self._feed else {}

    def issue(self, pod: Pod) -> PodIssue:
        """What is wrong with a pod. It has failed as well where it has long been unable to start.

        Raises `ClusterError`.
        """
        issue, now = pod_issue(pod), time.monotonic()
        if issue.failed or pod.phase != "Pending":
            return issue
        for looked_at in issues_of([pod], self._read_events(now)):
            if looked_at.pod != pod.name:
                continue
            reason = stuck.of_pod(looked_at, ClusterState())
            patience = self._patience.setdefault(pod.name, stuck.Patience())
            over = patience.over([reason] if reason else [], 0, now)
            return PodIssue(looked_at.reason or issue.error, failed=bool(over))
        return issue

    def _read_events(self, now: float) -> list[Event]:
        """What events say of the pods: only there stands why volumes cannot be mounted."""
        if now - self._events_read_at >= _EVENTS_EVERY_S:
            path = f"/api/v1/namespaces/{self.namespace}/events"
            self._events = list(map(parse_event, self._cluster.json(path)["items"]))
            self._events_read_at = now
        return self._events

    def wait(self, seconds: float) -> None:
        """Wait until something has become of a pod, or the time is up."""
        if self._feed:
            self._feed.wait(seconds)

    def log(self, pod: str, container: str) -> str:
        """What a container has printed, as far as it was told; "" before it has started."""
        return self._feed.log(pod, container) if self._feed else ""

    def whole_log(self, pod: str, container: str) -> str:
        """What a container has printed up to now; "" where it cannot be read."""
        with contextlib.suppress(ClusterError):
            path = f"{_NAMESPACES}/{self.namespace}/pods/{pod}/log"
            return self._cluster.get(path, {"container": container}).decode(errors="replace")
        return self.log(pod, container)

    def close(self) -> None:
        """Delete the pods at once and the namespace behind them, and give the lock to others."""
        try:
            if self._feed:
                self._feed.close()
            if self._namespace_created:
                delete_namespace(self._cluster, self.namespace)
        finally:
            self._lock.release()

    def _pods(self, namespace: str) -> list[Any]:
        return list(self._cluster.json(f"{_NAMESPACES}/{namespace}/pods")["items"])


def delete_namespace(cluster: Cluster, name: str) -> None:
    """Delete a namespace and its pods, at once. Raises `ClusterError`.

    Without grace the API server has forgotten the pods when it answers.
    """
    path = f"{_NAMESPACES}/{name}"
    cluster.send("DELETE", f"{path}/pods", {"gracePeriodSeconds": 0})
    cluster.send("DELETE", path, missing_ok=True)
