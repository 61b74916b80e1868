"""The typed state that causes judge: every host and the cluster, out of a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from gpuboot.cluster import extensions, objects, serving_requests
from gpuboot.cluster.cluster_state import KubeadmState, parse_kubeadm
from gpuboot.cluster.extensions import Extension
from gpuboot.cluster.limit_ranges import LimitRange, limit_range
from gpuboot.cluster.objects import Claim, Event, Going, Node, labels_of
from gpuboot.cluster.open_rights import OpenRight, open_rights
from gpuboot.cluster.pods import Container, Pod, parse_pod
from gpuboot.cluster.serving_requests import ServingRequest
from gpuboot.cluster.workloads import Workload, parse_workload
from gpuboot.diagnose import details, paths
from gpuboot.diagnose import log_lines as lines
from gpuboot.diagnose.details import Details
from gpuboot.diagnose.log_lines import Line
from gpuboot.diagnose.site_recording import ClusterRecording, HostRecording, Recording
from gpuboot.hosts import node_state
from gpuboot.hosts.node_state import NodeState
from gpuboot.monitoring.components import Missing, parse_missing
from gpuboot.verify import gpu_state
from gpuboot.verify.alert_path import Silence, parse_silences
from gpuboot.verify.gpu_state import GpuState

T = TypeVar("T")
# what containers and events said longer ago is history, not a symptom
RECENT_S = 600.0


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host. What could not be read is empty, and `error` says why for the host as a whole.

    + gpus: how many the inventory promises; skew_s: its clock less ours, at least
    """

    node: str
    name: str
    role: str = "worker"
    gpus: int = 0
    error: str = ""
    skew_s: float = 0.0
    state: NodeState | None = None
    kubeadm: KubeadmState = field(default_factory=KubeadmState)
    gpu: GpuState | None = None
    details: Details = field(default_factory=Details)

    @property
    def joined(self) -> bool:
        """Whether it is part of a cluster."""
        return "kubelet.conf" in self.kubeadm.files

    def running(self, unit: str) -> bool:
        """Whether a unit runs."""
        state = self.details.units.get(unit)
        return state is not None and (state.active, state.sub) == ("active", "running")

    def log(self, unit: str, *words: str) -> list[Line]:
        """The present lines of a unit that hold one of these words; all where none are named.

        Those of a unit that runs count for `lines.PRESENT_S`, others until it runs.
        """
        is_stopped = unit in self.details.units and not self.running(unit)
        return [
            line
            for line in self.details.logs.get(unit, ())
            if (is_stopped or lines.present(line.at, self.details.now))
            and (not words or any(word in line for word in words))
        ]

    def kernel(self, *words: str, within_s: float | None = None) -> list[Line]:
        """The kernel's lines with one of these words. + within_s: of so many seconds alone"""
        return [
            line
            for line in self.details.kernel
            if any(word in line for word in words)
            and (within_s is None or lines.present(line.at, self.details.now, within_s))
        ]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The cluster. + error: why it could not be asked; "" when it answered

    + monitors: (namespace/name, labels); prometheuses, alertmanagers, policies: likewise with
      specification
    + targets: Prometheus' targets; None where it did not answer
    + rights: what somebody has given to everybody
    + serving_requests: each kubelet's latest, for the certificate that it serves by
    + extensions: parts of the API that other programs serve
    + going: namespaces that are being deleted; missing: what it must consist of and does not
    """

    error: str = ""
    now: float = 0.0
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    workloads: tuple[Workload, ...] = ()
    events: tuple[Event, ...] = ()
    claims: tuple[Claim, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    policies: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    extensions: tuple[Extension, ...] = ()
    runtimes: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    going: tuple[Going, ...] = ()
    missing: Missing = field(default_factory=Missing)
    monitors: tuple[tuple[str, Mapping[str, str]], ...] = ()
    prometheuses: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    alertmanagers: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    silences: tuple[Silence, ...] = ()
    collectors: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    logs: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    targets: tuple[Mapping[str, Any], ...] | None = None
    rights: tuple[OpenRight, ...] = ()
    serving_requests: tuple[ServingRequest, ...] = ()

    def node(self, name: str) -> Node | None:
        """A node by its name."""
        return next((node for node in self.nodes if node.name == name), None)

    def events_of(self, key: str, *reasons: str) -> list[Event]:
        """Recent events about an object, by `namespace/name`; only those of these reasons."""
        return [
            event
            for event in self._by_object.get(key, [])
            if not reasons or event.reason in reasons
        ]

    @cached_property
    def _by_object(self) -> dict[str, list[Event]]:
        events: dict[str, list[Event]] = {}
        for event in sorted(self.events, key=lambda item: item.at):
            if event.at > self.now - RECENT_S:
                events.setdefault(event.key, []).append(event)
        return events

    def present(self, at: float | None) -> bool:
        """Whether what was seen then still counts as how things are."""
        return lines.present(at, self.now)

    def ended_lately(self, container: Container) -> bool:
        """Whether a container ended so short a time ago that it counts."""
        return container.termination is not None and self.now - container.termination.at < RECENT_S

    def log(self, pod: Pod, *words: str) -> list[Line]:
        """The present lines of a pod's containers with one of these words.

        Those of a container that runs count for `lines.PRESENT_S`, those of one that ended until it
        is ready again.
        """
        return [
            line
            for container, before, log_lines in self._logs(pod)
            for line in log_lines
            if any(word in line for word in words)
            and (
                (before and not (container and container.ready))
                or (not before and container is not None and container.state != "running")
                or (not before and lines.present(line.at, self.now))
            )
        ]

    def log_since_start(self, pod: Pod, *words: str) -> list[Line]:
        """The lines with one of these words of a pod's containers that run, however old."""
        return [
            line
            for _, before, log_lines in self._logs(pod)
            for line in log_lines
            if not before and any(word in line for word in words)
        ]

    def _logs(self, pod: Pod) -> Iterator[tuple[Container | None, bool, tuple[Line, ...]]]:
        """The logs of a pod: the container, whether it is of its run before, and the lines."""
        containers = {container.name: container for container in pod.containers}
        for key, log_lines in self.logs.items():
            if key.startswith(f"{pod.key}/"):
                name, _, before = key.removeprefix(f"{pod.key}/").partition("/")
                yield containers.get(name), bool(before), log_lines

    def messages_of(self, pod: Pod) -> list[str]:
        """All that tells why a pod does not run: its states' messages and its events."""
        states = [
            container.message
            for container in pod.containers
            if container.message and not container.ready
        ]
        return [*states, *(container.message for container in self.events_of(pod.key))]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that is known at one moment.

    + site: the cluster's name; leader: node that was asked for it
    + pod_cidr: network of all pods; "" where the settings are not known
    """

    hosts: tuple[Host, ...] = ()
    cluster: Cluster = field(default_factory=Cluster)
    site: str = ""
    leader: str = ""
    pod_cidr: str = ""

    @property
    def read(self) -> tuple[Host, ...]:
        """The hosts that answered."""
        return tuple(host for host in self.hosts if not host.error)


def of(recording: Recording) -> Facts:
    """The state that a recording holds."""
    hosts = tuple(_host(host) for host in recording.hosts)
    leader = next((host.node for host in hosts if host.name == recording.leader), "")
    return Facts(
        hosts=hosts,
        cluster=_cluster(recording.cluster),
        site=recording.site,
        leader=leader,
        pod_cidr=str(recording.settings.get("cluster", {}).get("pod_cidr", "")),
    )


def _host(item: HostRecording) -> Host:
    def part(name: str, parse: Callable[[Any], T], missing: T) -> T:
        try:
            return parse(item.parts[name]) if name in item.parts else missing
        # cut off: the other facts still tell
        except (ValueError, LookupError, TypeError, AttributeError):
            return missing

    return Host(
        node=item.node,
        name=item.host,
        role=item.role,
        gpus=item.gpus,
        error=item.error,
        skew_s=item.skew_s,
        state=part("node", node_state.parse, None),
        kubeadm=part("kubeadm", parse_kubeadm, KubeadmState()),
        gpu=part("nvidia", gpu_state.parse, None),
        details=part("diagnose", details.parse, Details()),
    )


def _cluster(item: ClusterRecording) -> Cluster:
    def items(path: str) -> list[dict[str, Any]]:
        return list(item.found.get(path, {}).get("items") or [])

    def named_items(path: str) -> list[tuple[str, dict[str, Any]]]:
        return [(_key(resource["metadata"]), resource) for resource in items(path)]

    return Cluster(
        error=item.error,
        now=item.now,
        nodes=tuple(map(objects.parse_node, items(paths.NODES))),
        pods=tuple(map(parse_pod, items(paths.PODS))),
        workloads=tuple(
            parse_workload(kind, resource)
            for kind, path in paths.WORKLOADS.items()
            for resource in items(path)
        ),
        events=tuple(map(objects.parse_event, items(paths.EVENTS))),
        claims=tuple(map(objects.parse_claim, items(paths.CLAIMS))),
        limit_ranges=tuple(map(limit_range, items(paths.LIMIT_RANGES))),
        policies=_specs(named_items(paths.POLICIES)),
        extensions=tuple(extensions.parse(items(extensions.PATH))),
        runtimes={key[1:]: item.get("handler", "") for key, item in named_items(paths.RUNTIMES)},
        namespaces={
            key.lstrip("/"): labels_of(resource) for key, resource in named_items(paths.NAMESPACES)
        },
        going=tuple(filter(None, map(objects.parse_going, items(paths.NAMESPACES)))),
        missing=parse_missing(item.found.get(paths.MISSING, {})),
        monitors=tuple((key, labels_of(resource)) for key, resource in named_items(paths.MONITORS)),
        prometheuses=_specs(named_items(paths.PROMETHEUSES)),
        alertmanagers=_specs(named_items(paths.ALERTMANAGERS)),
        silences=parse_silences(items(paths.SILENCES)),
        collectors=dict(item.found.get(paths.COLLECTORS, {})),
        errors=item.errors,
        logs={key: tuple(map(lines.parse, log_lines)) for key, log_lines in item.logs.items()},
        targets=item.targets,
        rights=tuple(open_rights(item.found)),
        serving_requests=serving_requests.parse(items(serving_requests.PATH)),
    )


def _key(metadata: Mapping[str, Any]) -> str:
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _specs(objects: list[tuple[str, dict[str, Any]]]) -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple((key, resource.get("spec") or {}) for key, resource in objects)
