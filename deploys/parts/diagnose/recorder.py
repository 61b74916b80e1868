"""Reads all that a diagnosis wants to know, from every host at once and from the cluster."""

import os
import time
from collections.abc import Callable, Sequence

import gevent
from gevent.pool import Pool
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.facts import get_fact
from pyinfra.api.host import Host
from pyinfra.context import inventory
from pyinfra.context import state as run_state

from deploys.engine.connections import reach, unreachable
from deploys.engine.current_host import current_host
from deploys.engine.privilege import prepare_askpass
from deploys.parts.cluster.api_connection import cluster_clients
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.parts.diagnose.fact import HostOutput
from deploys.parts.diagnose.fact import HostRecording as HostFact
from deploys.parts.helm.fact import ReleasedObjects
from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.redaction import known_secrets, masker
from gpuboot.config.settings import Settings
from gpuboot.diagnose import PROGRESS, cluster_reading
from gpuboot.diagnose.absence import Members, Released
from gpuboot.diagnose.site_recording import (
    ClusterRecording,
    HostRecording,
    Recording,
    without_secrets,
)
from gpuboot.monitoring.components import Expected

_AT_ONCE = 64
_PART_S = 20  # for each fact of a host


_started = False


def first() -> bool:
    """Whether nobody has asked yet: pyinfra executes a deploy file anew for every host."""
    global _started
    was_started, _started = _started, True
    return not was_started


def record(
    settings: Settings,
    nodes: Sequence[Node],
    leader: Node,
    within_s: float,
    denied: Callable[[Host], Problem | None],
    expected: Expected,
) -> Recording:
    """Read the site. What does not answer in time is part of what is told.

    + leader: the control plane that is asked for the cluster
    + within_s: seconds for all of it
    + denied: what keeps a host's user from becoming root; None: nothing
    + expected: what the cluster must consist of
    """
    started = time.monotonic()
    say(f"{settings.cluster.name}: reading {len(nodes)} hosts and the cluster")
    cluster = gevent.spawn(_cluster, settings, leader, within_s - 2, expected)
    pool = Pool(_AT_ONCE)
    reads = [pool.spawn(_host, node, denied) for node in nodes]
    gevent.joinall([*reads, cluster], timeout=within_s)
    silent = f"did not answer within {within_s:.0f} s"
    hosts = [
        job.value if job.successful() else _of(node, error=silent)
        for node, job in zip(nodes, reads, strict=True)
    ]
    answer = cluster.value if cluster.successful() else ClusterRecording(error=f"it {silent}")
    gevent.killall([*reads, cluster], block=False)
    recording = Recording(
        site=settings.cluster.name,
        leader=leader.host,
        seconds=round(time.monotonic() - started, 1),
        hosts=tuple(hosts),
        cluster=answer,
        settings=settings.model_dump(mode="json"),
        reports=settings.verify.reports,
    )
    return without_secrets(recording, masker(known_secrets(settings)))


def say(line: str) -> None:
    """A line of progress for the person who waits."""
    if descriptor := os.environ.get(PROGRESS):
        os.write(int(descriptor), f"{line}\n".encode())


def _of(node: Node, error: str = "") -> HostRecording:
    return HostRecording(
        node=node.name, host=node.host, role=node.role, gpus=node.gpus, error=error
    )


def _host(node: Node, denied: Callable[[Host], Problem | None]) -> HostRecording:
    target = inventory.get_host(node.host)
    if not reach(target):
        return _of(node, error=f"cannot be reached: {unreachable.get(node.host, 'no connection')}")
    before = time.time()
    try:
        with current_host(target):
            if problem := denied(target):
                return _of(node, error=problem.cause)
            prepare_askpass(target)
            output = get_fact(
                run_state,
                target,
                HostFact,
                kwargs={"socket": SOCKET, "limit_s": _PART_S, "gpus": node.gpus > 0},
                apply_failed_hosts=False,
            )
    except PyinfraError as error:
        return _of(node, error=f"could not be read: {error}")
    if not isinstance(output, HostOutput) or not output.parts:
        return _of(node, error="could not be read: may its user become root?")
    say(f"{node.name}: read in {time.time() - before:.1f} s")
    return HostRecording(
        **vars(_of(node))
        | {
            "began": output.started_at,
            "ended": output.ended_at,
            "before": before,
            "after": time.time(),
            "parts": output.parts,
            "failed": output.failed,
        }
    )


def _cluster(
    settings: Settings, leader: Node, within_s: float, expected: Expected
) -> ClusterRecording:
    target = inventory.get_host(leader.host)
    if not reach(target):
        return ClusterRecording(error=f"its leader {leader.name} cannot be reached")
    try:
        with cluster_clients(target) as cluster:
            return cluster_reading.read(
                cluster,
                settings.monitoring.namespace,
                within_s,
                lambda line: say(f"cluster: {line}"),
                Members(expected, lambda: _released(target, expected)),
            )
    except ClusterError as error:
        return ClusterRecording(error=str(error))


def _released(target: Host, expected: Expected) -> Released:
    """What the Helm releases consist of. Raises `ClusterError`."""
    with current_host(target):
        prepare_askpass(target)
        try:
            answer: Released = get_fact(
                run_state,
                target,
                ReleasedObjects,
                kwargs={"kubeconfig": ADMIN_CONF, "paths": expected.paths},
                apply_failed_hosts=False,
            )
        except PyinfraError as error:
            raise ClusterError(f"{target.name} did not tell: {error}") from None
    return answer
