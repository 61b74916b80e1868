"""Loads on a cluster that does not exist: what is taken, told, ended and removed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.settings import Settings
from gpuboot.verify.load import load_runner
from gpuboot.verify.load.load_answers import Outcome
from gpuboot.verify.load.load_pods import CONTAINER, START_S, LoadRequest
from tests.unit.evidence import SIZES, uuid
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import clock

__all__ = ["clock"]
COUNTED = "generated ???, dcgm 0.000 (2800.0 GB/s)"


@dataclass
class LoadCluster(FakeCluster):
    """+ started_at: when pods were made; runs_s: how long their programs run
    + ends: namespace -> its annotation
    + unpullable: nodes that cannot pull the image; silent: nodes whose programs never end
    """

    started_at: float = 0.0
    runs_s: float = 60.0
    ends: dict[str, str] = field(default_factory=dict)
    unpullable: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    refusing: set[tuple[str, int]] = field(default_factory=set)

    def _create_namespace(self, body: Any) -> dict[str, Any]:
        metadata = body["metadata"]
        self.ends[metadata["name"]] = metadata["annotations"][load_runner.ENDS]
        assert metadata["labels"]["app.kubernetes.io/component"] == "load"
        return super()._create_namespace(body)

    def _namespaces(self) -> list[dict[str, Any]]:
        namespaces = super()._namespaces()
        for item in namespaces:
            if ends := self.ends.get(item["metadata"]["name"]):
                item["metadata"]["annotations"] = {load_runner.ENDS: ends}
        return namespaces

    def _create_pod(self, body: dict[str, Any]) -> dict[str, Any]:
        self.started = time.monotonic()
        return super()._create_pod(body)

    def _status(self, pod: dict[str, Any], node: str) -> dict[str, Any]:
        if node in self.unpullable:
            state: dict[str, Any] = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
            phase = "Pending"
        elif time.monotonic() - self.started < self.runs_s or node in self.silent:
            state, phase = {"running": {}}, "Running"
        else:
            state, phase = {"terminated": {"exitCode": 0}}, "Succeeded"
        return {"phase": phase, "containerStatuses": [{"name": CONTAINER, "state": state}]}

    def _answer(self, path: str, query: dict[str, str]) -> Any:
        if path.startswith("/api/v1/namespaces/gpuboot-load-"):
            for pod in self.pods.values():
                if pod["spec"].get("nodeName"):
                    pod["status"] = self._status(pod, pod["spec"]["nodeName"])
            path = path.replace("gpuboot-load-", "gpuboot-verify-")
        return super()._answer(path, query)

    @property
    def _newest(self) -> str:
        return super()._newest.replace("gpuboot-load-", "gpuboot-verify-")

    def _gpu_log(self, pod: str, container: str) -> str:
        elapsed = time.monotonic() - self.started
        lines = []
        for gpu in self._held_devices(pod, container):
            name = uuid(*gpu)
            lines += [
                f"GPU {gpu[1]}: NVIDIA H100 (UUID: {name})",
                f"{name}: program dcgmproftester13",
            ]
            if gpu in self.refusing:
                lines += [f"{name}: CUDA_ERROR_UNKNOWN", f"{name}: exit 1"]
                continue
            lines.append(f"{name}: {COUNTED}")
            if elapsed >= self.runs_s and gpu[0] not in self.silent:
                lines.append(f"{name}: exit 0")
        return "\n".join(lines) + "\n"


def loaded(
    cluster: FakeCluster,
    messages: list[str] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    **fields: Any,
) -> Outcome:
    lines: list[str] = [] if messages is None else messages
    request = LoadRequest(**{"kind": "memory", "seconds": 60, **fields})
    return load_runner.run(
        cast(Cluster, cluster), SIZES, Settings(), request, lines.append, stopped
    )


def nothing_left(cluster: FakeCluster) -> bool:
    return not cluster.pods and set(cluster.namespaces.values()) <= {"Terminating"}


def test_all_free_gpus_are_loaded_in_one_pod_a_node_and_nothing_is_left() -> None:
    cluster, messages = LoadCluster(gpu_holders={("gpu2", 0): "ml/train-0"}), list[str]()
    outcome = loaded(cluster, messages)
    assert cluster.created_names == ["load-gpu1", "load-gpu2"]
    assert [gpu.uuid for gpu in outcome.gpus] == [
        *(uuid("gpu1", i) for i in range(2)),
        *(uuid("gpu2", i) for i in range(1, 4)),
    ]
    assert all(gpu.ended and gpu.said == COUNTED for gpu in outcome.gpus)
    assert (outcome.left, outcome.stopped, outcome.error) == ({}, False, "")
    assert nothing_left(cluster)
    assert f"gpu1 {uuid('gpu1', 0)}: {COUNTED}, by dcgmproftester13" in messages
    assert cluster.lease is None, "verifications may go on"


def test_it_ends_when_it_is_told_to() -> None:
    cluster, looks = LoadCluster(), iter([False, False, True])
    outcome = loaded(cluster, stopped=lambda: next(looks))
    assert outcome.stopped
    assert [gpu.error for gpu in outcome.gpus] == [""] * 6
    assert nothing_left(cluster)


def test_what_it_made_is_removed_when_the_cluster_stops_to_answer() -> None:
    cluster = LoadCluster()

    def stopped() -> bool:
        raise ClusterError("connection refused")

    with pytest.raises(ClusterError):
        loaded(cluster, stopped=stopped)
    assert nothing_left(cluster)


def test_a_gpu_whose_program_fails_is_told_beside_the_others() -> None:
    outcome = loaded(LoadCluster(refusing={("gpu1", 1)}))
    errors = {gpu.uuid: gpu.error for gpu in outcome.gpus if gpu.error}
    assert errors == {uuid("gpu1", 1): "CUDA_ERROR_UNKNOWN / exit code 1"}


def test_a_program_that_does_not_end_is_ended_and_an_error() -> None:
    cluster = LoadCluster(silent={"gpu1"})
    outcome = loaded(cluster)
    errors = {gpu.node: gpu.error for gpu in outcome.gpus}
    assert errors == {"gpu1": "its program did not end in time", "gpu2": ""}
    assert nothing_left(cluster)


def test_an_image_that_cannot_be_pulled_is_waited_for_and_told() -> None:
    cluster, messages = LoadCluster(unpullable={"gpu1"}), list[str]()
    outcome = loaded(cluster, messages)
    assert outcome.left == {"gpu1": "ErrImagePull in load: not found"}
    assert "gpu1: ErrImagePull: not found" in messages
    assert nothing_left(cluster)


def test_a_gpu_that_somebody_took_meanwhile_is_left() -> None:
    cluster = LoadCluster(cordoned={"gpu1"})
    plain = cluster._node
    cluster._node = lambda name, count: plain(name, count) | {"spec": {}}  # type: ignore[method-assign]
    outcome = loaded(cluster)
    assert outcome.left == {"gpu1": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}
    assert {gpu.node for gpu in outcome.gpus} == {"gpu2"}


def test_without_a_free_gpu_nothing_is_made() -> None:
    cluster = LoadCluster(cordoned=set(SIZES))
    outcome = loaded(cluster)
    assert outcome.left == dict.fromkeys(SIZES, "the node is cordoned")
    assert (cluster.created_names, cluster.namespaces) == ([], {})


def test_what_killed_ones_left_is_removed_when_its_time_is_over() -> None:
    names = {"gpuboot-load-old": "5", "gpuboot-load-lost": "", "gpuboot-load-other": "999999"}
    cluster, messages = (
        LoadCluster(namespaces=dict.fromkeys(names, "Active"), ends=names),
        list[str](),
    )
    loaded(cluster, messages)
    removal_lines = [
        line for line in messages if line.startswith("removing what a killed load has left")
    ]
    assert [line.rpartition(" ")[2] for line in removal_lines] == [
        "gpuboot-load-old",
        "gpuboot-load-lost",
    ]
    assert cluster.namespaces["gpuboot-load-other"] == "Active"


def test_its_namespace_says_until_when_others_leave_it_alone() -> None:
    cluster = LoadCluster()
    loaded(cluster)
    [ends] = cluster.ends.values()
    assert int(ends) >= 1000 + START_S + 60
