"""Settings of Prometheus and Grafana: what they keep, and how they are reached."""

from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, model_validator

from gpuboot.config.settings.base import (
    Domain,
    Form,
    Label,
    Model,
    NodePort,
    Path,
    Period,
    Size,
    Url,
)
from gpuboot.config.settings.secret import Secret


class Storage(Model):
    """Where Prometheus, Alertmanager and Grafana keep their data."""

    persistent: bool = Field(
        True, description="Persistent volumes; `False`: a pod that moves starts empty."
    )
    provisioner: Literal["local-path", "none"] = Field(
        "local-path",
        description="`local-path`: install Rancher's local-path-provisioner and make its "
        "StorageClass the default one, unless the cluster has a default; `none`: the site has one, "
        "and ours goes as soon as no volume needs it.",
    )
    class_name: str | None = Field(
        None, description="StorageClass of the volumes; default: the cluster's default one."
    )
    path: Path = Field("/var/lib/gpuboot/volumes", description="Folder of local-path on each node.")
    keep_removed_days: int = Field(
        15,
        ge=0,
        description="How long the folder of a deleted volume is kept aside, in `.removed` beside "
        "it: at least as long as backups of etcd are kept, so that a restore finds it; 0: deleted "
        "at once.",
    )
    prometheus_size: Size = Field(
        "50Gi",
        description="Prometheus' volume; it keeps samples up to 85 % of that, also without a "
        "volume.",
    )
    alertmanager_size: Size = Field("1Gi", description="Alertmanager's volume.")
    grafana_size: Size = Field("5Gi", description="Grafana's volume.")


class Ingress(Model):
    """Names under which an ingress controller of the site shows the web pages."""

    class_name: str | None = Field(None, description="IngressClass; default: the cluster's.")
    prometheus: Domain | None = Field(None, description="Host name; none: no ingress for it.")
    alertmanager: Domain | None = Field(None, description="Host name.")
    grafana: Domain | None = Field(None, description="Host name.")
    tls_secret: str | None = Field(None, description="Secret with the names' certificate.")
    annotations: dict[str, str] = Field({}, description="e.g. of cert-manager.")


class RemoteWrite(Model):
    """Another store (Mimir, Thanos, …) that gets the samples too."""

    url: Url = Field(description="Where samples are sent.")
    name: Label = Field(
        "remote",
        description="The store's name in Prometheus' own metrics; different for each store.",
    )
    username: str | None = Field(None, description="Basic authentication.")
    password: Secret | None = Field(None, description="Basic authentication.")
    bearer_token: Secret | None = Field(None, description="Token, instead of name and password.")
    headers: dict[str, str] = Field({}, description="e.g. `X-Scope-OrgID`.")
    only: Literal["everything", "gpu", "recorded"] = Field(
        "everything",
        description="`gpu`: DCGM's, kube-state-metrics' and recorded series; `recorded`: only "
        "what our recording rules make.",
    )

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password go together")
        if self.password is not None and self.bearer_token is not None:
            raise ValueError("give either a password or a bearer_token")
        return self


class Monitoring(Model):
    """kube-prometheus-stack."""

    enabled: bool = Field(
        True,
        description="Install it; `False`: one that gpuboot installed is taken away, without its "
        "volumes.",
    )
    namespace: Label = Field("monitoring", description="Its namespace.")
    scrape_interval: Period = Field(
        "30s", description="How often Prometheus scrapes all but the GPU exporter."
    )
    retention: Period = Field("15d", description="How long samples are kept.")
    grafana: bool = Field(True, description="Install Grafana and the dashboards.")
    storage: Storage = Field(Storage(), description="Volumes.")
    node_ports: dict[Literal["prometheus", "alertmanager", "grafana"], NodePort] = Field(
        {}, description='Ports of every node, such as `{"grafana": 32322}`; default: none.'
    )
    ingress: Ingress | None = Field(None, description="Default: reached by port-forward only.")
    remote_write: tuple[RemoteWrite, ...] = Field(
        (), description="Other stores that get the samples, too."
    )
    network_policies: bool = Field(
        False,
        description="Only the pods that must may talk to monitoring and exporter. It takes a "
        "network plugin that enforces policies; flannel does not.",
    )
    control_plane_targets: bool = Field(
        True, description="Scrape controller manager, scheduler, etcd and kube-proxy."
    )
    values: dict[str, Any] = Field(
        {},
        description="More chart values, merged over ours. What gpuboot decides, itself or by "
        "another setting, is refused.",
    )

    @model_validator(mode="after")
    def _check_unique(self) -> Self:
        ports = list(self.node_ports.values())
        for port in sorted({port for port in ports if ports.count(port) > 1}):
            conflicting = " and ".join(key for key, item in self.node_ports.items() if item == port)
            raise ValueError(f"node_ports {conflicting} are both {port}: give each one of its own")
        names = [item.name for item in self.remote_write]
        if len(names) != len(set(names)):
            raise ValueError("every remote_write needs a name of its own")
        return self


# how the names begin that drivers since R470 give
_MODEL = Form(
    r"\*|(NVIDIA|Tesla|Quadro|GRID) \S.*",
    "models as nvidia-smi -L prints them",
    "NVIDIA H100 80GB HBM3",
)


class Cost(Model):
    """What a GPU hour costs; without prices dashboards show hours only."""

    currency: str = Field("USD", description="Shown beside the prices.")
    gpu_hour: dict[Annotated[str, _MODEL], Annotated[float, Field(ge=0, allow_inf_nan=False)]] = (
        Field(
            {}, description="Model name as DCGM prints it (`modelName`) -> price; `*`: all others."
        )
    )
    energy_kwh: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="Price of a kWh; default: energy is not charged."
    )
    pue: float = Field(
        1.0, ge=1, le=5, description="What the data centre takes for each kWh of a GPU."
    )
    time_zone: str = Field("UTC", description="Whose midnights divide days, e.g. Europe/Berlin.")

    @model_validator(mode="after")
    def _zone_exists(self) -> Self:
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(
                f"time_zone {self.time_zone!r} is not known on this machine: a name such as "
                "Europe/Berlin; on Debian install tzdata"
            ) from None
        return self
