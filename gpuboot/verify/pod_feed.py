"""The pods of one namespace as they change, and what their containers print, by watching."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from threading import Event, Thread
from typing import Any

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.line_stream import Lines
from gpuboot.cluster.objects import Json
from gpuboot.cluster.pods import Pod, parse_pod
from gpuboot.verify.pod_results import TELLS_BY_MESSAGE

_WATCHED_S = 240  # then the API server ends a watch, and it is begun again
_PAUSE_S = 1.0
Container = tuple[str, str]  # names of pod and container


class PodFeed:
    """Watches the pods and streams each container's log, in threads of its own.

    + namespace: of the pods; it exists when `start` is called
    + patience_s: how long a container may print nothing
    """

    def __init__(self, cluster: Cluster, namespace: str, patience_s: float) -> None:
        self._cluster = cluster
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._patience_s = patience_s
        self._changed = Event()
        self._stopped = Event()
        self._version = ""  # of the newest that is known
        self._pods: dict[str, Pod] = {}
        self._logs: dict[Container, list[str]] = {}
        self._open: list[Lines] = []
        self._error: ClusterError | None = None

    def start(self) -> None:
        """Read the pods that there are, and follow what becomes of them. Raises `ClusterError`."""
        self._read()
        Thread(target=self._watch, daemon=True).start()

    def add(self, item: Json) -> None:
        """Add a pod that was just made, in case that the watch has not seen it yet."""
        pod = parse_pod(item)
        self._pods.setdefault(pod.name, pod)

    def pods(self) -> Mapping[str, Pod]:
        """The pods that there are, by name. Raises `ClusterError` when the watch has failed."""
        if self._error is not None:
            raise self._error
        return dict(self._pods)

    def log(self, pod: str, container: str) -> str:
        """What a container has printed so far; "" before it has started."""
        return "\n".join(self._logs.get((pod, container), []))

    def wait(self, seconds: float) -> None:
        """Wait until something has changed since the last call, or the time is up."""
        self._changed.wait(seconds)
        self._changed.clear()

    def close(self) -> None:
        """End all streams."""
        self._stopped.set()
        for lines in list(self._open):
            lines.stop()

    def _read(self) -> None:
        listing = self._cluster.json(self._path)
        self._version = listing.get("metadata", {}).get("resourceVersion", "")
        self._pods = {}
        for item in listing["items"]:
            self._update(item)
        self._changed.set()

    def _watch(self) -> None:
        while not self._stopped.is_set():
            query = {"watch": "1", "timeoutSeconds": str(_WATCHED_S)}
            query["resourceVersion"] = self._version
            try:
                with self._cluster.lines(self._path, query, _WATCHED_S + 10) as lines:
                    self._open.append(lines)
                    for line in lines:
                        self._apply_event(json.loads(line))
                    self._open.remove(lines)
            except (ClusterError, ValueError) as error:
                self._error = ClusterError(f"the watch on {self._path} ended: {error}")
                self._changed.set()
                return
            self._stopped.wait(_PAUSE_S)

    def _apply_event(self, event: Mapping[str, Any]) -> None:
        kind, item = event["type"], event["object"]
        if kind == "ERROR":  # the server no longer knows that version
            self._read()
            return
        self._version = item["metadata"]["resourceVersion"]
        if kind in {"ADDED", "MODIFIED"}:
            self._update(item)
        elif kind == "DELETED":
            self._pods.pop(item["metadata"]["name"], None)
        self._changed.set()

    def _update(self, item: Json) -> None:
        """Keep a pod as it is now, and begin with the logs of its containers that have started."""
        pod = self._pods[item["metadata"]["name"]] = parse_pod(item)
        for container in item["spec"].get("containers", []):
            if container.get("terminationMessagePolicy") == TELLS_BY_MESSAGE:
                continue
            key = pod.name, container["name"]
            if key not in self._logs and not pod.container(key[1]).waits:
                self._logs[key] = []
                Thread(target=self._follow, args=[key], daemon=True).start()

    def _follow(self, key: Container) -> None:
        until = time.monotonic() + self._patience_s
        while time.monotonic() < until:
            with contextlib.suppress(ClusterError):  # the kubelet may not have the log yet
                self._read_log(key)
            pod = self._pods.get(key[0])
            is_finished = pod is None or pod.container(key[1]).state == "terminated"
            if is_finished or self._stopped.wait(_PAUSE_S):
                return

    def _read_log(self, key: Container) -> None:
        query = {"container": key[1], "follow": "true"}
        with self._cluster.lines(f"{self._path}/{key[0]}/log", query, self._patience_s) as lines:
            self._open.append(lines)
            self._logs[key].clear()
            for line in lines:
                self._logs[key].append(line.decode(errors="replace"))
                self._changed.set()
            self._open.remove(lines)
            self._changed.set()
