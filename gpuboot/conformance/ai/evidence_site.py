"""The cluster that evidence is looked for in, and what every step does with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from gpuboot.cluster.api import Cluster
from gpuboot.cluster.lookup import find_json
from gpuboot.cluster.objects import Node, read_nodes
from gpuboot.cluster.pods import read_holders
from gpuboot.config.settings import Settings
from gpuboot.verify.collector import PROMETHEUS
from gpuboot.verify.prometheus import Prometheus
from gpuboot.verify.session import Session
from gpuboot.verify.workload_pods import PodPlan, plan_pods

T = TypeVar("T")
_LOOK_EVERY_S = 2.0


class Stopped(Exception):
    """Somebody wants the command to end now."""


@dataclass(frozen=True)
class Site:
    """What the steps share.

    + names: of the GPU nodes
    + image: with busybox
    + stopped: whether it is to end now
    """

    cluster: Cluster
    session: Session
    settings: Settings
    names: Sequence[str]
    image: str
    progress: Callable[[str], None]
    stopped: Callable[[], bool]

    @property
    def namespace(self) -> str:
        """Path of the namespace that everything is in."""
        return f"namespaces/{self.session.namespace}"

    @property
    def prometheus(self) -> Prometheus:
        """The site's."""
        base = self.cluster.service(self.settings.monitoring.namespace, *PROMETHEUS)
        return Prometheus(self.cluster, base)

    def plan(self) -> tuple[Mapping[str, Node], PodPlan]:
        """The nodes, and which of their devices are free now. Raises `ClusterError`."""
        nodes = read_nodes(self.cluster)
        return nodes, plan_pods(self.names, nodes, read_holders(self.cluster))

    def get(self, path: str) -> Any:
        """An answer of the API server; None where it knows no such thing. Raises `ClusterError`."""
        return find_json(self.cluster, path)

    def create(self, path: str, item: Mapping[str, Any]) -> None:
        """Make an object. + path: of its kind, e.g. `/api/v1/services`. Raises `ClusterError`."""
        self.cluster.send("POST", path, item)

    def until(self, question: Callable[[], T | None], seconds: float) -> T | None:
        """The first answer that is true; None after so many seconds. Raises `Stopped`."""
        end = time.monotonic() + seconds
        while True:
            if answer := question():
                return answer
            if self.stopped():
                raise Stopped
            if time.monotonic() > end:
                return None
            self.session.wait(_LOOK_EVERY_S)

    def pod_ready(self, name: str, seconds: float) -> str:
        """Wait until a pod of the session is ready; why it is not, or "". Raises `Stopped`."""

        def settled() -> str:
            pod = self.session.pods().get(name)
            if pod is None:
                return self.session.loss()
            if pod.ready:
                return "ready"
            issue = self.session.issue(pod)
            return issue.error or "it failed" if issue.failed else ""

        answer = self.until(settled, seconds) or self._reason(name)
        return "" if answer == "ready" else f"pod {name}: {answer}"

    def _reason(self, name: str) -> str:
        pod = self.session.pods().get(name)
        return (self.session.issue(pod).error if pod else "") or "it did not become ready in time"
