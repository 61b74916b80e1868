"""How many pairs are tried at once, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gpuboot.cluster.pods import Pod, parse_pod
from gpuboot.config.settings import parse_settings
from gpuboot.verify.deep.deep_answers import EXIT, PairAnswer
from gpuboot.verify.deep.deep_plan import CONTAINER
from gpuboot.verify.deep.pair_runner import PairRunner
from gpuboot.verify.deep.pairs import rounds
from gpuboot.verify.session import Session
from tests.unit import deep_outputs as printed
from tests.unit.test_deep_pairs import plans

LOOKS = 3  # that mpirun takes


@dataclass
class FakeSession:
    """Pods that run at once, and end after some looks.

    + at_once: of pods with mpirun
    + changes: pods as they were made and deleted
    """

    running: dict[str, int] = field(default_factory=dict)
    at_once: int = 0
    changes: list[str] = field(default_factory=list)

    def create_secret(self, secret: dict[str, Any]) -> None:
        self.changes.append(f"+{secret['metadata']['name']}")

    def create(self, pods: list[dict[str, Any]]) -> None:
        for pod in pods:
            script = pod["spec"]["containers"][0]["command"][2]
            self.running[pod["metadata"]["name"]] = LOOKS if "mpirun --allow" in script else -1
            self.changes.append(f"+{pod['metadata']['name']}")
        self.at_once = max(self.at_once, sum(polls >= 0 for polls in self.running.values()))

    def delete(self, pod: str) -> None:
        del self.running[pod]
        self.changes.append(f"-{pod}")

    def wait(self, seconds: float) -> None:
        self.running = {
            pod: polls - 1 if polls > 0 else polls for pod, polls in self.running.items()
        }

    def pods(self) -> Mapping[str, Pod]:
        return {pod: self._pod(pod, polls) for pod, polls in self.running.items()}

    def log(self, pod: str, container: str) -> str:
        return f"{EXIT}0" if self.running[pod] == 0 else ""

    def whole_log(self, pod: str, container: str) -> str:
        return f"{printed.between({'a': 8, 'b': 8})}\n{EXIT}0\n"

    @staticmethod
    def _pod(name: str, polls: int) -> Pod:
        word = "terminated" if polls == 0 else "running"
        states = [{"name": CONTAINER, "state": {word: {}}}]
        return parse_pod({
            "metadata": {"name": name, "namespace": "gpuboot-verify"},
            "spec": {"containers": [{"name": CONTAINER}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": states},
        })  # fmt: skip


@pytest.mark.parametrize(("parallel", "at_once"), [(1, 1), (2, 1), (4, 2), (64, 3)])
def test_two_nodes_at_work_for_each_pair(parallel: int, at_once: int) -> None:
    session, saved_answers = FakeSession(), list[PairAnswer]()
    deep = {"parallel": parallel, "internode": {"image": "mine/nccl-tests:1"}}
    settings = parse_settings({"verify": {"deep": deep}})
    pair_rounds = rounds(plans(6))
    uuids = {f"n{i}": [f"GPU-{i}"] for i in range(6)}
    runner = PairRunner(
        cast(Session, session),
        settings,
        lambda line: None,
        saved_answers.append,
        uuids,
        float("inf"),
    )
    answers = runner.run(pair_rounds)
    assert session.at_once == at_once
    assert saved_answers == answers
    assert {answer.nodes for answer in answers} == {
        pair.nodes for pairs in pair_rounds for pair in pairs
    }
    assert {answer.answer.exit for answer in answers} == {0}
    assert answers[0].uuids == ("GPU-0", "GPU-1")
    assert session.running == {}
    assert session.changes.count("+internode-ssh") == 1
    last_of_first = max(
        session.changes.index(f"-{p.pod(n)}") for p in pair_rounds[0] for n in p.nodes
    )
    first_of_second = min(session.changes.index(f"+{p.pod(p.second.name)}") for p in pair_rounds[1])
    assert last_of_first < first_of_second, "no node is in two pairs at once"
