"""Settings of earlier releases: what gpuboot does in their place, for whoever still has one."""

from collections.abc import Mapping

# Path, with * for a name of the site's -> what to do, or what is always so
REMOVED: Mapping[str, str] = {
    "backup.folder": "backups are always in /var/lib/gpuboot/backup: mount another disk there",
    "alertmanager.critical_repeat_interval": "critical alerts are always repeated three times in "
    "each alertmanager.repeat_interval",
    "cluster.fail_cgroup_v1": 'set cluster.kubelet = {"failCgroupV1": False}',
    "cluster.init_timeout_s": "kubeadm always waits 4 minutes for the control plane",
    "cluster.renew_certificates_days": "a run always renews certificates 30 days before they end",
    "driver.persistence": "nvidia-persistenced always runs",
    "exporter.devices": "all GPUs and MIG instances are always watched",
    "exporter.interval_ms": "fields are always sampled as often as exporter.scrape_interval says",
    "exporter.remote_engine": 'set dcgm = "host": the exporter then reads each node\'s own engine',
    "exporter.scrape_timeout": "it is always two thirds of exporter.scrape_interval",
    "gate.renew_h": "proofs are always renewed after a day",
    "gpu_operator.timeout_s": "a run always waits up to 15 minutes; run it again to wait longer",
    "logs.events": "Events are always shipped",
    "logs.timeout_s": "a run always waits up to 15 minutes; run it again to wait longer",
    "logs.xids": "XIDs are always shipped",
    "monitoring.alertmanager_node_port": 'set monitoring.node_ports["alertmanager"]',
    "monitoring.grafana_node_port": 'set monitoring.node_ports["grafana"]',
    "monitoring.prometheus_node_port": 'set monitoring.node_ports["prometheus"]',
    "monitoring.release": "the Helm release is always kube-prometheus-stack; one of another name "
    "has to be uninstalled first",
    "monitoring.retention_size": "samples always take up to 85 % of "
    "monitoring.storage.prometheus_size",
    "monitoring.timeout_s": "a run always waits up to 15 minutes; run it again to wait longer",
    "preflight.min_cpus": "hosts always need 2 CPUs",
    "preflight.min_memory_mib": "hosts always need 3500 MiB of memory",
    "preflight.wait_s": "a run always waits up to 10 minutes for a package manager at work",
    "remediate.stale_s": "what Prometheus knows may always be two minutes old",
    "runtime.disable_hugetlb_controller": "containerd never uses the hugetlb controller",
    **{
        f"standalone.{name}_port": f'set standalone.ports = {{"{name}": PORT}}'
        for name in ("prometheus", "alertmanager", "grafana", "exporter", "node_exporter")
    },
    "standalone.folder": "the compose project is always in /opt/gpuboot",
    "standalone.grafana": "set monitoring.grafana, which is for Docker hosts, too",
    "teams.*.namespace": "the namespace always has the team's name",
    "verify.deep.internode.timeout_s": "a pair of nodes always has 15 minutes, or "
    "verify.deep.timeout_s where that is less",
    "verify.history": "it is always in the folder history of verify.reports",
    "verify.max_sample_age_s": "a sample may always miss eight of its intervals, and be a minute "
    "old",
}
