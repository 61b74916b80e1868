"""Settings of hosts without Kubernetes."""

from typing import Literal

from pydantic import Field, field_validator

from gpuboot.config.settings.base import Address, Model, Port, Target

Service = Literal["prometheus", "alertmanager", "grafana", "exporter", "node_exporter"]
DEFAULT_PORTS: dict[Service, int] = {
    "prometheus": 9090,
    "alertmanager": 9093,
    "grafana": 3000,
    "exporter": 9400,
    "node_exporter": 9100,
}


class Standalone(Model):
    """GPU monitoring without Kubernetes: Docker and a compose project (deploys/standalone.py)."""

    ports: dict[Service, Port] = Field(
        DEFAULT_PORTS,
        description="Ports that the containers listen on, of those that need another one, such as "
        '`{"node_exporter": 9101}`; exporters on every host, the others on the monitoring host.',
    )
    bind: Address = Field(
        "127.0.0.1", description="Address on which the monitoring host shows its web pages."
    )
    targets: dict[str, tuple[Target, ...]] = Field(
        {},
        description="More exporters of hosts that gpuboot does not manage: job -> `host:port`s, "
        "by file-based discovery. A job of ours (`dcgm-exporter`, `node-exporter`) may be named.",
    )

    @field_validator("ports")
    @classmethod
    def _complete(cls, value: dict[Service, int]) -> dict[Service, int]:
        return {**DEFAULT_PORTS, **value}
