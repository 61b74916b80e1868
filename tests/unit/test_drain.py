"""What a drain moves, what stays, what keeps a pod on its node, and how that is told."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from pyinfra.api.host import Host

from deploys.engine import waiting
from deploys.engine.remote import RemoteError
from deploys.parts.cluster import node_drain as moving
from deploys.parts.cluster.pods_fact import NodePods as NodePodsFact
from gpuboot.cluster import drain
from gpuboot.cluster.budgets import Budget
from gpuboot.cluster.drain import NodePods, Pod
from tests.cluster_answers import item_list, make_object, packed

Json = dict[str, Any]
BLOCKING_BUDGET = Budget("ml", "b", 1, 1, "app=web")


def owner(kind: str, name: str) -> Json:
    return {"kind": kind, "name": name, "controller": True}


def pod(name: str, *owners: Json, **fields: Any) -> Json:
    labels, annotations = fields.pop("labels", {}), fields.pop("annotations", {})
    manifest = make_object(name, "ml", labels=labels, annotations=annotations)
    manifest["metadata"] |= {"ownerReferences": list(owners), **fields.pop("meta", {})}
    spec = {"containers": [{"name": "m", "resources": {"limits": fields.get("limits")}}]}
    ready = {"type": "Ready", "status": "True" if fields.get("ready", True) else "False"}
    status = {"phase": fields.get("phase", "Running"), "conditions": [ready]}
    return {**manifest, "spec": {**spec, "volumes": fields.get("volumes")}, "status": status}


def budget(name: str, selector: Json | None, allowed: int, namespace: str = "ml") -> Json:
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1}
    return make_object(name, namespace, spec={"selector": selector}, status=status)


def node(ready: str = "True") -> Json:
    return make_object("gpu1", status={"conditions": [{"type": "Ready", "status": ready}]})


def state(*pods: Json, budgets: tuple[Json, ...] = (), volumes: tuple[Json, ...] = (),
          node_answer: Json | None = None) -> NodePods:  # fmt: skip
    paths = drain.paths("gpu1")
    bodies = (node_answer or node(), item_list(*pods), item_list(*budgets), item_list(*volumes))
    return drain.parse(packed(dict(zip(paths, bodies, strict=True))), "gpu1")


def test_daemonsets_and_static_pods_stay() -> None:
    node_pods = state(
        pod("exporter", owner("DaemonSet", "exporter")),
        pod("etcd-cp1", owner("Node", "cp1"), annotations={"kubernetes.io/config.mirror": "x"}),
        pod("train-0", owner("StatefulSet", "train"), limits={"nvidia.com/gpu": "2", "cpu": "1"}),
        pod("web-5d-x", owner("ReplicaSet", "web-5d"), labels={"pod-template-hash": "5d"}),
        pod("old", owner("ReplicaSet", "old")),
        pod("alone", {"kind": "Thing", "name": "x"}),
    )
    assert [str(item) for item in node_pods.leaving] == [
        "ml/train-0 (StatefulSet train, 2 GPUs)",
        "ml/web-5d-x (Deployment web)",
        "ml/old (ReplicaSet old)",
        "ml/alone (no controller: nothing makes it again)",
    ]
    assert (node_pods.exists, node_pods.ready) == (True, True)
    assert state(node_answer=node("Unknown")).ready is False


def test_a_node_that_the_cluster_does_not_know() -> None:
    paths = drain.paths("gpu1")
    lines = packed({paths[0]: None, **{path: item_list() for path in paths[1:]}})
    assert drain.parse(lines, "gpu1") == NodePods()
    assert drain.parse(["error\tno route", "end\tok"], "gpu1").error == "no route"


@pytest.mark.parametrize(
    ("selector", "blocked"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "x"}}, False),
        ({}, True),
        (None, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_the_budget_that_keeps_a_pod(selector: Json | None, blocked: bool) -> None:
    web = pod("web", owner("StatefulSet", "web"), labels={"app": "web"})
    [leaving] = state(web, budgets=(budget("b", selector, 0),)).leaving
    expected = ["PodDisruptionBudget ml/b (1 healthy, 1 needed)"] if blocked else []
    assert [str(item) for item in leaving.held_by] == expected
    [free] = state(web, budgets=(budget("b", selector, 1),)).leaving
    assert (free.held_by, free.budgets) == ((), ("b",) if blocked else ())
    [leaving_pod] = state(web, budgets=(budget("b", selector, 0, "else"),)).leaving
    assert leaving_pod.budgets == ()


def test_what_is_lost_is_named() -> None:
    affinity = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["gpu1"]}

    def volume(name: str, **claim: Any) -> Json:
        terms = [{"matchExpressions": [affinity]}]
        required = {"required": {"nodeSelectorTerms": terms}}
        return make_object(name, spec={"nodeAffinity": required, **claim})

    node_pods = state(
        pod("alone", volumes=[{"name": "cache", "emptyDir": {}}]),
        pod("shm", owner("Job", "j"), volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}},
                                               {"name": "c", "configMap": {}}]),
        volumes=(volume("pv1", claimRef={"namespace": "ml", "name": "data"}), volume("pv2"),
                 make_object("nfs", spec={})),
    )  # fmt: skip
    assert drain.loss_lines(node_pods) == [
        "ml/alone has no controller: nothing makes it again",
        "ml/alone loses what is in emptyDir cache",
        "volume pv1 (ml/data) is on this machine alone",
        "volume pv2 is on this machine alone",
    ]
    assert len(drain.loss_lines(node_pods, leaves_for_good=False)) == 2
    assert drain.forbidden(node_pods, empty_dirs=True, unmanaged=True) == []
    prefix = "ml/alone (no controller: nothing makes it again) has"
    assert drain.forbidden(node_pods, empty_dirs=False, unmanaged=False) == [
        f"{prefix} data in emptyDir cache", f"{prefix} nobody who makes it again",
    ]  # fmt: skip


def test_only_what_may_be_ended_is_told_to_kubectl() -> None:
    """kubectl asks for the option for directories in memory too, which nobody expects to keep."""
    plain = state(pod("a", owner("Job", "j")))
    assert drain.options(plain, empty_dirs=False, unmanaged=False) == "--ignore-daemonsets"
    assert drain.options(plain, empty_dirs=True, unmanaged=True) == (
        "--ignore-daemonsets --delete-emptydir-data --force"
    )
    shm = state(pod("b", volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}]))
    assert drain.options(shm, empty_dirs=False, unmanaged=True) == (
        "--ignore-daemonsets --delete-emptydir-data --force"
    )


def test_a_pod_that_has_ended_keeps_nobody() -> None:
    ended_pod = pod("once", phase="Succeeded", volumes=[{"name": "out", "emptyDir": {}}])
    assert drain.forbidden(state(ended_pod), empty_dirs=False, unmanaged=False) == []


def leaving_pod(name: str, **fields: Any) -> Pod:
    return Pod(namespace="ml", name=name, owner="Deployment web", **fields)


def test_progress_names_first_who_is_kept() -> None:
    pods = (leaving_pod("a"), leaving_pod("b", held_by=(BLOCKING_BUDGET,)))
    look = drain.progress(NodePods(leaving=pods), 5, "")
    assert look.text == (
        "3 of 5 pods have left; still there: ml/b (Deployment web) is kept by PodDisruptionBudget "
        "ml/b (1 healthy, 1 needed); ml/a (Deployment web)"
    )
    ending = (
        leaving_pod("c", ending=True, finalizers=("x/y",)),
        leaving_pod("d", budgets=("one", "two")),
    )
    assert drain.progress(NodePods(leaving=ending), 2, "").text == (
        "0 of 2 pods have left; still there: ml/c (Deployment web) is ending, which waits for x/y; "
        "ml/d (Deployment web): several PodDisruptionBudgets count it: one, two"
    )
    many = tuple(leaving_pod(str(number)) for number in range(9))
    assert drain.progress(NodePods(leaving=many), 9, "").text.endswith(" and 4 more")
    assert drain.progress(NodePods(error="x"), 9, "").text == "the API server does not answer: x"
    assert drain.progress(NodePods(), 9, "error: y").text == "all pods have left; error: y"


def test_the_remedy_is_of_what_keeps_it() -> None:
    node_pods = NodePods(leaving=(leaving_pod("a", budgets=("b",), held_by=(BLOCKING_BUDGET,)),))
    assert "change the budget" in drain.remedy(node_pods, "gpu1")
    waits = drain.remedy(NodePods(leaving=(leaving_pod("a", ending=True),)), "gpu1")
    assert waits.startswith("see what they wait for")
    assert waits.endswith("kubectl uncordon gpu1")


def test_the_fact_asks_for_one_node() -> None:
    fact = NodePodsFact()
    command = fact.command("/etc/kubernetes/admin.conf", "gpu1")
    assert "spec.nodeName%3Dgpu1" in command
    first, *paths = drain.paths("gpu1")
    answers = {first: make_object("gpu1"), **dict.fromkeys(paths, item_list())}
    lines = ["node\tgpu1", *packed(answers)]
    assert fact.value(lines) == NodePods(exists=True)


class Leader:
    """A leader on which `kubectl drain` ends well after some tries."""

    name = "cp1"
    print_prefix = "[cp1] "

    def __init__(self, *states: NodePods, cordoned: bool = False) -> None:
        self.states, self.cordoned = list(states), cordoned
        self.commands: list[str] = []

    def run(self, host: object, command: str, stdin: str = "") -> str:
        self.commands.append(command)
        if "unschedulable" in command:
            return "true" if self.cordoned else ""
        if " drain " in command and self.states[0].leaving:
            raise RemoteError(
                "cp1: kubectl drain: error when evicting: global timeout reached: 10s"
            )
        if " get pods " in command:
            return json.dumps(
                {"items": [make_object("c", "ml", spec={}, status={"phase": "Pending"})]}
            )
        return ""

    def read(self, host: object, fact: object, **arguments: str) -> NodePods:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


@pytest.fixture
def leads(monkeypatch: pytest.MonkeyPatch) -> Any:
    def leading(*states: NodePods, cordoned: bool = False) -> Leader:
        leader = Leader(*states, cordoned=cordoned)
        monkeypatch.setattr(waiting, "POLL_S", 0)
        monkeypatch.setattr(moving, "run", leader.run)
        monkeypatch.setattr(moving, "read_fact", leader.read)
        return leader

    return leading


def test_a_drain_goes_on_until_all_pods_have_left(leads: Any) -> None:
    leader = leads(
        NodePods(leaving=(leaving_pod("a"),)), NodePods(leaving=(leaving_pod("a"),)), NodePods()
    )
    moving.drain(cast(Host, leader), "gpu1", 30)
    look, cordon, *evictions = leader.commands
    assert "unschedulable" in look
    assert cordon.endswith("cordon gpu1")
    assert all(
        f" drain gpu1 --ignore-daemonsets --delete-emptydir-data --force --timeout={moving._STEP_S}"
        in command
        for command in evictions
    )


def test_a_drain_that_is_late_names_the_pod_its_owner_and_its_budget(leads: Any) -> None:
    blocked_pod = leaving_pod("a", budgets=("b",), held_by=(BLOCKING_BUDGET,))
    leader = leads(NodePods(leaving=(blocked_pod,)))
    expected = (
        r"(?s)not drained, and stays cordoned: not done after 0 s.*ml/a \(Deployment web\) is kept "
        r"by .*ml/b.*; not Ready of the pods that b counts: c \(on no node\): Pending"
        r".*remedy: .*uncordon gpu1"
    )
    with pytest.raises(RemoteError, match=expected):
        moving.drain(cast(Host, leader), "gpu1", 0)
    assert leader.commands[-1].endswith("get pods --namespace ml --selector app=web --output json")


@pytest.mark.parametrize("cordoned", [False, True])
def test_a_node_with_pods_that_may_not_be_ended_is_left_as_it_was(
    leads: Any, cordoned: bool
) -> None:
    """They are looked for when no others can come any more."""
    leader = leads(NodePods(leaving=(leaving_pod("a", empty_dirs=("cache",)),)), cordoned=cordoned)
    with pytest.raises(moving.DrainRefusedError, match=r"ml/a .* has data in emptyDir cache"):
        moving.drain(cast(Host, leader), "gpu1", 0, empty_dirs=False)
    verbs = [command.split()[3] for command in leader.commands[1:]]
    assert verbs == ["cordon", *([] if cordoned else ["uncordon"])]
    with pytest.raises(RemoteError, match="does not answer"):
        moving.drain(cast(Host, leads(NodePods(error="x"))), "gpu1", 0)
