"""The level `deep` of a verification: its tests, and what they say of each GPU."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyinfra import logger
from pyinfra.api.exceptions import PyinfraError
from pyinfra.context import inventory

from deploys.engine import run_ending as ending
from deploys.engine.remote import run
from deploys.parts.verify.verify_hosts import say
from gpuboot.cluster.api import Cluster
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.verify.checks import proof_chain
from gpuboot.verify.deep import deep_files, deep_runner, gpu_state_at_work, internode, verdicts
from gpuboot.verify.deep.deep_answers import DeepAnswers, NodeAnswers, PairAnswer
from gpuboot.verify.devices import Host
from gpuboot.verify.findings import Finding
from gpuboot.verify.runner import VerificationResult


def with_deep_tests(
    cluster: Cluster,
    result: VerificationResult,
    settings: Settings,
    nodes: Sequence[Node],
    folder: Path,
    resume: bool,
) -> VerificationResult:
    """Test the nodes of a verification that no pod uses, and add what that says.

    + nodes: all of the inventory
    + folder: of the report
    + resume: take over what the newest report with such tests has of a node

    Raises `ClusterError`.
    """
    monotonic_start, evidence = time.monotonic(), result.evidence
    by_name = {node.name: node.host for node in nodes}
    deep_answers = deep_runner.run_tests(
        cluster,
        evidence.hosts,
        settings,
        say,
        lambda name: _sample(by_name[name]),
        lambda answers: _save(answers, folder),
        _earlier_answers(folder, settings.cluster.name) if resume else DeepAnswers(),
    )
    with ending.writing(folder.parent):
        deep_files.save_all(deep_answers, folder)  # also what an earlier run found
    added = _findings(evidence.hosts, deep_answers, settings)
    durations = {**evidence.durations, "deep": round(time.monotonic() - monotonic_start, 3)}
    return replace(
        result,
        evidence=replace(evidence, durations=durations),
        findings=tuple(proof_chain.ordered([*result.findings, *added])),
    )


def _save(answers: NodeAnswers | PairAnswer, folder: Path) -> None:
    with ending.writing(folder.parent):
        deep_files.save(answers, folder)


def _findings(
    hosts: Sequence[Host], deep_answers: DeepAnswers, settings: Settings
) -> list[Finding]:
    by_name = {host.node: host for host in hosts}
    of_nodes = [
        finding
        for name, node_answers in deep_answers.nodes.items()
        for finding in verdicts.evaluate(by_name[name], node_answers)
    ]
    least_gbps = settings.verify.deep.internode.least_gbps
    return of_nodes + internode.evaluate(hosts, deep_answers, least_gbps)


def _sample(host: str) -> str:
    """What nvidia-smi says there now; "" where nobody can say."""
    try:
        return run(inventory.get_host(host), gpu_state_at_work.COMMAND)
    except PyinfraError as error:
        logger.warning(f"{host}: nvidia-smi under load: {error}")
        return ""


def _earlier_answers(folder: Path, cluster: str) -> DeepAnswers:
    report = deep_files.newest(folder, cluster)
    if report is None:
        say("deep: there is no earlier report with such tests")
        return DeepAnswers()
    say(f"deep: going on with {report.name}")
    try:
        return deep_files.read(report)
    except deep_files.KeptError as error:
        logger.warning(f"{error}; all nodes are tested")
        return DeepAnswers()
