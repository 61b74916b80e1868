"""The level `deep` of a verification: its tests, and what they say of each GPU."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pyinfra import logger
from pyinfra.api.exceptions import PyinfraError
from pyinfra.context import inventory

from deploys.lib.remote import run
from deploys.operations.verify_hosts import say
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.kubernetes.api import Cluster
from gpuboot.verify.checks import chain
from gpuboot.verify.deep import files, load, runner, verdicts
from gpuboot.verify.deep.answers import NodeAnswers
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
    begun, evidence = time.monotonic(), result.evidence
    by_name = {node.name: node.host for node in nodes}
    found = runner.run_tests(
        cluster,
        evidence.hosts,
        settings,
        say,
        lambda name: _sample(by_name[name]),
        lambda answers: files.save(answers, folder),
        _kept(folder, settings.cluster.name) if resume else {},
    )
    for one in found:
        files.save(one, folder)
    hosts = {host.node: host for host in evidence.hosts}
    added = [finding for one in found for finding in verdicts.evaluate(hosts[one.node], one)]
    durations = {**evidence.durations, "deep": round(time.monotonic() - begun, 3)}
    return replace(
        result,
        evidence=replace(evidence, durations=durations),
        findings=tuple(chain.ordered([*result.findings, *added])),
    )


def _sample(host: str) -> str:
    """What nvidia-smi says there now; "" where nobody can say."""
    try:
        return run(inventory.get_host(host), load.COMMAND)
    except PyinfraError as error:
        logger.warning(f"{host}: nvidia-smi under load: {error}")
        return ""


def _kept(folder: Path, cluster: str) -> Mapping[str, NodeAnswers]:
    earlier = files.newest(folder, cluster)
    if earlier is None:
        say("deep: there is no earlier report with such tests")
        return {}
    say(f"deep: going on with {earlier.name}")
    try:
        return files.read(earlier)
    except files.KeptError as error:
        logger.warning(f"{error}; all nodes are tested")
        return {}
