"""A pod on each GPU node that was given no GPU, and asks for one in every way that it can."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Pod
from gpuboot.config.settings import Settings
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import IsolationResult
from gpuboot.verify.pod_results import TELLS_BY_MESSAGE
from gpuboot.verify.session import Session, pod_name
from gpuboot.verify.workload_pods import pod_manifest

VARIABLE = "NVIDIA_VISIBLE_DEVICES"
MARKER = "devices:"  # begins a container's message, so that an empty one is no answer
ANNOTATION, VOLUME = "a CDI annotation", "a volume mount"
# The way for which the plugin's strategy volume-mounts has its name (NVIDIA Container Toolkit
# v1.20.1, internal/config/image/cuda_image.go): the host's /dev/null below this folder.
_MOUNT_PATH = "/var/run/nvidia-container-devices/all"
_CDI_ANNOTATION = {"cdi.k8s.io/gpuboot": "nvidia.com/gpu=all"}
# The message is part of the pod's status, so that no log has to be read.
_SCRIPT = f"""\
{{
  printf '{MARKER}'
  for device in /dev/nvidia* /dev/dri/*; do [ -e "$device" ] && printf ' %s' "$device"; done
}} >/dev/termination-log
exit 0
"""
_REJECTED_STATUSES = (
    403,
    422,
)  # by admission: PodSecurity, another policy, a RuntimeClass that is absent
_TIMEOUT_S = 90
_LOOK_EVERY_S = 1.0


@dataclass(frozen=True)
class Way:
    """A way in which a container can ask for GPUs.

    + name: as findings show it
    + variables: of its environment
    + mounted: it mounts the host's /dev/null
    """

    name: str
    variables: Mapping[str, str] = field(default_factory=lambda: {VARIABLE: "void"})
    mounted: bool = False


def ways(uuid: str) -> list[Way]:
    """All ways that are tried on one node. + uuid: of a device there, "" where none is known"""
    values = {"all": "all", "none": "none", "0": "0", "nvidia.com/gpu=all": "nvidia.com/gpu=all"}
    values |= {"UUID": uuid} if uuid else {}
    all_devices = {VARIABLE: "all", "NVIDIA_DRIVER_CAPABILITIES": "all"}
    return [
        *(Way(f"{VARIABLE}={name}", {VARIABLE: value}) for name, value in values.items()),
        Way("NVIDIA_DRIVER_CAPABILITIES=all", all_devices),
        Way(ANNOTATION),
        Way(VOLUME, mounted=True),
    ]


@dataclass(frozen=True)
class _Style:
    """What a pod has that a cluster may refuse.

    + runtime_class: its runtimeClassName
    + mounted: a container of it mounts /dev/null of the host
    """

    runtime_class: str
    mounted: bool = True


class IsolationProbe:
    """The pods of one verification. + session: where they are made"""

    def __init__(self, session: Session, settings: Settings) -> None:
        self._session = session
        self._settings = settings
        self._ways: dict[str, Sequence[Way]] = {}  # of each node's pod, in the order of containers
        self._started: list[IsolationResult] = []

    def start(self, nodes: Mapping[str, Node], hosts: Iterable[Host]) -> None:
        """Start a pod on each of these nodes. Raises `ClusterError`.

        + hosts: tell the UUIDs of their devices
        """
        uuids = {host.node: device.uuid for host in hosts for device in host.devices[:1]}
        self._started = [IsolationResult(node=name, pod=_pod(name)) for name in nodes]
        style, error = None, ""
        for candidate in self._styles():
            if error := self._create(list(nodes.values())[:1], uuids, candidate):
                continue
            style = candidate
            break
        if style is not None:
            error = self._create(list(nodes.values())[1:], uuids, style)
        self._started = [replace(item, error=error) for item in self._started]

    def _styles(self) -> list[_Style]:
        """The styles that are tried one after the other, the strictest test first."""
        # without one a pod gets the default runtime, which is nvidia there
        runtime_class = "" if self._settings.runtime.mode == "default" else "nvidia"
        styles = [_Style(runtime_class), _Style(runtime_class, mounted=False)]
        return styles if not runtime_class else [*styles, _Style(""), _Style("", mounted=False)]

    def _create(self, nodes: Sequence[Node], uuids: Mapping[str, str], style: _Style) -> str:
        """Start the pods of these nodes; why they were refused, or "". Raises `ClusterError`."""
        for node in nodes:
            self._ways[node.name] = [
                way for way in ways(uuids.get(node.name, "")) if style.mounted or not way.mounted
            ]
        try:
            self._session.create([self._manifest(node, style) for node in nodes])
        except ClusterError as error:
            if error.status not in _REJECTED_STATUSES:
                raise
            return str(error)
        return ""

    def _manifest(self, node: Node, style: _Style) -> dict[str, Any]:
        containers = [_container(number, way) for number, way in enumerate(self._ways[node.name])]
        pod = pod_manifest(_pod(node.name), node, self._settings, containers, style.runtime_class)
        pod["metadata"]["annotations"] = dict(_CDI_ANNOTATION)
        if style.mounted:
            device = {"path": "/dev/null", "type": "CharDevice"}
            pod["spec"]["volumes"] = [{"name": "null", "hostPath": device}]
        return pod

    def wait(self, given_up: Mapping[str, str]) -> tuple[IsolationResult, ...]:
        """What each pod saw. Raises `ClusterError`.

        + given_up: nodes that no answer will come from, and why
        """
        until = time.monotonic() + min(_TIMEOUT_S, self._settings.verify.timeout_s)
        while True:
            pods, last = self._session.pods(), time.monotonic() > until
            results = [
                self._result(item, pods.get(item.pod), given_up, last) for item in self._started
            ]
            finished = [item for item in results if item is not None]
            if len(finished) == len(results):
                return tuple(finished)
            self._session.wait(_LOOK_EVERY_S)

    def _result(
        self,
        item: IsolationResult,
        pod: Pod | None,
        given_up: Mapping[str, str],
        last: bool,
    ) -> IsolationResult | None:
        """A pod's result; None while it can still come."""
        if item.error:
            return item
        if pod is None:
            return replace(item, error=given_up.get(item.node) or self._session.loss())
        tried_ways = self._ways[item.node]
        messages = {
            container.name: container.message
            for container in pod.containers
            if container.state == "terminated"
        }
        devices = {
            way.name: tuple(message.removeprefix(MARKER).split())
            for number, way in enumerate(tried_ways)
            if (message := messages.get(_name(number), "")).startswith(MARKER)
        }
        if len(devices) == len(tried_ways):
            return replace(item, devices=devices)
        issue = self._session.issue(pod)
        error = given_up.get(item.node) or issue.error or "a container gave no answer"
        if not (item.node in given_up or issue.failed or last or len(messages) == len(tried_ways)):
            return None
        return replace(item, devices=devices, error=error, unschedulable=not pod.node)


def _pod(node: str) -> str:
    return pod_name("isolation", node)


def _name(number: int) -> str:
    return f"way-{number}"


def _container(number: int, way: Way) -> dict[str, Any]:
    mounts = [{"name": "null", "mountPath": _MOUNT_PATH}] if way.mounted else []
    return {
        "name": _name(number),
        "command": ["sh", "-c", _SCRIPT],
        "env": [{"name": name, "value": value} for name, value in way.variables.items()],
        "terminationMessagePolicy": TELLS_BY_MESSAGE,
        **({"volumeMounts": mounts} if mounts else {}),
    }
