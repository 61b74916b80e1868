"""Keeps new pods off a node while it reboots, and says which GPU pods that interrupts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyinfra.api.host import Host

from deploys.lib.leader import ADMIN, KUBECTL, run

_READY_S = 300


@contextmanager
def cordoned(leader: Host, node: str) -> Iterator[None]:
    """Cordon a node for the length of the block, unless there is no cluster or it is cordoned.

    Pods stay on the node and start again after the boot, with their data; drain it beforehand to
    have them elsewhere. When the block fails the node stays cordoned.

    + leader: where kubectl runs; another host than the one that reboots
    + node: its name in Kubernetes

    Raises `RemoteError` when the cluster does not answer.
    """
    found = run(
        leader,
        f"test ! -e {ADMIN} || {KUBECTL} get node {node} --ignore-not-found "
        "-o 'jsonpath={.metadata.name} {.spec.unschedulable}'",
    ).split()
    if not found or "true" in found:
        yield
        return
    run(leader, f"{KUBECTL} cordon {node}")
    pods = json.loads(
        run(leader, f"{KUBECTL} get pods -A --field-selector spec.nodeName={node} -o json")
    )
    if names := gpu_pods(pods):
        print(f"    [{node}] the reboot interrupts GPU pods: {', '.join(names)}", file=sys.stderr)
    yield
    run(leader, f"{KUBECTL} wait --for=condition=Ready node/{node} --timeout={_READY_S}s")
    run(leader, f"{KUBECTL} uncordon {node}")


def gpu_pods(pods: dict[str, Any]) -> list[str]:
    """Running pods of a pod list that were given GPUs, as namespace/name."""
    return [
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in pods["items"]
        if pod.get("status", {}).get("phase") == "Running"
        and any(
            resource.startswith("nvidia.com/")
            for container in pod["spec"]["containers"]
            for resource in container.get("resources", {}).get("limits") or {}
        )
    ]
