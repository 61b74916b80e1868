"""Reports of the clusters in tests/unit/evidence.py, for tests."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from gpuboot.cluster.pods import Pod
from gpuboot.config.settings import parse_settings as settings
from gpuboot.verify.checks import proof_chain
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import Status
from gpuboot.verify.report import Report, build
from gpuboot.verify.report.report_terminal import show
from gpuboot.verify.runner import simulated
from tests.unit.evidence import SIZES, evidence, metrics, scrape, uuid, workload_result

FAILED: Status = "fail"


PASSED: Status = "pass"


UUIDS = [uuid(name, index) for name, count in SIZES.items() for index in range(count)]


def report(observed: Evidence) -> Report:
    site = settings({"exporter": {"scrape_interval": "2s"}})
    findings = proof_chain.evaluate(observed, site)
    return build(
        "lab",
        "2026-11-21T14:00:00Z",
        21.4,
        observed.hosts,
        findings,
        proof_chain.required_links(observed, site),
        simulated=simulated(observed.hosts),
        versions={"driver": "595.91.07", "kubelet": "v1.36.3", "nothing": ""},
        durations={"workload": 6.1, "metrics": 7.25},
    )


def broken() -> Report:
    """gpu1 has a GPU that computes wrong, with a log to beware of; gpu2 no exporter, one holder."""
    sound = evidence()
    bad = workload_result("gpu1", 1, passed=False, error="log: <b>Test FAILED</b> \x1b[31m & more")
    remaining = tuple(t for t in sound.workload_results if t.uuids != (uuid("gpu1", 1),))[:-1]
    return report(
        replace(
            sound,
            workload_results=(*remaining, bad),
            gpu_pods=(
                Pod(namespace="ml", name="train-0", node="gpu2", devices={"nvidia.com/gpu": 1}),
            ),
            metrics=metrics(exporters=(scrape("gpu1", 2),)),
        )
    )


def text(result: Report, folder: Path | None = None, width: int = 200) -> str:
    out = StringIO()
    show(result, folder, Console(file=out, width=width, color_system=None))
    return out.getvalue()
