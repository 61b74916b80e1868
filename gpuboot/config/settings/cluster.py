"""Settings of the cluster, the hosts and where downloads come from."""

import ipaddress
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, field_validator

from gpuboot.config.settings.base import (
    Address,
    Cidr,
    Domain,
    Endpoint,
    Form,
    Label,
    Model,
    Url,
)
from gpuboot.config.settings.secret import LocalFile


def _reachable(value: str) -> str:
    address = ipaddress.ip_address(value)
    local = address.is_loopback or address.is_link_local or address.is_unspecified
    if local or address.is_multicast:
        raise ValueError("takes an address that other machines reach, e.g. 192.0.2.10")
    return value


_VirtualIp = Annotated[Address, AfterValidator(_reachable)]
_Device = Annotated[str, Form(r"[A-Za-z0-9][-A-Za-z0-9_.]*", "a network device", "eth0", 15)]


class Cluster(Model):
    """The Kubernetes cluster kubeadm makes."""

    name: Label = Field("gpuboot", description="Cluster name in kubeadm and in reports.")
    pod_cidr: Cidr = Field("10.244.0.0/16", description="Addresses of pods (flannel).")
    service_cidr: Cidr = Field("10.96.0.0/12", description="Addresses of Services.")
    dns_domain: Domain = Field("cluster.local", description="Domain of cluster DNS names.")
    endpoint: Endpoint | None = Field(
        None,
        description="`host:port` of a load balancer or virtual address of your own before all "
        "control-plane nodes. Default: `gpuboot-api:6443`, a name that each node resolves itself: "
        "to itself, to the one control plane, or to a load balancer of its own (haproxy) before "
        "several of them. A cluster keeps what it was made with.",
    )
    virtual_ip: _VirtualIp | None = Field(
        None,
        description="A free address in a network of the control planes, which one of them that is "
        "ready has at a time (keepalived). Nodes without an API server then reach `gpuboot-api` "
        "there instead of by haproxy, and so can clients outside of the cluster. May be set, "
        "changed and taken back at any time; not together with `endpoint`.",
    )
    virtual_ip_interface: _Device | None = Field(
        None,
        description="Network device that gets `virtual_ip`, on every control plane. Default: on "
        "each the one whose network it is in.",
    )
    virtual_router_id: int | None = Field(
        None,
        ge=1,
        le=255,
        description="VRRP's number of `virtual_ip`, its own among those of the network that use "
        "VRRP. Default: made of the address.",
    )
    proxy_mode: Literal["iptables", "ipvs", "nftables"] = Field(
        "nftables", description="kube-proxy's mode; nftables needs a kernel of 5.13 or newer."
    )
    flannel_backend: Literal["vxlan", "host-gw", "wireguard"] = Field(
        "vxlan",
        description="How flannel carries packets between nodes; stays as the cluster was made.",
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
        "`evictionHard`; names and types are checked.",
    )
    metrics_server: bool = Field(
        True,
        description="Install metrics-server, which `kubectl top` and HPAs on CPU and memory ask. "
        "Kubelets then serve by certificates that the cluster signs and renews "
        "(`serverTLSBootstrap`), and kubelet-csr-approver approves those of the site's nodes. A "
        "metrics-server that gpuboot did not install stays as it is.",
    )
    schedule_on_control_plane: bool | None = Field(
        None, description="Workloads on control-plane nodes; default: only when there is no worker."
    )

    def conflict(self) -> str:
        """What does not go with other settings; "" when all of it does."""
        if self.metrics_server and self.kubelet.get("serverTLSBootstrap") is False:
            return (
                "cluster.metrics_server needs kubelets with certificates of the cluster, and "
                "cluster.kubelet.serverTLSBootstrap = False forbids them: take one of them out"
            )
        if self.virtual_ip is None:
            for name in ("virtual_ip_interface", "virtual_router_id"):
                if getattr(self, name) is not None:
                    return f"cluster.{name} says nothing without cluster.virtual_ip"
            return ""
        if self.endpoint:
            return (
                "cluster.virtual_ip and cluster.endpoint exclude each other: the one is an address "
                "that gpuboot looks after (keepalived), the other one that the site does"
            )
        address = ipaddress.ip_address(self.virtual_ip)
        for name in ("pod_cidr", "service_cidr"):
            if address in ipaddress.ip_network(getattr(self, name)):
                return (
                    f"cluster.virtual_ip {address} is in cluster.{name} {getattr(self, name)}, "
                    "which only the cluster itself knows"
                )
        return ""


class AptMirror(Model):
    """A package repository at another URL than upstream's, with the same paths below it.

    The repository for dnf (Rocky Linux, RHEL) has the same URL and other paths.
    """

    url: Url = Field(
        description="Takes the place of `https://download.docker.com/linux`, "
        "`https://pkgs.k8s.io`, `https://developer.download.nvidia.com/compute/cuda/repos` or "
        "`https://nvidia.github.io/libnvidia-container`."
    )
    key_sha256: Annotated[str, Form(r"[0-9a-f]{64}", "64 digits", "9a3f…")] | None = Field(
        None,
        description="Digest of the repository's public key file, when it is not upstream's key.",
    )


class Mirrors(Model):
    """Where downloads come from. Every default is the publisher's own address."""

    apt: dict[Literal["docker", "kubernetes", "cuda", "toolkit"], AptMirror] = Field(
        {}, description="Repository -> where it is mirrored."
    )
    images: dict[str, Url] = Field(
        {}, description="Registry host -> base URL of its mirror (`*` stands for all registries)."
    )
    charts: dict[Literal["nvidia", "prometheus-community", "dcgm-exporter", "fluent"], Url] = Field(
        {}, description="Chart repository -> base URL of its mirror."
    )
    helm: Url | None = Field(None, description="Folder that holds Helm's release tarballs.")
    ca_bundle: str | None = Field(
        None, description="PEM file on the hosts that signs the mirrors' certificates."
    )


class Registry(Model):
    """Name and password with which a registry's images are pulled, on every host."""

    username: str = Field(description="Name for the registry.")
    password: LocalFile = Field(description="Password for the registry.")


_DIRECT = Form(r"[^\s,;'\"\\{}]+", "a name, an address or a network", ".example.com")


class Proxy(Model):
    """HTTP proxy for the hosts' downloads (apt, images, charts).

    Its address may hold name and password, `http://name:password@proxy:3128`, with `%40` for an @
    in the password: they go by standard input, and into files that only root reads.
    """

    http: Url | None = Field(None, description="For addresses of plain http.")
    https: Url | None = Field(None, description="For https; default: the one for http.")
    no_proxy: tuple[Annotated[str, _DIRECT], ...] = Field(
        (),
        description="What is reached without it: names (with all below them), addresses, networks.",
    )

    @field_validator("http", "https")
    @classmethod
    def _password(cls, value: str | None) -> str | None:
        parts = urlsplit(value or "")
        if any(char.isspace() for char in unquote(f"{parts.username}{parts.password}")):
            raise ValueError("apt knows no password with white space in it")
        return value


class Preflight(Model):
    """What is checked before anything is changed."""

    min_disk_mib: int = Field(
        20000,
        ge=1000,
        description="Free space for images, on the file system of /var/lib/containerd; Docker "
        "hosts: of /var/lib/docker too.",
    )
    max_clock_skew_s: float = Field(
        5.0, gt=0, description="How far a host's clock may differ from that of the control machine."
    )
    allow_removals: tuple[str, ...] = Field(
        (),
        description="Packages that a run may remove to install its own, though something uses them "
        'or a person installed them, e.g. `["moby-engine"]`.',
    )
