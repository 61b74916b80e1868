"""A scrape that goes the way of all pods, by name and through a ClusterIP, so that its `up` tells
whether Services work where Prometheus runs; all other targets are pods' and nodes' own addresses.

The target is CoreDNS' metrics port, which kubeadm's Service has (kubernetes v1.36.3
cmd/kubeadm/app/phases/addons/dns/manifests.go). CoreDNS ends a connection that has been idle for
five seconds (v1.14.2 plugin/metrics/metrics.go), so each scrape makes a new one: a kept one would
still lead there when no Service works any more.
"""

from gpuboot.cluster.values import Values
from gpuboot.config.settings import Settings

JOB = "services"
TARGET = "kube-dns.kube-system.svc"
_PORT = 9153


def scrape_configs(settings: Settings) -> list[Values]:
    """Values of `prometheusSpec.additionalScrapeConfigs`.

    [] where the site gives them by a Secret of its own, since the chart takes only one of both.
    """
    prometheus = settings.monitoring.values.get("prometheus", {}).get("prometheusSpec", {})
    if prometheus.get("additionalScrapeConfigsSecret", {}).get("enabled"):
        return []
    name = f"{TARGET}.{settings.cluster.dns_domain}"
    return [
        {
            "job_name": JOB,
            "static_configs": [{"targets": [f"{name}:{_PORT}"]}],
            # its series come from the pods themselves already; `up` stays
            "metric_relabel_configs": [
                {"source_labels": ["__name__"], "regex": ".+", "action": "drop"}
            ],
        }
    ]
