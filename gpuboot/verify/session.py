"""One verification in the cluster: its lock, and the namespace of its pods."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable
from typing import Any

from gpuboot.kubernetes.api import Cluster, ClusterError, call
from gpuboot.verify.lease import VerificationLock

PREFIX = "gpuboot-verify-"
_LONGEST = 100  # of a node's name in a pod's: far from any limit, and from cutting names alike
LABELS = {"app.kubernetes.io/managed-by": "gpuboot", "app.kubernetes.io/component": "verify"}
_SELECTOR = {"labelSelector": ",".join(f"{key}={value}" for key, value in LABELS.items())}
_NAMESPACES = "/api/v1/namespaces"
_POLL_S = 1.0
_GONE_S = 60.0  # for pods of a verification that was killed


def pod_name(what: str, node: str, number: int | None = None) -> str:
    """Name of a pod that does something on one node, of a number of them."""
    end = "" if number is None else f"-{number}"
    return f"{what}-{node.replace('.', '-')[:_LONGEST].rstrip('-')}{end}"


class Session:
    """What one verification makes in the cluster; all of it is gone after `close`.

    + progress: takes lines of progress
    """

    def __init__(self, cluster: Cluster, progress: Callable[[str], None]) -> None:
        self.namespace = f"{PREFIX}{secrets.token_hex(3)}"
        self._cluster = cluster
        self._progress = progress
        self._lock = VerificationLock(cluster, self.namespace, progress)
        self._namespace_created = False

    def lost(self) -> bool:
        """Whether another verification took this one for dead, and removed its pods.

        Raises `ClusterError`.
        """
        return self._lock.lost()

    def begin(self, patience_s: float) -> str:
        """Wait for other verifications to end, and remove what killed ones left behind.

        Returns "", or why no pods may be started. Raises `ClusterError`.
        """
        if blocked := self._lock.acquire(patience_s):
            return blocked
        self._remove_leftovers()
        return ""

    def _remove_leftovers(self) -> None:
        left = [item["metadata"]["name"] for item in self._namespaces()]
        if not left:
            return
        self._progress(f"removing what was left of a killed verification: {', '.join(left)}")
        for name in left:
            self._delete(name)
        until = time.monotonic() + _GONE_S
        while any(map(self._pods, left)) and time.monotonic() < until:
            time.sleep(_POLL_S)

    def _namespaces(self) -> list[Any]:
        """Other verifications' namespaces, but for those that are being deleted and empty."""
        return [
            item
            for item in self._cluster.json(_NAMESPACES, _SELECTOR)["items"]
            if item["status"].get("phase") != "Terminating" or self._pods(item["metadata"]["name"])
        ]

    def create(self, pod: dict[str, Any], timeout_s: float = 15.0) -> None:
        """Start a pod. Raises `ClusterError`.

        A new namespace has no service account for an instant; pods are refused until then.
        """
        core = self._cluster.core
        if not self._namespace_created:
            body = {"metadata": {"name": self.namespace, "labels": dict(LABELS)}}
            self._namespace_created = True
            call(core.create_namespace, body)
        until = time.monotonic() + timeout_s
        while True:
            try:
                return call(core.create_namespaced_pod, self.namespace, pod)
            except ClusterError as error:
                if error.status != 403 or "serviceaccount" not in str(error):
                    raise
                if time.monotonic() > until:
                    raise
            time.sleep(0.2)

    def pods(self) -> list[Any]:
        """The pods there are. Raises `ClusterError`."""
        return self._pods(self.namespace)

    def log(self, pod: str) -> str:
        """A pod's log so far; "" while there is none (the kubelet answers 400 until it begins)."""
        with contextlib.suppress(ClusterError):
            path = f"{_NAMESPACES}/{self.namespace}/pods/{pod}/log"
            return self._cluster.get(path).decode(errors="replace")
        return ""

    def close(self) -> None:
        """Delete the pods at once and the namespace behind them; wait for the pods."""
        try:
            if self._namespace_created:
                self._delete(self.namespace)
                until = time.monotonic() + 30
                while self.pods() and time.monotonic() < until:
                    time.sleep(_POLL_S / 2)
        finally:
            self._lock.release()

    def _delete(self, namespace: str) -> None:
        core = self._cluster.core
        call(core.delete_collection_namespaced_pod, namespace, grace_period_seconds=0)
        call(core.delete_namespace, namespace, missing_ok=True)

    def _pods(self, namespace: str) -> list[Any]:
        return list(self._cluster.json(f"{_NAMESPACES}/{namespace}/pods")["items"])
