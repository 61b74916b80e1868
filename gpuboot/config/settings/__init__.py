"""Everything a user can set, as one typed model with defaults and validation.

The inventory's group data holds a plain dict named `gpuboot`; `parse_settings` turns it into
`Settings` or raises `SettingsError` naming every mistake at once. It generates `docs/settings.md`.
"""

import contextlib
import ipaddress
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, model_validator

from gpuboot.config.problems import Problem, render
from gpuboot.config.settings import messages, networks
from gpuboot.config.settings.alerting import Alertmanager, Alerts
from gpuboot.config.settings.backup import Backup
from gpuboot.config.settings.base import Label, Model, RegistryHost
from gpuboot.config.settings.cluster import AptMirror, Cluster, Mirrors, Preflight, Proxy, Registry
from gpuboot.config.settings.gate import Gate
from gpuboot.config.settings.gpu import Driver, Exporter, GpuOperator, Runtime, Verify
from gpuboot.config.settings.logs import Logs
from gpuboot.config.settings.mirror import Mirror
from gpuboot.config.settings.monitoring import Cost, Monitoring
from gpuboot.config.settings.profile import Profile
from gpuboot.config.settings.remediate import Remediate
from gpuboot.config.settings.sharing import Layout, MigPart, Share
from gpuboot.config.settings.standalone import Standalone
from gpuboot.config.settings.teams import Team
from gpuboot.config.settings.upgrade import Upgrade

__all__ = [
    "Alertmanager",
    "Alerts",
    "AptMirror",
    "Backup",
    "Cluster",
    "Cost",
    "Driver",
    "Exporter",
    "Gate",
    "GpuOperator",
    "Load",
    "Logs",
    "MigPart",
    "Mirror",
    "Mirrors",
    "Model",
    "Monitoring",
    "Preflight",
    "Profile",
    "Proxy",
    "Registry",
    "Remediate",
    "Runtime",
    "Settings",
    "SettingsError",
    "Share",
    "Standalone",
    "Team",
    "Upgrade",
    "Verify",
    "parse_settings",
    "valid_parts",
]


# where DCGM's host engine of a GPU node listens: the node's loopback, and nowhere else
HOST_ENGINE = "localhost:5555"


class SettingsError(ValueError):
    """The settings are wrong. `problems` holds all of it; the text is for a terminal."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(render(problems))
        self.problems = problems


class Settings(Model):
    """All settings. Every one has a default; an empty dict is a complete answer."""

    cluster: Cluster = Cluster()
    driver: Driver = Driver()
    runtime: Runtime = Runtime()
    gpu_operator: GpuOperator = GpuOperator()
    exporter: Exporter = Exporter()
    sharing: dict[str, Share] = Field(
        {},
        description="Hosts, or groups of the inventory -> how the GPUs of these nodes are shared, "
        'such as `{"inference": {"mig": "all-1g.10gb"}, "dev": {"time_slices": 4}}`. A host\'s '
        "own entry wins, else the first of a group that it is in; on Docker hosts `mig` alone "
        "(docs/sharing.md).",
    )
    mig_layouts: dict[Layout, tuple[MigPart, ...]] = Field(
        {},
        description="MIG layouts that `sharing` names: name -> the GPUs of a node, and what they "
        'are divided into, such as `{"half": ({"gpus": [0], "instances": {"3g.40gb": 2}}, '
        '{"gpus": [1]})}`.',
    )
    teams: dict[Label, Team] = Field(
        {},
        description="Teams with a namespace, a quota and a priority each, such as "
        '`{"vision": {"gpus": 8, "priority": 100}}` (docs/sharing.md). Of a team that is taken '
        "away, quota and PriorityClass go; its namespace stays, with what is in it.",
    )
    dcgm: Literal["embedded", "host"] = Field(
        "embedded",
        description="Where DCGM runs: `embedded`: within dcgm-exporter; `host`: as the service "
        "`nvidia-dcgm` of each GPU node, which the exporter reads; with `dcgmi` for people, a look "
        "at GPUs' health every five minutes and a quick diagnosis every day (docs/dcgm.md).",
    )
    monitoring: Monitoring = Monitoring()
    alerts: Alerts = Alerts()
    alertmanager: Alertmanager = Alertmanager()
    logs: Logs = Logs()
    cost: Cost = Cost()
    standalone: Standalone = Standalone()
    upgrade: Upgrade = Upgrade()
    gate: Gate = Gate()
    remediate: Remediate = Remediate()
    backup: Backup = Backup()
    verify: Verify = Verify()
    profile: Profile = Profile()
    preflight: Preflight = Preflight()
    mirrors: Mirrors = Mirrors()
    mirror: Mirror = Mirror()
    registries: dict[RegistryHost, Registry] = Field(
        {},
        description="Registries that ask for a password: host, or `host:port`, as images are "
        "pulled from it (a mirror's own) -> name and password. Only root reads it on the hosts.",
    )
    proxy: Proxy = Proxy()
    versions: dict[str, Any] = Field(
        {},
        description="Overrides of the version lock (`gpuboot/config/versions.toml`), same layout.",
    )
    grafana_password: SecretStr | None = Field(
        None, description="Default: generated once and kept in a Secret."
    )

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        reserved = {"cgroupDriver", "failSwapOn"} & set(self.cluster.kubelet)
        if reserved:
            raise ValueError(
                f"cluster.kubelet may not set {', '.join(sorted(reserved))}: gpuboot does, from "
                "other settings"
            )
        pods = ipaddress.ip_network(self.cluster.pod_cidr)
        services = ipaddress.ip_network(self.cluster.service_cidr)
        if problem := networks.network_conflict(pods, services) or self.cluster.conflict():
            raise ValueError(problem)
        if pods.overlaps(services):
            raise ValueError(f"cluster.pod_cidr {pods} overlaps cluster.service_cidr {services}")
        if self.runtime.mode == "cdi" and self.gpu_operator.enabled:
            raise ValueError(
                'runtime.mode "cdi" is for clusters with a device plugin of their own; the GPU '
                'Operator hands out GPUs by CDI in the modes "default" and "runtimeclass" as well'
            )
        if self.gate.enabled and not self.gpu_operator.enabled:
            raise ValueError("gate.enabled needs gpu_operator.enabled: its device plugin")
        if self.gate.enabled and self.gpu_operator.time_slices > 1:
            raise ValueError(
                "gate.enabled and gpu_operator.time_slices exclude each other: which of the shared "
                "GPUs a pod gets cannot be chosen, so none could be proven"
            )
        if self.exporter.kind == "operator" and not self.gpu_operator.enabled:
            raise ValueError(
                'exporter.kind "operator" needs gpu_operator.enabled; use exporter.kind "chart"'
            )
        if self.dcgm == "host" and self.gpu_operator.values.get("dcgm", {}).get("enabled"):
            raise ValueError(
                'dcgm "host" and gpu_operator.values dcgm.enabled exclude each other: both engines '
                "would listen on port 5555"
            )
        return self

    @property
    def engine(self) -> str | None:
        """`host:port` of the engine that the exporter reads; None: its own."""
        return HOST_ENGINE if self.dcgm == "host" else None


def parse_settings(data: Mapping[str, Any]) -> Settings:
    """Parse the settings dict of an inventory, by its types and ranges alone.

    + data: the `gpuboot` dict of the inventory's group data

    Raises `SettingsError` with one problem per mistake. `gpuboot.site.load_site` also compares them
    with the alerts, metrics and versions they name.
    """
    try:
        return Settings.model_validate(dict(data))
    except ValidationError as error:
        raise SettingsError(messages.problems(error, Settings)) from None


def valid_parts(data: Mapping[str, Any]) -> Settings:
    """The settings of which each is valid without the others; defaults in place of the rest.

    They only serve to look for more mistakes beside those that `parse_settings` raises.
    """
    parts: dict[str, Any] = {}
    for name in data:
        with contextlib.suppress(ValidationError):
            parts[name] = getattr(Settings.model_validate({name: data[name]}), name)
    return Settings.model_construct(**parts)
