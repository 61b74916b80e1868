"""Static pods are written again as kubeadm makes them, and only when nothing else is due."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.in_force import operations as compared
from deploys.parts.kubeadm import static_pod_operations as operation
from gpuboot.cluster.cluster_state import ClusterState, KubeadmState
from gpuboot.cluster.settings_in_force import InForce
from gpuboot.cluster.static_pods import StaticPods, is_running, parse
from gpuboot.hosts.boot import ConfigLine
from tests.unit.recordings import in_force
from tests.unit.test_boot import Machine

PLANTED = parse(in_force()["planted"]["static_pods"])
MEMBER = KubeadmState(files=("kubelet.conf", "admin.conf"), kubelet_config="d1")
CLUSTER = ClusterState(config="d1", api_servers={"cp1": "1.36.3"})
AS_INSTALLED = replace(MEMBER, packages={"kubelet": "1.36.3-1.1"})
SILENT = ClusterState(error="connection refused")


class Host:
    """A host that an operation of the leader's runs on."""

    name = "cp1"
    noops: list[str]

    def __init__(self) -> None:
        self.noops = []
        self.state = self

    @property
    def inventory(self) -> Host:
        return self

    def get_host(self, name: str) -> Host:
        return self

    def noop(self, text: str) -> None:
        self.noops.append(text)


@dataclass
class Outcome:
    """What an operation did: commands, what it recorded, and what it leaves."""

    commands: list[str]
    recorded: list[Any]
    decisions: list[Any]
    noops: list[str]


def run_operation(
    monkeypatch: pytest.MonkeyPatch, module: Any, body: Any, facts: Any, **arguments: Any
) -> Outcome:
    host, recorded, decisions = Host(), [], []
    answers = {type(fact).__name__: fact for fact in facts}
    names = {"Kubeadm": "KubeadmState", "Cluster": "ClusterState"}

    def read(fact: Any, **_: Any) -> Any:
        return answers[names.get(fact.__name__, fact.__name__)]

    monkeypatch.setattr(module, "host", host)
    monkeypatch.setattr(module, "read", read)
    monkeypatch.setattr(module.remote, "read_fact", lambda _, fact, **__: read(fact))
    monkeypatch.setattr(module.changes, "record", lambda *items: recorded.extend(items))
    monkeypatch.setattr(module.changes, "respect", lambda *items: decisions.extend(items))
    if hasattr(module, "executing"):
        monkeypatch.setattr(module, "executing", lambda: False)
        monkeypatch.setattr(module, "foresee", lambda _: None)
    commands = [str(command) for command in body(**arguments)]
    return Outcome(commands, recorded, decisions, host.noops)


def run(monkeypatch: pytest.MonkeyPatch, *facts: Any) -> Outcome:
    arguments = {"node": "cp1", "leader": "cp1", "digest": "d1", "version": "1.36.3", "config": "c"}
    body = operation.as_made._inner
    return run_operation(monkeypatch, operation, body, facts, **arguments)


def test_what_somebody_changed_is_written_again_beside_the_folder_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = run(monkeypatch, MEMBER, CLUSTER, PLANTED)
    backup, *writes = outcome.commands
    assert "gpuboot-etcd-backup reconfigure" in backup
    assert len(writes) == 3
    for part, command in zip(
        ("etcd", "kube-apiserver", "kube-controller-manager"), writes, strict=True
    ):
        assert command.startswith("umask 077; printf %s ")
        assert command.endswith(
            f"> /etc/kubernetes/.gpuboot-{part}.yaml && mv /etc/kubernetes/.gpuboot-{part}.yaml "
            f"/etc/kubernetes/manifests/{part}.yaml"
        )
    targets = [item.target for item in outcome.recorded if hasattr(item, "target")]
    assert targets == ["static pod etcd", "static pod kube-apiserver",
                       "static pod kube-controller-manager"]  # fmt: skip


@pytest.mark.parametrize(
    "facts",
    [
        (replace(MEMBER, files=()), CLUSTER, PLANTED),
        (replace(MEMBER, started=("upgrade",)), CLUSTER, PLANTED),
        (MEMBER, replace(CLUSTER, config="d0"), PLANTED),  # other settings are due
        (MEMBER, replace(CLUSTER, api_servers={"cp1": "1.35.4"}), PLANTED),  # an upgrade is
        (MEMBER, replace(CLUSTER, api_servers={}, error="no answer"), PLANTED),
        (MEMBER, CLUSTER, StaticPods(error="kubeadm: no")),
        (MEMBER, CLUSTER, replace(PLANTED, actual=PLANTED.expected)),
    ],
)
def test_while_they_are_right_or_somebody_else_s_they_stay(
    monkeypatch: pytest.MonkeyPatch, facts: Any
) -> None:
    outcome = run(monkeypatch, *facts)
    assert (outcome.commands, outcome.recorded) == ([], [])
    assert len(outcome.noops) == 1


@pytest.mark.parametrize(
    ("state", "cluster", "parts"),
    [
        (AS_INSTALLED, SILENT, ["kube-apiserver"]),
        # of three control planes another one answers
        (AS_INSTALLED, replace(CLUSTER, api_servers={"cp2": "1.36.3"}), ["kube-apiserver"]),
        # an upgrade, or other settings, are due
        (replace(AS_INSTALLED, packages={"kubelet": "1.35.4-1.1"}), SILENT, []),
        (replace(AS_INSTALLED, kubelet_config="d0"), SILENT, []),
    ],
)
def test_without_its_api_server_a_host_gets_back_what_is_gone(
    monkeypatch: pytest.MonkeyPatch, state: KubeadmState, cluster: ClusterState, parts: list[str]
) -> None:
    actual = {name: PLANTED.actual[name] for name in PLANTED.actual if "apiserver" not in name}
    result = run(monkeypatch, state, cluster, replace(PLANTED, actual=actual))
    # what somebody has changed waits until the cluster tells what it is to be
    assert [command.rpartition("/")[2] for command in result.commands] == [
        f"{part}.yaml" for part in parts
    ]


def test_a_member_of_etcd_keeps_what_it_joined_by(monkeypatch: pytest.MonkeyPatch) -> None:
    text = PLANTED.expected["etcd.yaml"]
    joined = text.replace(
        "    - --initial-cluster=cp1=https://10.77.1.11:2380\n",
        "    - --initial-cluster=cp0=https://10.0.0.1:2380,cp1=https://10.77.1.11:2380\n"
        "    - --initial-cluster-state=existing\n",
    )
    assert joined != text
    state = replace(PLANTED, actual={**PLANTED.expected, "etcd.yaml": joined})
    assert run(monkeypatch, MEMBER, CLUSTER, state).commands == []


def test_it_has_started_when_each_process_has_the_flags() -> None:
    assert is_running(PLANTED)
    assert not is_running(replace(PLANTED, running=PLANTED.running[1:]))
    assert not is_running(replace(PLANTED, actual=PLANTED.expected))


def kubelet(monkeypatch: pytest.MonkeyPatch, state: KubeadmState, in_force: InForce) -> Outcome:
    arguments = {
        "node": "gpu1",
        "leader": "cp1",
        "question": {},
        "expected": {"maxPods": 110},
        "digests": ["d1"],
        "lines": [ConfigLine("/etc/default/kubelet", 1, "ExecStart=")],
    }
    body = compared.kubelet_compared._inner
    return run_operation(monkeypatch, compared, body, (state, in_force), **arguments)


def test_a_kubelet_is_named_that_runs_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    in_force = InForce(kubelets={"gpu1": {"maxPods": 20}})
    assert "maxPods is 20" in kubelet(monkeypatch, MEMBER, in_force).decisions[0].what
    # what a run is about to write and restart
    for state in (
        replace(MEMBER, kubelet_config="d0"),
        replace(MEMBER, kubelet_edited=True),
        replace(MEMBER, kubelet_flags='KUBELET_KUBEADM_ARGS="--max-pods=20"'),
    ):
        assert kubelet(monkeypatch, state, in_force).decisions == []


@pytest.mark.parametrize(
    "in_force",
    [InForce(error="the API server is silent"), InForce(unanswered={"gpu1": "is silent"})],
)
def test_a_kubelet_that_does_not_answer_is_unknown(
    monkeypatch: pytest.MonkeyPatch, in_force: InForce
) -> None:
    [item] = kubelet(monkeypatch, MEMBER, in_force).decisions
    assert "not known" in item.what
    assert "silent" in item.why


def test_static_pods_of_a_worker(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file("etc/kubernetes/manifests/agent.yaml", "kind: Pod\n")
    machine.file("etc/kubernetes/manifests/.agent.yaml.swp", "")
    assert machine.state(["dash"]).static_pods == ("agent.yaml",)
    machine.file("etc/kubernetes/manifests/kube-apiserver.yaml", "kind: Pod\n")
    assert machine.state(["dash"]).static_pods == ()
