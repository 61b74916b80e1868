"""The operation that verifies a cluster. What it starts it removes, so it yields no command."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import gevent
from pyinfra import logger
from pyinfra.context import host, inventory

from deploys.engine import run_ending as ending
from deploys.engine import run_record
from deploys.engine.commands import Commands, executing, fail
from deploys.engine.operation import operation
from deploys.engine.run_record import folder as report_folder
from deploys.parts.cluster.api_connection import cluster_clients
from deploys.parts.gate import proven_nodes as gate
from deploys.parts.nodes import node_sharing
from deploys.parts.verify import verify_deep
from deploys.parts.verify.verify_hosts import Discovery, Site, read_host, read_site, say
from gpuboot.cluster import node_upgrade
from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.hosts.gpu_sharing import Offer
from gpuboot.monitoring import network_policies
from gpuboot.monitoring.stack_objects import ExpectedObjects
from gpuboot.verify import node_proof, runner
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import Finding
from gpuboot.verify.gate_outcome import of_node, outcomes
from gpuboot.verify.history import history_files as history
from gpuboot.verify.history.events import Event
from gpuboot.verify.levels import ALL, Scope
from gpuboot.verify.report import Report, build, write
from gpuboot.verify.report.report_terminal import show
from gpuboot.verify.report.run_failures import with_run_failures
from gpuboot.verify.runner import VerificationResult, simulated
from gpuboot.verify.stopped import stopped


@operation(compared=False)
def chain(
    settings: Settings,
    lock: Lock,
    nodes: Sequence[Node],
    find: Callable[[], Discovery],
    scope: Scope = ALL,
) -> Commands:
    """Verify every GPU of the cluster, and write the reports.

    + nodes: all of the inventory
    + find: finds their addresses; called while pods start
    + scope: nodes that it is limited to

    Fails the host when something failed; what could not be tried is the run's exit code 2.
    """
    yield from outcome(lambda: verify(settings, lock, nodes, find, scope))


def outcome(verification: Callable[[], Report]) -> Commands:
    """Verify at execute time, and fail the host when something failed.

    + verification: does it, and writes the reports
    """
    if not executing():
        return
    report = verification()
    word = "answering" if report.level == "quick" else "proven"
    message = f"verification: {report.verdict}, {report.totals[word]} GPUs {word}"
    ending.proof = report.exit
    if report.verdict == "failed":
        yield fail(message, "each finding above has its own; then run again")
    else:
        host.noop(message)


def verify(
    settings: Settings,
    lock: Lock,
    nodes: Sequence[Node],
    find: Callable[[], Discovery],
    scope: Scope = ALL,
) -> Report:
    """Collect, evaluate, and write the reports. The current host is the leader."""
    started, monotonic_start = datetime.now(UTC), time.monotonic()
    reading = gevent.spawn(read_site, settings, lock, find, scope)  # while pods start
    names = [node.name for node in scope.selected(nodes)]
    result: VerificationResult | None = None
    try:
        with cluster_clients(inventory.get_host(host.name)) as clients:
            result = runner.verify(
                clients,
                names,
                lambda: reading.get().hosts,
                settings,
                say,
                lambda: _expected_objects(clients, settings, reading.get().nodes),
                lambda: reading.get().control_planes,
                scope.test_alert,
            )
            if settings.verify.level == "deep":
                folder = report_folder(settings)
                result = verify_deep.with_deep_tests(
                    clients, result, settings, nodes, folder, scope.resume
                )
    except ClusterError as error:
        result = stopped(error, _without_cluster(reading.get()), settings, result)
    if settings.gate.enabled:
        gate.settle(inventory.get_host(host.name), outcomes(result.evidence, result.findings))
    versions = {"kubernetes (lock)": lock.kubernetes.version}
    result = replace(result, versions=result.versions | versions)
    seconds = time.monotonic() - monotonic_start
    return publish(settings, nodes, started, seconds, reading.get().seconds, result, scope)


def prove_node(
    settings: Settings,
    lock: Lock,
    node: Node,
    leader: str,
    before: Sequence[str],
    offer: Offer | None = None,
) -> tuple[str, str] | None:
    """Prove the GPUs of one node, from the PCI bus to vectorAdd, whether it is cordoned or not.

    + node: whose host is connected; leader: inventory name of the leader
    + before: UUIDs that nvidia-smi listed before it was upgraded; nothing where that is not known
    + offer: what a later phase of the run has it offer, so it is proven as it is shared now

    Returns cause and remedy where they are not proven. Raises `ClusterError`.
    """
    return judge_node(settings, lock, node, leader, before, offer)[1]


def judge_node(
    settings: Settings,
    lock: Lock,
    node: Node,
    leader: str,
    before: Sequence[str] = (),
    offer: Offer | None = None,
) -> tuple[list[Finding], tuple[str, str] | None]:
    """Prove the GPUs of one node, see `prove_node`; the findings as well."""
    driver = lock.driver if settings.driver.enabled else None
    target = inventory.get_host(leader)
    divided_later = offer is not None and node_sharing.pending(node.name, leader, offer)

    def read() -> Host:
        machine = read_host(node, driver, {}, settings)
        return replace(machine, layout=None) if divided_later else machine

    with cluster_clients(target) as clients:
        findings = node_proof.prove(clients, node.name, read, settings, say, offer is not None)
    uuids = [gpu.uuid for gpu in read().gpus] if before else []
    problem = node_proof.problem(findings, node_upgrade.missing_gpus(before, uuids))
    if settings.gate.enabled:
        gate.settle(target, of_node(node.name, findings, problem))
    if problem is None:
        passed_count = sum(item.link == "workload" and item.status == "pass" for item in findings)
        say(f"{node.name}: {node.gpus} GPUs, vectorAdd passed on {passed_count}")
    return findings, problem


def _expected_objects(
    clients: Cluster, settings: Settings, nodes: Sequence[Node]
) -> ExpectedObjects | None:
    """What gpuboot adds to the charts' objects; None without monitoring. Raises `ClusterError`."""
    monitored = settings.monitoring
    if not monitored.enabled:
        return None
    from gpuboot.monitoring import (
        objects as monitoring,  # with its dashboards; a tenth of a second, while pods start
    )

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
    scope: Scope = ALL,
) -> Report:
    """Make the report of a verification, show it, and write it: files are no part of a verdict.

    + seconds: duration of it all; read_s: of reading the hosts
    + scope: nodes that it was limited to
    """
    failed = run_record.failures()
    by_node = {node.name: failed[node.host] for node in nodes if node.host in failed}
    report = build(
        settings.cluster.name,
        f"{started:%Y-%m-%dT%H:%M:%SZ}",
        seconds,
        result.evidence.hosts,
        with_run_failures(result.findings, by_node),
        result.required_links,
        alerts=result.evidence.metrics.alerts,
        runbooks=settings.alerts.runbooks,
        simulated=simulated(result.evidence.hosts),
        versions=result.versions,
        level=settings.verify.level,
        nodes=scope.names(nodes),
        durations={"read hosts": round(read_s, 3), **result.evidence.durations},
    )
    show(report)
    with ending.writing(Path(settings.verify.reports)):
        folder = report_folder(settings)
        _note_history(report, settings)
        write(report, folder)
        print(f"report: {folder}/verify.html", file=sys.stderr, flush=True)
    run_record.proved(host, report.durations)
    return report


def _note_history(report: Report, settings: Settings) -> None:
    """Add it to the history of its GPUs. A history that cannot be kept changes no verdict."""
    place = history.folder(settings.verify)
    new_events: dict[str, list[Event]] = {}
    try:
        with ending.writing(place):
            new_events = history.note(report, place)
    except history.HistoryError as error:
        logger.warning(f"the history of the GPUs is not kept: {error}")
    for uuid, events in new_events.items():
        for event in events:
            if event.kind in ("moved", "gone", "back"):
                say(f"{uuid} {event.kind} {event.detail} ({event.node}, {event.pci})")


def _without_cluster(site: Site) -> Evidence:
    """The evidence of the hosts alone, for a cluster that does not answer."""
    control_planes = tuple(site.control_planes)
    return Evidence(hosts=tuple(site.hosts), nodes={}, control_planes=control_planes)
