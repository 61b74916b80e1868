"""How Prometheus scrapes the exporter: by the ServiceMonitor of its chart."""

from __future__ import annotations

from gpuboot.cluster.values import Values
from gpuboot.config.settings import Settings
from gpuboot.monitoring.charts.monitoring_values import STACK

EXPORTER_NAMESPACE = EXPORTER_RELEASE = "dcgm-exporter"
# Series name their node by the pod's node name (the exporter's own label is `Hostname` before
# 4.8.3 and `hostname` from it), and the target's labels make room for the exporter's, which name
# the workload: honorLabels alone would charge idle GPUs to the exporter's own pod.
RELABELINGS: list[Values] = [
    {
        "action": "replace",
        "sourceLabels": ["__meta_kubernetes_pod_node_name"],
        "targetLabel": target,
    }
    for target in ("node", "instance")
] + [{"action": "labeldrop", "regex": "pod|namespace|container|service|endpoint"}]


def service_monitor(settings: Settings) -> Values:
    """Values of either chart's own ServiceMonitor."""
    return {
        "enabled": settings.monitoring.enabled,
        "interval": settings.exporter.scrape_interval,
        "scrapeTimeout": settings.exporter.scrape_timeout,
        "honorLabels": False,
        "additionalLabels": {"release": STACK},
        "relabelings": RELABELINGS,
    }
