"""GPUs that the settings divide by MIG: made, proven by instance, changed under a drain, undone.

Device plugin and GPU feature discovery are real. The MIG manager is a stand-in that takes the steps
of the real one, among them to stop the kubelet for a change of MIG mode.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from tests.e2e.conftest import Lab, assert_refused, until
from tests.e2e.workloads import train

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-mig", "--gpus", "2,1", "--no-deploy")
OPERATOR = {"gpu_operator": {"mig_strategy": "mixed"}}
BALANCED = {**OPERATOR, "sharing": {"gpu1": {"mig": "all-balanced"}}}
HALF = {
    **OPERATOR,
    "sharing": {"gpu1": {"mig": "half"}},
    "mig_layouts": {
        "half": [
            {"gpus": [0], "instances": {"3g.40gb": 1, "1g.10gb": 3}},
            {"gpus": [1], "instances": {}},
        ]
    },
}
SINGLE = {
    "gpu_operator": {"mig_strategy": "single"},
    "sharing": {"gpu1": {"mig": "all-1g.10gb"}},
}
MIG_DISABLED = {**OPERATOR, "sharing": {"gpu1": {"mig": "all-disabled"}}}
SMALL = "nvidia.com/mig-1g.10gb"
STATE = "nvidia.com/mig.config.state"


@pytest.fixture(scope="module", autouse=True)
def capable(site: Lab) -> None:
    """Machines whose GPUs can be divided."""
    for machine in ("gpu1", "gpu2"):
        site.ssh(machine, "echo 'mig = 1' >> /var/lib/gpu-sim/hardware.conf")


def node(lab: Lab, name: str = "gpu1") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(lab.kubectl("get", "node", name, "-o", "json"))
    return document


def allocatable(lab: Lab) -> dict[str, int]:
    """What gpu1 offers of GPUs and instances."""
    offers = node(lab)["status"]["allocatable"]
    counts = {name: int(n) for name, n in offers.items() if name.startswith("nvidia.com/")}
    return {name: count for name, count in counts.items() if count}


def instances(lab: Lab) -> Counter[str]:
    """What nvidia-smi lists of gpu1: profile -> how many."""
    output = lab.lab("ssh", "--name", lab.name, "gpu1", "nvidia-smi -L").out
    return Counter(re.findall(r"^  MIG (\S+) +Device", output, re.M))


def series(lab: Lab) -> Counter[str]:
    """Instances that Prometheus has temperatures of: profile -> how many."""
    samples = lab.prometheus('DCGM_FI_DEV_GPU_TEMP{GPU_I_ID!=""}')
    return Counter(sample["metric"]["GPU_I_PROFILE"] for sample in samples)


def test_a_node_comes_into_the_cluster_divided(site: Lab) -> None:
    result = site.deploy(settings=BALANCED)
    print(result.details)
    assert result.code == 0, result.details
    expected = {"1g.10gb": 4, "2g.20gb": 2, "3g.40gb": 2}
    assert instances(site) == expected
    assert allocatable(site) == {
        f"nvidia.com/mig-{name}": count for name, count in expected.items()
    }
    assert node(site)["metadata"]["labels"][STATE] == "success"
    assert node(site, "gpu2")["metadata"]["labels"]["nvidia.com/mig.config"] == "all-disabled"
    report = json.loads((site.reports / "latest/verify.json").read_text())
    passed = [finding for finding in report["findings"] if finding["link"] == "workload"]
    assert Counter((finding["node"], finding["status"]) for finding in passed) == {
        ("gpu1", "pass"): 8,
        ("gpu2", "pass"): 1,
    }
    assert series(site) == expected


def test_a_second_run_has_nothing_to_do(site: Lab) -> None:
    assert site.deploy("--json", settings=BALANCED).changes == []


def test_a_pod_on_an_instance_is_told_by_its_series(site: Lab) -> None:
    site.kubectl("apply", "-f", "-", stdin=train("gpu1", SMALL))
    site.kubectl("rollout", "status", "deployment/train", "--timeout=120s")
    first = "jsonpath={.items[0].metadata.name}"
    name = site.kubectl("get", "pods", "-l", "app=train", "-o", first)
    query = f'DCGM_FI_DEV_GPU_TEMP{{pod="{name}"}}'
    [entry] = until(lambda: site.prometheus(query), "the pod's series")
    assert entry["metric"]["GPU_I_PROFILE"] == "1g.10gb"
    result, report = site.verify(settings=BALANCED)
    assert result.code == 2, "what a pod holds is not tried"
    [held_finding] = [entry for entry in report["findings"] if entry["status"] != "pass"]
    assert held_finding["detail"] == f"held by default/{name}"
    statuses = {
        entry["link"]: entry["status"]
        for entry in report["findings"]
        if entry["gpu_uuid"] == held_finding["gpu_uuid"]
    }
    assert statuses["attribution"] == "pass"


def test_another_layout_drains_the_node_and_is_proven(site: Lab) -> None:
    plan = site.dry(settings=HALF)
    print(plan.err)
    assert "default/train-" in plan.text, "the plan names the pod that is moved away"
    result = site.deploy(settings=HALF)
    print(result.details)
    assert result.applied, result.details  # the pod is back by then, and holds an instance
    expected = {"1g.10gb": 3, "3g.40gb": 1}
    assert instances(site) == expected
    resources = {f"nvidia.com/mig-{name}": count for name, count in expected.items()}
    assert allocatable(site) == {**resources, "nvidia.com/gpu": 1}
    assert "unschedulable" not in node(site)["spec"]
    site.kubectl("rollout", "status", "deployment/train", "--timeout=120s")
    site.kubectl("delete", "deployment", "train")
    assert site.deploy("--json", settings=HALF).changes == []


def test_a_layout_is_made_again_after_a_reboot(site: Lab) -> None:
    """Which the simulated GPUs forget, as H100 and newer do."""
    site.reboot("gpu1")
    until(lambda: instances(site) == {"1g.10gb": 3, "3g.40gb": 1}, "divided again", 240)
    result = site.deploy("--json", settings=HALF)
    assert result.code == 0, result.details


def test_a_layout_that_cannot_be_made_is_told_and_tried_again(site: Lab) -> None:
    """nvidia-smi of gpu1 answers the MIG manager as a driver does whose GPU is in use."""
    fail = """
mv /usr/bin/nvidia-smi /usr/bin/nvidia-smi.real
cat > /usr/bin/nvidia-smi <<'EOF'
#!/bin/sh
case "$*" in
  mig*-dgi*) echo 'Unable to destroy GPU instance ID 1: In use by another client'; exit 19 ;;
esac
exec /usr/bin/nvidia-smi.real "$@"
EOF
chmod +x /usr/bin/nvidia-smi
"""
    site.ssh("gpu1", fail)
    try:
        assert_refused(site.deploy(settings=BALANCED), "MIG layout all-balanced: failed")
    finally:
        site.ssh("gpu1", "mv /usr/bin/nvidia-smi.real /usr/bin/nvidia-smi")
    assert node(site)["spec"]["unschedulable"], "what is not proven stays out of service"
    result = site.deploy(settings=BALANCED)
    assert result.code == 0, result.details
    assert instances(site) == {"1g.10gb": 4, "2g.20gb": 2, "3g.40gb": 2}


def test_under_the_strategy_single_each_instance_is_a_gpu(site: Lab) -> None:
    result = site.deploy(settings=SINGLE)
    print(result.details)
    assert result.code == 0, result.details
    assert instances(site) == {"1g.10gb": 14}
    assert allocatable(site) == {"nvidia.com/gpu": 14}
    report = json.loads((site.reports / "latest/verify.json").read_text())
    assert report["verdict"] == "proven", report
    tested = {
        finding["gpu_uuid"] for finding in report["findings"] if finding["link"] == "workload"
    }
    assert len(tested) == 15, "those of gpu1, and the GPU of gpu2"
    assert site.deploy("--json", settings=SINGLE).changes == []


def test_whole_again_with_another_driver_in_one_run(site: Lab, lock: dict[str, Any]) -> None:
    """The node is upgraded first, and proven with the layout that it has until then."""
    earlier = lock["previous"]["driver"]
    result = site.deploy(settings={**MIG_DISABLED, "driver": earlier})
    print(result.details)
    assert result.code == 0, result.details
    query = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
    assert set(site.ssh("gpu1", query).split()) == {earlier["version"]}
    assert instances(site) == {}
    assert allocatable(site) == {"nvidia.com/gpu": 2}
    # Prometheus goes on showing what a pod told that is gone, for at most five minutes
    until(lambda: not series(site), "the end of the instances' series", 330)
