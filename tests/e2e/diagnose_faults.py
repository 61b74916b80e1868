"""Faults of a living cluster, each with the cause that `gpuboot diagnose` must name: of hosts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.conftest import Lab, until

PROMETHEUS = "prometheuses.monitoring.coreos.com/kube-prometheus-stack-prometheus"
PATCH = ("-n", "monitoring", "patch", PROMETHEUS, "--type=json", "-p")
_FULL = "/var/log"
_KUBELET = "/var/lib/kubelet/config.yaml"
_PKI = "/etc/kubernetes/pki"
_DRIVER = "/usr/lib/firmware/nvidia/*/gsp_sim.bin"

Step = Callable[[Lab], object]


def on(machine: str, script: str) -> Step:
    return lambda lab: lab.ssh(machine, script)


def kubectl(*arguments: str, stdin: str = "") -> Step:
    return lambda lab: lab.kubectl(*arguments, stdin=stdin)


def steps(*parts: Step) -> Step:
    """All of them, one after the other."""
    return lambda lab: [step(lab) for step in parts]


def replicas(count: int) -> Step:
    """As many pods of Prometheus."""
    patch = json.dumps([{"op": "replace", "path": "/spec/replicas", "value": count}])
    return kubectl(*PATCH, patch)


def served_instead(machine: str, page: str) -> tuple[Step, Step]:
    """Answer the exporter's scrapes on a machine with this page (printf's format), and no more."""
    begin = on(
        machine,
        f"printf '{page}' >/root/page; systemd-run -q --unit page "
        "socat TCP-LISTEN:9999,fork,reuseaddr OPEN:/root/page,rdonly; "
        # its own pods': Prometheus may run here, and asks other nodes' exporters as well
        "pods=$(ip -4 -o addr show cni0 | awk '{print $4}'); "
        'nft "add table ip fault; add chain ip fault in '
        "{ type nat hook prerouting priority -150; }; "
        "add rule ip fault in ip daddr $pods tcp dport 9400 redirect to :9999; "
        # connections that were open before would go on to the exporter
        "add chain ip fault open { type filter hook forward priority -150; }; "
        'add rule ip fault open ip daddr $pods tcp dport 9400 reject with tcp reset"',
    )
    return begin, on(machine, "nft delete table ip fault; systemctl stop page")


@dataclass(frozen=True)
class Fault:
    """One fault, or several at once.

    + causes: ids that must be named, all of them
    + simulated: what stands in for the real fault; "" where it is the real one
    + single: told only where nothing else explains it, so the cluster has to be well before
    """

    causes: tuple[str, ...]
    inject: Step
    undo: Step
    simulated: str = ""
    single: bool = False

    def __str__(self) -> str:
        return "+".join(self.causes)


def bent(machine: str, file: str, script: str, *units: str) -> tuple[Step, Step]:
    """Change a file of a machine (`$file` in the script), and put it back as it was."""
    copy = f"/root/{file.rpartition('/')[2]}.before"
    restarts = "".join(f"; systemctl restart {unit}" for unit in units)
    return (
        on(machine, f"set -e; file={file}; cp -p $file {copy}; {script}{restarts}"),
        on(machine, f"cat {copy} >{file}{restarts}"),
    )


def _renewed(machine: str, *before: str) -> Step:
    """Undo on a machine, and start the pods anew that remember what its GPUs were like."""

    def renew(lab: Lab) -> None:
        lab.renew("nvidia-device-plugin-daemonset", machine)
        lab.renew("nvidia-dcgm-exporter", machine)

    return steps(*(on(machine, script) for script in before), renew)


def _answers(lab: Lab) -> None:
    """Wait until the rule that keeps SSH away has gone by itself."""
    look = ("ssh", "--name", lab.name, "gpu2", "true")
    until(lambda: lab.lab(*look).code == 0, "gpu2 answers again")


def _routed(lab: Lab) -> None:
    """A second address of gpu1, as which it goes to one of its peers."""
    peer = lab.kubectl("get", "node", "gpu2", "-o", "jsonpath={.status.addresses[0].address}")
    lab.ssh(
        "gpu1",
        f"peer={peer}; device=$(ip -o route get $peer | sed 's/.* dev \\([^ ]*\\) .*/\\1/'); "
        "ip address add 198.51.100.7/32 dev $device && "
        "ip route add $peer/32 dev $device src 198.51.100.7 && "
        'printf "ip route del %s/32; ip address del 198.51.100.7/32 dev %s" $peer $device '
        ">/root/straighten",
    )


HOST_FAULTS = (
    Fault(
        ("kubelet-stopped",),
        on("gpu1", "systemctl stop kubelet"),
        on("gpu1", "systemctl start kubelet"),
    ),
    Fault(
        ("node-not-ready",),
        on("gpu2", "systemctl kill -s STOP kubelet; sleep 45"),
        on("gpu2", "systemctl kill -s CONT kubelet"),
        single=True,
    ),
    Fault(
        ("pod-network-missing",),
        on("gpu2", "mkdir -p /root/cni && mv /etc/cni/net.d/* /root/cni/"),
        on("gpu2", "mv /root/cni/* /etc/cni/net.d/"),
    ),
    Fault(
        ("containerd-config",),
        on(
            "gpu1",
            "echo 'version = 99' >/etc/containerd/conf.d/98-other.toml; "
            "systemctl restart containerd || systemctl is-failed containerd || true",
        ),
        on(
            "gpu1",
            "rm /etc/containerd/conf.d/98-other.toml; systemctl reset-failed containerd; "
            "systemctl restart containerd kubelet",
        ),
    ),
    Fault(
        ("containerd-stopped",),
        on("gpu2", "systemctl stop containerd"),
        on("gpu2", "systemctl start containerd"),
    ),
    Fault(
        ("nvidia-runtime-missing",),
        on(
            "gpu1",
            "mv /etc/containerd/conf.d/99-nvidia.toml /root/; systemctl restart containerd",
        ),
        on(
            "gpu1",
            "mv /root/99-nvidia.toml /etc/containerd/conf.d/; systemctl restart containerd",
        ),
    ),
    Fault(
        ("cgroup-mismatch",),
        *bent("gpu2", _KUBELET, "sed -i 's/^cgroupDriver:.*/cgroupDriver: cgroupfs/' $file"),
    ),
    Fault(
        ("memory-short",),
        *bent(
            "gpu2",
            _KUBELET,
            "printf 'evictionSoft: {memory.available: 64Ti}\n"
            "evictionSoftGracePeriod: {memory.available: 1h}\n' >>$file",
            "kubelet",
        ),
        simulated="a kubelet that wants more memory free than there is",
    ),
    Fault(
        ("dns-search-path",),
        *bent(
            "gpu1",
            "/etc/resolv.conf",
            "seq -s ' ' -f 'site%.0f.example' 30 | sed 's/^/search /' >>$file",
        ),
    ),
    Fault(
        ("mtu", "asymmetric-route"),
        steps(on("gpu1", "ip link set host0 mtu 1400"), _routed),
        steps(
            on("gpu1", "ip link set host0 mtu 1500; sh /root/straighten"),
            # as the remedy says of the other size, which was typed
            on("gpu1", "ip link set flannel.1 mtu 1450"),
            kubectl("-n", "kube-flannel", "rollout", "restart", "daemonset/kube-flannel-ds"),
        ),
    ),
    Fault(
        ("certificates-expired",),
        on(
            "cp1",
            f"cd {_PKI} && cp -p front-proxy-client.crt /root/ && "
            "openssl req -new -key front-proxy-client.key -subj /CN=front-proxy-client "
            "-out /root/request && "
            "openssl x509 -req -in /root/request -CA front-proxy-ca.crt -CAkey front-proxy-ca.key "
            "-CAcreateserial -CAserial /root/serial -days 0 -out front-proxy-client.crt && sleep 2",
        ),
        on("cp1", f"cp -p /root/front-proxy-client.crt {_PKI}/"),
    ),
    Fault(
        ("disk-full", "clock-skew"),
        on(
            "gpu1",
            f"mount -t tmpfs -o size=2m tmpfs {_FULL}; head -c 3m /dev/zero >{_FULL}/full; "
            'printf \'#!/bin/sh\\nexec /bin/date -d "+600 seconds" "$@"\\n\' '
            ">/usr/local/bin/date; chmod 755 /usr/local/bin/date",
        ),
        on("gpu1", f"rm /usr/local/bin/date; umount -l {_FULL}"),
        simulated="the lab's machines have one clock: a program `date` tells another time",
    ),
    Fault(
        ("disk-read-only",),
        on("gpu2", "mount --bind /var /var && mount -o remount,ro,bind /var"),
        on("gpu2", "umount -l /var"),
        simulated="/var is mounted read-only by hand: the machines share the computer's disk",
    ),
    Fault(
        ("driver-mismatch",),
        on("gpu1", f"sed -i 's/^driver_version = .*/driver_version = 1.2.3/' {_DRIVER}"),
        on(
            "gpu1",
            "version=$(sed -n 's/^NVRM version: .*  \\([0-9.]*\\)  Release.*/\\1/p' "
            "/proc/driver/nvidia/version); "
            f'sed -i "s/^driver_version = .*/driver_version = $version/" {_DRIVER}',
        ),
        simulated="what the libraries are told of the module that is loaded",
    ),
    Fault(
        ("driver-not-loaded",),
        on("gpu1", "systemctl stop nvidia-persistenced && modprobe -r nvidia"),
        _renewed("gpu1", "modprobe nvidia && systemctl start nvidia-persistenced"),
        single=True,
    ),
    Fault(
        ("gpu-failed",),
        on("gpu2", "gpu-sim set 0 lost 1"),
        _renewed("gpu2", "gpu-sim clear"),
        simulated="the GPU",
    ),
    Fault(
        ("gpu-unhealthy",),
        on("gpu2", "gpu-sim set 0 xid 79"),
        _renewed("gpu2", "gpu-sim repair"),
        simulated="the GPU: NVML tells of an XID, and the device plugin (real) hears it",
    ),
    Fault(
        ("host-silent",),
        on(
            "gpu2",
            "nft 'add table inet fault; add chain inet fault in "
            "{ type filter hook input priority 0; }; add rule inet fault in tcp dport 22 drop' & "
            "systemd-run -q --on-active=60 nft delete table inet fault; wait",
        ),
        _answers,
    ),
    Fault(
        ("api-server-down",),
        on("cp1", "mv /etc/kubernetes/manifests/kube-apiserver.yaml /root/; sleep 8"),
        on("cp1", "mv /root/kube-apiserver.yaml /etc/kubernetes/manifests/"),
    ),
)
