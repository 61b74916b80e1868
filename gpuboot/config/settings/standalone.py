"""Settings of hosts without Kubernetes."""

from __future__ import annotations

from pydantic import Field

from gpuboot.config.settings.base import Address, Model, Path, Port, Target


class Standalone(Model):
    """GPU monitoring without Kubernetes: Docker and a compose project (deploys/standalone.py)."""

    folder: Path = Field("/opt/gpuboot", description="Where the compose project stands.")
    grafana: bool = True
    prometheus_port: Port = 9090
    alertmanager_port: Port = 9093
    grafana_port: Port = 3000
    exporter_port: Port = 9400
    node_exporter_port: Port = 9100
    bind: Address = Field(
        "127.0.0.1", description="Address on which the monitoring host shows its web pages."
    )
    targets: dict[str, tuple[Target, ...]] = Field(
        {},
        description="More exporters of hosts that gpuboot does not manage: job -> `host:port`s, "
        "by file-based discovery. A job of ours (`dcgm-exporter`, `node-exporter`) may be named.",
    )
