"""How people reach Prometheus, Alertmanager and Grafana: node ports and ingresses."""

from __future__ import annotations

from typing import Literal

from gpuboot.cluster.values import Values
from gpuboot.config.settings import Monitoring

Program = Literal["prometheus", "alertmanager", "grafana"]


def service(node_port: int | None) -> Values:
    """Values of a Service: inside the cluster only, or on a port of every node."""
    if node_port is None:
        return {"type": "ClusterIP"}
    return {"type": "NodePort", "nodePort": node_port}


def values(monitoring: Monitoring, program: Program) -> Values:
    """A Service, and an ingress where the program has a name: values below its own.

    With a name the program is told under which address people see it.
    """
    exposed: Values = {"service": service(monitoring.node_ports.get(program))}
    names: dict[Program, str | None] = {}
    if ingress := monitoring.ingress:
        names = {
            "prometheus": ingress.prometheus,
            "alertmanager": ingress.alertmanager,
            "grafana": ingress.grafana,
        }
    if name := names.get(program):
        address = url(monitoring, name)
        server = {"domain": name, "root_url": f"{address}/"}
        external_url: dict[Program, Values] = {
            "prometheus": {"prometheusSpec": {"externalUrl": address}},
            "alertmanager": {"alertmanagerSpec": {"externalUrl": address}},
            "grafana": {"grafana.ini": {"server": server}},
        }
        exposed |= {"ingress": _ingress(monitoring, name), **external_url[program]}
    return exposed


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
