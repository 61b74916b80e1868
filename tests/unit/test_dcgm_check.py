"""The program that asks a host engine, on answers of DCGM: verdicts, or no verdict at all."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from gpuboot.hosts import dcgm_engine
from tests.unit.dcgm_outputs import (
    DISCOVERY,
    NO_ENGINE,
    UUIDS,
    diagnosis,
    healthy,
    incidents,
    not_run,
    result,
    watches,
)

DCGMI = """#!/bin/sh
echo "$*" >>"$SAID/calls"
case "$*" in
  "discovery -l") cat "$SAID/discovery" ;;
  "health -f -j") cat "$SAID/watches" ;;
  "health -s a") cp "$SAID/watches-on" "$SAID/watches"
    echo "Health monitor systems set successfully." ;;
  "health -c -j") cat "$SAID/health"; exit "$STATUS" ;;
  "diag -r 1 -j") cat "$SAID/diag"; exit "$STATUS" ;;
  *) echo "dcgmi: unexpected: $*" >&2; exit 254 ;;
esac
"""
DBE = "Detected 1 volatile double-bit ECC error(s) in GPU 1. Drain the GPU and reset it."
WELL = {"PCIE", "NVLINK", "MEM", "INFOROM", "THERMAL", "POWER", "DRIVER"}


class Site:
    """A GPU node of two GPUs, and what DCGM says there."""

    def __init__(self, root: Path) -> None:
        self.root, self.output_file = root, root / "said"
        self.output_file.mkdir()
        (root / "dcgmi").write_text(DCGMI)
        (root / "dcgmi").chmod(0o755)
        config = root / "dcgm.conf"
        config.write_text(
            f"metrics={root}/metrics\nresults={root}/results\nnode=gpu1\nsettle_s=0\n"
        )
        program = dcgm_engine.program().replace("/etc/gpuboot/dcgm.conf", str(config))
        self.program = re.sub(r"PATH=\S+", f"PATH={root}:/usr/bin:/bin", program, count=1)
        self.provide(discovery=DISCOVERY, watches=watches(), health=healthy())
        (self.output_file / "watches-on").write_text(watches())

    def provide(self, **answers: str) -> None:
        for name, text in answers.items():
            (self.output_file / name).write_text(text)

    def run(self, action: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", self.program, "gpuboot-dcgm-check", action],
            env={**os.environ, "SAID": str(self.output_file), "STATUS": str(status)},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    @property
    def calls(self) -> list[str]:
        return (self.output_file / "calls").read_text().splitlines()

    def metrics(self, check: str) -> dict[str, float]:
        """Series without node -> value; {} where there are none."""
        path = self.root / f"metrics/gpuboot_dcgm_{check}.prom"
        if not path.exists():
            return {}
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        rows = [line.rpartition(" ") for line in lines]
        assert all('node="gpu1"' in series for series, _, _ in rows)
        return {series.replace('node="gpu1",', ""): float(value) for series, _, value in rows}

    def bad(self, check: str) -> dict[str, float]:
        values = self.metrics(check).items()
        return {name: value for name, value in values if value > 0 and "_timestamp_" not in name}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def health(gpu: int, watch: str, code: str = "OK") -> str:
    return of(watch, code, gpu=str(gpu), uuid=UUIDS[gpu], model="NVIDIA H100 80GB HBM3")


def of(
    watch: str, code: str, gpu: str = "", uuid: str = "", entity: str = "", model: str = ""
) -> str:
    """A series. + code: without DCGM_FR_, or ""."""
    code = f"DCGM_FR_{code}" if code else ""
    return (
        f'gpuboot_dcgm_health{{gpu="{gpu}",UUID="{uuid}",entity="{entity}",health_watch="{watch}",'
        f'health_error_code="{code}",modelName="{model}"}}'
    )


def diag(gpu: int, test: str) -> str:
    return f'gpuboot_dcgm_diag{{gpu="{gpu}",UUID="{UUIDS[gpu]}",entity="",test="{test}"}}'


def test_what_is_watched_and_not_named_is_well(site: Site) -> None:
    completed = site.run("health")
    assert (completed.returncode, completed.stdout) == (0, "health: all well\n")
    metrics = site.metrics("health")
    assert {name for name, value in metrics.items() if value == 0} == {
        health(gpu, watch) for gpu in (0, 1) for watch in WELL
    }
    assert metrics['gpuboot_dcgm_health_timestamp_seconds{node="gpu1"}'] > 1.7e9


def test_watches_are_set_before_anything_is_asked_of_a_new_engine(site: Site) -> None:
    site.provide(watches=watches(on=False))
    assert site.run("health").returncode == 0
    assert site.calls == [
        "health -f -j", "health -s a", "health -f -j", "discovery -l", "health -c -j",
    ]  # fmt: skip
    site.run("health")
    assert site.calls[5:] == ["health -f -j", "discovery -l", "health -c -j"]


@pytest.mark.parametrize(
    ("overall", "verdict", "value"), [("Failure", "Failure", 20), ("Warning", "Warning", 10)]
)
@pytest.mark.parametrize("status", [0, 253])
def test_an_incident_is_told_by_gpu_and_watch_whatever_the_exit_status(
    site: Site, overall: str, verdict: str, value: int, status: int
) -> None:
    site.provide(health=incidents(overall, ("GPU", "1", "Memory system", verdict, DBE)))
    completed = site.run("health", status)
    assert completed.returncode == 0
    assert site.bad("health") == {health(1, "MEM", "VOLATILE_DBE_DETECTED"): value}
    assert f"health: MEM of GPU 1 {UUIDS[1]}: {verdict.lower()}: {DBE}" in completed.stdout


def test_a_verdict_ends_when_dcgm_ends_it(site: Site) -> None:
    site.provide(health=incidents("Failure", ("GPU", "1", "Memory system", "Failure", DBE)))
    site.run("health")
    assert site.bad("health")
    site.provide(health=healthy())
    site.run("health")
    assert not site.bad("health")


NO_HEALTH = {
    "empty": "",
    "truncated": incidents("Failure", ("GPU", "1", "Memory system", "Failure", DBE))[:-40],
    "no watches": "Error: Health watches not enabled. Please enable watches. \n",
    "no engine": NO_ENGINE,
    "another verdict": incidents("Failure", ("GPU", "1", "Memory system", "Internal error", DBE)),
    "another overall verdict": healthy().replace("Healthy", "Fine"),
    "not healthy, and nothing named": healthy().replace("Healthy", "Failure"),
    "another layout": json.dumps({"gpus": []}, indent=1),
    "another nesting": healthy().replace("}\n", '},"GPU":{"0":"Failure"}\n', 1),
}


@pytest.mark.parametrize("answer", list(NO_HEALTH))
def test_what_cannot_be_read_is_no_verdict(site: Site, answer: str) -> None:
    """What was known stays, with its age: an alert tells of that."""
    site.provide(health=incidents("Failure", ("GPU", "1", "Memory system", "Failure", DBE)))
    site.run("health")
    before = site.metrics("health")
    site.provide(health=NO_HEALTH[answer])
    completed = site.run("health")
    assert completed.returncode == 1
    assert completed.stderr.startswith("gpuboot-dcgm-check: dcgmi health")
    assert len(completed.stderr.splitlines()) == 1
    assert site.metrics("health") == before


@pytest.mark.parametrize("discovery", ["", NO_ENGINE, "0 GPUs found (Active).\n"])
@pytest.mark.parametrize("check", ["health", "diag"])
def test_without_gpus_nothing_is_well(site: Site, discovery: str, check: str) -> None:
    site.provide(discovery=discovery, diag=diagnosis(("software", [result(0, "Pass")])))
    completed = site.run(check)
    assert completed.returncode == 1
    assert "dcgmi discovery lists no GPU" in completed.stderr
    assert site.metrics(check) == {}


def test_watches_that_cannot_be_set_end_it(site: Site) -> None:
    site.provide(watches=watches(on=False))
    (site.output_file / "watches-on").write_text(watches(on=False))
    completed = site.run("health")
    assert (completed.returncode, site.metrics("health")) == (1, {})
    assert "DCGM does not watch" in completed.stderr


def test_a_diagnosis_that_passes(site: Site) -> None:
    site.provide(diag=diagnosis(("software", [result(0, "Pass"), result(1, "Pass")])))
    completed = site.run("diag")
    assert (completed.returncode, completed.stdout) == (0, "diag: all well\n")
    metrics = site.metrics("diag")
    assert metrics.pop('gpuboot_dcgm_diag_timestamp_seconds{node="gpu1"}') > 1.7e9
    assert metrics == {diag(0, "software"): 0, diag(1, "software"): 0}


@pytest.mark.parametrize("status", [0, 226])
def test_a_gpu_that_fails_a_test(site: Site, status: int) -> None:
    broken = result(1, "Fail", (6, "GPU 1 has a pending row remap.\nReset it."))
    site.provide(
        diag=diagnosis(("software", [result(0, "Pass"), broken]), ("other", [result(0, "Skip")]))
    )
    completed = site.run("diag", status)
    assert completed.returncode == 0
    assert site.bad("diag") == {diag(1, "software"): 20}
    assert "GPU 1 has a pending row remap. Reset it." in completed.stdout
    assert not any("other" in name for name in site.metrics("diag")), "it was not tried"


def test_a_mere_setting_of_the_node_is_a_warning(site: Site) -> None:
    off = result(0, "Fail", (5, "Persistence mode for GPU 0 is disabled."))
    site.provide(diag=diagnosis(("software", [off, result(1, "Warn")])))
    assert site.run("diag").returncode == 0
    assert site.bad("diag") == {diag(0, "software"): 10, diag(1, "software"): 10}


def test_a_summary_alone_and_another_version(site: Site) -> None:
    old = json.loads(diagnosis(("Denylist", []), root="DCGM GPU Diagnostic"))
    test = old["DCGM GPU Diagnostic"]["test_categories"][0]["tests"][0]
    test["results"] = [{"gpu_id": "1", "status": "Fail", "warnings": ["it is denied"]}]
    site.provide(diag=json.dumps(old, indent=1))
    assert site.run("diag").returncode == 0
    assert site.bad("diag") == {diag(1, "Denylist"): 20}
    del test["results"]
    test["test_summary"] = {"status": "Fail"}
    site.provide(diag=json.dumps(old, indent=1))
    assert site.run("diag").returncode == 0
    assert site.bad("diag") == {
        'gpuboot_dcgm_diag{gpu="",UUID="",entity="node",test="Denylist"}': 20
    }


NO_DIAGNOSIS = {
    "empty": "",
    "truncated": diagnosis(("software", [result(0, "Pass")]))[:-30],
    "did not run": not_run("Error: Diagnostic could not be run while DCGM is paused."),
    "no engine": NO_ENGINE,
    "no diagnostic": json.dumps({"metadata": {"version": "9.0.0"}}, indent=1),
    "nothing was tried": diagnosis(("software", [result(0, "Skip"), result(1, "Not Run")])),
    "another verdict": diagnosis(("software", [result(0, "Maybe")])),
    "another layout": json.dumps({"DCGM Diagnostic": {"tests": []}}, indent=1),
}


@pytest.mark.parametrize("answer", list(NO_DIAGNOSIS))
def test_a_diagnosis_that_cannot_be_read_is_no_verdict(site: Site, answer: str) -> None:
    site.provide(diag=NO_DIAGNOSIS[answer])
    completed = site.run("diag")
    assert (completed.returncode, site.metrics("diag")) == (1, {})
    assert completed.stderr.startswith("gpuboot-dcgm-check: dcgmi diag")


def test_why_it_did_not_run_is_told(site: Site) -> None:
    site.provide(diag=NO_DIAGNOSIS["did not run"])
    assert "could not be run while DCGM is paused" in site.run("diag").stderr


def test_anything_else_is_refused(site: Site) -> None:
    completed = site.run("policy")
    assert (completed.returncode, completed.stdout) == (1, "")
    assert "usage: gpuboot-dcgm-check health|diag" in completed.stderr
