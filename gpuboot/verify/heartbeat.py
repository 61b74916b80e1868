"""Kubelets that report, as a verification watches them; see `gpuboot.cluster.node_reports`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from gpuboot.cluster.api import Cluster
from gpuboot.cluster.node_reports import LEASES, SILENT_S

_RENEWAL_S = 15.0  # within which one comes from a kubelet that runs
_POLL_S = 2.0


class Heartbeats:
    """When nodes renewed their Leases, as seen from here.

    A Lease's time is the node's own clock's. Where that is behind the API server's, a kubelet that
    runs is told from a dead one by waiting for its next renewal.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last_reported: dict[
            str, tuple[str, float]
        ] = {}  # node -> renewal, and our time of it

    def refresh(self) -> None:
        """Read all Leases. Raises `ClusterError`."""
        items = self._cluster.json(LEASES)["items"]
        current = {item["metadata"]["name"]: item["spec"].get("renewTime", "") for item in items}
        clock = self._cluster.now() if current.keys() - self._last_reported.keys() else None
        now = time.monotonic()
        for node, text in current.items():
            if node not in self._last_reported and clock is not None:
                self._last_reported[node] = text, now - _age(text, clock)
            elif self._last_reported[node][0] != text:
                self._last_reported[node] = text, now

    def silent_for(self, node: str) -> float:
        """Seconds since a node's Lease was renewed; infinite without one."""
        if node not in self._last_reported:
            return math.inf
        return time.monotonic() - self._last_reported[node][1]

    def silent_nodes(
        self, nodes: Collection[str], progress: Callable[[str], None]
    ) -> dict[str, str]:
        """The nodes whose kubelets do not report, each with what is known of it.

        Raises `ClusterError`.
        """
        until = time.monotonic() + _RENEWAL_S
        reported = False
        while True:
            self.refresh()
            late = sorted(node for node in nodes if self.silent_for(node) > SILENT_S)
            if not late or time.monotonic() >= until:
                return {node: self.describe(node) for node in late}
            if not reported:
                progress(f"waiting for the kubelet of {', '.join(late)} to report")
                reported = True
            time.sleep(_POLL_S)

    def describe(self, node: str) -> str:
        """A few words on a silent node."""
        silence = self.silent_for(node)
        if math.isinf(silence):
            return f"the kubelet of {node} has never reported: it has no Lease"
        return f"the kubelet of {node} has not reported for {silence:.0f} s"


def _age(text: str, clock: datetime) -> float:
    """Seconds since a renewal; 0 for one in the future, infinite for none."""
    try:
        return max(0.0, (clock - datetime.fromisoformat(text).astimezone(UTC)).total_seconds())
    except ValueError:
        return math.inf
