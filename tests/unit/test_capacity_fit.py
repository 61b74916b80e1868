"""What fits now: the largest job, and GPUs that no job can get, each with why."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.cluster.api import ClusterError
from gpuboot.query.questions import from_json
from gpuboot.usage.capacity.capacity_question import CapacityQuestion, answered
from gpuboot.usage.capacity.capacity_report import Capacity, text
from gpuboot.usage.capacity.fit import Fit, Shape, fit, sizes
from gpuboot.usage.ranges import RangeQuestion
from gpuboot.usage.series import Window
from gpuboot.verify.prometheus import Prometheus

GPU = "nvidia.com/gpu"


def node(name: str = "gpu1", gpus: int = 8, **extra: Any) -> dict[str, Any]:
    """A node. `extra`: allocatable (GPUs that the kubelet offers), resources, taints, ready."""
    resources = {GPU: str(gpus), **extra.get("resources", {})}
    allocatable = {**resources, GPU: str(extra.get("allocatable", gpus))}
    machine = {"cpu": extra.get("cpu", "64"), "memory": extra.get("memory", "512Gi"), "pods": "110"}
    ready = "True" if extra.get("ready", True) else "False"
    return {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "H100"}},
        "spec": {"taints": extra.get("taints", []), "unschedulable": extra.get("cordoned", False)},
        "status": {
            "capacity": {**machine, **resources},
            "allocatable": {**machine, **allocatable},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def pod(
    gpus: int = 0, on: str = "gpu1", cpu: str = "1", memory: str = "1Gi", resource: str = GPU
) -> dict[str, Any]:
    limits = {resource: str(gpus)} if gpus else {}
    container = {"resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": limits}}
    return {
        "metadata": {"namespace": "team-a", "name": f"p{gpus}"},
        "spec": {"nodeName": on, "containers": [container]},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize(
    ("item", "pods", "usable", "stranded"),
    [
        (node(), [], 8, {}),
        (node(), [pod(3)], 5, {}),
        (node(allocatable=7), [pod(3)], 4, {"unhealthy: the device plugin does not offer them": 1}),
        (node(cpu="8"), [pod(2, cpu="5500m")], 2, {"CPU used up (2.5 cores left)": 4}),
        (node(memory="64Gi"), [pod(2, memory="60Gi")], 1, {"memory used up (4.0 GiB left)": 5}),
        (node(cpu="2"), [pod(cpu="3")], 0, {"CPU used up (0.0 cores left)": 8}),
        (node(cordoned=True), [pod(2)], 0, {"cordoned": 6}),
        (node(ready=False), [], 0, {"the node is not Ready": 8}),
        (node(taints=[{"key": "gpuboot.io/unproven", "effect": "NoSchedule"}]), [], 0,
         {"not proven (gpuboot.io/unproven)": 8}),
        (node(taints=[{"key": "gpu-quarantine", "value": "x", "effect": "NoSchedule"}]), [], 0,
         {"taint gpu-quarantine=x:NoSchedule": 8}),
        (node(taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]), [], 8, {}),
        (node(taints=[{"key": "soft", "effect": "PreferNoSchedule"}]), [], 8, {}),
        (node(cordoned=True), [pod(8)], 0, {}),
    ],
)  # fmt: skip
def test_free_gpus_are_usable_or_stranded_and_it_is_said_why(
    item: dict[str, Any], pods: list[dict[str, Any]], usable: int, stranded: dict[str, int]
) -> None:
    (row,) = fit([item], pods, Shape(cpu=1, memory=4)).nodes
    assert (row.usable, row.stranded) == (usable, stranded)
    assert row.capacity == row.held + row.usable + sum(row.stranded.values())


def test_pods_that_ended_hold_nothing_and_others_count_as_the_scheduler_counts() -> None:
    finished = {**pod(8), "status": {"phase": "Succeeded"}}
    starting = pod(0, cpu="1")
    starting["spec"]["initContainers"] = [
        {"resources": {"requests": {"cpu": "60"}}},
        {"resources": {"requests": {"cpu": "2"}}, "restartPolicy": "Always"},
    ]
    (row,) = fit([node()], [finished, starting], Shape()).nodes
    assert (row.held, row.usable) == (0, 4)
    assert row.stranded == {"CPU used up (4.0 cores left)": 4}


def test_mig_devices_take_cores_and_memory_from_each_other() -> None:
    small, large = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
    mig_node = node(gpus=0, cpu="10", resources={small: "7", large: "4"})
    first, second = fit([mig_node], [pod(1, resource=small, cpu="1")], Shape(cpu=1)).nodes
    assert (first.resource, first.held, first.usable) == (small, 1, 6)
    assert (second.resource, second.usable) == (large, 3)
    assert second.stranded == {"CPU used up (3.0 cores left)": 1}


def test_the_largest_pod_and_how_many_of_each_size() -> None:
    nodes = [node("a"), node("b"), node("c")]
    fitted = fit(nodes, [pod(2, "a"), pod(5, "b"), pod(7, "c")], Shape())
    assert [row.usable for row in fitted.nodes] == [6, 3, 1]
    assert sizes(fitted.nodes) == {1: 10, 2: 4, 4: 1, 6: 1}
    assert sizes([]) == {}
    output = text(Capacity("lab", fit=fitted))
    assert "H100 nvidia.com/gpu: 24 installed, 14 held, 10 usable, 0 stranded" in output
    assert "largest pod: 6 (a); pods that fit: 10 of 1, 4 of 2, 1 of 4, 1 of 6" in output


class Api:
    """Answers as the API server; everything else as a Prometheus that is not there."""

    def json(self, path: str, query: Any = None) -> Any:
        waiting = pod(4, on="")
        waiting["status"] = {
            "phase": "Pending",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
            ],
        }
        answers = {"/api/v1/nodes": [node()], "/api/v1/pods": [pod(6), waiting]}
        if path not in answers:
            raise ClusterError("no such service")
        return {"items": answers[path]}


def question() -> CapacityQuestion:
    return CapacityQuestion(RangeQuestion({"demand": "1"}, Window(0, 3600, 3600)), Shape(2, 8))


def test_a_silent_prometheus_does_not_hide_what_fits() -> None:
    parsed = from_json(question().to_json())
    assert parsed == question()
    answer = answered(question().answer(Prometheus(Api(), "/proxy"), Api()))
    assert answer.history is None
    assert answer.history_error == "Prometheus gives no answer: no such service"
    assert isinstance(answer.fit, Fit)
    output = text(Capacity("lab", refusal=answer.history_error, fit=answer.fit))
    assert "no forecast: Prometheus gives no answer: no such service" in output
    assert "waits: team-a/p4 for 4 nvidia.com/gpu: 0/1 nodes are available" in output
    assert "with 2 cores and 8 GiB of memory beside each GPU" in output


def test_nobody_could_be_asked() -> None:
    answer = answered(question().no_answer("there is no cluster to ask"))
    assert (answer.history, answer.fit) == (None, None)
    assert answer.fit_error == "there is no cluster to ask"
