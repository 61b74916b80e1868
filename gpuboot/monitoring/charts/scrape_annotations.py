"""Scraping by annotation (`prometheus.io/scrape: "true"`), which the Prometheus operator ignores.

Two scrape configurations in Prometheus' own words, one for pods and one for Services. Nothing is
read twice: what the charts bring has ServiceMonitors although much of it is annotated as well
(dcgm-exporter, node-exporter, kube-state-metrics, CoreDNS), so it is left out here; and a pod that
is annotated itself is not read again behind its Service.
"""

from __future__ import annotations

from gpuboot.cluster.values import Values
from gpuboot.config.settings import Settings

_META = "__meta_kubernetes"
EXPORTER_NAMESPACE = EXPORTER_RELEASE = "dcgm-exporter"


def scrape_configs(settings: Settings) -> list[Values]:
    """Values of `prometheusSpec.additionalScrapeConfigs`; [] where it is not asked for."""
    if not settings.monitoring.scrape_annotations:
        return []
    return [_pods(settings), _services(settings)]


def _pods(settings: Settings) -> Values:
    annotation = f"{_META}_pod_annotation_prometheus_io"
    return {
        "job_name": "annotated-pods",
        "kubernetes_sd_configs": [{"role": "pod"}],
        "relabel_configs": [
            _keep_rule(f"{annotation}_scrape", "true"),
            _drop(f"{_META}_pod_phase", "Pending|Succeeded|Failed|Completed"),
            _drop(f"{_META}_pod_container_init", "true"),
            _drop(f"{_META}_namespace", monitored_namespaces(settings)),
            *_address_relabelings(annotation),
            # a container without a port of its own, in a pod that names none
            {
                "source_labels": [f"{annotation}_port", f"{_META}_pod_container_port_number"],
                "regex": ";",
                "action": "drop",
            },
            *_pod_relabelings(),
        ],
    }


def _services(settings: Settings) -> Values:
    annotation = f"{_META}_service_annotation_prometheus_io"
    rules = [
        _keep_rule(f"{annotation}_scrape", "true"),
        _drop(f"{_META}_namespace", monitored_namespaces(settings)),
        # CoreDNS: its Service is annotated by kubeadm, and the chart has a ServiceMonitor for it
        {
            "source_labels": [f"{_META}_namespace", f"{_META}_service_label_k8s_app"],
            "regex": "kube-system;kube-dns",
            "action": "drop",
        },
        _drop(f"{_META}_pod_annotation_prometheus_io_scrape", "true"),
        _drop(f"{_META}_endpointslice_endpoint_conditions_ready", "false"),
        *_address_relabelings(annotation),
        *_pod_relabelings(),
        {"source_labels": [f"{_META}_service_name"], "target_label": "service"},
    ]
    return {
        "job_name": "annotated-services",
        "kubernetes_sd_configs": [{"role": "endpointslice"}],
        "relabel_configs": rules,
    }


def monitored_namespaces(settings: Settings) -> str:
    """Namespaces whose pods have ServiceMonitors of the charts, as a regular expression."""
    return "|".join(
        dict.fromkeys(
            [settings.monitoring.namespace, settings.gpu_operator.namespace, EXPORTER_NAMESPACE]
        )
    )


def _address_relabelings(annotation: str) -> list[Values]:
    """Scheme, path and port, as the annotations have them.

    The port replaces that of the address; an IPv6 address has brackets only where it has a port.
    """
    return [
        {
            "source_labels": [f"{annotation}_scheme"],
            "regex": "(https?)",
            "target_label": "__scheme__",
        },
        {
            "source_labels": [f"{annotation}_path"],
            "regex": "(.+)",
            "target_label": "__metrics_path__",
        },
        {
            "source_labels": [f"{annotation}_port", f"{_META}_pod_ip"],
            "regex": r"(\d+);(\d+\.\d+\.\d+\.\d+)",
            "replacement": "$2:$1",
            "target_label": "__address__",
        },
        {
            "source_labels": [f"{annotation}_port", f"{_META}_pod_ip"],
            "regex": r"(\d+);([0-9A-Fa-f:]+:[0-9A-Fa-f:.]*)",
            "replacement": "[$2]:$1",
            "target_label": "__address__",
        },
    ]


def _pod_relabelings() -> list[Values]:
    """Names of the pod. None of its container or port: those would make one target several."""
    labels = {
        "namespace": "namespace",
        "pod": "pod_name",
        "node": "pod_node_name",
        "app": "pod_label_app_kubernetes_io_name",
    }
    return [
        {"source_labels": [f"{_META}_{source}"], "target_label": label}
        for label, source in labels.items()
    ]


def _keep_rule(label: str, regex: str) -> Values:
    return {"source_labels": [label], "regex": regex, "action": "keep"}


def _drop(label: str, regex: str) -> Values:
    return {"source_labels": [label], "regex": regex, "action": "drop"}
