"""NCCL between nodes: which are tried together, and the pods that do it.

nccl-tests works on several nodes by MPI, and mpirun starts its processes by ssh, as in upstream's
examples for Kubernetes (GoogleCloudPlatform/container-engine-accelerators,
gpudirect-tcpxo/nccl-test-latest.yaml). So one pod of a pair runs sshd, and the other one mpirun.
Their key is made for one verification and stands in a Secret of its namespace.

Each node is tried with two others, so that a node that is slow tells itself from one whose
neighbour is: oracle-quickstart/oci-hpc scripts/ncclscout.py finds them likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from gpuboot.config.settings import Settings
from gpuboot.verify.deep.deep_answers import EXIT
from gpuboot.verify.deep.deep_plan import CONTAINER, GRACE_S, START_S, Plan, message_size
from gpuboot.verify.devices import GPU_RESOURCE
from gpuboot.verify.session import LABELS, pod_name
from gpuboot.verify.workload_pods import pod_manifest

_PORT = 2222
_KEYS = "/etc/gpuboot-ssh"
_KEY = "id_ed25519"
_SECRET = "internode-ssh"
_MAX_PAIR_S = 900
READY = "gpuboot: sshd"  # what a pod that waits for mpirun prints
# The alias stands for all pods: they have one key, and addresses that nobody knows before.
_SSH_CONFIG = f"""\
Host *
  User root
  Port {_PORT}
  IdentityFile {_KEYS}/{_KEY}
  IdentitiesOnly yes
  HostKeyAlias gpuboot
  UserKnownHostsFile {_KEYS}/known_hosts
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 10
  ConnectionAttempts 6
  ServerAliveInterval 15
"""
_NEEDS = """\
for program in {programs}; do
  command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || {{
    echo "gpuboot: this image has no $program"
    exit 127
  }}
done
"""
# sshd insists on its own absolute path, and on the folder that Debian's is built with
_WAIT_SCRIPT = f"""\
{_NEEDS.format(programs="sshd")}mkdir -p /run/sshd
echo {READY}
exec "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f /dev/null -p {_PORT} \\
  -h {_KEYS}/{_KEY} -o AuthorizedKeysFile={_KEYS}/{_KEY}.pub -o PidFile=none \\
  -o StrictModes=no -o UsePAM=no -o PasswordAuthentication=no \\
  -o KbdInteractiveAuthentication=no -o PermitRootLogin=prohibit-password
"""
# mpirun talks by plain TCP; what NCCL takes is its own choice, and its log says which
_RUN_SCRIPT = """\
{needs}mkdir -p "$HOME/.ssh" && cp {keys}/config "$HOME/.ssh/config"
export CUDA_DEVICE_ORDER=PCI_BUS_ID NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET
export LD_LIBRARY_PATH="${{LD_LIBRARY_PATH:-}}"
nvidia-smi -L
mpirun --allow-run-as-root --prefix "$(dirname "$(dirname "$(command -v mpirun)")")" \\
  --bind-to none --mca pml ob1 --mca btl tcp,self {exported} -np {ranks} -H {hosts} \\
  {command} -b {size} -e {size} -g 1 -c 1
printf '\\n{exit}%s\\n' "$?"
"""


def pair_s(settings: Settings) -> int:
    """How long one pair of nodes may take. Unit: seconds."""
    return min(_MAX_PAIR_S, settings.verify.deep.timeout_s)


@dataclass(frozen=True)
class Pair:
    """Two nodes that are tried together. number: of the round in which they are."""

    number: int
    first: Plan
    second: Plan

    @property
    def nodes(self) -> tuple[str, str]:
        return self.first.name, self.second.name

    @property
    def key(self) -> str:
        """The name of its file."""
        return "--".join(self.nodes)

    def pod(self, node: str) -> str:
        return pod_name("internode", node, self.number)


def rounds(plans: Sequence[Plan]) -> list[list[Pair]]:
    """Pairs of neighbours, the last one with the first; no node twice in a round."""
    fit = [plan for plan in plans if plan.node is not None]
    if len(fit) < 2:
        return []
    after = [*pairwise(fit), *([(fit[-1], fit[0])] if len(fit) > 2 else [])]
    odd = after.pop() if len(after) % 2 and len(after) > 1 else None
    ordered = [after[0::2], after[1::2], [odd] if odd else []]
    return [
        [Pair(number, *plan_pair) for plan_pair in round_pairs]
        for number, round_pairs in enumerate(filter(None, ordered))
    ]


def keys() -> dict[str, Any]:
    """The Secret with a new key, by which the pods of a verification know each other."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _SECRET, "labels": dict(LABELS)},
        "stringData": {
            _KEY: private,
            f"{_KEY}.pub": f"{public}\n",
            "known_hosts": f"gpuboot {public}\n",
            "config": _SSH_CONFIG,
        },
    }


def waiting_pod(pair: Pair, settings: Settings) -> dict[str, Any]:
    """The pod on the second node, in which mpirun will start processes."""
    return _pod(pair, pair.second, settings, _WAIT_SCRIPT)


def running_pod(pair: Pair, address: str, settings: Settings) -> dict[str, Any]:
    """The pod on the first node, which runs mpirun. + address: IP address of the other pod"""
    internode = settings.verify.deep.internode
    first, second = pair.first, pair.second
    names = ("PATH", "LD_LIBRARY_PATH", "CUDA_DEVICE_ORDER", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS")
    script = _RUN_SCRIPT.format(
        needs=_NEEDS.format(programs=f"mpirun ssh {internode.command.split()[0]}"),
        keys=_KEYS,
        exported=" ".join(f"-x {name}" for name in (*names, *internode.environment)),
        ranks=first.gpus + second.gpus,
        hosts=f'"$POD_IP:{first.gpus},{_host(address)}:{second.gpus}"',
        command=internode.command,
        size=message_size(min(first.memory_mib, second.memory_mib)),
        exit=EXIT,
    )
    return _pod(pair, first, settings, script)


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _pod(pair: Pair, plan: Plan, settings: Settings, script: str) -> dict[str, Any]:
    assert plan.node is not None
    internode = settings.verify.deep.internode
    mounts = [("shm", "/dev/shm"), ("keys", _KEYS)]
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": internode.image,
        "command": ["sh", "-c", script],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            *({"name": name, "value": value} for name, value in internode.environment.items()),
        ],
        "resources": {"limits": {GPU_RESOURCE: str(plan.gpus), **internode.resources}},
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts],
        # what sshd needs to log somebody in; adapters for RDMA pin memory
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {
                "drop": ["ALL"],
                "add": ["SETUID", "SETGID", "SYS_CHROOT", "AUDIT_WRITE", "IPC_LOCK"],
            },
        },
    }
    runtime_class = "nvidia" if settings.runtime.mode == "runtimeclass" else ""
    manifest = pod_manifest(pair.pod(plan.name), plan.node, settings, [container], runtime_class)
    manifest["spec"] |= {
        "activeDeadlineSeconds": 2 * START_S + pair_s(settings) + GRACE_S,
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "keys", "secret": {"secretName": _SECRET, "defaultMode": 0o400}},
        ],
    }
    if internode.host_network:
        manifest["spec"] |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return manifest
