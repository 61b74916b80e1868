"""What a first run begins early, and what it waits for last."""

import json
from typing import Any

import pytest

from tests.plan.test_plan import plan


@pytest.fixture(scope="module")
def names() -> list[str]:
    result = plan()
    assert result.returncode == 0, result.stderr
    steps: list[dict[str, Any]] = json.loads(result.stdout)["plan"]
    return [step["name"].partition(" (")[0] for step in steps]


def test_downloads_go_on_while_drivers_are_installed(names: list[str]) -> None:
    download_index = names.index("Downloads | Start downloads of packages")
    assert download_index < next(
        number for number, name in enumerate(names) if "Install NVIDIA" in name
    )
    pulled = names.index("Kubernetes | Start pulling images")
    assert pulled < next(number for number, name in enumerate(names) if "Install kubelet" in name)


def test_charts_are_applied_before_anything_is_waited_for(names: list[str]) -> None:
    """The exporter of the GPU Operator takes longest until it is ready, so it comes first."""
    order = [
        "Custom resources | Apply the first custom resources of kube-prometheus-stack",
        "GPU Operator | Deploy gpu-operator",
        "Monitoring | Wait until a node can run pods",
        "Monitoring | Renew the custom resources of kube-prometheus-stack",
        "Monitoring | Deploy kube-prometheus-stack",
        "Rollout | Wait until nodes, workloads and GPUs are ready",
        "Verify | Verify every GPU, from the PCI bus to Prometheus",
    ]
    assert [name for name in names if name in order] == order
    assert [name for name in names if "Wait until" in name] == [order[2], order[5]]
