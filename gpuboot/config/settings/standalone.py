"""Settings of hosts without Kubernetes."""

from __future__ import annotations

from pydantic import Field

from gpuboot.config.settings.base import Address, Model, Path, Port, Target


class Standalone(Model):
    """GPU monitoring without Kubernetes: Docker and a compose project (deploys/standalone.py)."""

    folder: Path = Field("/opt/gpuboot", description="Where the compose project stands.")
    grafana: bool = Field(True, description="Run Grafana with the dashboards.")
    prometheus_port: Port = Field(9090, description="Port of Prometheus on the monitoring host.")
    alertmanager_port: Port = Field(
        9093, description="Port of Alertmanager on the monitoring host."
    )
    grafana_port: Port = Field(3000, description="Port of Grafana on the monitoring host.")
    exporter_port: Port = Field(9400, description="Port of dcgm-exporter on every GPU host.")
    node_exporter_port: Port = Field(9100, description="Port of node-exporter on every host.")
    bind: Address = Field(
        "127.0.0.1", description="Address on which the monitoring host shows its web pages."
    )
    targets: dict[str, tuple[Target, ...]] = Field(
        {},
        description="More exporters of hosts that gpuboot does not manage: job -> `host:port`s, "
        "by file-based discovery. A job of ours (`dcgm-exporter`, `node-exporter`) may be named.",
    )
