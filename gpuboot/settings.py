"""Everything a user can set, as one typed model with defaults and validation.

The inventory's group data holds a plain dict named `gpuboot`; `load` turns it into `Settings`
or raises `SettingsError` naming every mistake at once. `docs/settings.md` is generated from here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from gpuboot.problems import Problem, render


def _network(value: str) -> str:
    return str(ipaddress.ip_network(value))


Cidr = Annotated[str, AfterValidator(_network)]
Label = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Url = Annotated[str, Field(pattern=r"^https?://[^\s]+[^/\s]$")]
Duration = Annotated[str, Field(pattern=r"^\d+(ms|s|m|h|d|w|y)$")]
Port = Annotated[int, Field(ge=1, le=65535)]
NodePort = Annotated[int, Field(ge=30000, le=32767)]


class SettingsError(ValueError):
    """The settings are wrong. `problems` holds all of it; the text is for a terminal."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(render(problems))
        self.problems = problems


class Model(BaseModel):
    """Frozen, and strict about unknown keys: a typo is an error, never a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Cluster(Model):
    """The Kubernetes cluster kubeadm makes."""

    name: Label = Field("gpuboot", description="Cluster name in kubeadm and in reports.")
    pod_cidr: Cidr = Field("10.244.0.0/16", description="Addresses of pods (flannel).")
    service_cidr: Cidr = Field("10.96.0.0/12", description="Addresses of Services.")
    dns_domain: str = Field("cluster.local", description="Domain of cluster DNS names.")
    endpoint: str | None = Field(
        None,
        description="`host:port` that stands for all control-plane nodes (a load balancer or "
        "virtual address). Needed for three or more of them; default: the first one's address.",
    )
    proxy_mode: Literal["iptables", "ipvs", "nftables"] = Field(
        "nftables", description="kube-proxy's mode; nftables needs a kernel of 5.13 or newer."
    )
    flannel_backend: Literal["vxlan", "host-gw", "wireguard"] = Field(
        "vxlan", description="How flannel carries packets between nodes."
    )
    fail_cgroup_v1: bool = Field(
        True, description="The kubelet refuses cgroup v1 hosts (upstream's default since 1.35)."
    )
    fail_swap_on: bool = Field(True, description="Turn swap off; `False` leaves it alone.")
    ignore_preflight_errors: tuple[str, ...] = Field(
        (), description="kubeadm checks to pass over, by name, e.g. `SystemVerification`."
    )
    conntrack_max_per_core: int | None = Field(
        None, ge=0, description="kube-proxy's `conntrack.maxPerCore`; 0 leaves the kernel's limit."
    )
    kubelet: dict[str, Any] = Field(
        {},
        description="More fields of KubeletConfiguration, named as upstream, e.g. `maxPods` or "
        "`evictionHard`.",
    )
    init_timeout_s: int = Field(
        240, ge=10, description="How long the first control-plane node may take to come up."
    )
    schedule_on_control_plane: bool | None = Field(
        None, description="Workloads on control-plane nodes; default: only when there is no worker."
    )


class Driver(Model):
    """The NVIDIA driver on the hosts."""

    enabled: bool = Field(True, description="Install the driver; `False`: it is there already.")
    version: str | None = Field(
        None, pattern=r"^\d+\.\d+(\.\d+)?$", description="Exact version; default: version lock."
    )
    modules: Literal["auto", "open", "proprietary"] = Field(
        "auto", description="Kernel module flavour; auto: open wherever the GPUs allow it."
    )
    fabric_manager: Literal["auto", "always", "never"] = Field(
        "auto", description="nvidia-fabricmanager; auto: where NVSwitches are found."
    )
    persistence: bool = Field(True, description="Run nvidia-persistenced.")
    reboot: Literal["when-needed", "never"] = Field(
        "when-needed", description="Reboot a node whose loaded driver is not the installed one."
    )
    reboot_timeout_s: int = Field(900, ge=30, description="How long a node may take to come back.")


class Runtime(Model):
    """containerd and NVIDIA's container toolkit."""

    mode: Literal["default", "runtimeclass", "cdi"] = Field(
        "default",
        description="`default`: nvidia is containerd's default runtime; `runtimeclass`: only pods "
        "with runtimeClassName nvidia; `cdi`: no nvidia runtime, devices by CDI alone, for "
        "clusters without the GPU Operator.",
    )
    restrict_oom_score_adj: bool = Field(
        False, description="containerd option for hosts without CAP_SYS_RESOURCE."
    )
    disable_hugetlb_controller: bool = Field(
        True, description="containerd option; False where pods ask for huge pages on cgroup v1."
    )


class Exporter(Model):
    """dcgm-exporter: the GPU metrics."""

    kind: Literal["operator", "chart"] = Field(
        "operator", description="Run it under the GPU Operator, or by its own Helm chart."
    )
    interval_ms: int = Field(15000, ge=100, description="Sampling period in milliseconds.")
    scrape_interval: Duration = Field("15s", description="How often Prometheus reads it.")
    scrape_timeout: Duration = Field("10s", description="Must be at most the scrape interval.")
    arguments: tuple[str, ...] = Field((), description="Extra command-line arguments.")
    counters: tuple[str, ...] = Field(
        (), description="Opt-in fields to collect beside the default ones (see docs/metrics.md)."
    )
    collectors_file: str | None = Field(
        None, description="Path of your own collectors CSV on the operator's machine."
    )
    remote_engine: str | None = Field(
        None, description="`host:port` of a DCGM host engine to use instead of an embedded one."
    )
    devices: str | None = Field(
        None, description="GPUs and MIG instances to watch, e.g. `f`, `g:0,1` or `i:0-3`."
    )


class GpuOperator(Model):
    """NVIDIA's GPU Operator."""

    enabled: bool = True
    namespace: Label = "gpu-operator"
    mig_strategy: Literal["none", "single", "mixed"] = "single"
    time_slices: int = Field(1, ge=1, le=64, description="Pods that may share one GPU.")
    values: dict[str, Any] = Field({}, description="More chart values, merged over ours.")
    timeout_s: int = Field(900, ge=60, description="How long its operands may take.")


class Monitoring(Model):
    """kube-prometheus-stack."""

    enabled: bool = True
    namespace: Label = "monitoring"
    release: Label = "kube-prometheus-stack"
    scrape_interval: Duration = "30s"
    retention: Duration = "15d"
    grafana: bool = True
    prometheus_node_port: NodePort | None = Field(None, description="e.g. 30090; default: none.")
    grafana_node_port: NodePort | None = Field(None, description="e.g. 32322; default: none.")
    control_plane_targets: bool = Field(
        True, description="Scrape controller manager, scheduler, etcd and kube-proxy."
    )
    values: dict[str, Any] = Field({}, description="More chart values, merged over ours.")
    timeout_s: int = Field(900, ge=60)


class AptMirror(Model):
    """One apt repository somewhere else than upstream, with the same paths below its URL."""

    url: Url = Field(
        description="Takes the place of `https://download.docker.com/linux`, "
        "`https://pkgs.k8s.io`, `https://developer.download.nvidia.com/compute/cuda/repos` or "
        "`https://nvidia.github.io/libnvidia-container`."
    )
    key_sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description="Digest of the repository's public key file, when it is not upstream's key.",
    )


class Mirrors(Model):
    """Where downloads come from. Every default is the publisher's own address."""

    apt: dict[Literal["docker", "kubernetes", "cuda", "toolkit"], AptMirror] = Field({})
    images: dict[str, Url] = Field(
        {}, description="Registry host -> base URL of its mirror (`*` stands for all registries)."
    )
    charts: dict[Literal["nvidia", "prometheus-community", "dcgm-exporter"], Url] = Field({})
    helm: Url | None = Field(None, description="Folder that holds Helm's release tarballs.")
    ca_bundle: str | None = Field(
        None, description="PEM file on the hosts that signs the mirrors' certificates."
    )


class Proxy(Model):
    """HTTP proxy for the hosts' downloads (apt, images, charts)."""

    http: Url | None = None
    https: Url | None = None
    no_proxy: tuple[str, ...] = ()


class Verify(Model):
    """The proof chain."""

    enabled: bool = True
    image: str = Field(
        "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0", description="vectorAdd's image."
    )
    timeout_s: int = Field(300, ge=10, description="For the pods and for Prometheus to show them.")
    reports: str = Field("reports", description="Folder on the operator's machine.")
    max_sample_age_s: int = Field(120, ge=5, description="Older GPU samples count as stale.")


class Preflight(Model):
    """What is checked before anything is changed."""

    min_cpus: int = Field(2, ge=1)
    min_memory_mib: int = Field(3500, ge=512)
    min_disk_mib: int = Field(20000, ge=1000, description="Free space under /var.")
    max_clock_skew_s: float = Field(5.0, gt=0)
    wait_s: int = Field(600, ge=0, description="For a locked package manager or cloud-init.")


class Settings(Model):
    """All settings. Every one has a default; an empty dict is a complete answer."""

    cluster: Cluster = Cluster()
    driver: Driver = Driver()
    runtime: Runtime = Runtime()
    gpu_operator: GpuOperator = GpuOperator()
    monitoring: Monitoring = Monitoring()
    exporter: Exporter = Exporter()
    verify: Verify = Verify()
    preflight: Preflight = Preflight()
    mirrors: Mirrors = Mirrors()
    proxy: Proxy = Proxy()
    versions: dict[str, Any] = Field(
        {}, description="Overrides of the version lock (`gpuboot/versions.toml`), same layout."
    )
    grafana_password: SecretStr | None = Field(
        None, description="Default: generated once and kept in a Secret."
    )

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        ours = {"cgroupDriver", "failCgroupV1", "failSwapOn"} & set(self.cluster.kubelet)
        if ours:
            raise ValueError(
                f"cluster.kubelet may not set {', '.join(sorted(ours))}: gpuboot does, from other "
                "settings"
            )
        pods = ipaddress.ip_network(self.cluster.pod_cidr)
        services = ipaddress.ip_network(self.cluster.service_cidr)
        if pods.version == services.version and pods.overlaps(services):
            raise ValueError(f"cluster.pod_cidr {pods} overlaps cluster.service_cidr {services}")
        if self.runtime.mode == "cdi" and self.gpu_operator.enabled:
            raise ValueError(
                'runtime.mode "cdi" leaves out the containerd handler nvidia, which the GPU '
                'Operator\'s own pods run with; use "default" or "runtimeclass"'
            )
        if self.exporter.kind == "operator" and not self.gpu_operator.enabled:
            raise ValueError(
                'exporter.kind "operator" needs gpu_operator.enabled; use exporter.kind "chart"'
            )
        return self


def load(data: Mapping[str, Any]) -> Settings:
    """Parse the settings dict of an inventory.

    + data: the `gpuboot` dict of the inventory's group data

    Raises `SettingsError` with one problem per mistake.
    """
    try:
        return Settings.model_validate(dict(data))
    except ValidationError as error:
        raise SettingsError([_problem(dict(item)) for item in error.errors()]) from None


def _problem(error: Mapping[str, Any]) -> Problem:
    path = ".".join(str(part) for part in error["loc"]) or "settings"
    if error["type"] == "extra_forbidden":
        return Problem("", f"unknown setting {path}", "see docs/settings.md for every setting")
    message = str(error["msg"]).removeprefix("Value error, ")
    given = "" if "password" in path else f" (given: {error.get('input')!r})"
    return Problem("", f"{path}: {message}{given}", f"correct gpuboot[{path!r}] in group_data")
