"""The operation that verifies a cluster. What it starts it removes, so it yields no command."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from gevent.pool import Pool
from pyinfra import logger
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.facts import get_fact
from pyinfra.context import ctx_host, host, inventory
from pyinfra.context import state as run_state

from deploys.facts.node import NodeFact
from deploys.facts.nvidia import NvidiaFact
from deploys.lib.cluster_api import cluster_clients
from deploys.lib.commands import Commands, executing, fail
from deploys.lib.operation import operation
from deploys.run import report as run_report
from gpuboot import monitoring
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.hosts.node_state import NodeState
from gpuboot.kubernetes import network_policies
from gpuboot.kubernetes.api import Cluster, ClusterError
from gpuboot.verify import gpu_state, runner
from gpuboot.verify.checks import operating_system
from gpuboot.verify.evidence import Evidence, ExpectedObjects, Host
from gpuboot.verify.findings import Finding
from gpuboot.verify.gpu_state import GpuState
from gpuboot.verify.report import Report, build, write
from gpuboot.verify.report.run_failures import with_run_failures
from gpuboot.verify.report.terminal import show
from gpuboot.verify.runner import VerificationResult, simulated

_MAX_AT_ONCE = 32


@operation(compared=False)
def chain(settings: Settings, lock: Lock, nodes: Sequence[Node]) -> Commands:
    """Verify every GPU of the cluster, and write the reports.

    + nodes: all of the inventory

    Fails the host when something failed; what could not be tried is reported and is no failure.
    """
    yield from outcome(lambda: verify(settings, lock, nodes))


def outcome(verification: Callable[[], Report]) -> Commands:
    """Verify at execute time, and fail the host when something failed.

    + verification: does it, and writes the reports
    """
    if not executing():
        return
    report = verification()
    message = f"verification: {report.verdict}, {report.totals['proven']} GPUs proven"
    if report.verdict == "failed":
        yield fail(message)
    else:
        host.noop(message)


def verify(settings: Settings, lock: Lock, nodes: Sequence[Node]) -> Report:
    """Collect, evaluate, and write the reports. The current host is the leader."""
    started, begun = datetime.now(UTC), time.monotonic()
    hosts = read_hosts(settings, lock, nodes)
    read_s = time.monotonic() - begun
    try:
        with cluster_clients(inventory.get_host(host.name)) as clients:
            result = runner.verify(
                clients, hosts, settings, say, _expected_objects(clients, settings, nodes)
            )
    except ClusterError as error:
        result = _no_answer(error, hosts, settings.runtime.mode)
    versions = {"kubernetes (lock)": lock.kubernetes.version}
    result = replace(result, versions=result.versions | versions)
    return publish(settings, nodes, started, time.monotonic() - begun, read_s, result)


def _expected_objects(
    clients: Cluster, settings: Settings, nodes: Sequence[Node]
) -> ExpectedObjects | None:
    """What gpuboot adds to the charts' objects; None without monitoring. Raises `ClusterError`."""
    monitored = settings.monitoring
    if not monitored.enabled:
        return None
    ranges = {}
    if monitored.network_policies:
        ranges = network_policies.ranges(clients.json("/api/v1/nodes")["items"])
    return monitoring.expectation(settings, nodes, ranges)


def publish(
    settings: Settings,
    nodes: Sequence[Node],
    started: datetime,
    seconds: float,
    read_s: float,
    result: VerificationResult,
) -> Report:
    """Make the report of a verification, write it and show it.

    + seconds: duration of it all; read_s: of reading the hosts
    """
    failed = run_report.failures()
    by_node = {node.name: failed[node.host] for node in nodes if node.host in failed}
    report = build(
        settings.cluster.name,
        f"{started:%Y-%m-%dT%H:%M:%SZ}",
        seconds,
        result.evidence.hosts,
        with_run_failures(result.findings, by_node),
        alerts=result.evidence.metrics.alerts,
        runbooks=settings.alerts.runbooks,
        simulated=simulated(result.evidence.hosts),
        versions=result.versions,
        durations={"read hosts": round(read_s, 3), **result.evidence.durations},
    )
    folder = run_report.folder(settings)
    write(report, folder)
    show(report, folder)
    run_report.proved(host, report.durations)
    return report


def _no_answer(error: ClusterError, hosts: list[Host], mode: str) -> VerificationResult:
    """The findings without an API server: the links below it, and that it does not answer."""
    finding = Finding(
        check="API server answers",
        link="allocatable",
        node="",
        gpu_uuid=None,
        status="fail",
        detail=str(error),
        remedy="run deploys/site.py; where there is a cluster, see kubelet and kube-apiserver on "
        "the leader (`crictl ps -a`)",
    )
    below = [item for host_ in hosts for item in operating_system.evaluate(host_, mode)]
    return VerificationResult(Evidence(hosts=tuple(hosts), nodes={}), (*below, finding))


def say(line: str) -> None:
    """Progress, where it disturbs no JSON."""
    logger.info(f"verify: {line}")


def read_hosts(settings: Settings, lock: Lock, nodes: Sequence[Node]) -> list[Host]:
    """Read all GPU nodes, many at once."""
    gpu_nodes = [node for node in nodes if node.gpus]
    driver_requested = lock.driver.version if settings.driver.enabled else None
    say(f"reading {len(gpu_nodes)} GPU nodes")
    pool = Pool(min(len(gpu_nodes), _MAX_AT_ONCE) or 1)
    return list(pool.map(lambda node: _read(node, driver_requested), gpu_nodes))


def _read(node: Node, driver_requested: str | None) -> Host:
    target = inventory.get_host(node.host)
    with ctx_host.use(target):
        try:
            machine = get_fact(run_state, target, NodeFact, apply_failed_hosts=False)
            gpus = get_fact(run_state, target, NvidiaFact, apply_failed_hosts=False)
        except PyinfraError as error:
            return gpu_state.unreachable_host(node, f"cannot be reached: {error}")
    if not isinstance(machine, NodeState) or not isinstance(gpus, GpuState):
        return gpu_state.unreachable_host(node, "its state could not be read")
    return gpu_state.host(node, machine, gpus, driver_requested)
