"""Faults of a living cluster, each with the cause that `gpuboot diagnose` must name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.conftest import Lab

PROMETHEUS = "prometheuses.monitoring.coreos.com/kube-prometheus-stack-prometheus"
PATCH = ("-n", "monitoring", "patch", PROMETHEUS, "--type=json", "-p")
_FULL = "/var/log"
_NEVER = "registry.k8s.io/pause:never"
_PKI = "/etc/kubernetes/pki"

Step = Callable[[Lab], object]


def on(machine: str, script: str) -> Step:
    return lambda lab: lab.ssh(machine, script)


def kubectl(*arguments: str, given: str = "") -> Step:
    return lambda lab: lab.kubectl(*arguments, given=given)


@dataclass(frozen=True)
class Fault:
    """One fault, or several at once.

    + causes: ids that must be named, all of them
    + simulated: what stands in for the real fault; "" where it is the real one
    """

    causes: tuple[str, ...]
    inject: Step
    undo: Step
    simulated: str = ""

    def __str__(self) -> str:
        return "+".join(self.causes)


def _pod(name: str, **spec: object) -> dict[str, object]:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", **_limits(spec)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "faults"},
        "spec": {"containers": [container], **spec},
    }


def _limits(spec: dict[str, object]) -> dict[str, object]:
    gpus = spec.pop("gpus", None)
    return {"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}


def _limited() -> list[dict[str, object]]:
    """A quota that allows no pod, and a Deployment that wants one."""
    labels = {"app": "many"}
    containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return [
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none", "namespace": "limited"},
            "spec": {"hard": {"pods": "0"}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "many", "namespace": "limited"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        },
    ]


def _waiting() -> str:
    """A pod for each reason to wait."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "nowhere"}}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "no-such-class",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    items: list[dict[str, object]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "faults"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "limited"}},
        *_limited(),
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "nowhere", "namespace": "faults"},
            "spec": claim,
        },
        _pod("too-many", gpus="64"),
        _pod("picky", nodeSelector={"disk": "none"}),
        _pod("gated", schedulingGates=[{"name": "example.org/quota"}]),
        _pod("unbound", volumes=[volume]),
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _selector(words: str) -> str:
    """A patch of Prometheus, which takes every monitor as gpuboot deploys it."""
    path = "/spec/serviceMonitorSelector"
    return json.dumps([{"op": "replace", "path": path, "value": json.loads(words)}])


FAULTS = (
    Fault(
        ("pending-resource", "pending-affinity", "pending-gate", "pending-volume", "pending-quota"),
        kubectl("apply", "-f", "-", given=_waiting()),
        kubectl("delete", "namespace", "faults", "limited", "--wait=false"),
    ),
    Fault(
        ("operand-desired-zero", "coredns-not-ready"),
        lambda lab: [
            lab.kubectl("taint", "node", "gpu1", "team=ml:NoSchedule"),
            lab.kubectl("-n", "kube-system", "scale", "deployment/coredns", "--replicas=0"),
        ],
        lambda lab: [
            lab.kubectl("taint", "node", "gpu1", "team-"),
            lab.kubectl("-n", "kube-system", "scale", "deployment/coredns", "--replicas=2"),
        ],
    ),
    Fault(
        ("service-monitor-not-selected",),
        kubectl(*PATCH, _selector('{"matchLabels": {"release": "other"}}')),
        kubectl(*PATCH, _selector("{}")),
    ),
    Fault(
        ("kubelet-stopped",),
        on("gpu1", "systemctl stop kubelet"),
        on("gpu1", "systemctl start kubelet"),
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
        ("api-firewalled",),
        on(
            "gpu1",
            "nft 'add table inet fault; add chain inet fault out "
            "{ type filter hook output priority 0; }; "
            "add rule inet fault out tcp dport 6443 drop'",
        ),
        on("gpu1", "nft delete table inet fault"),
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
        ("image-missing",),
        kubectl("-n", "default", "run", "absent", f"--image={_NEVER}"),
        kubectl("-n", "default", "delete", "pod", "absent", "--now"),
    ),
    Fault(
        ("api-server-down",),
        on("cp1", "mv /etc/kubernetes/manifests/kube-apiserver.yaml /root/; sleep 8"),
        on("cp1", "mv /root/kube-apiserver.yaml /etc/kubernetes/manifests/"),
    ),
)
