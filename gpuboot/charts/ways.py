"""The ways by which people reach Prometheus, Alertmanager and Grafana: node ports and ingresses."""

from __future__ import annotations

from gpuboot.settings import Monitoring
from gpuboot.values import Values


def service(node_port: int | None) -> Values:
    """Values of a Service: inside the cluster only, or on a port of every node."""
    if node_port is None:
        return {"type": "ClusterIP"}
    return {"type": "NodePort", "nodePort": node_port}


def prometheus(monitoring: Monitoring) -> Values:
    """Values below `prometheus`."""
    name = monitoring.ingress.prometheus if monitoring.ingress else None
    values: Values = {"service": service(monitoring.prometheus_node_port)}
    if name:
        values["ingress"] = _ingress(monitoring, name)
        values["prometheusSpec"] = {"externalUrl": url(monitoring, name)}
    return values


def alertmanager(monitoring: Monitoring) -> Values:
    """Values below `alertmanager`."""
    name = monitoring.ingress.alertmanager if monitoring.ingress else None
    values: Values = {"service": service(monitoring.alertmanager_node_port)}
    if name:
        values["ingress"] = _ingress(monitoring, name)
        values["alertmanagerSpec"] = {"externalUrl": url(monitoring, name)}
    return values


def grafana(monitoring: Monitoring) -> Values:
    """Values below `grafana`."""
    name = monitoring.ingress.grafana if monitoring.ingress else None
    values: Values = {"service": service(monitoring.grafana_node_port)}
    if name:
        values["ingress"] = _ingress(monitoring, name)
        values["grafana.ini"] = {
            "server": {"domain": name, "root_url": f"{url(monitoring, name)}/"}
        }
    return values


def url(monitoring: Monitoring, name: str) -> str:
    """The address behind an ingress. The chart's own guess is http, also where there is TLS."""
    tls = monitoring.ingress is not None and monitoring.ingress.tls_secret
    return f"{'https' if tls else 'http'}://{name}"


def _ingress(monitoring: Monitoring, name: str) -> Values:
    chosen = monitoring.ingress
    assert chosen is not None
    values: Values = {"enabled": True, "hosts": [name], "annotations": dict(chosen.annotations)}
    if chosen.class_name:
        values["ingressClassName"] = chosen.class_name
    if chosen.tls_secret:
        values["tls"] = [{"secretName": chosen.tls_secret, "hosts": [name]}]
    return values
