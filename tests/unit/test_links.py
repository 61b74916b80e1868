"""The table of links, which docs/checks.md shows: each can fail, with the remedy that it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.cluster.backup import Backups
from gpuboot.cluster.node_certificates import Certificate
from gpuboot.config.settings import parse_settings
from gpuboot.docker import docker_checks
from gpuboot.docs.checks_page import checks_markdown
from gpuboot.verify.alert_path import AlertPath
from gpuboot.verify.checks import host_checks, proof_chain
from gpuboot.verify.checks.links import TABLE
from gpuboot.verify.checks.one_file import Answer as Answered
from gpuboot.verify.checks.one_file import Link
from gpuboot.verify.deep import internode, verdicts
from gpuboot.verify.deep.deep_answers import Answer, DeepAnswers, NodeAnswers, PairAnswer
from gpuboot.verify.evidence import (
    Evidence,
    HealthValue,
    IsolationResult,
    Metrics,
    Rule,
    ServiceProbeResult,
    Target,
)
from gpuboot.verify.findings import CLUSTER_LINKS, DEEP_LINKS, GPU_LINKS, LINKS, PHYSICAL_LINKS
from tests.unit import deep_outputs as printed
from tests.unit import test_checks_monitoring_objects as stack
from tests.unit.evidence import (
    ERRORS,
    control_plane,
    evidence,
    gpu,
    host,
    metrics,
    node,
    of,
    scrape,
    series,
    uuid,
    workload_result,
)


def with_host(**fields: Any) -> Evidence:
    return evidence(hosts=(host("gpu1", **fields),))


def with_metrics(**fields: Any) -> Evidence:
    return evidence(metrics=metrics(**fields))


NO_NODE = b'{"items": []}'

# what breaks each link, in the way of its commonest failure
BROKEN: dict[str, Evidence] = {
    "nodes": replace(evidence(), answers={"nodes": Answered(NO_NODE)}),
    "alerting": with_metrics(alert_path=AlertPath()),
    "pci": with_host(expected_gpus=3),
    "driver": with_host(driver_loaded=""),
    "nvidia-smi": with_host(gpus=(gpu("gpu1", 0), gpu("gpu1", 1, is_lost=True))),
    "runtime": with_host(runtime_handlers=("runc",), default_runtime="runc", cdi_devices=()),
    "allocatable": evidence(
        nodes={"gpu1": node("gpu1", 0), "gpu2": node("gpu2", 4)}, workload_results=()
    ),
    "workload": evidence(
        workload_results=(
            workload_result("gpu1", 0, passed=False, error="Result verification failed"),
        )
    ),
    "exporter": with_metrics(exporters=()),
    "health": with_metrics(
        exporters=(
            scrape("gpu1", 2, health=(HealthValue(uuid=uuid("gpu1", 1), metric=ERRORS, value=2),)),
        )
    ),
    "prometheus": with_metrics(series=()),
    "attribution": with_metrics(series=series("gpu1", 2, pod="other/pod")),
    "isolation": evidence(
        isolation_results=(
            IsolationResult(
                node="gpu1", pod="p", devices={"NVIDIA_VISIBLE_DEVICES=all": ("/dev/nvidia0",)}
            ),
        )
    ),
    "services": evidence(
        service_probes=(
            ServiceProbeResult(node="gpu1", pod="p", name="n", address="a", connected=True),
        )
    ),
    "targets": with_metrics(targets=(Target(job="apiserver", node="", health="down"),)),
    "rules": with_metrics(rules=(Rule(name="GPULost", health="err", error="no such metric"),)),
    "alertmanager": with_metrics(alertmanagers=()),
    "dashboards": with_metrics(errors={"grafana": "refused"}),
    "storage": stack.observed_evidence(
        observed_objects=replace(stack.OBSERVED, claims=(stack.claim("Pending"),))
    ),
    "certificates": evidence(
        control_planes=(control_plane(certificates=(Certificate("pki/apiserver.crt", 1.0),)),)
    ),
    "backup": evidence(control_planes=(control_plane(backups=Backups()),)),
    "policies": stack.observed_evidence(
        observed_objects=replace(
            stack.OBSERVED,
            objects={**stack.OBSERVED.objects, ("NetworkPolicy", "monitoring", "old"): "3"},
        )
    ),
}


SLOW = printed.nvbandwidth([5.0, 5.0], [[None, 370.0], [370.0, None]])
# likewise of those that only the level deep has
DEEP: dict[str, NodeAnswers] = {
    "diag": NodeAnswers(
        node="gpu1",
        steps={
            "diag": Answer(
                ended="answered",
                output=printed.diag(
                    {"memory": ["Fail", "Pass"]}, warnings={("memory", 0): printed.MEMORY}
                ),
            )
        },
    ),
    "bandwidth": NodeAnswers(
        node="gpu1",
        steps={"bandwidth": Answer(ended="answered", output=SLOW)},
    ),
    "collective": NodeAnswers(
        node="gpu1",
        steps={"collective": Answer(ended="answered", output=printed.NCCL_ERROR)},
    ),
    "load": NodeAnswers(
        node="gpu1",
        samples=printed.SMI.format(
            uuid=uuid("gpu1", 0), clock=1980, limit=700, gen=5, width=8, reasons="0x0"
        ),
    ),
}

BETWEEN = DeepAnswers(
    pairs={
        ("gpu1", "gpu2"): PairAnswer(
            nodes=("gpu1", "gpu2"),
            uuids=(),
            hosts={"a": "gpu1", "b": "gpu2"},
            gpus={"gpu1": 2, "gpu2": 2},
            answer=Answer(ended="answered", output=printed.between({"a": 2, "b": 2}, busbw=98.0)),
        )
    }
)


CHAIN_LINKS = [
    link for link in TABLE if link.name not in host_checks.NAMES
]  # others: tests/host_checks


@pytest.mark.parametrize("link", CHAIN_LINKS, ids=lambda link: link.name)
def test_a_link_fails_with_the_remedy_that_its_table_says(link: Link) -> None:
    settings = parse_settings({"monitoring": {"grafana": True}})
    if link.name == "internode":
        findings = internode.evaluate([host("gpu1"), host("gpu2")], BETWEEN, 440)
    elif link.subject == "deep":
        findings = verdicts.evaluate(host("gpu1"), DEEP[link.name])
    else:
        findings = proof_chain.evaluate(BROKEN[link.name], settings)
    failed = of(findings, "fail", link.name)
    assert failed
    assert [item.remedy for item in failed if item.remedy.startswith(link.remedy)], failed


def test_the_tables_of_links_are_one() -> None:
    assert list(LINKS) == [link.name for link in TABLE]
    assert [*GPU_LINKS, *DEEP_LINKS, *CLUSTER_LINKS] == list(LINKS)
    assert [link for link in PHYSICAL_LINKS if link not in host_checks.NAMES] == [
        "pci", "driver", "nvidia-smi", "health"
    ]  # fmt: skip


def test_docker_hosts_have_the_links_that_the_table_says() -> None:
    settings = parse_settings({})
    without_an_answer = evidence(metrics=Metrics())
    judged_links = {item.link for item in docker_checks.evaluate(without_an_answer, settings)}
    silent = with_host(outputs={})  # of those that are files: unknown, where there is no answer
    for observed in (with_metrics(), silent):
        judged_links |= {item.link for item in docker_checks.evaluate(observed, settings)}
    assert judged_links == {link.name for link in TABLE if link.docker}


def test_every_link_stands_in_the_page() -> None:
    page = checks_markdown()
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{link.name}`" for link in TABLE]
