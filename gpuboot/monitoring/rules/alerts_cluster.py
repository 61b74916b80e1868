"""Alerts on nodes, and on the basics of a cluster that we made: certificates and etcd.

kube-prometheus-stack brings rules of its own, and what those cover is not repeated: members down,
no leader, fsync above 0.5 s, database at 95 % of its quota, certificates in their last week. What
stands here warns earlier, or covers what they cannot see.
"""

from __future__ import annotations

from gpuboot.cluster import node_gate
from gpuboot.monitoring.rules.alert import Alert
from gpuboot.monitoring.rules.promql import RESOURCES
from gpuboot.monitoring.rules.requirements import Requirement

_HAS_GPUS = f"max by (node) (kube_node_status_capacity{{{RESOURCES}}} > 0)"
_READY = 'kube_node_status_condition{condition="Ready", status="true"}'
_DAY = 86400


_NODES = [
    Alert(
        name="GPUNodeNotReady",
        severity="critical",
        component="cluster",
        action="investigate",
        expr=f"max by (node) ({_READY}) == 0\n  and on (node) {_HAS_GPUS}",
        hold_for="5m",
        summary="GPU node {{ $labels.node }} is not ready",
        description="Its kubelet does not report, or reports an error. Pods are evicted after "
        "five minutes.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
    Alert(
        name="GPUNodeCordonedLong",
        severity="warning",
        component="cluster",
        action="investigate",
        expr=f"max by (node) (kube_node_spec_unschedulable == 1)\n  and on (node) {_HAS_GPUS}",
        hold_for="24h",
        summary="GPU node {{ $labels.node }} has been cordoned for a day",
        description="Somebody took it out of service and has not put it back.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
    Alert(
        name="GPUNodeUnproven",
        severity="warning",
        component="cluster",
        action="investigate",
        expr=f'max by (node) (kube_node_spec_taint{{key="{node_gate.KEY}"}}) == 1',
        hold_for="30m",
        summary="GPU node {{ $labels.node }} takes no pods: its GPUs are not proven",
        description="It is new, or was upgraded, repaired or rebooted, and its GPUs have not been "
        "proven for half an hour, or a proof has failed.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
]

_CERTIFICATES = [
    Alert(
        name="ClusterCertificateExpiring",
        severity="warning",
        component="cluster",
        expr="histogram_quantile(0.01, sum by (le)"
        " (rate(apiserver_client_certificate_expiration_seconds_bucket[5m])))"
        f" / {_DAY} < {{threshold}}\n"
        "  and on () sum(rate(apiserver_client_certificate_expiration_seconds_count[5m])) > 0",
        hold_for="1h",
        threshold=30,
        summary="A client certificate of the API server expires within a month",
        description='About {{ $value | printf "%.0f" }} days are left. kubeadm\'s certificates '
        "last a year; each run of deploys/site.py renews those that end within a month.",
        requires=Requirement.KUBERNETES,
    ),
    Alert(
        name="KubeletCertificateExpiring",
        severity="warning",
        component="cluster",
        expr="min by (node) (kubelet_certificate_manager_client_ttl_seconds)"
        f" / {_DAY} < {{threshold}}",
        hold_for="1h",
        threshold=30,
        summary="The kubelet of {{ $labels.node }} does not renew its certificate",
        description='{{ $value | printf "%.0f" }} days are left; it should have been renewed by '
        "now.",
        requires=Requirement.KUBERNETES,
    ),
]

_ETCD = [
    Alert(
        name="EtcdNotMonitored",
        severity="warning",
        component="cluster",
        expr="absent(etcd_server_has_leader)",
        hold_for="15m",
        summary="No etcd is scraped",
        description="etcd's alerts, ours and upstream's, cannot fire.",
        requires=Requirement.CONTROL_PLANE_TARGETS,
    ),
    Alert(
        name="EtcdDatabaseLarge",
        severity="warning",
        component="cluster",
        expr="max by (instance) (etcd_mvcc_db_total_size_in_bytes)\n"
        "  / max by (instance) (etcd_server_quota_backend_bytes) > {threshold}",
        hold_for="15m",
        threshold=0.8,
        summary="etcd's database is close to its size limit",
        description="{{ $value | humanizePercentage }} of its quota on {{ $labels.instance }}.",
        requires=Requirement.CONTROL_PLANE_TARGETS,
    ),
    Alert(
        name="EtcdSlowDisk",
        severity="warning",
        component="cluster",
        expr="histogram_quantile(0.99, sum by (instance, le)"
        " (rate(etcd_disk_wal_fsync_duration_seconds_bucket[5m]))) > {threshold}",
        hold_for="15m",
        threshold=0.1,
        summary="etcd's disk is slow",
        description="{{ $value | humanizeDuration }} for one fsync on {{ $labels.instance }}; "
        "etcd wants less than 10 ms.",
        requires=Requirement.CONTROL_PLANE_TARGETS,
    ),
]

_CLUSTERS = [
    Alert(
        name="ClusterNameNotUnique",
        severity="warning",
        component="cluster",
        expr='count by () (count_values by () ("created", '
        'kube_namespace_created{namespace="kube-system"})) > 1',
        hold_for="15m",
        summary="{{ $value }} clusters send series with one cluster name "
        "({{ with $labels.cluster }}{{ . }}{{ else }}none{{ end }})",
        description="Nodes of the same name hide each other's faults, and alerts do not say which "
        "of the clusters they are about.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
]

ALERTS = [*_NODES, *_CERTIFICATES, *_ETCD, *_CLUSTERS]
