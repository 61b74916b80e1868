"""What others left on a host, as its fact reads it from folders that look like one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from deploys.parts.node.remains_functions import FUNCTIONS
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.remains import EtcdProcess, Remains, parse

SHELLS = ("dash", "busybox sh", "bash --posix")
PODMAN = """\
{"cniVersion": "0.4.0", "name": "podman",
  "plugins": [{"type": "bridge", "bridge": "cni-podman0"}, {"type": "portmap"}]}
"""


class Machine:
    """A folder that looks like a host to the fact's functions."""

    def __init__(self, root: Path, shell: str) -> None:
        self.root = root
        self.shell = shell.split()
        self.program("ip", "exit 0")
        self.program("ss", "exit 0")
        self.file("/proc/self/ns/net", "the host's")

    def file(self, path: str, text: str = "x") -> Path:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def program(self, name: str, text: str) -> None:
        self.file(f"/bin/{name}", f"#!/bin/sh\n{text}\n").chmod(0o755)

    def process(self, number: int, name: str, group: str, *words: str, network: str = "") -> None:
        """+ words: its command line; network: of a container, where it is in one of its own"""
        folder = f"/proc/{number}"
        self.file(f"{folder}/comm", f"{name}\n")
        self.file(f"{folder}/cmdline", "\0".join([name, *words]) + "\0")
        self.file(f"{folder}/environ", "HOME=/root\0")
        self.file(f"{folder}/cgroup", f"{group}\n")
        (self.root / f"proc/{number}/ns").mkdir()
        (self.root / f"proc/{number}/ns/net").symlink_to(network or "net:[1]")
        namespace_link = self.root / "proc/self/ns/net"
        namespace_link.unlink()
        namespace_link.symlink_to("net:[1]")

    def run(self, call: str, stdin: str = "") -> Remains:
        script = FUNCTIONS
        for folder in ("/etc/", "/var/", "/sys/", "/proc/"):
            script = script.replace(folder, f"{self.root}{folder}")
        result = subprocess.run(
            [*self.shell, "-uc", f"export LC_ALL=C\n{script}{call}"],
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin"},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=20,
        )
        assert result.stderr == ""
        return parse(Fields([*result.stdout.replace(str(self.root), "").splitlines(), "end\tok"]))

    def remains(self) -> Remains:
        return self.run("remains")


@pytest.fixture(params=SHELLS)
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Machine:
    if not shutil.which(request.param.split()[0]):
        pytest.skip(f"{request.param} is not installed")
    return Machine(tmp_path, request.param)


def test_a_bare_machine(machine: Machine) -> None:
    assert machine.remains() == Remains()


def test_what_packages_bring_is_nothing(machine: Machine) -> None:
    """Folders alone, CNI's plugins, and an etcd's empty mount point."""
    folders = "var/lib/etcd etc/kubernetes/manifests etc/kubernetes/pki var/lib/kubelet/pods"
    for folder in folders.split():
        (machine.root / folder).mkdir(parents=True)
    machine.file("/etc/cni/net.d/.kubernetes-cni-keep", "")
    machine.file("/etc/cni/net.d/05-old.conflist.bak", PODMAN)
    assert machine.remains() == Remains()


@pytest.mark.parametrize("folder", ["member", "default/member", "default.etcd/member"])
def test_an_etcds_data(machine: Machine, folder: str) -> None:
    """As kubeadm, Debian's and Red Hat's packages keep them."""
    machine.file(f"/var/lib/etcd/{folder}/snap/db", "x" * 100_000)
    data = machine.remains().etcd_data
    assert data is not None
    assert data.names == (folder.partition("/")[0],)
    assert data.size_kib >= 97
    assert data.written_at > 1e9
    assert machine.remains().cluster == ()


def test_data_behind_a_link(machine: Machine) -> None:
    machine.file("/srv/etcd/member/snap/db", "x" * 100_000)
    (machine.root / "var/lib").mkdir(parents=True)
    (machine.root / "var/lib/etcd").symlink_to(machine.root / "srv/etcd")
    data = machine.remains().etcd_data
    assert data is not None
    assert data.size_kib >= 97


def test_a_disk_for_etcd(machine: Machine) -> None:
    (machine.root / "var/lib/etcd/lost+found").mkdir(parents=True)
    data = machine.remains().etcd_data
    assert data is not None
    assert (data.names, data.written_at) == (("lost+found",), 0)


def test_an_etcd_with_its_data_elsewhere(machine: Machine) -> None:
    unit = "0::/system.slice/etcd.service"
    machine.process(7, "etcd", unit, "--name=a", "--data-dir", "/srv/patroni/etcd")
    machine.process(8, "etcd", "0::/user.slice/session-3.scope", "--data-dir=/home/a/etcd")
    machine.process(9, "etcd", "0::/x/docker-ab12.scope", "--data-dir=/data", network="net:[2]")
    machine.process(10, "etcdctl", unit)
    assert set(machine.remains().etcd_processes) == {
        EtcdProcess("etcd.service", "/srv/patroni/etcd"),
        EtcdProcess("-", "/home/a/etcd"),
    }


def test_an_etcd_that_its_environment_tells_the_folder(machine: Machine) -> None:
    machine.process(7, "etcd", "0::/system.slice/etcd.service")
    machine.file("/proc/7/environ", "A=1\0ETCD_DATA_DIR=/var/lib/etcd/default\0")
    folder = machine.remains().etcd_processes[0].folder
    assert folder == "/var/lib/etcd/default"


def test_a_clusters_parts(machine: Machine) -> None:
    certificate = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-subj", "/O=Acme/CN=kubernetes", "-days", "1", "-keyout", "/dev/null"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    key = "-----BEGIN EC PRIVATE KEY-----\nSECRET\n-----END EC PRIVATE KEY-----\n"
    machine.file("/etc/kubernetes/pki/ca.crt", key + certificate.stdout + key)
    machine.file("/etc/kubernetes/manifests/kube-vip.yaml")
    machine.file("/etc/kubernetes/manifests/etcd.yaml")
    machine.file("/etc/kubernetes/kubelet.conf", "    server: https://10.1.1.1:6443\n")
    machine.file("/var/lib/kubelet/config.yaml")
    (machine.root / "var/lib/kubelet/pods/0a1b").mkdir(parents=True)
    keys, pods, credentials, kubelet = machine.remains().cluster
    assert "/etc/kubernetes/pki/ca.crt: CN=kubernetes,O=Acme, issued by CN=kubernetes" in keys
    assert pods == "static pods in /etc/kubernetes/manifests (etcd.yaml, kube-vip.yaml)"
    assert credentials == "/etc/kubernetes/kubelet.conf for https://10.1.1.1:6443"
    assert kubelet == "a kubelet's state in /var/lib/kubelet (1 pods)"


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/etc/kubernetes/pki/etcd/server.key", "(/etc/kubernetes/pki/etcd/server.key)"),
        ("/etc/kubernetes/pki/ca.crt", "(/etc/kubernetes/pki/ca.crt)"),
    ],
)
def test_keys_without_a_certificate(machine: Machine, path: str, detail: str) -> None:
    machine.file(path, "SECRET")
    assert machine.remains().cluster == (f"keys of a cluster in /etc/kubernetes/pki {detail}",)


def test_a_kubelet_of_k3s_which_has_no_configuration_there(machine: Machine) -> None:
    (machine.root / "var/lib/kubelet/pods/0a1b").mkdir(parents=True)
    assert machine.remains().cluster == ("a kubelet's state in /var/lib/kubelet (1 pods)",)


def test_folders_of_pods_where_gpuboots_node_was(machine: Machine) -> None:
    """`rm -rf /etc/kubernetes /var/lib/kubelet` leaves the pods whose volumes are mounted."""
    (machine.root / "var/lib/kubelet/pods/0a1b").mkdir(parents=True)
    machine.file("/etc/gpuboot/kubelet-config.sha256")
    assert machine.remains() == Remains(is_gpuboot_node=True)
    k3s = "case $* in '-Hltn sport = :10250') echo LISTEN 0 4096 '*:10250' '*:*' ;; esac"
    machine.program("ss", k3s)
    assert machine.remains().cluster == ("a kubelet's state in /var/lib/kubelet (1 pods)",)


def cluster(machine: Machine) -> None:
    machine.file("/etc/kubernetes/pki/ca.key")
    machine.file("/etc/kubernetes/kubelet.conf", "")
    machine.file("/var/lib/etcd/member/snap/db")


def test_a_node_of_gpuboots_own_has_nothing_of_others(machine: Machine) -> None:
    cluster(machine)
    machine.file("/etc/cni/net.d/00-multus.conf", PODMAN)  # what a site does with its own cluster
    machine.file("/etc/gpuboot/kubelet-config.sha256")
    assert machine.remains() == Remains(is_gpuboot_node=True)


def test_what_a_step_made_that_began_where_nothing_was(machine: Machine) -> None:
    cluster(machine)
    machine.file("/etc/gpuboot/kubeadm-init.started", "what is here of a cluster is of gpuboot\n")
    machine.file("/etc/cni/net.d/87-podman-bridge.conflist", PODMAN)
    assert machine.remains() == Remains(cni_files={"87-podman-bridge.conflist": "bridge"})


@pytest.mark.parametrize("step", ["init", "join"])
def test_an_empty_mark_of_an_earlier_version_tells_nothing(machine: Machine, step: str) -> None:
    cluster(machine)
    machine.file(f"/etc/gpuboot/kubeadm-{step}.started", "")
    assert machine.remains().etcd_data is not None
    assert len(machine.remains().cluster) == 2


def test_a_note_without_its_node_tells_nothing(machine: Machine) -> None:
    """Somebody has run kubeadm reset by hand, and put an etcd of their own there."""
    machine.file("/var/lib/etcd/member/snap/db")
    machine.file("/etc/gpuboot/kubelet-config.sha256")
    assert machine.remains().etcd_data is not None
    assert machine.remains().is_gpuboot_node


def test_configurations_of_other_pod_networks(machine: Machine) -> None:
    machine.file("/etc/cni/net.d/10-flannel.conflist", PODMAN)
    machine.file("/etc/cni/net.d/05-cilium.conflist", '{"plugins":[{"type":"cilium-cni"}]}')
    machine.file("/etc/cni/net.d/.hidden.json", '{"name": "a", "type": "macvlan"}')
    machine.file("/etc/cni/net.d/00 empty.conf", "")
    machine.file("/etc/cni/net.d/87-podman-bridge.conflist", PODMAN)
    machine.file("/etc/cni/net.d/README", PODMAN)
    assert machine.remains().cni_files == {
        "00 empty.conf": "-",
        "05-cilium.conflist": "cilium-cni",
        ".hidden.json": "macvlan",
        "87-podman-bridge.conflist": "bridge",
    }


def test_another_folder_for_them(machine: Machine) -> None:
    text = "[plugins.'io.containerd.cri.v1.runtime'.cni]\n  conf_dir = '/etc/other'\n"
    machine.file("/etc/containerd/conf.d/cni.toml", text)
    assert machine.remains().cni_folders == ("/etc/other",)


def test_network_devices_of_other_pod_networks(machine: Machine) -> None:
    for link in ("lo", "eth0", "docker0", "cni-podman0", "virbr0", "br-int", "calico", "tunl0",
                 "cali1a2b3c", "cilium_host", "vxlan.calico", "kube-ipvs0", "cni0"):  # fmt: skip
        (machine.root / "sys/class/net" / link).mkdir(parents=True)
    expected = {"cali1a2b3c", "calico", "cilium_host", "vxlan.calico", "kube-ipvs0", "cni0"}
    assert set(machine.remains().links) == expected
    machine.program("ip", '[ "$6" = tunl0 ] && echo "5: tunl0    inet 10.244.3.1/32 scope global"')
    assert set(machine.remains().links) == {*expected, "tunl0"}
    machine.file("/etc/gpuboot/kubelet-config.sha256")  # gpuboot's own: a reset did not end
    assert "cni0" not in machine.remains().links


def test_routes_that_drop_packets(machine: Machine) -> None:
    machine.program(
        "ip",
        'if [ "$1" = route ]; then printf "%s\\n" "default via 10.0.0.1 dev eth0" '
        '"blackhole 10.244.5.0/26 proto bird" "unreachable 10.96.0.1 proto static"; fi',
    )
    assert machine.remains().dead_routes == (
        ("10.244.5.0/26", "blackhole"),
        ("10.96.0.1", "unreachable"),
    )


@pytest.mark.parametrize(
    ("group", "unit"),
    [
        ("0::/system.slice/prometheus-node-exporter.service", "prometheus-node-exporter.service"),
        ("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-ab.scope", "pod"),
        ("0::/system.slice/docker-ab12.scope", "docker:ab12"),
        ("11:pids:/docker/ab12\n1:name=systemd:/docker/ab12", "docker:ab12"),
        ("0::/system.slice/app.service/workers", "app.service"),
        ("0::/user.slice/user-0.slice/session-1.scope", "-"),
    ],
)
def test_who_holds_a_port(machine: Machine, group: str, unit: str) -> None:
    machine.process(7, "node_exporter", group)
    answer = "port\t9100 node_exporter\nport_pid\t9100 7\nport_pid\t22 999\n"
    assert machine.run("port_units", stdin=answer).port_units == {"9100": unit, "22": "-"}


def test_the_ports_of_flannels_backends(machine: Machine) -> None:
    """As iproute2 6.1 shows a VXLAN device, a process and a port of nobody's concern."""
    machine.program(
        "ss",
        "cat <<'E'\n"
        "UNCONN 0      0      0.0.0.0:8472  0.0.0.0:*\n"
        'UNCONN 0      0      [::]:51820 [::]:* users:(("wireguard-go",pid=12741,fd=3))\n'
        'UNCONN 0      0      127.0.0.1:323 0.0.0.0:* users:(("chronyd",pid=2,fd=3))\n'
        "E",
    )
    assert machine.remains().udp_ports == {"8472": "?", "51820": "wireguard-go"}
