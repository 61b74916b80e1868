"""Nodes, certificates and etcd."""

from __future__ import annotations

from tests.rules.model import Case, series, values

_DAY = 86400
_G1 = [{"node": "gpu1"}]


def _capacity(node: str, count: int = 2) -> dict[str, str]:
    return {
        series("kube_node_status_capacity", node=node, resource="nvidia_com_gpu"): f"{count}x300"
    }


def _ready(node: str, text: str) -> dict[str, str]:
    """kube-state-metrics tells a condition by three series, of which one is 1."""
    return {
        series("kube_node_status_condition", node=node, condition="Ready", status="true"): text,
        series("kube_node_status_condition", node=node, condition="DiskPressure", status="true"): (
            "0x300"
        ),
    }


def _config_map(name: str, namespace: str = "kube-system") -> str:
    return series("kube_configmap_info", namespace=namespace, configmap=name)


_TAINT = series("kube_node_spec_taint", node="gpu1", key="gpu-quarantine", effect="NoSchedule")
_UNPROVEN = series(
    "kube_node_spec_taint", node="gpu1", key="gpuboot.io/unproven", effect="NoSchedule"
)
_NODES = [
    Case(
        "GPUNodeNotReady",
        "gone for twenty minutes",
        _capacity("gpu1") | _capacity("gpu2") | _ready("gpu2", "1x200")
        | _ready("gpu1", values((1, 10), (0, 20), (1, 10))),
        {16: _G1},
        (9, 14, 31),
    ),
    Case(
        "GPUNodeNotReady",
        "a node without GPUs is upstream's to tell",
        _capacity("web1", 0) | _ready("web1", "0x60"),
        silent=(20,),
    ),
    Case(
        "GPUNodeCordonedLong",
        "for two days",
        _capacity("gpu1") | {series("kube_node_spec_unschedulable", node="gpu1"): "1x48 0x5"},
        {25 * 60: _G1},
        (23 * 60, 50 * 60),
        step=3600,
    ),
    Case(
        "GPUNodeCordonedLong",
        "in service; and one without GPUs",
        _capacity("gpu1") | {series("kube_node_spec_unschedulable", node="gpu1"): "0x60",
                             series("kube_node_spec_unschedulable", node="web1"): "1x60"},
        silent=(30 * 60,),
        step=3600,
    ),
    Case("GPUNodeUnproven", "an hour", {_UNPROVEN: values((None, 10), (1, 60), (None, 10))},
         {41: _G1, 69: _G1}, (39, 71)),
    Case("GPUNodeUnproven", "proven within minutes; and another taint",
         {_UNPROVEN: values((None, 10), (1, 20), (None, 60)), _TAINT: "1x90"}, silent=(29, 80)),
    Case(
        "GPURepairBreakerOpen",
        "open for ten minutes",
        {_config_map("gpuboot-remediate-breaker"): values((None, 10), (1, 10), (None, 10))},
        {11: [{"configmap": "gpuboot-remediate-breaker"}]},
        (9, 21),
    ),
    Case(
        "GPURepairBreakerOpen",
        "another ConfigMap; and one of this name elsewhere",
        {_config_map("gpuboot-remediate-stop"): "1x60",
         _config_map("gpuboot-remediate-breaker", "default"): "1x60"},
        silent=(20,),
    ),
    Case(
        "GPURepairsSwitchedOff",
        "for two days",
        {_config_map("gpuboot-remediate-stop"): "1x48 stale"},
        {25 * 60: [{"configmap": "gpuboot-remediate-stop"}]},
        (23 * 60, 51 * 60),
        step=3600,
    ),
    Case(
        "GPURepairsSwitchedOff",
        "for an afternoon",
        {_config_map("gpuboot-remediate-stop"): "1x5"},
        silent=(4 * 60, 30 * 60),
        step=3600,
    ),
    Case(
        "GPUNodeUnderRepair",
        "the taint comes and goes",
        {_TAINT: values((None, 10), (1, 10), (None, 10))},
        {11: _G1, 19: _G1},
        (9, 21),
    ),
    Case(
        "GPUNodeUnderRepair",
        "another taint",
        {series("kube_node_spec_taint", node="gpu1", key="nvidia.com/gpu"): "1x60"},
        silent=(20,),
    ),
    Case("GPURepairStuck", "seven hours", {_TAINT: "1x84 stale _x10"}, {6.5 * 60: _G1},
         (5.9 * 60, 7.5 * 60), step=300),
    Case("GPURepairStuck", "two hours", {_TAINT: "1x24 stale _x100"}, silent=(60, 400), step=300),
]  # fmt: skip


def _logins(days: float, count: str) -> dict[str, str]:
    """Logins with certificates of one age, as the API server's histogram of seconds left."""
    bounds = [0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000]
    return {
        series(
            "apiserver_client_certificate_expiration_seconds_bucket",
            job="apiserver", instance="10.0.0.1:6443", le=le,
        ): count if le == "+Inf" or float(le) >= days * _DAY else "0x900"
        for le in [*(f"{bound:g}" for bound in bounds), "1.5552e+07", "3.1104e+07", "+Inf"]
    } | {
        series("apiserver_client_certificate_expiration_seconds_count", job="apiserver",
               instance="10.0.0.1:6443"): count
    }  # fmt: skip


def _kubelet(text: str) -> dict[str, str]:
    return {
        series("kubelet_certificate_manager_client_ttl_seconds", job="kubelet", node="gpu1"): text
    }


_CERTIFICATES = [
    Case("ClusterCertificateExpiring", "20 days left, and nobody who logs in any more",
         _logins(20, "0+60x180 10800x60"), {80: [{}]}, (50, 190), step=60),
    Case("ClusterCertificateExpiring", "four months left", _logins(120, "0+60x180"), silent=(120,),
         step=60),
    Case("KubeletCertificateExpiring", "29 days left and falling, then renewed",
         _kubelet(f"{29 * _DAY}-60x120 {365 * _DAY}x20"), {80: _G1}, (50, 130), step=60),
    Case("KubeletCertificateExpiring", "31 days left", _kubelet(f"{31 * _DAY}-60x120"),
         silent=(110,), step=60),
]  # fmt: skip

_ETCD = {"job": "kube-etcd", "instance": "10.0.0.1:2381"}


def _database(text: str) -> dict[str, str]:
    return {
        series("etcd_mvcc_db_total_size_in_bytes", **_ETCD): text,
        series("etcd_server_quota_backend_bytes", **_ETCD): "2147483648x300",
    }


def _fsyncs(slow: str) -> dict[str, str]:
    """60 fsyncs a minute, all below 0.064 s, and `slow` ones below 0.256 s."""
    name = "etcd_disk_wal_fsync_duration_seconds_bucket"
    below = dict.fromkeys(("0.064", "0.128"), "0+60x300")
    above = dict.fromkeys(("0.256", "+Inf"), slow)
    return {series(name, **_ETCD, le=le): text for le, text in (below | above).items()}


_INSTANCE = [{"instance": "10.0.0.1:2381"}]
_STORE = [
    Case(
        "EtcdNotMonitored",
        "no target, and then one",
        {series("etcd_server_has_leader", **_ETCD): values((None, 30), (1, 20)),
         series("up", job="kube-scheduler"): "1x200"},
        {20: [{}]},
        (14, 31),
    ),
    Case("EtcdNotMonitored", "without a leader it is upstream's to tell",
         {series("etcd_server_has_leader", **_ETCD): "0x60"}, silent=(20,)),
    Case("EtcdDatabaseLarge", "1.9 of 2 GiB, then defragmented",
         _database(values((1.9e9, 30), (2e8, 10))), {20: _INSTANCE}, (14, 31)),
    Case("EtcdDatabaseLarge", "1.6 of 2 GiB", _database("1.6e9x60"), silent=(20,)),
    Case("EtcdSlowDisk", "one in ten takes a quarter of a second, for an hour",
         _fsyncs("0+66x60 3960+60x100"), {40: _INSTANCE}, (14, 80), step=60),
    Case("EtcdSlowDisk", "one in a thousand", _fsyncs("0+60.06x300"), silent=(40,), step=60),
]  # fmt: skip

_DNS = "kube-dns.kube-system.svc.cluster.local:9153"
_PROXY = {"job": "kube-proxy", "instance": "10.0.0.1:10249", "ip_family": "IPv4"}


def _reached(text: str) -> dict[str, str]:
    return {series("up", job="services", instance=_DNS): text,
            series("up", job="coredns", instance="10.244.0.2:9153"): "1x200"}  # fmt: skip


def _proxy(last: str, queued: str) -> dict[str, str]:
    """kube-proxy's two times, in seconds of promtool's clock, which begins at 0."""
    name = "kubeproxy_sync_proxy_rules_last{}timestamp_seconds"
    return {
        series(name.format("_"), **_PROXY): last,
        series(name.format("_queued_"), **_PROXY): queued,
    }


_SERVICES = [
    Case("ClusterServicesUnreachable", "for twenty minutes, while CoreDNS' own pod answers",
         _reached(values((1, 10), (0, 20), (1, 10))), {16: [{"instance": _DNS}]}, (9, 14, 31)),
    Case("ClusterServicesUnreachable", "CoreDNS is restarted",
         _reached(values((1, 10), (0, 3), (1, 20))), silent=(12, 16, 20)),
    Case("KubeProxyNotSyncing", "a change waits from minute 10 on, and is written in minute 30",
         _proxy(values((540, 30), (1800, 10)), values((540, 10), (600, 30))),
         {21: [_PROXY]}, (9, 17, 31)),
    Case("KubeProxyNotSyncing", "nothing has changed for an hour", _proxy("0x120", "0x120"),
         silent=(30, 59)),
    Case("KubeProxyNotSyncing", "changes all the time, each written within a minute",
         _proxy("0+30x120", "15+30x120"), silent=(30, 59)),
]  # fmt: skip


def _backup_taken(name: str, text: str) -> dict[str, str]:
    """When a backup was taken, in seconds of promtool's clock, which begins at 0."""
    return {series(f"gpuboot_etcd_backup_{name}timestamp_seconds", job="node-exporter",
                   node="cp1"): text}  # fmt: skip


_CP1 = [{"node": "cp1"}]
_BACKUPS = [
    Case("EtcdBackupOld", "Prometheus knows of none for half an hour",
         _backup_taken("", values((None, 30), (0, 20))), {20: [{}]}, (14, 33)),
    Case("EtcdBackupOld", "none for 30 hours, then one", _backup_taken("", "0x60 108000x20"),
         {26 * 60: _CP1}, (23 * 60, 31 * 60), step=1800),
    Case("EtcdBackupOld", "node-exporter was replaced while Prometheus was away",
         _backup_taken("", "0x60 108000x20")
         | {series("node_time_seconds", job="node-exporter", pod=pod): "0+1800x80" for pod in "ab"},
         {26 * 60: _CP1}, (23 * 60, 31 * 60), step=1800),
    Case("EtcdBackupOld", "one every six hours",
         _backup_taken("", "0x12 21600x12 43200x12 64800x12 86400x12"), silent=(25 * 60, 29 * 60),
         step=1800),
    Case("EtcdBackupOld", "the timer's fail for 30 hours, until a run takes one",
         _backup_taken("", "0x60 106200x20"), {26 * 60: _CP1}, (24 * 60, 31 * 60), step=1800),
    Case("EtcdBackupOld", "the host's clock is two days ahead: taken a day ago all the same",
         _backup_taken("", "172800x12 194400x60")
         | {series("node_time_seconds", job="node-exporter"): "172800+1800x72"},
         {32 * 60: _CP1}, (20 * 60, 29 * 60), step=1800),
    Case("EtcdBackupOld", "node-exporter is restarted", _backup_taken("", values((0, 20), (None, 5),
         (0, 20))), silent=(22, 25, 30)),
    Case("EtcdBackupCopyOld", "never copied, until minute 100",
         _backup_taken("", "0x150") | _backup_taken("copy_", "_x100 0x50"),
         {80: _CP1}, (59, 105), step=60),
    Case("EtcdBackupCopyOld", "the other machine is away for 30 hours",
         _backup_taken("", "0x12 21600x12 43200x12 64800x12 86400x32")
         | _backup_taken("copy_", "0x60 108000x20"),
         {26 * 60: _CP1}, (24 * 60, 31 * 60), step=1800),
    Case("EtcdBackupCopyOld", "two copies fail, six hours apart",
         _backup_taken("", "0x12 21600x12 43200x12 64800x20")
         | _backup_taken("copy_", "0x36 64800x20"),
         silent=(17 * 60, 20 * 60), step=1800),
]  # fmt: skip


def _creation_series(text: str, instance: str = "a:8080", **labels: str) -> dict[str, str]:
    """When a cluster's kube-system was made, as its kube-state-metrics tells."""
    base_labels = {"namespace": "kube-system", "instance": instance, **labels}
    return {series("kube_namespace_created", **base_labels): text}


_CLUSTERS = [
    Case("ClusterNameNotUnique", "a second cluster begins to send series, until it is renamed",
         _creation_series("1790000000x150")
         | _creation_series(values((None, 10), (1795000000, 40), (None, 20)), "b:8080"),
         {27: [{}], 48: [{}]}, (5, 20, 60)),
    Case("ClusterNameNotUnique", "two kube-state-metrics of one cluster, and a team's namespace",
         _creation_series("1790000000x150") | _creation_series("1790000000x150", "b:8080")
         | _creation_series("1795000000x150", namespace="ml"), silent=(20, 60)),
    Case("ClusterNameNotUnique", "kube-state-metrics is restarted",
         _creation_series(values((1790000000, 30), (None, 40)))
         | _creation_series(values((None, 31), (1790000000, 40)), "b:8080"), silent=(29, 32, 60)),
    Case("ClusterNameNotUnique", "the cluster is made anew under its name: old series last 5 min",
         _creation_series("1790000000x60")
         | _creation_series(values((None, 30), (1795000000, 40)), "b:8080"),
         silent=(31, 40, 60)),
]  # fmt: skip

CASES = [*_NODES, *_CERTIFICATES, *_STORE, *_BACKUPS, *_SERVICES, *_CLUSTERS]
