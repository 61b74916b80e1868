"""A node that reboots is cordoned, and waited for until it is Ready again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyinfra.api.host import Host

from deploys.lib.commands import failure
from deploys.lib.kubectl import ADMIN_CONF, KUBECTL
from deploys.lib.remote import RemoteError, run
from deploys.lib.waiting import unfinished, wait_until
from gpuboot.kubernetes.readiness import Progress

CORDON_MARK = "/etc/gpuboot/cordoned"
_READY_S = 300
_BOOT = "{.status.nodeInfo.bootID}"
_READY = '{.status.conditions[?(@.type=="Ready")].status}'


@contextmanager
def cordoned(leader: Host, node: str, host: Host) -> Iterator[None]:
    """Cordon a node for the length of the block, unless there is no cluster or it is cordoned.

    Pods stay on the node and start again after the boot, with their data; drain it beforehand to
    have them elsewhere. When the block fails the node stays cordoned, with a mark on the host: a
    later run knows that it was gpuboot, and uncordons it.

    + leader: where kubectl runs; another host than the one that reboots
    + node: its name in Kubernetes
    + host: the node's host

    Raises `RemoteError` when the cluster does not answer.
    """
    if not cordon(leader, node, host):
        yield
        return
    pods = json.loads(
        run(leader, f"{KUBECTL} get pods -A --field-selector spec.nodeName={node} -o json")
    )
    if names := gpu_pods(pods):
        print(f"    [{node}] the reboot interrupts GPU pods: {', '.join(names)}", file=sys.stderr)
    yield
    uncordon(leader, node, host)


def cordon(leader: Host, node: str, host: Host) -> bool:
    """Cordon a node, unless there is no cluster or a person did; whether `uncordon` is to follow.

    Arguments and errors as of `cordoned`.
    """
    answer = run(
        leader,
        f"test ! -e {ADMIN_CONF} || {KUBECTL} get node {node} --ignore-not-found "
        "-o 'jsonpath={.metadata.name} {.spec.unschedulable}'",
    ).split()
    if not answer or ("true" in answer and not by_gpuboot(host)):
        return False
    run(host, f"mkdir -p $(dirname {CORDON_MARK}) && touch {CORDON_MARK}")
    run(leader, f"{KUBECTL} cordon {node}")
    return True


def by_gpuboot(host: Host) -> bool:
    """Whether it was gpuboot that cordoned the node of this host, in this run or an earlier one."""
    return bool(run(host, f"test ! -e {CORDON_MARK} || echo yes"))


def uncordon(leader: Host, node: str, host: Host) -> None:
    """End what `cordoned` began. Raises `RemoteError` when the cluster does not answer."""
    run(leader, f"{KUBECTL} uncordon {node}")
    run(host, f"rm -f {CORDON_MARK}")


def is_member(leader: Host, node: str) -> bool:
    """Whether the leader's cluster answers and has this node."""
    command = f"test -e {ADMIN_CONF} && {KUBECTL} --request-timeout=5s get node {node} -o name"
    try:
        return bool(run(leader, command))
    except RemoteError:
        return False


def wait_until_rejoined(leader: Host, node: str, boot_id: str) -> None:
    """Wait until the cluster sees a node Ready in its new boot.

    Ready alone would not do: for 40 seconds the API server shows what a node said before.

    + leader: where kubectl runs; it may be the node itself
    + boot_id: of the new boot

    Raises `RemoteError` when that takes more than five minutes.
    """

    def probe() -> Progress:
        query = f"{KUBECTL} --request-timeout=5s get node {node} -o 'jsonpath={_BOOT} {_READY}'"
        try:
            said = run(leader, query).split()
        except RemoteError:
            return Progress(False, "the API server does not answer")
        done = said == [boot_id, "True"]
        return Progress(done, f"node {node} is {'' if done else 'not '}Ready after its reboot")

    end = wait_until(leader, probe, _READY_S)
    if not end.done:
        raise RemoteError(
            failure(
                unfinished(end, _READY_S), f"see `journalctl -u kubelet` on {node}, then run again"
            )
        )


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
