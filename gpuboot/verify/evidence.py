"""What was collected on the hosts, in Kubernetes, from the exporters and from Prometheus.

Plain data: the checks read nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Pod
from gpuboot.monitoring.stack_objects import ExpectedObjects, ObservedObjects
from gpuboot.telemetry.requested_fields import RequestedFields
from gpuboot.verify.alert_path import AlertDelivery, AlertPath
from gpuboot.verify.blocked import Blocked, Source
from gpuboot.verify.checks.one_file import Answer
from gpuboot.verify.control_plane import ControlPlane
from gpuboot.verify.devices import GPU_RESOURCE, Host, SeriesKey
from gpuboot.verify.firing_alerts import FiringAlert

VERIFY_PREFIX = "gpuboot-verify-"  # of the namespaces of verifications' pods


@dataclass(frozen=True, kw_only=True)
class WorkloadResult:
    """vectorAdd on one device; or in a container that did not see as many as it requested.

    + uuids: what `nvidia-smi -L` showed inside: MIG devices where there were any, else GPUs
    + passed: vectorAdd said "Test PASSED"
    + error: why not, as far as Kubernetes or the log tells; "" when passed
    + unschedulable: no node took it, so its GPU was not tried
    + withdrawn: somebody or its node ended it before it had answered
    + seconds: from asking for the pod to its answer
    + resource: what its container requested; requested: how many devices it is about
    """

    pod: str
    namespace: str
    node: str
    uuids: tuple[str, ...] = ()
    passed: bool = False
    error: str = ""
    unschedulable: bool = False
    withdrawn: bool = False
    seconds: float = 0.0
    resource: str = GPU_RESOURCE
    requested: int = 1

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.pod}"


@dataclass(frozen=True, kw_only=True)
class ServiceProbeResult:
    """A pod that tried the cluster's network from one node.

    + name: what it was to resolve
    + address: ClusterIP and port that it was to connect to
    + resolved, connected: whether it could
    + outside: name beyond the cluster that it was to resolve; "": none
    + outside_answer: `resolved`, `rcode N` (DNS' own word), or `unresolved` where nothing answered
    + outside_required: the settings name it, so it has to be in DNS
    + error: why there is no answer; "" where there is one
    + missing_program: what its image does not have; "" when it has all
    """

    node: str
    pod: str
    name: str = ""
    address: str = ""
    resolved: bool = False
    connected: bool = False
    outside: str = ""
    outside_answer: str = ""
    outside_required: bool = False
    error: str = ""
    missing_program: str = ""


@dataclass(frozen=True, kw_only=True)
class IsolationResult:
    """A pod that was given no GPU, and asked for one in several ways.

    + devices: way -> paths of GPU devices that its container saw; ways without an answer are not in
      it
    + error: why some have none; "" where all answered
    + unschedulable: no node took it
    """

    node: str
    pod: str
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""
    unschedulable: bool = False


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A GPU's or slice's values in one place. Unit: °C, W, MiB, mJ; None: it has no such value.

    + node: the `node` label (Prometheus), or the node of the exporter's pod
    + pod: `namespace/name` that the series names, or ""; pods: all, in the exporter's own answer
    + age_s: age of the sample in Prometheus; None in the exporter's own answer
    + slice: its GPU_I_ID under MIG; "" for a whole GPU
    + share: container, share of the GPU (`vgpu`) and HPC job that the series names, of which each
      has one (dcgm-exporter 4.8.4, internal/pkg/transformation)
    + anchored: one of `gpuboot.telemetry.anchor.ANCHORS` has a value
    """

    uuid: str
    node: str
    pod: str = ""
    temperature: float | None = None
    power: float | None = None
    memory: float | None = None
    energy: float | None = None
    age_s: float | None = None
    slice: str = ""
    share: tuple[str, ...] = ()
    pods: frozenset[str] = frozenset()
    anchored: bool = True

    @property
    def key(self) -> SeriesKey:
        return self.uuid, self.slice


@dataclass(frozen=True, kw_only=True)
class HealthValue:
    """A value that tells of a GPU's faults, as the exporter shows it.

    + watch, code: DCGM's health watch and its error, e.g. MEM and DCGM_FR_VOLATILE_DBE_DETECTED
    """

    uuid: str
    metric: str
    value: float
    watch: str = ""
    code: str = ""


@dataclass(frozen=True, kw_only=True)
class ExporterScrape:
    """The /metrics of a dcgm-exporter pod, by node; error: why it could not be read.

    + names: of all its metrics
    + health: values that tell of faults
    + fields_digest: digest of the fields that it was started with; None where it is not noted
    """

    node: str
    pod: str
    readings: tuple[Reading, ...] = ()
    error: str = ""
    names: frozenset[str] = frozenset()
    health: tuple[HealthValue, ...] = ()
    fields_digest: str | None = None


@dataclass(frozen=True, kw_only=True)
class Target:
    """An active scrape target. node: its `node` label."""

    job: str
    node: str
    health: str
    url: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """An alert or recording rule and what its last evaluation said.

    + health: `ok`, `err`, or `unknown` before its first evaluation
    """

    name: str
    health: str
    error: str = ""
    group: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What exporters and Prometheus said at one moment; None: the question had no answer.

    + blocked: sources whose pods cannot be; read where one does not answer
    """

    exporters: tuple[ExporterScrape, ...] = ()
    series: tuple[Reading, ...] | None = None
    targets: tuple[Target, ...] | None = None
    rules: tuple[Rule, ...] | None = None
    alertmanagers: tuple[str, ...] | None = None
    alertmanager_ready: bool = False
    dashboards: int | None = None
    alertmanager_config: str | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    alerts: tuple[FiringAlert, ...] | None = None
    alert_path: AlertPath | None = None
    blocked: Mapping[Source, Blocked] = field(default_factory=dict)

    def explained(self, source: Source, detail: str, remedy: str) -> tuple[str, str]:
        """A finding's detail and remedy; where its source is blocked, why, and how to mend that."""
        if blocked := self.blocked.get(source):
            return f"{detail}: {blocked.reason}", blocked.remedy
        return detail, remedy


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that was collected.

    + idle_series: Prometheus' series before our pods started; None without Prometheus
    + gpu_pods: pods that held GPUs then
    + exporters_before: the exporters' answers then; before_age_s: how long ago that was
    + earlier_names: when Prometheus last stored a name of a verification's pod with a GPU's or
      slice's series, unix seconds, under the configuration that it has now
    + service_probes: results of the pods that tried Services
    + isolation_results: of the pods that were given no GPU
    + skipped_nodes: node -> why no pod was started there
    + durations: seconds by name (`workload`, `metrics`, …)
    + expected_objects: what gpuboot adds to the charts' own; None: not checked
    + requested_fields: the list of fields that exporters should have; None: the site has a list of
      its own, which is not known
    + control_planes: of a cluster that kubeadm made; none where they were not read
    + observed_objects: what exists of the expected; None: it could not be read, and objects_error
      says why
    + test_alert: what became of a test alert; None: nobody asked for one
    + answers: of the API to each check of `checks.of_cluster`, by its link; None: it was not asked
    """

    hosts: tuple[Host, ...]
    nodes: Mapping[str, Node]
    gpu_pods: tuple[Pod, ...] = ()
    workload_results: tuple[WorkloadResult, ...] = ()
    metrics: Metrics = Metrics()
    idle_series: tuple[Reading, ...] | None = None
    exporters_before: tuple[ExporterScrape, ...] = ()
    before_age_s: float = 0.0
    earlier_names: Mapping[SeriesKey, float] = field(default_factory=dict)
    service_probes: tuple[ServiceProbeResult, ...] = ()
    isolation_results: tuple[IsolationResult, ...] = ()
    skipped_nodes: Mapping[str, str] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    expected_objects: ExpectedObjects | None = None
    requested_fields: RequestedFields | None = None
    observed_objects: ObservedObjects | None = None
    objects_error: str = ""
    control_planes: tuple[ControlPlane, ...] = ()
    test_alert: AlertDelivery | None = None
    answers: Mapping[str, Answer] | None = None
