"""Settings of Prometheus, Alertmanager and Grafana: where they keep, show and send things."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gpuboot.config.settings.base import (
    Address,
    Domain,
    Duration,
    Form,
    Label,
    Mail,
    Model,
    NodePort,
    Path,
    Period,
    Port,
    Size,
    Smarthost,
    Target,
    Url,
)

Severity = Literal["critical", "warning", "info"]
# What an XID asks for; `gpuboot/rules/xid.toml` gives each code one of them.
XidClass = Literal["reboot", "reset", "nvlink", "inspect", "application", "information", "context"]


def _path(value: str) -> str:
    if "://" in value or "\n" in value:
        raise ValueError("takes the path of a file that holds the secret, not the secret itself")
    return value


_KEY_OF_SECRET = Form(
    r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-._a-zA-Z0-9]+", "NAME/KEY of a Secret", "slack/webhook"
)


class Secret(Model):
    """Where a secret comes from: one of the two. Its content is never part of the settings."""

    file: Annotated[str, AfterValidator(_path)] | None = Field(
        None, description="File on the control machine; its content goes to the cluster only."
    )
    secret: Annotated[str, _KEY_OF_SECRET] | None = Field(
        None,
        description="`name/key` of a Secret that is there already, in the monitoring namespace.",
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.file is None) == (self.secret is None):
            raise ValueError('takes either {"file": "PATH"} or {"secret": "NAME/KEY"}')
        return self


class Storage(Model):
    """Where Prometheus, Alertmanager and Grafana keep their data."""

    persistent: bool = Field(
        True, description="Persistent volumes; `False`: a pod that moves starts empty."
    )
    provisioner: Literal["local-path", "none"] = Field(
        "local-path",
        description="`local-path`: install Rancher's local-path-provisioner and make its "
        "StorageClass the default one, unless the cluster has a default; `none`: the site has one.",
    )
    class_name: str | None = Field(
        None, description="StorageClass of the volumes; default: the cluster's default one."
    )
    path: Path = Field("/var/lib/gpuboot/volumes", description="Folder of local-path on each node.")
    prometheus_size: Size = "50Gi"
    alertmanager_size: Size = "1Gi"
    grafana_size: Size = "5Gi"


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

    url: Url
    name: Label = "remote"
    username: str | None = Field(None, description="Basic authentication.")
    password: Secret | None = Field(None, description="Basic authentication.")
    bearer_token: Secret | None = None
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


NODE_PORTS = ("prometheus_node_port", "alertmanager_node_port", "grafana_node_port")


class Monitoring(Model):
    """kube-prometheus-stack."""

    enabled: bool = True
    namespace: Label = "monitoring"
    release: Label = "kube-prometheus-stack"
    scrape_interval: Period = "30s"
    retention: Period = "15d"
    retention_size: Annotated[str, Form(r"\d+(KB|MB|GB|TB)", "a size", "45GB")] | None = Field(
        None, description="Default: 85 % of `storage.prometheus_size`."
    )
    grafana: bool = True
    storage: Storage = Storage()
    prometheus_node_port: NodePort | None = Field(None, description="e.g. 30090; default: none.")
    alertmanager_node_port: NodePort | None = Field(None, description="e.g. 30903; default: none.")
    grafana_node_port: NodePort | None = Field(None, description="e.g. 32322; default: none.")
    ingress: Ingress | None = Field(None, description="Default: reached by port-forward only.")
    remote_write: tuple[RemoteWrite, ...] = ()
    network_policies: bool = Field(
        False,
        description="Only the pods that must may talk to monitoring and exporter. It takes a "
        "network plugin that enforces policies; flannel does not.",
    )
    scrape_annotations: bool = Field(
        False, description="Also scrape pods and Services annotated `prometheus.io/scrape: true`."
    )
    control_plane_targets: bool = Field(
        True, description="Scrape controller manager, scheduler, etcd and kube-proxy."
    )
    values: dict[str, Any] = Field({}, description="More chart values, merged over ours.")
    timeout_s: int = Field(900, ge=60)

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        ports = [getattr(self, name) for name in NODE_PORTS]
        for port in sorted({port for port in ports if port is not None and ports.count(port) > 1}):
            both = " and ".join(name for name in NODE_PORTS if getattr(self, name) == port)
            raise ValueError(f"{both} are both {port}: give each a node port of its own")
        names = [item.name for item in self.remote_write]
        if len(names) != len(set(names)):
            raise ValueError("every remote_write needs a name of its own")
        return self


class AlertOverride(Model):
    """What a site wants different about one alert."""

    enabled: bool = True
    severity: Severity | None = None
    hold_for: Duration | None = Field(None, description="How long it must hold (`for`).")
    threshold: float | None = Field(
        None, description="The number it compares with; its runbook says which, and its unit."
    )


class Alerts(Model):
    """GPU and cluster alert rules."""

    enabled: bool = Field(
        True, description="`False`: no alert of ours; recorded series stay, dashboards read them."
    )
    rules: dict[str, AlertOverride] = Field({}, description="Alert name -> what is different.")
    xid: dict[int, XidClass] = Field({}, description="XID code -> class, over our table.")
    labels: dict[str, str] = Field({}, description="More labels of every alert.")
    runbooks: str = Field(
        "docs/runbooks",
        description="Where docs/runbooks is published, for the links in alerts: a URL.",
    )
    gpu_memory_near_full: tuple[str, ...] = Field(
        (), description="Namespaces in which full GPU memory is worth an alert."
    )


class PagerDuty(Model):
    """PagerDuty, by Events API v2."""

    routing_key: Secret
    url: Url = "https://events.pagerduty.com/v2/enqueue"


class Slack(Model):
    """A Slack incoming webhook."""

    webhook: Secret
    channel: str | None = Field(None, description="e.g. `#gpu`; default: the webhook's own.")


def _somebody(value: tuple[str, ...]) -> tuple[str, ...]:
    # not by min_length, which counts only the items that are right
    if not value:
        raise ValueError("takes at least one address")
    return value


class Email(Model):
    """E-mail by SMTP."""

    to: Annotated[tuple[Mail, ...], AfterValidator(_somebody)]
    sender: Mail
    smarthost: Smarthost = Field(description="`host:port`")
    username: str | None = None
    password: Secret | None = None
    require_tls: bool = True

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("give username and password, or neither")
        return self


class Watchdog(Model):
    """A dead-man's switch outside the cluster: it alarms when our heartbeat stops."""

    url: Secret = Field(description="Webhook URL that gets the alert Watchdog again and again.")
    interval: Period = "1m"


class Alertmanager(Model):
    """Receivers: critical alerts go to PagerDuty, warning to Slack, info by e-mail.

    A severity without a receiver goes to the next one below that is set; with none, alerts are
    only shown.
    """

    pagerduty: PagerDuty | None = None
    slack: Slack | None = None
    email: Email | None = None
    watchdog: Watchdog | None = None
    group_by: tuple[str, ...] = ("alertname", "cluster", "node")
    group_wait: Duration = "30s"
    group_interval: Period = "5m"
    repeat_interval: Period = "12h"
    critical_repeat_interval: Period = "4h"
    ca_file: str | None = Field(
        None, description="PEM file on the control machine that signs the receivers' addresses."
    )


# how the names begin that drivers since R470 give
_MODEL = Form(
    r"\*|(NVIDIA|Tesla|Quadro|GRID) \S.*",
    "models as nvidia-smi -L prints them",
    "NVIDIA H100 80GB HBM3",
)


class Cost(Model):
    """What a GPU hour costs; without prices dashboards show hours only."""

    currency: str = "USD"
    gpu_hour: dict[Annotated[str, _MODEL], Annotated[float, Field(ge=0, allow_inf_nan=False)]] = (
        Field(
            {}, description="Model name as DCGM prints it (`modelName`) -> price; `*`: all others."
        )
    )


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
