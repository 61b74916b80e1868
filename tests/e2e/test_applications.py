"""The training example in the lab: scraped, logged, and joined with the GPUs that its pod holds.

The program is docs/examples/applications/training.py as it stands. The lab has no image with
Python, so the pod runs that of its node. GPUs and their watts are simulated.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import ROOT, Lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-applications", "--gpus", "2,1")

FOLDER = ROOT / "docs/examples/applications"
WATTS = (650, 400)  # of the two GPUs of gpu1
POD = 'namespace="ml",pod=~"training-.+"'
# A rate over five minutes is too low as long as the series is younger; and a scrape, and a rule.
WATCHED_S = 300 + 60
IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"
PYTHON = [
    "/host/usr/lib64/ld-linux-x86-64.so.2",
    "--library-path",
    "/host/usr/lib/x86_64-linux-gnu",
    "/host/usr/bin/python3",
]


def objects() -> list[dict[str, Any]]:
    """The example's own, but for the image and where Python is."""
    files = {path.name: path.read_text() for path in FOLDER.glob("*.py")}
    [monitor] = yaml.safe_load_all((FOLDER / "podmonitor.yaml").read_text())
    [job] = yaml.safe_load_all((FOLDER / "training.yaml").read_text())
    spec = job["spec"]["template"]["spec"]
    spec["nodeSelector"] = {"kubernetes.io/hostname": "gpu1"}
    [container] = spec["containers"]
    container["image"] = IMAGE
    container["command"] = [*PYTHON, *container["command"][1:]]
    container["env"].append({"name": "PYTHONHOME", "value": "/host/usr"})
    container["volumeMounts"].append({"name": "host", "mountPath": "/host", "readOnly": True})
    spec["volumes"].append({"name": "host", "hostPath": {"path": "/"}})
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "data": files,
         "metadata": {"name": "example", "namespace": "ml"}},
        monitor,
        job,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def training(site: Lab) -> str:
    """The pod's name, while it trains on two GPUs that draw `WATTS`."""
    site.ssh("gpu1", "apt-get install -y -qq --no-install-recommends python3 >/dev/null")
    for gpu, watts in enumerate(WATTS):
        result = site.lab("fault", "--name", site.name, "gpu1", "set", str(gpu), "power_mw",
                        str(1000 * watts))  # fmt: skip
        assert result.code == 0, result.text
    until(
        lambda: value(site, 'sum(DCGM_FI_DEV_POWER_USAGE{node="gpu1"})') == sum(WATTS),
        "the watts in Prometheus",
    )
    site.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects()))

    def running() -> str:
        pods = json.loads(site.kubectl("get", "pods", "-n", "ml", "-o", "json"))["items"]
        return "".join(p["metadata"]["name"] for p in pods if p["status"]["phase"] == "Running")

    pod: str = until(running, "the training pod")
    return pod


def value(lab: Lab, query: str) -> float | None:
    """The value of the only series; None where there is none."""
    samples = lab.prometheus(query)
    assert len(samples) <= 1, samples
    return float(samples[0]["value"][1]) if samples else None


def counted(lab: Lab, pod: str) -> tuple[float, float]:
    """When the program was asked for its own counter, and what it said."""
    page = lab.kubectl("get", "--raw", f"/api/v1/namespaces/ml/pods/{pod}:9464/proxy/metrics")
    [count] = re.findall(r'^ml_samples_total\{phase="training"\} (\S+)$', page, re.MULTILINE)
    return time.monotonic(), float(count)


def test_what_prometheus_records_is_what_the_program_counted(site: Lab, training: str) -> None:
    start, before = counted(site, training)
    time.sleep(WATCHED_S)
    end, after = counted(site, training)
    counted_rate = (after - before) / (end - start)
    assert (
        0 < counted_rate <= 65
    )  # 64 samples a step, a pause of a second after each; by two clocks
    recorded = value(site, f"namespace_pod:samples:rate5m{{{POD}}}")
    assert recorded == pytest.approx(counted_rate, rel=0.1)
    scraped = value(site, f'ml_samples_total{{{POD},node="gpu1",phase="training"}}')
    assert scraped == pytest.approx(after, abs=64 * 45)


def test_samples_are_joined_with_the_gpus_of_their_pod(site: Lab, training: str) -> None:
    for record, expected in (
        ("namespace_pod:gpu_whole:count", 2),
        ("namespace_pod:gpu_whole_power:sum5m", sum(WATTS)),
    ):
        query = f"{record}{{{POD}}}"
        until(lambda query=query: value(site, query), record)  # type: ignore[misc]
        assert value(site, query) == expected
    rate = f"namespace_pod:samples:rate5m{{{POD}}}"
    for unit, divisor in (("gpu", 2), ("joule", sum(WATTS))):
        series = f"namespace_pod:samples_per_{unit}:rate5m{{{POD}}}"
        assert value(site, f"{rate} / on (namespace, pod, phase) {series}") == (
            pytest.approx(divisor, rel=0.02)
        )


def test_log_lines_name_the_gpus_that_the_pod_holds(site: Lab, training: str) -> None:
    lines = [json.loads(line) for line in site.kubectl("logs", "-n", "ml", training).splitlines()]
    assert lines
    gpus = site.prometheus(f"group by (UUID) (DCGM_FI_DEV_GPU_TEMP{{{POD}}})")
    for line in lines:
        assert (line["node"], line["namespace"], line["pod"]) == ("gpu1", "ml", training)
        assert set(line["gpu_uuid"].split(",")) == {gpu["metric"]["UUID"] for gpu in gpus}
        assert len(gpus) == 2


def test_nothing_is_made_up_of_a_pod_that_has_ended(site: Lab, training: str) -> None:
    site.kubectl("delete", "job", "-n", "ml", "training", "--now")
    until(lambda: not site.prometheus(f"namespace_pod:samples:rate5m{{{POD}}}"), "its end")
    assert not site.prometheus(f"namespace_pod:samples_per_joule:rate5m{{{POD}}}")
    assert not site.prometheus(f"namespace_pod:gpu_whole:count{{{POD}}}")
