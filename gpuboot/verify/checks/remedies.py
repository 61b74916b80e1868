"""What a person can do about findings, where it depends on how containers are run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """The remedies of a kind of site: a cluster (`CLUSTER`) or Docker hosts.

    + deploy: the deploy that puts things right
    + drain: how workloads are moved away from the host
    + gpu_clients: what else than workloads holds a GPU open
    + exporter_down, exporter_twice, exporter_restart: dcgm-exporter does not answer; two of them
      answer for one host; it answers with values that cannot be
    + target_missing, target_twice, target_stale: its target in Prometheus
    + series_missing, series_node: its series in Prometheus: none, or with another host's name
    + target_down: any target that Prometheus cannot read
    + rules_missing, rule_broken: no rule is loaded; one has an error
    + prometheus, alertmanager, grafana: it does not answer
    + dashboards_missing: Grafana answers, and has none of ours
    + mig_layout: the GPUs' MIG instances are not those of the settings
    """

    deploy: str
    drain: str
    gpu_clients: str
    exporter_down: str
    exporter_twice: str
    exporter_restart: str
    target_missing: str
    target_twice: str
    target_stale: str
    series_missing: str
    series_node: str
    target_down: str
    rules_missing: str
    rule_broken: str
    prometheus: str
    alertmanager: str
    grafana: str
    dashboards_missing: str
    mig_layout: str


_EXPORTER = (
    "look at the dcgm-exporter pod of this node (`kubectl get pods -A -o wide | grep dcgm`) and "
    "its log; a node label nvidia.com/gpu.deploy.dcgm-exporter other than true keeps it away"
)
NOT_SCRAPED = "verify again when Prometheus has read it once, which takes its scrape interval"
_PODS = "see the pods of the monitoring namespace and their logs"

CLUSTER = Remedies(
    deploy="deploys/site.py",
    drain="drain the node",
    gpu_clients="dcgm-exporter, device plugin, nvidia-persistenced, nvidia-dcgm",
    exporter_down=_EXPORTER,
    exporter_twice="run one dcgm-exporter: the GPU Operator's or the chart's (exporter.kind)",
    exporter_restart="restart the exporter's pod",
    target_missing="see the ServiceMonitor of dcgm-exporter and its `node` relabeling; "
    + _EXPORTER,
    target_twice="keep one ServiceMonitor for dcgm-exporter",
    target_stale="see why its target is not scraped any more (Prometheus, Status > Targets)",
    series_missing="compare the exporter's /metrics with Prometheus' metricRelabelings",
    series_node="relabel `node` from __meta_kubernetes_pod_node_name in the ServiceMonitor",
    target_down="see the pod behind it; kubeadm's own components listen on 127.0.0.1 unless told "
    "otherwise (monitoring.control_plane_targets)",
    rules_missing="see the PrometheusRule objects and the operator's log",
    rule_broken="correct the expression in the PrometheusRule that defines it",
    prometheus=_PODS,
    alertmanager=_PODS,
    grafana=_PODS,
    dashboards_missing="run deploys/site.py, which brings the GPU dashboards as ConfigMaps",
    mig_layout="the node's label nvidia.com/mig.config.state, and the log of its "
    "nvidia-mig-manager pod, tell why; run deploys/site.py again",
)
