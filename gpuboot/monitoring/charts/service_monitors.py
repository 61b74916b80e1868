"""How Prometheus scrapes the exporter: one ServiceMonitor, the chart's or ours."""

from __future__ import annotations

from gpuboot.cluster.manifests import Object
from gpuboot.cluster.values import Values
from gpuboot.config.settings import Exporter, Settings
from gpuboot.monitoring.charts.monitoring_values import STACK

EXPORTER = EXPORTER_NAMESPACE = EXPORTER_RELEASE = "dcgm-exporter"
# The exporter's web configuration within the Secret of `exporter.basic_auth`.
WEB_CONFIG = "web.yml"
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


def is_protected(exporter: Exporter) -> bool:
    """Whether the exporter speaks https or asks for a password, which no chart can scrape."""
    return bool(exporter.tls_secret or exporter.basic_auth)


def server_name(namespace: str = EXPORTER_NAMESPACE) -> str:
    """The name that the exporter's certificate must carry; scrapes go to pods by their address."""
    return f"{EXPORTER}.{namespace}.svc"


def service_monitor(settings: Settings) -> Values:
    """Values of either chart's own ServiceMonitor. It is off where ours takes its place."""
    enabled = settings.monitoring.enabled and not is_protected(settings.exporter)
    return {
        "enabled": enabled,
        **_timing(settings.exporter),
        "additionalLabels": {"release": STACK},
        "relabelings": RELABELINGS,
    }


def exporter_objects(settings: Settings) -> list[Object]:
    """Our ServiceMonitor, where the exporter is protected; else nothing.

    The charts' own (dcgm-exporter 4.8.4, gpu-operator v26.7) know neither scheme nor credentials.
    Secrets are named, never held: the Prometheus operator reads them in this namespace.
    """
    exporter = settings.exporter
    if not (settings.monitoring.enabled and is_protected(exporter)):
        return []
    return [
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": {
                "name": f"gpuboot-{EXPORTER}",
                "namespace": EXPORTER_NAMESPACE,
                "labels": {"release": STACK},
            },
            "spec": {
                "selector": {"matchLabels": {"app.kubernetes.io/name": EXPORTER}},
                "namespaceSelector": {"matchNames": [EXPORTER_NAMESPACE]},
                "endpoints": [_endpoint(exporter)],
            },
        }
    ]


def secrets_needed(exporter: Exporter) -> dict[str, list[str]]:
    """Secret -> the keys it must have, in the exporter's namespace."""
    needed: dict[str, list[str]] = {}
    if exporter.tls_secret:
        needed[exporter.tls_secret] = ["tls.crt", "tls.key", "ca.crt"]
    if exporter.basic_auth:
        keys = ["username", "password", WEB_CONFIG]
        needed[exporter.basic_auth] = [*needed.get(exporter.basic_auth, []), *keys]
    return needed


def _timing(exporter: Exporter) -> Values:
    return {
        "interval": exporter.scrape_interval,
        "scrapeTimeout": exporter.scrape_timeout,
        "honorLabels": False,
    }


def _endpoint(exporter: Exporter) -> Values:
    endpoint: Values = {
        "port": "metrics",
        "path": "/metrics",
        **_timing(exporter),
        "relabelings": RELABELINGS,
    }
    if exporter.tls_secret:
        ca = {"secret": {"name": exporter.tls_secret, "key": "ca.crt"}}
        endpoint |= {"scheme": "https", "tlsConfig": {"ca": ca, "serverName": server_name()}}
    if exporter.basic_auth:
        endpoint["basicAuth"] = {
            key: {"name": exporter.basic_auth, "key": key} for key in ("username", "password")
        }
    return endpoint
