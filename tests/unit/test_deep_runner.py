"""Deep tests on a cluster that does not exist: which nodes, in which order, and what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.verify.deep import deep_files, deep_plan, deep_runner
from gpuboot.verify.deep.deep_answers import EXIT, Answer, DeepAnswers, NodeAnswers, PairAnswer
from gpuboot.verify.deep.verdicts import evaluate
from gpuboot.verify.devices import Host
from tests.unit import deep_outputs as printed
from tests.unit.evidence import SIZES, host, uuid
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import clock

__all__ = ["clock"]

HOSTS = [host(name, count) for name, count in SIZES.items()]
NCCL = {"nccl_image": "nvcr.io/nvidia/hpc-benchmarks:25.04"}


def settings(**deep: Any) -> Settings:
    return parse_settings({"verify": {"timeout_s": 10, "deep": {**NCCL, **deep}}})


@dataclass
class DeepCluster(FakeCluster):
    """+ hanging, unpullable: (node, test) that never ends, or never starts
    + order: (node, test) as they were asked for; peak_pods: pods at once
    """

    hanging: set[tuple[str, str]] = field(default_factory=set)
    unpullable: set[tuple[str, str]] = field(default_factory=set)
    order: list[tuple[str, str]] = field(default_factory=list)
    peak_pods: int = 0

    def _create_pod(self, body: dict[str, Any]) -> dict[str, Any]:
        created_pod = super()._create_pod(body)
        self.order.append(self._of(body["metadata"]["name"]))
        self.peak_pods = max(self.peak_pods, len(self.pods))
        return created_pod

    @staticmethod
    def _of(pod: str) -> tuple[str, str]:
        step, _, node = pod.partition("-")
        return node, step

    def _status(self, pod: dict[str, Any], node: str) -> dict[str, Any]:
        key = self._of(pod["metadata"]["name"])
        state: dict[str, Any] = {"terminated": {"exitCode": 0}}
        if key in self.hanging:
            state = {"running": {}}
        if key in self.unpullable:
            state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
        phase = {"terminated": "Succeeded", "running": "Running"}.get(next(iter(state)), "Pending")
        return {
            "phase": phase,
            "containerStatuses": [{"name": deep_plan.CONTAINER, "state": state}],
        }

    def _gpu_log(self, pod: str, container: str) -> str:
        node, step = self._of(pod)
        count = SIZES[node]
        gpu_list = "".join(
            f"GPU {i}: NVIDIA H100 80GB HBM3 (UUID: {uuid(node, i)})\n" for i in range(count)
        )
        if (node, step) in self.hanging:
            return gpu_list
        peers = [[None if i == j else 370.0 for j in range(count)] for i in range(count)]
        outputs = {
            "diag": printed.diag({"memory": ["Pass"] * count}),
            "bandwidth": printed.nvbandwidth([55.0] * count, peers),
            "collective": printed.nccl(count=count),
        }
        return f"{gpu_list}{outputs[step]}\n{EXIT}0\n"


def answers_of(
    cluster: FakeCluster,
    configured: Settings | None = None,
    hosts: Sequence[Host] = HOSTS,
    previous: DeepAnswers | None = None,
    saved_answers: list[NodeAnswers | PairAnswer] | None = None,
    messages: list[str] | None = None,
) -> Mapping[str, NodeAnswers]:
    lines: list[str] = [] if messages is None else messages
    results: list[NodeAnswers | PairAnswer] = [] if saved_answers is None else saved_answers
    return deep_runner.run_tests(
        cast(Cluster, cluster), hosts, configured or settings(), lines.append,
        lambda name: "", results.append, previous or DeepAnswers(),
    ).nodes  # fmt: skip


def statuses(answers: NodeAnswers) -> dict[str, set[str]]:
    statuses_by_link: dict[str, set[str]] = {}
    for item in evaluate(
        next(machine for machine in HOSTS if machine.node == answers.node), answers
    ):
        statuses_by_link.setdefault(item.link, set()).add(item.status)
    return statuses_by_link


def test_each_node_is_tested_one_test_after_the_other_and_nothing_is_left() -> None:
    cluster, saved_answers, messages = DeepCluster(), list[NodeAnswers | PairAnswer](), list[str]()
    answers_by_node = answers_of(cluster, saved_answers=saved_answers, messages=messages)
    assert [step for node, step in cluster.order if node == "gpu1"] == [
        "diag", "bandwidth", "collective"
    ]  # fmt: skip
    assert cluster.peak_pods == len(SIZES)
    assert (cluster.pods, cluster.lease) == ({}, None)
    assert set(cluster.namespaces.values()) == {"Terminating"}
    assert {answer.node for answer in saved_answers if isinstance(answer, NodeAnswers)} == set(
        SIZES
    )
    for answers in answers_by_node.values():
        node_statuses = statuses(answers)
        assert {link: node_statuses[link] for link in ("diag", "bandwidth", "collective")} == {
            "diag": {"pass"}, "bandwidth": {"pass"}, "collective": {"pass"}
        }  # fmt: skip
    assert answers_by_node["gpu2"].uuids == tuple(uuid("gpu2", i) for i in range(4))
    assert any(line.startswith("deep: gpu1: diag answered") for line in messages)
    assert any(line.startswith("deep: 0 of 2 nodes ended; at work: gpu1 (") for line in messages)


def test_no_more_nodes_at_once_than_are_wanted() -> None:
    cluster = DeepCluster()
    answers_of(cluster, settings(parallel=1))
    assert cluster.peak_pods == 1
    assert len(cluster.order) == 6


def test_a_pod_holds_all_gpus_and_ends_itself() -> None:
    cluster = DeepCluster()
    answers_of(cluster, settings(timeout_s=600, diag_level=2))
    spec = next(pod["spec"] for pod in cluster.created if pod["metadata"]["name"] == "diag-gpu2")
    (container,) = spec["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "4"}}
    assert spec["activeDeadlineSeconds"] == deep_plan.START_S + 660
    assert "dcgmi diag -r 2 -j" in container["command"][2]
    assert container["image"] == Settings().verify.deep.dcgm_image


def test_images_and_commands_are_those_of_the_settings() -> None:
    cluster = DeepCluster()
    custom = {"nvbandwidth_image": "mine/nvbandwidth:1", "nccl_command": "all_reduce_perf_mpi"}
    answers_of(cluster, settings(**custom), hosts=HOSTS[:1])
    containers = [pod["spec"]["containers"][0] for pod in cluster.created]
    assert [container["image"] for container in containers[1:]] == [
        "mine/nvbandwidth:1",
        NCCL["nccl_image"],
    ]
    assert "all_reduce_perf_mpi -b 16G -e 16G -g 2 -c 1" in containers[2]["command"][2]


def test_a_node_that_pods_use_is_left_alone() -> None:
    cluster = DeepCluster(gpu_holders={("gpu2", 1): "ml/train-0"})
    answers_by_node = answers_of(cluster)
    assert {node for node, _ in cluster.order} == {"gpu1"}
    assert answers_by_node["gpu2"].skipped == "its GPUs are in use by ml/train-0"


def test_what_a_killed_one_left_is_removed_before_nodes_are_chosen() -> None:
    messages, old = list[str](), "gpuboot-verify-old"
    cluster = DeepCluster(namespaces={old: "Active"}, gpu_holders={("gpu1", 0): f"{old}/diag-gpu1"})
    plain = cluster.send

    def send(method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        if path.endswith(f"{old}/pods"):
            cluster.gpu_holders.clear()
        return plain(method, path, body, missing_ok)

    cluster.send = send  # type: ignore[method-assign]
    answers_by_node = answers_of(cluster, messages=messages)
    assert f"removing what was left of a killed verification: {old}" in messages
    assert answers_by_node["gpu1"].skipped == ""
    assert set(cluster.namespaces.values()) == {"Terminating"}


def test_a_drained_node_is_tested() -> None:
    cluster = DeepCluster(cordoned={"gpu1"})
    answers_by_node = answers_of(cluster)
    assert statuses(answers_by_node["gpu1"])["diag"] == {"pass"}


def test_a_hang_ends_and_fails_and_the_next_test_is_tried() -> None:
    cluster = DeepCluster(hanging={("gpu1", "bandwidth")})
    answers_by_node = answers_of(cluster, settings(timeout_s=120))
    node_statuses = statuses(answers_by_node["gpu1"])
    assert (node_statuses["bandwidth"], node_statuses["collective"]) == ({"fail"}, {"pass"})
    assert 120 <= answers_by_node["gpu1"].steps["bandwidth"].seconds < 130
    assert cluster.pods == {}


def test_an_image_that_is_not_there_is_no_fault_of_the_gpu() -> None:
    answers_by_node = answers_of(DeepCluster(unpullable={("gpu1", "diag")}))
    assert statuses(answers_by_node["gpu1"])["diag"] == {"unknown"}
    assert "ErrImagePull" in answers_by_node["gpu1"].steps["diag"].reason
    assert 30 < answers_by_node["gpu1"].steps["diag"].seconds < 60


def test_all_nodes_together_have_a_time() -> None:
    cluster = DeepCluster(hanging={("gpu1", "diag")})
    answers_by_node = answers_of(cluster, settings(parallel=1, timeout_s=600, total_timeout_s=60))
    assert answers_by_node["gpu1"].steps["diag"].ended == "hung"
    assert answers_by_node["gpu1"].steps["bandwidth"].reason == "time was up"
    assert "was up" in answers_by_node["gpu2"].skipped
    assert cluster.pods == {}


def test_without_an_image_nccl_is_left_out_and_said() -> None:
    cluster = DeepCluster()
    answers_by_node = answers_of(cluster, settings(nccl_image=None))
    assert {step for _, step in cluster.order} == {"diag", "bandwidth"}
    assert statuses(answers_by_node["gpu1"])["collective"] == {"not_covered"}


def test_what_was_found_before_is_not_tried_again(tmp_path: Path) -> None:
    first = answers_of(DeepCluster(unpullable={("gpu2", "diag")}))
    for node_answers in first.values():
        deep_files.save(node_answers, tmp_path)
    cluster = DeepCluster()
    second_answers = answers_of(cluster, previous=deep_files.read(tmp_path))
    assert {node for node, _ in cluster.order} == {"gpu2"}, "its diagnosis never started"
    assert second_answers["gpu1"] == first["gpu1"]


def test_other_gpus_than_before_are_tested_again() -> None:
    old = replace(answers_of(DeepCluster())["gpu1"], uuids=("GPU-old",))
    cluster = DeepCluster()
    answers_of(cluster, previous=DeepAnswers(nodes={"gpu1": old}))
    assert "gpu1" in {node for node, _ in cluster.order}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"error": "cannot be reached"}, "cannot be reached"),
        ({"gpus": (replace(HOSTS[0].gpus[0], mig=True),)}, "MIG is on"),
        ({"gpus": HOSTS[0].gpus[:1]}, "it offers 2 of 1 GPUs"),
    ],
)
def test_nodes_that_cannot_be_tested_say_why(change: dict[str, Any], reason: str) -> None:
    answers_by_node = answers_of(DeepCluster(), hosts=[replace(HOSTS[0], **change)])
    assert reason in answers_by_node["gpu1"].skipped


def test_another_verification_is_waited_for_and_then_not_disturbed() -> None:
    foreign_lease = {
        "spec": {"holderIdentity": "gpuboot-verify-other", "renewTime": "2999-01-01T00:00:00Z"}
    }
    cluster = DeepCluster(lease=foreign_lease)
    answers_by_node = answers_of(cluster)
    assert cluster.order == []
    assert "another verification" in answers_by_node["gpu1"].skipped


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    assert deep_files.read(tmp_path) == DeepAnswers()
    folder = tmp_path / deep_files.FOLDER
    folder.mkdir()
    (folder / "gpu1.json").write_text('{"node": "gpu1", "steps": {"diag": {}}}')
    with pytest.raises(deep_files.KeptError, match=r"gpu1\.json"):
        deep_files.read(tmp_path)


def test_the_newest_report_of_the_cluster_with_answers_is_gone_on_with(tmp_path: Path) -> None:
    names = ("20261121T100000Z-lab", "20261122T100000Z-lab", "20261123T100000Z-lab")
    for name in names:
        (tmp_path / name).mkdir()
    current_folder = tmp_path / names[2]
    assert deep_files.newest(current_folder, "lab") is None
    deep_files.save(
        NodeAnswers(node="gpu1", steps={"diag": Answer(ended="answered")}), tmp_path / names[0]
    )
    assert deep_files.newest(current_folder, "lab") == (tmp_path / names[0]).resolve()


@pytest.mark.parametrize(
    ("memory", "size"), [(81559, "16G"), (40960, "8G"), (32768, "8G"), (15360, "2G"), (0, "1G")]
)
def test_messages_fit_into_a_gpu(memory: int, size: str) -> None:
    assert deep_plan.message_size(memory) == size
