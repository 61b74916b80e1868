"""The gate: GPU nodes take no pods before their GPUs are proven.

What stands on the hosts for it, and what a node's object says. `templates/kubernetes/gate.sh` has
the names, too: it is what changes nodes.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gpuboot.cluster import objects
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.templates import render

KEY = "gpuboot.io/unproven"
TAINT = f"{KEY}:NoSchedule"
TOLERATION = {"key": KEY, "operator": "Exists", "effect": "NoSchedule"}
CONDITION = "GPUsProven"
# annotations: of the last proof, and of a cordon that a node itself began when it booted
PROVEN = tuple(
    f"gpuboot.io/proven-{proof_field}"
    for proof_field in ("boot", "time", "level", "gpus", "version")
)
CORDON = "gpuboot.io/cordoned-at-boot"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"

PROGRAM = "/usr/local/sbin/gpuboot-gate"
TIMER = "gpuboot-gate.timer"
BOOT_PROGRAM = "/usr/local/sbin/gpuboot-gate-boot"
BOOT_UNIT = "gpuboot-gate-boot.service"
_UNITS = "/etc/systemd/system"
_CONFIG = ("/etc/gpuboot/gate.conf", "/etc/gpuboot/gate-pod.json")
LEADER_FILES = (*_CONFIG, f"{_UNITS}/gpuboot-gate.service", f"{_UNITS}/{TIMER}")
BOOT_FILE = f"{_UNITS}/{BOOT_UNIT}"
_RENEW_S = 24 * 3600  # a proof that is older is renewed
_RETRY_S = 600  # a proof that failed is tried again


def program() -> str:
    """The leader's program, a shell script: closes nodes, proves and opens them."""
    return render("kubernetes/gate.sh")


def leader_files(settings: Settings, version: str, pod: Mapping[str, Any]) -> dict[str, str]:
    """Path -> text of the leader's files beside the program.

    + version: gpuboot's
    + pod: computes on all free GPUs of a node; `gpuboot.verify.workload_pods.gate_pod`
    """
    values = {
        "version": version,
        "renew_s": _RENEW_S,
        "retry_s": _RETRY_S,
        "timeout_s": settings.verify.timeout_s,
    }
    texts = (
        "# Written by gpuboot\n" + "".join(f"{key}={value}\n" for key, value in values.items()),
        json.dumps(pod) + "\n",
        render("kubernetes/gate.service.j2", program=PROGRAM),
        render("kubernetes/gate.timer.j2"),
    )
    return dict(zip(LEADER_FILES, texts, strict=True))


def boot_program() -> str:
    """The program by which a node takes itself out of service when it boots: a shell script."""
    return render("kubernetes/gate-boot.sh")


def boot_files(node: Node) -> dict[str, str]:
    """Path -> text of its unit."""
    unit = render(
        "kubernetes/gate-boot.service.j2",
        program=BOOT_PROGRAM,
        node=node.name,
        control_plane=node.role == "control_plane",
    )
    return {BOOT_FILE: unit}


def registration_taints(
    node: Node, untainted: bool, gate_enabled: bool
) -> list[dict[str, str]] | None:
    """Taints with which kubeadm registers a node; None: its own choice.

    + untainted: workloads may run on control-plane nodes
    + gate_enabled: the gate is on
    """
    control_plane = node.role == "control_plane"
    taints = [{"key": KEY, "effect": "NoSchedule"}] if gate_enabled and node.gpus else []
    if control_plane and not untainted and taints:
        taints.append({"key": CONTROL_PLANE, "effect": "NoSchedule"})
    return taints if taints or (control_plane and untainted) else None


def is_proven(node: objects.Node) -> bool:
    """Whether a node's GPUs have been proven, and it has not rebooted since."""
    condition = node.conditions.get(CONDITION, objects.Condition())
    return condition.status == "True" and node.annotations.get(PROVEN[0], "") == node.boot_id


def is_closed(node: objects.Node) -> bool:
    """Whether the gate keeps new pods off a node."""
    return any(objects.taint_key(taint) == KEY for taint in node.taints)


def is_marked(node: objects.Node) -> bool:
    """Whether there is anything of the gate on a node."""
    notes = {PROVEN[0], CORDON} & node.annotations.keys()
    return bool(notes) or CONDITION in node.conditions or is_closed(node)


def lines(outcomes: Sequence[Sequence[str]]) -> str:
    """Outcomes of proofs as `gpuboot-gate record` reads them: one a line, words apart by tabs.

    A shell takes several tabs for one, so what is empty is a dash.
    """
    return "".join(
        "\t".join(" ".join(word.split()) or "-" for word in outcome) + "\n" for outcome in outcomes
    )


LIFTED_CONDITION = json.dumps({"status": {"conditions": [{"$patch": "delete", "type": CONDITION}]}})
