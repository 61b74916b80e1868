"""How people reach Prometheus, Alertmanager and Grafana: node ports and ingresses."""

from __future__ import annotations

from collections.abc import Callable

from gpuboot.cluster.values import Values
from gpuboot.config.settings import Monitoring


def service(node_port: int | None) -> Values:
    """Values of a Service: inside the cluster only, or on a port of every node."""
    if node_port is None:
        return {"type": "ClusterIP"}
    return {"type": "NodePort", "nodePort": node_port}


def prometheus(monitoring: Monitoring) -> Values:
    """Values below `prometheus`."""
    name = monitoring.ingress.prometheus if monitoring.ingress else None
    return _exposed(
        monitoring,
        monitoring.node_ports.get("prometheus"),
        name,
        lambda address: {"prometheusSpec": {"externalUrl": address}},
    )


def alertmanager(monitoring: Monitoring) -> Values:
    """Values below `alertmanager`."""
    name = monitoring.ingress.alertmanager if monitoring.ingress else None
    return _exposed(
        monitoring,
        monitoring.node_ports.get("alertmanager"),
        name,
        lambda address: {"alertmanagerSpec": {"externalUrl": address}},
    )


def grafana(monitoring: Monitoring) -> Values:
    """Values below `grafana`."""
    name = monitoring.ingress.grafana if monitoring.ingress else None
    return _exposed(
        monitoring,
        monitoring.node_ports.get("grafana"),
        name,
        lambda address: {
            "grafana.ini": {"server": {"domain": name, "root_url": f"{address}/"}},
        },
    )


def _exposed(
    monitoring: Monitoring,
    port: int | None,
    name: str | None,
    external_url: Callable[[str], Values],
) -> Values:
    """A Service, and an ingress where it has a name.

    + external_url: makes the values that tell the program under which address people see it
    """
    values: Values = {"service": service(port)}
    if name:
        values["ingress"] = _ingress(monitoring, name)
        values |= external_url(url(monitoring, name))
    return values


def url(monitoring: Monitoring, name: str) -> str:
    """The address behind an ingress. The chart's own guess is http, also where there is TLS."""
    tls = monitoring.ingress is not None and monitoring.ingress.tls_secret
    return f"{'https' if tls else 'http'}://{name}"


def _ingress(monitoring: Monitoring, name: str) -> Values:
    ingress = monitoring.ingress
    assert ingress is not None
    values: Values = {"enabled": True, "hosts": [name], "annotations": dict(ingress.annotations)}
    if ingress.class_name:
        values["ingressClassName"] = ingress.class_name
    if ingress.tls_secret:
        values["tls"] = [{"secretName": ingress.tls_secret, "hosts": [name]}]
    return values
