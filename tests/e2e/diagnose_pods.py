"""Faults of pods and of what the cluster runs, each with the cause that must be named."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.diagnose_faults import Fault, Step, kubectl, on, steps

_PAUSE = "registry.k8s.io/pause:3.10"
_SAMPLE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"
_NEVER = "registry.k8s.io/pause:never"
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_CERTS = "/etc/containerd/certs.d"
_PROXY = "/etc/systemd/system/containerd.service.d/99-fault.conf"
_NVML_ERROR = "Failed to initialize NVML: Unknown Error"
MACHINES = ("cp1", "gpu1", "gpu2")
# what a stub resolver of the node writes: in a pod that is the pod itself
_OWN_RESOLVER = (
    "cp -p /etc/resolv.conf /root/resolv.before; echo nameserver 127.0.0.53 >/etc/resolv.conf"
)
_ANEW = (kubectl("-n", "kube-system", "delete", "pods", "-l", "k8s-app=kube-dns", "--now"),)
_NO_WAY = (
    "nft 'add table ip fault; add chain ip fault ways { type filter hook forward priority -150; }; "
    "add rule ip fault ways tcp dport 6443 reject with tcp reset'"
)


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    """A pod in the namespace of the faults. + spec: gpus, image, command, ports"""
    container = {"name": "main", "image": spec.pop("image", _PAUSE), **_limits(spec)}
    if "volumes" in spec:  # one that no container mounts the kubelet leaves alone
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    for key in ("command", "ports"):
        if key in spec:
            container[key] = spec.pop(key)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "faults"},
        "spec": {"containers": [container], **spec},
    }


def _limits(spec: dict[str, Any]) -> dict[str, Any]:
    gpus = spec.pop("gpus", None)
    return {"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}


def _limited() -> list[dict[str, Any]]:
    """A quota that allows no pod, and a Deployment that wants one."""
    labels = {"app": "many"}
    containers = [{"name": "main", "image": _PAUSE}]
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


def _space(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _list(*items: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _waiting() -> str:
    """A pod for each reason to wait that needs nothing else to be wrong."""
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "no-such-class",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return _list(
        _space("faults"),
        _space("limited"),
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
        _pod("unbound", volumes=[_volume("persistentVolumeClaim", claimName="nowhere")]),
        # node-exporter has it on every node
        _pod("taken", hostNetwork=True, ports=[{"containerPort": 9100, "hostPort": 9100}]),
        _pod("unset", nodeName="gpu1", volumes=[_volume("configMap", name="no-such-map")]),
        _pod(
            "unmounted",
            nodeName="gpu1",
            volumes=[_volume("hostPath", path="/no-such-folder", type="Directory")],
        ),
    )


def _volume(kind: str, **source: str) -> dict[str, Any]:
    return {"name": "data", kind: source}


def _create_pods(*pods: dict[str, Any]) -> tuple[Step, Step]:
    """Make these pods in a namespace of their own, and take it away."""
    return (
        kubectl("apply", "-f", "-", stdin=_list(_space("faults"), *pods)),
        kubectl("delete", "namespace", "faults", "--timeout=120s"),
    )


def _tainted(taint: str, *nodes: str) -> tuple[Step, Step]:
    name = taint.partition("=")[0].partition(":")[0]
    return kubectl("taint", "node", *nodes, taint), kubectl("taint", "node", *nodes, f"{name}-")


def _registries() -> tuple[Step, Step]:
    """Three registries that do not give an image to gpu1, each in its way."""
    serve = "systemd-run -q --unit"
    hosts = {
        "mirror.example": "http://127.0.0.1:9",
        "auth.example": "http://127.0.0.1:9401",
        "ca.example": "https://127.0.0.1:9443",
    }
    files = "; ".join(
        f"mkdir -p {_CERTS}/{name} && echo 'server = \"{url}\"' >{_CERTS}/{name}/hosts.toml"
        for name, url in hosts.items()
    )
    begin = on(
        "gpu1",
        f"{files}; openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca.example "
        "-addext subjectAltName=IP:127.0.0.1 -keyout /root/ca.key -out /root/ca.crt 2>/dev/null; "
        f"{serve} ca openssl s_server -quiet -accept 9443 -key /root/ca.key -cert /root/ca.crt "
        "-www && "
        "printf 'HTTP/1.1 401 Unauthorized\\r\\nConnection: close\\r\\n\\r\\n' >/root/401 && "
        f"{serve} auth socat TCP-LISTEN:9401,fork,reuseaddr OPEN:/root/401,rdonly",
    )
    pods, remove = _create_pods(
        *(_pod(name.partition(".")[0], image=f"{name}/own:1", nodeName="gpu1") for name in hosts)
    )
    end = on(
        "gpu1", f"systemctl stop ca auth; rm -r {' '.join(f'{_CERTS}/{host}' for host in hosts)}"
    )
    return steps(begin, pods), steps(remove, end)


_SMALL = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "small", "namespace": "faults"},
    "spec": {"limits": [{"type": "Container", "default": {"memory": "24Mi"}}]},
}
_HUNGRY = _pod(
    "hungry", image=_SAMPLE, command=["sh", "-c", "x=0123456789abcdef; while :; do x=$x$x; done"]
)
_EVERYBODY = "--group=system:unauthenticated"
POD_FAULTS = (
    Fault(
        ("pod-crash-loop",),
        _create_pods(_pod("looping", image=_SAMPLE, command=["sh", "-c", "exit 3"]))[0],
        _create_pods()[1],
        single=True,
    ),
    Fault(
        ("limit-range-default",),
        kubectl("apply", "-f", "-", stdin=_list(_space("faults"), _SMALL, _HUNGRY)),
        _create_pods()[1],
    ),
    Fault(
        (
            *("pending-resource", "pending-affinity", "pending-gate", "pending-volume"),
            *("pending-quota", "pending-port", "volume-mount", "config-missing"),
        ),
        kubectl("apply", "-f", "-", stdin=_waiting()),
        kubectl("delete", "namespace", "faults", "limited", "--timeout=120s"),
    ),
    Fault(
        ("pending-taint", "operand-desired-zero"),
        steps(
            _tainted("team=ml:NoSchedule", "gpu1")[0],
            _create_pods(_pod("kept-away", nodeSelector={"kubernetes.io/hostname": "gpu1"}))[0],
        ),
        steps(_create_pods()[1], _tainted("team=ml:NoSchedule", "gpu1")[1]),
    ),
    Fault(
        ("control-plane-taint",),
        steps(
            _tainted(f"{_CONTROL_PLANE}=:NoSchedule", "gpu1", "gpu2")[0],
            _create_pods(_pod("kept-away"))[0],
        ),
        steps(_create_pods()[1], _tainted(f"{_CONTROL_PLANE}=:NoSchedule", "gpu1", "gpu2")[1]),
    ),
    Fault(
        ("pending-cordon",),
        steps(kubectl("cordon", "gpu1", "gpu2"), _create_pods(_pod("kept-away"))[0]),
        steps(_create_pods()[1], kubectl("uncordon", "gpu1", "gpu2")),
    ),
    Fault(
        ("open-rights",),
        kubectl("create", "clusterrolebinding", "everybody", "--clusterrole=view", _EVERYBODY),
        kubectl("delete", "clusterrolebinding", "everybody"),
    ),
    Fault(
        ("image-missing",),
        kubectl("-n", "default", "run", "absent", f"--image={_NEVER}"),
        kubectl("-n", "default", "delete", "pod", "absent", "--now"),
    ),
    Fault(("image-mirror", "image-auth", "image-ca"), *_registries()),
    Fault(
        ("image-proxy",),
        steps(
            on(
                "gpu1",
                f"mkdir -p {_PROXY.rpartition('/')[0]} && printf '[Service]\\n"
                f"Environment=HTTPS_PROXY=http://127.0.0.1:9\\n' >{_PROXY} && "
                "systemctl daemon-reload && systemctl restart containerd",
            ),
            _create_pods(_pod("proxied", image="registry.example/own:1", nodeName="gpu1"))[0],
        ),
        steps(
            _create_pods()[1],
            on("gpu1", f"rm {_PROXY}; systemctl daemon-reload; systemctl restart containerd"),
        ),
    ),
    Fault(
        ("gpus-lost-in-containers",),
        _create_pods(
            _pod(
                "training",
                image=_SAMPLE,
                gpus="1",
                command=["sh", "-c", f"echo {_NVML_ERROR}; sleep 3600"],
                terminationGracePeriodSeconds=0,
            )
        )[0],
        _create_pods()[1],
        simulated="a pod that prints what nvidia-smi says in a container that lost its GPUs",
    ),
    Fault(
        ("coredns-not-ready",),
        kubectl("-n", "kube-system", "scale", "deployment/coredns", "--replicas=0"),
        kubectl("-n", "kube-system", "scale", "deployment/coredns", "--replicas=2"),
    ),
    Fault(
        ("dns-loop",),
        steps(*(on(machine, _OWN_RESOLVER) for machine in MACHINES), *_ANEW),
        steps(
            *(on(machine, "cat /root/resolv.before >/etc/resolv.conf") for machine in MACHINES),
            *_ANEW,
        ),
    ),
    Fault(
        ("api-from-pods",),
        steps(*(on(machine, _NO_WAY) for machine in ("gpu1", "gpu2")), *_ANEW),
        steps(*(on(machine, "nft delete table ip fault") for machine in ("gpu1", "gpu2")), *_ANEW),
    ),
)
