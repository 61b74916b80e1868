"""What others left on a machine: an etcd, a cluster, a pod network, and who holds which port."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography import x509

from gpuboot.hosts.fact_output import Fields

POD = "pod"  # the unit of a process in a pod
# a person's decision: kubeadm asks before it deletes anything, and leaves etcd's data this way
RESET_BY_HAND = "kubeadm reset --skip-phases=remove-etcd-member"
TAKEN_OUT = (
    "use another machine; or, if nobody needs that cluster: `cp -a /etc/kubernetes "
    f"/etc/kubernetes-before-gpuboot` there, then `{RESET_BY_HAND}`, which leaves etcd's data"
)
PUT_ASIDE = (
    "use another machine; or, if nobody needs them: `mv /etc/kubernetes "
    "/etc/kubernetes-before-gpuboot` there"
)


@dataclass(frozen=True)
class EtcdData:
    """What is in /var/lib/etcd.

    + written_at: when last, in seconds since 1970
    + names: some of it
    """

    size_kib: int
    written_at: float
    names: tuple[str, ...]


@dataclass(frozen=True)
class EtcdProcess:
    """An etcd that runs. + unit: as in `Remains.port_units`; folder: of its data; "": not known"""

    unit: str
    folder: str


@dataclass(frozen=True)
class KubeletState:
    """What is in /var/lib/kubelet. + changed: when last, in seconds since 1970"""

    pods: int
    changed: float


@dataclass(frozen=True)
class Remains:
    """What gpuboot did not make. Nothing is listed of a machine that it made a node of.

    + is_gpuboot_node: gpuboot has made a node of this machine, and no reset has ended since
    + pki: what is in /etc/kubernetes/pki, in words; "" for nothing
    + manifests: names of files in /etc/kubernetes/manifests
    + credentials: kubeconfigs in /etc/kubernetes by path, with the API server of each
    + cni_files: files that containerd reads as a pod network's configuration, with their first
      plugin; without flannel's own
    + cni_folders: other folders for them, by drop-ins of containerd's configuration
    + links: network devices of pod networks
    + dead_routes: networks whose packets the kernel drops, with how: blackhole and the like
    + udp_ports: those of flannel that are taken, with the process, "?" for the kernel itself
    + port_units: TCP port -> systemd unit of who listens there; `pod`, `docker:ID`, "-" for none
    """

    is_gpuboot_node: bool = False
    etcd_data: EtcdData | None = None
    etcd_processes: tuple[EtcdProcess, ...] = ()
    pki: str = ""
    manifests: tuple[str, ...] = ()
    credentials: Mapping[str, str] = field(default_factory=dict)
    kubelet: KubeletState | None = None
    cni_files: Mapping[str, str] = field(default_factory=dict)
    cni_folders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    dead_routes: tuple[tuple[str, str], ...] = ()
    udp_ports: Mapping[str, str] = field(default_factory=dict)
    port_units: Mapping[str, str] = field(default_factory=dict)

    @property
    def cluster(self) -> tuple[str, ...]:
        """What is there of a cluster, in words: all that `kubeadm reset` would delete but etcd."""
        parts = [self.pki] if self.pki else []
        if self.manifests:
            parts.append(f"static pods in /etc/kubernetes/manifests ({', '.join(self.manifests)})")
        parts += [
            f"{path} for {server}" if server else path for path, server in self.credentials.items()
        ]
        if self.kubelet:
            parts.append(f"a kubelet's state in /var/lib/kubelet ({self.kubelet.pods} pods)")
        return tuple(parts)


def parse(values: Fields) -> Remains:
    """What the functions of `deploys/parts/node/remains.sh` printed. Raises ValueError."""
    return Remains(
        is_gpuboot_node="noted" in values,
        etcd_data=_etcd_data(values.first("etcd_data")),
        etcd_processes=tuple(EtcdProcess(*row) for row in values.words("etcd_process", 2)),
        pki=_pki(values.first("pki")),
        manifests=tuple(values.all("manifest")),
        credentials=values.pairs("credentials"),
        kubelet=_kubelet(values.first("kubelet_state")),
        cni_files={name: plugin for plugin, name in values.words("cni_file", 2)},
        cni_folders=tuple(values.all("cni_folder")),
        links=tuple(values.all("link")),
        dead_routes=tuple((network, kind) for kind, network in values.words("dead_route", 2)),
        udp_ports=values.pairs("udp_port"),
        port_units=values.pairs("port_unit"),
    )


def _etcd_data(text: str) -> EtcdData | None:
    if not text:
        return None
    size, written_at, *names = text.split()
    return EtcdData(int(size), float(written_at), tuple(names))


def _kubelet(text: str) -> KubeletState | None:
    if not text:
        return None
    pods, changed = text.split()
    return KubeletState(int(pods), float(changed))


def _pki(text: str) -> str:
    """+ text: path of a file in /etc/kubernetes/pki and, where it is a certificate, its base64"""
    path, _, certificate = text.partition(" ")
    if not certificate:
        return f"keys of a cluster in /etc/kubernetes/pki ({path})" if path else ""
    try:
        read = x509.load_pem_x509_certificate(base64.b64decode(certificate))
    except ValueError:
        return f"keys of a cluster in /etc/kubernetes/pki ({path} is no certificate)"
    return (
        f"keys of a cluster in /etc/kubernetes/pki ({path}: {read.subject.rfc4514_string()}, "
        f"issued by {read.issuer.rfc4514_string()}, {read.not_valid_before_utc:%Y-%m-%d})"
    )
