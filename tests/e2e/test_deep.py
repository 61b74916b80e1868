"""Levels of a verification in the lab: quick, and deep with its stand-ins.

The stand-ins (lab/gpusim/deep) test nothing: what is tried here is what goes on around them, and
what becomes of their answers.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, Lab, Run, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-deep", "--gpus", "2,2")
NODE = "gpu1"
NODES = ("gpu1", "gpu2")
NCCL = "nvcr.io/nvidia/hpc-benchmarks:25.04"


def deep(**options: Any) -> dict[str, Any]:
    return {"deep": {"diag_level": 2, "nccl_image": NCCL, **options}}


def verified(lab: Lab, *arguments: str, **settings: Any) -> tuple[Run, dict[str, Any]]:
    """`gpuboot verify` with these arguments, and the report that it wrote."""
    all_settings = {"verify": {"reports": str(lab.reports), **settings}} if settings else None
    result = lab.command(
        ["gpuboot", "verify", "inventories/lab.py", "--json", *arguments], settings=all_settings
    )
    return result, json.loads(result.out) if result.out else {}


def statuses(report: dict[str, Any], link: str) -> list[str]:
    return [finding["status"] for finding in report["findings"] if finding["link"] == link]


def fault(lab: Lab, *words: str) -> None:
    result = lab.lab("fault", "--name", lab.name, NODE, *words)
    assert result.code == 0, result.details


def pods(lab: Lab) -> str:
    """Those of verifications."""
    return "\n".join(
        line for line in lab.kubectl("get", "pods", "-A").splitlines() if "gpuboot-verify" in line
    )


def test_quick_starts_no_pod_and_says_that_nothing_was_computed(site: Lab) -> None:
    start = time.monotonic()
    result, report = verified(site, "--level", "quick", "--nodes", NODE)
    print(f"quick: {time.monotonic() - start:.0f} s")
    assert result.code == 0, result.details
    assert (report["verdict"], report["nodes"]) == ("answering", [NODE])
    assert report["totals"]["proven"] == 0
    assert {"workload", "attribution", "services"}.isdisjoint(
        item["link"] for item in report["findings"]
    )
    assert "nothing was computed on them" in result.text
    rejected, _ = verified(site, "--level", "quick", "--nodes", "gpu9")
    assert rejected.code != 0
    assert "gpu9 is no node with GPUs of this inventory" in rejected.text


def test_deep_tests_a_free_node_and_leaves_nothing(site: Lab) -> None:
    fault(site, "set", "all", "util", "90")  # the stand-ins are no load
    result, report = verified(site, "--level", "deep", "--nodes", NODE, **deep())
    assert result.code == 0, result.details
    assert (report["verdict"], report["level"]) == ("proven", "deep")
    for link in ("diag", "bandwidth", "load"):
        assert statuses(report, link) == ["pass", "pass"]
    assert statuses(report, "collective") == ["pass"]
    assert report["simulated"]
    assert pods(site) == ""


def test_a_slow_link_wrong_values_and_memory_errors_are_named(site: Lab) -> None:
    fault(site, "set", "1", "pcie_width", "8")
    fault(site, "set", "0", "ecc_dbe", "1")
    fault(site, "set", "1", "cuda_wrong", "1")
    try:
        result, report = verified(site, "--level", "deep", "--nodes", NODE, **deep())
    finally:
        fault(site, "repair")
    assert result.code == 1, result.details
    order = [gpu["uuid"] for gpu in report["gpus"]]
    failed = {
        (finding["link"], finding["gpu_uuid"])
        for finding in report["findings"]
        if finding["status"] == "fail"
    }
    assert {("diag", order[0]), ("bandwidth", order[1]), ("collective", None)} <= failed
    assert ("load", order[1]) in failed


def test_a_hang_ends_and_a_resumed_run_tries_it_again(site: Lab) -> None:
    fault(site, "set", "all", "util", "90")
    hang = deep(timeout_s=60, nccl_command="GPUSIM_HANG=1 all_reduce_perf")
    result, report = verified(site, "--level", "deep", "--nodes", NODE, **hang)
    assert result.code == 1, result.details
    (collective,) = (finding for finding in report["findings"] if finding["link"] == "collective")
    assert collective["status"] == "fail"
    assert "hangs: no answer within" in collective["detail"]
    assert statuses(report, "diag") == ["pass", "pass"]
    resumed, report = verified(site, "--level", "deep", "--nodes", NODE, "--resume", **deep())
    assert resumed.code == 0, resumed.details
    third, _ = verified(site, "--level", "deep", "--nodes", NODE, "--resume", **deep())
    assert third.code == 0, third.details
    assert "tested before, not again" in third.text


def test_what_a_killed_one_leaves_is_removed(site: Lab) -> None:
    verify_settings = {"verify": {"reports": str(site.reports), **deep()}}
    running = subprocess.Popen(
        ["gpuboot", "verify", "inventories/lab.py", "--level", "deep", "--nodes", NODE],
        cwd=ROOT,
        env=site.environment(verify_settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until(lambda: "diag-" in pods(site), "a deep test")
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert pods(site)
    result, _ = verified(site, "--level", "deep", "--nodes", NODE, **deep())
    assert result.code == 0, result.details
    assert "removing what was left of a killed verification" in result.text
    assert pods(site) == ""


def test_a_node_in_use_is_left_alone(site: Lab) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-0", "namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": NODE},
            "containers": [
                {
                    "name": "train",
                    "image": NCCL,
                    "command": ["sleep", "3600"],
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                }
            ],
        },
    }
    site.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    site.kubectl("wait", "--for=condition=Ready", "pod/train-0", "--timeout=120s")
    try:
        result, report = verified(site, "--level", "deep", "--nodes", NODE, **deep())
        phase = site.kubectl("get", "pod", "train-0", "-o", "jsonpath={.status.phase}")
    finally:
        site.kubectl("delete", "pod", "train-0", "--now")
    assert result.code == 2, result.details
    assert phase == "Running"
    details = [finding["detail"] for finding in report["findings"] if finding["link"] == "diag"]
    assert details == ["its GPUs are in use by default/train-0"]


def between(**options: Any) -> dict[str, Any]:
    """Settings for tests between the nodes."""
    return deep(internode={"image": NCCL, "least_gbps": 0.004, **options})


def results_by_node(report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """What is found of each node between them."""
    return {
        finding["node"]: (finding["status"], finding["detail"])
        for finding in report["findings"]
        if finding["link"] == "internode"
    }


def test_two_nodes_work_together_and_are_judged_by_the_site_s_limit(site: Lab) -> None:
    for node in NODES:
        result = site.lab("fault", "--name", site.name, node, "set", "all", "util", "90")
        assert result.code == 0, result.details
    result, report = verified(site, "--level", "deep", **between())
    print(result.text)
    assert result.code == 0, result.details
    assert report["verdict"] == "proven"
    assert {status for status, _ in results_by_node(report).values()} == {"pass"}
    assert "GB/s by Socket" in results_by_node(report)["gpu1"][1]
    assert pods(site) == ""
    # nothing is tried again, and without a limit nobody knows what is enough
    resumed, report = verified(site, "--level", "deep", "--resume", **between(least_gbps=None))
    assert resumed.code == 2, resumed.details
    assert {status for status, _ in results_by_node(report).values()} == {"unknown"}
    assert resumed.text.count("tested before, not again") == 2
    assert "internode answered" not in resumed.text


def test_a_slow_network_of_a_node_fails_both_of_a_pair(site: Lab) -> None:
    device = site.ssh("gpu2", "ip -o route show default").split(" dev ")[1].split()[0]
    site.ssh("gpu2", f"tc qdisc replace dev {device} root tbf rate 16mbit burst 64kb latency 400ms")
    try:
        result, report = verified(site, "--level", "deep", **between())
    finally:
        site.ssh("gpu2", f"tc qdisc del dev {device} root")
    print(result.text)
    assert result.code == 1, result.details
    assert {status for status, _ in results_by_node(report).values()} == {"fail"}
    assert "below 0.004 (verify.deep.internode.least_gbps)" in results_by_node(report)["gpu1"][1]
    assert results_by_node(report)["gpu1"][1].endswith("; it is either node, or what lies between")


def test_a_hang_between_nodes_ends_and_a_resumed_run_tries_that_alone(site: Lab) -> None:
    hang = between(command="env GPUSIM_HANG=1 all_reduce_perf", timeout_s=60)
    result, report = verified(site, "--level", "deep", **hang)
    assert result.code == 1, result.details
    assert {status for status, _ in results_by_node(report).values()} == {"fail"}
    assert "it hangs: no answer within" in results_by_node(report)["gpu1"][1]
    resumed, report = verified(site, "--level", "deep", "--resume", **between())
    assert resumed.code == 0, resumed.details
    assert resumed.text.count("tested before, not again") == 2
    assert "gpu1 and gpu2: internode answered" in resumed.text
    assert pods(site) == ""
