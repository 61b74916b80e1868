"""NCCL between nodes on a cluster that does not exist: pairs, their pods, and what is left."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
)

from gpuboot.cluster.api import Cluster
from gpuboot.cluster.objects import Node
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.verify.deep import deep_files, deep_runner, internode, pairs
from gpuboot.verify.deep.deep_answers import EXIT, Answer, DeepAnswers, PairAnswer
from gpuboot.verify.deep.deep_plan import CONTAINER, START_S, Plan
from tests.unit import deep_outputs as printed
from tests.unit.evidence import SIZES
from tests.unit.test_deep_runner import HOSTS, DeepCluster
from tests.unit.test_runner import clock

__all__ = ["clock"]

PAIR = ("gpu1", "gpu2")
ADDRESS = "10.244.2.7"


def settings(timeout_s: int = 600, **deep: Any) -> Settings:
    internode_settings = {"image": "mine/nccl-tests:1", **deep.pop("internode", {})}
    deep_settings = {"timeout_s": timeout_s, "internode": internode_settings, **deep}
    return parse_settings({"verify": {"timeout_s": 10, "deep": deep_settings}})


@dataclass
class PairCluster(DeepCluster):
    """+ secrets: that were made
    + ranks: node -> GPUs that take part between nodes
    """

    secrets: list[dict[str, Any]] = field(default_factory=list)
    ranks: dict[str, int] = field(default_factory=lambda: dict(SIZES))

    def send(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        if path.endswith("/secrets"):
            assert path.split("/")[-2] in self.namespaces
            self.secrets.append(body)
            return body
        return super().send(method, path, body, missing_ok)

    @staticmethod
    def _of(pod: str) -> tuple[str, str]:
        step, node = pod.split("-")[:2]
        return node, step

    def _status(self, pod: dict[str, Any], node: str) -> dict[str, Any]:
        key = self._of(pod["metadata"]["name"])
        waits = "sshd" in pod["spec"]["containers"][0]["command"][2]
        if key[1] != "internode" or not waits or key in self.unpullable:
            return super()._status(pod, node)
        state = {"name": CONTAINER, "state": {"running": {}}}
        return {"phase": "Running", "podIP": ADDRESS, "containerStatuses": [state]}

    def _gpu_log(self, pod: str, container: str) -> str:
        if self._of(pod)[1] != "internode":
            return super()._gpu_log(pod, container)
        if self._of(pod) in self.hanging:
            return "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-x)\n"
        hosts = {f"internode-{node}-0": count for node, count in self.ranks.items()}
        return f"{printed.between(hosts)}\n{EXIT}0\n"

    def between(self) -> list[dict[str, Any]]:
        """The pods of pairs, in the order in which they were asked for."""
        return [pod for pod in self.created if pod["metadata"]["name"].startswith("internode-")]


def answers_of(
    cluster: PairCluster,
    configured: Settings | None = None,
    previous: DeepAnswers | None = None,
    saved_answers: list[Any] | None = None,
    messages: list[str] | None = None,
) -> DeepAnswers:
    return deep_runner.run_tests(
        cast(Cluster, cluster),
        HOSTS,
        configured or settings(),
        ([] if messages is None else messages).append,
        lambda name: "",
        ([] if saved_answers is None else saved_answers).append,
        previous or DeepAnswers(),
    )


def statuses(answers: DeepAnswers, threshold: float | None = 100.0) -> dict[str, tuple[str, str]]:
    return {
        item.node: (item.status, item.detail)
        for item in internode.evaluate(HOSTS, answers, threshold)
    }


def test_two_nodes_are_tried_after_their_own_tests_and_nothing_is_left() -> None:
    cluster, saved_answers, messages = PairCluster(), list[Any](), list[str]()
    answers = answers_of(cluster, saved_answers=saved_answers, messages=messages)
    first, second = (pod["metadata"]["name"] for pod in cluster.between())
    assert (first, second) == ("internode-gpu2-0", "internode-gpu1-0"), "the one that waits first"
    assert cluster.created[-2:] == cluster.between()
    assert (cluster.pods, cluster.lease, len(cluster.secrets)) == ({}, None, 1)
    assert answers.pairs[PAIR].answer.exit == 0
    assert [answer.nodes for answer in saved_answers if isinstance(answer, PairAnswer)] == [PAIR]
    assert {status for status, _ in statuses(answers).values()} == {"pass"}
    assert "deep: gpu1 and gpu2: internode" in messages


def test_the_pods_of_a_pair() -> None:
    cluster = PairCluster()
    options = {"resources": {"rdma/hca": "8"}, "environment": {"NCCL_IB_HCA": "=mlx5_0"}}
    answers_of(cluster, settings(internode={**options, "host_network": True}))
    waiting, running = (pod["spec"] for pod in cluster.between())
    (container,) = running["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "2", "rdma/hca": "8"}}
    assert {"name": "NCCL_IB_HCA", "value": "=mlx5_0"} in container["env"]
    script = container["command"][2]
    assert f'-np 6 -H "$POD_IP:2,{ADDRESS}:4"' in script
    assert "-x NCCL_IB_HCA" in script
    assert "all_reduce_perf -b 16G -e 16G -g 1 -c 1" in script
    assert waiting["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "4"
    assert waiting["hostNetwork"]
    assert waiting["activeDeadlineSeconds"] > START_S + 600


@pytest.mark.parametrize("number", [0, 1])
def test_the_scripts_can_be_read_by_a_shell(number: int) -> None:
    cluster = PairCluster()
    answers_of(cluster)
    script = cluster.between()[number]["spec"]["containers"][0]["command"][2]
    subprocess.run(["sh", "-n"], input=script, text=True, check=True, timeout=30)


def test_an_image_without_a_program_says_which(tmp_path: Path) -> None:
    cluster = PairCluster()
    answers_of(cluster)
    script = cluster.between()[1]["spec"]["containers"][0]["command"][2]
    result = subprocess.run(
        ["/bin/sh", "-c", script], env={"PATH": str(tmp_path)}, text=True, capture_output=True,
        timeout=30, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (127, "gpuboot: this image has no mpirun\n")


def test_the_key_stands_in_a_secret_and_nowhere_else() -> None:
    cluster = PairCluster()
    answers_of(cluster)
    (secret,) = cluster.secrets
    data = secret["stringData"]
    private = load_ssh_private_key(data["id_ed25519"].encode(), None)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert data["id_ed25519.pub"].strip() == public
    assert data["known_hosts"] == f"gpuboot {public}\n"
    assert "StrictHostKeyChecking yes" in data["config"]
    assert pairs.keys()["stringData"]["id_ed25519"] != data["id_ed25519"], "each has its own"
    for pod in cluster.between():
        assert "PRIVATE KEY" not in str(pod)
        volumes = {item["name"]: item for item in pod["spec"]["volumes"]}
        assert volumes["keys"]["secret"] == {
            "secretName": secret["metadata"]["name"], "defaultMode": 0o400
        }  # fmt: skip


def test_a_pair_that_hangs_ends_and_names_both() -> None:
    cluster = PairCluster(hanging={("gpu1", "internode")})
    answers = answers_of(cluster, settings(timeout_s=120))
    assert 120 <= answers.pairs[PAIR].answer.seconds < 130
    assert cluster.pods == {}
    status, text = statuses(answers)["gpu1"]
    assert (status, text) == (
        "fail",
        "with gpu2: it hangs: no answer within 122 s; it is either node, or what lies between",
    )
    assert statuses(answers)["gpu2"][0] == "fail"


@pytest.mark.parametrize("node", PAIR)
def test_a_pod_that_does_not_start_is_named_and_no_failure(node: str) -> None:
    answers = answers_of(PairCluster(unpullable={(node, "internode")}))
    status, text = statuses(answers)["gpu1"]
    assert status == "unknown"
    assert f"{node}: ErrImagePull in deep: not found" in text


def test_a_peer_of_which_gpus_are_missing_is_named() -> None:
    answers = answers_of(PairCluster(ranks={"gpu1": 2, "gpu2": 3}))
    assert statuses(answers)["gpu2"] == (
        "fail", "with gpu1: not all GPUs took part (gpu2: 3 of 4 GPUs)"
    )  # fmt: skip
    assert statuses(answers)["gpu1"][0] == "not_covered"


def test_the_time_of_all_tests_is_that_of_pairs_too() -> None:
    cluster = PairCluster(hanging={("gpu1", "bandwidth"), ("gpu2", "bandwidth")})
    answers = answers_of(cluster, settings(total_timeout_s=60))
    assert cluster.between() == []
    assert statuses(answers)["gpu1"] == ("not_covered", "its own tests hang")
    late = PairCluster(hanging={("gpu1", "internode")})
    hung = answers_of(late, settings(timeout_s=600, total_timeout_s=60))
    assert hung.pairs[PAIR].answer.ended == "hung"
    assert hung.pairs[PAIR].answer.seconds < 80
    assert late.pods == {}


def test_without_an_image_or_a_free_node_it_says_why() -> None:
    cluster = PairCluster()
    answers = answers_of(cluster, settings(internode={"image": None}))
    assert (cluster.between(), cluster.secrets) == ([], [])
    assert statuses(answers)["gpu1"] == (
        "not_covered", "verify.deep.internode.image names no image with nccl-tests"
    )  # fmt: skip
    busy = PairCluster(gpu_holders={("gpu2", 1): "ml/train-0"})
    busy_statuses = statuses(answers_of(busy))
    assert busy_statuses["gpu1"] == ("not_covered", "no other node was free")
    assert busy_statuses["gpu2"] == ("not_covered", "its GPUs are in use by ml/train-0")


def test_one_node_has_no_other() -> None:
    assert internode.evaluate(HOSTS[:1], DeepAnswers(), None) == []


def test_what_was_found_before_is_not_tried_again(tmp_path: Path) -> None:
    first = answers_of(PairCluster())
    deep_files.save_all(first, tmp_path)
    previous = deep_files.read(tmp_path)
    assert previous == first
    second_cluster = PairCluster()
    assert answers_of(second_cluster, previous=previous) == first
    assert second_cluster.created == []
    replaced_answers = {PAIR: replace(first.pairs[PAIR], uuids=("GPU-old",))}
    hung = {PAIR: replace(first.pairs[PAIR], answer=Answer(ended="hung"))}
    for changed in (replaced_answers, hung):
        retried = PairCluster()
        answers_of(retried, previous=DeepAnswers(nodes=previous.nodes, pairs=changed))
        assert len(retried.between()) == 2
        assert len(retried.created) == 2


def plans(count: int) -> list[Plan]:
    return [
        Plan(
            name=f"n{i}",
            node=Node(name=f"n{i}", ready=True, allocatable={"nvidia.com/gpu": "8"}),
            gpus=8,
            left_out={},
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("count", range(8))
def test_each_node_is_tried_with_two_others_and_never_twice_at_once(count: int) -> None:
    pair_rounds = pairs.rounds(plans(count))
    attempts = Counter(node for pairs_ in pair_rounds for pair in pairs_ for node in pair.nodes)
    often = {0: 0, 1: 0, 2: 1}.get(count, 2)
    assert attempts == Counter({f"n{i}": often for i in range(count) if often})
    for pair_round in pair_rounds:
        nodes = [node for pair in pair_round for node in pair.nodes]
        assert len(nodes) == len({*nodes})
    names = [pair.pod(node) for pairs_ in pair_rounds for pair in pairs_ for node in pair.nodes]
    assert len(names) == len({*names}), "a name that comes again would have the old log"


def test_nodes_that_cannot_be_tested_are_in_no_pair() -> None:
    three = plans(3)
    three[1] = replace(three[1], node=None, skipped="in use")
    (only,) = pairs.rounds(three)
    assert [pair.nodes for pair in only] == [("n0", "n2")]
