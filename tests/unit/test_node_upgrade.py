"""Which nodes are upgraded together, what that disturbs, and who keeps pods off a node."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import gevent
import pytest

from deploys.engine import turns
from deploys.parts.nodes import node_service
from deploys.parts.nodes import operations as node_upgrade
from deploys.parts.nodes.node_parts import Parts
from deploys.phases import node_software as parts
from gpuboot.cluster import node_upgrade as rules
from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.node_upgrade import Difference
from gpuboot.config.inventory import Node
from gpuboot.config.settings.upgrade import batches, unknown_groups
from tests.unit.test_runtime import context

INSTALLED: Any = {"version": "595.91.07", "loaded": "595.91.07"}
OLD: Any = {"version": "595.91.07", "loaded": "595.71.05"}


def node(name: str, *groups: str) -> Node:
    return Node(name, name, "", "worker", 8, leader=False, groups=groups)


@pytest.mark.parametrize(
    ("difference", "module", "ends", "text"),
    [
        (Difference(**INSTALLED), "", False, ""),
        (Difference(**INSTALLED, toolkit={"t": "1"}), "", False, "toolkit"),
        (Difference(**INSTALLED, containerd={"c": "1"}), "", False, "containerd"),
        (Difference(**OLD), "driver 595.71.05", True, "driver 595.71.05 → 595.91.07"),
        (Difference(**OLD, driver={"d": "1"}, toolkit={"t": "1"}), "driver 595.71.05", True,
         "driver 595.71.05 → 595.91.07, toolkit"),
        # libraries of another driver than the module's end each program that starts
        (Difference(**INSTALLED, driver={"d": "1"}), "", True, "driver"),
        (Difference(version="595.91.07", driver={"d": "1"}), "", False, "driver"),
        (Difference(version="595.91.07", loaded="nouveau"), "nouveau", True,
         "driver nouveau → 595.91.07"),
    ],
)  # fmt: skip
def test_what_an_upgrade_disturbs(
    difference: Difference, module: str, ends: bool, text: str
) -> None:
    assert (difference.module, difference.ends_gpu_pods, str(difference)) == (module, ends, text)
    assert bool(difference) is (difference != Difference(**INSTALLED))
    assert difference.drained("when-needed") is ends
    assert difference.drained("always")
    assert not difference.drained("never")


def test_packages_are_compared_by_pattern() -> None:
    patterns = {"a": "1.2-*", "b": "", "c": "3", "d": "1.2-*"}
    assert rules.mismatched(patterns, {"a": "1.2-1", "b": "9", "d": "1.20-1"}) == {
        "c": "3", "d": "1.2-*",
    }  # fmt: skip


def test_gpus_that_are_gone_are_named() -> None:
    assert rules.missing_gpus([], ["GPU-1"]) == ""
    assert rules.missing_gpus(["GPU-1", "GPU-2"], ["GPU-2"]) == (
        "nvidia-smi no longer lists GPU-1, as it did before"
    )


def test_a_reason_is_one_line() -> None:
    assert rules.annotation("one\n  two\tthree") == "one two three"
    assert len(rules.annotation("x" * 9999)) == 1000


def test_workers_go_by_the_groups_that_the_settings_name() -> None:
    nodes = [node("a", "workers"), node("b", "workers", "a100"), node("c", "h100", "a100"),
             node("d", "h100")]  # fmt: skip

    def describe_batches(limit: Any) -> list[tuple[str, list[str], int]]:
        return [
            (item.title, [node.name for node in item.nodes], item.max_parallel)
            for item in batches(limit, nodes)
        ]

    assert describe_batches("50%") == [("the workers", ["a", "b", "c", "d"], 2)]
    assert describe_batches({"a100": "50%", "h100": 3}) == [
        ("the workers of a100", ["b", "c"], 1),
        ("the workers of h100", ["d"], 3),
        ("the other workers", ["a"], 1),
    ]
    assert describe_batches({"*": 2, "none": 1}) == [("the other workers", ["a", "b", "c", "d"], 2)]


def test_groups_that_the_inventory_lacks_are_named() -> None:
    limit = {"a100": 1, "h200": 2, "b": 1, "*": 1}
    problems = unknown_groups(limit, ["workers", "a100"])
    assert [item.cause.split()[2] for item in problems] == ["'h200',", "'b',"]
    assert problems[0].remedy == "name one of a100, workers, or * for the rest"
    assert unknown_groups("10%", []) == []


@pytest.mark.parametrize(
    ("changes", "due"),
    [
        ({}, False),
        ({"driver_loaded": "595.71.05"}, True),
        ({"driver_loaded": "595.71.05", "kubeconfigs": {}}, False),
        ({"packages": {}}, True),
    ],
)
def test_bare_hosts_and_nodes_as_they_are_to_be_are_not_upgraded_as_nodes(
    changes: dict[str, Any], due: bool
) -> None:
    plain = context()
    packages = parts.driver(plain) | parts.toolkit(plain) | parts.containerd(plain)
    state = {
        "packages": {name: version.replace("*", "1") for name, version in packages.items()},
        "driver_loaded": plain.lock.driver.version,
        "kubeconfigs": {"/etc/kubernetes/kubelet.conf": "https://10.0.0.1:6443"},
    }
    assert parts.upgraded_as_node(context(**(state | changes))) is due


def upgrade() -> node_upgrade._Upgrade:
    things = Parts({}, cast(Any, None))
    difference = Difference(**OLD)
    return node_upgrade._Upgrade(
        "gpu1", "cp1", things, "apt", difference, KubeadmState(), (), (), None, False
    )


@pytest.mark.parametrize("out", [False, True])
def test_a_command_that_fails_stops_the_others_and_keeps_pods_off(
    monkeypatch: pytest.MonkeyPatch, out: bool
) -> None:
    """pyinfra closes the operation; one that only plans is closed as well."""
    messages, upgrade_run = list[str](), upgrade()
    inventory = SimpleNamespace(get_host=lambda name: name)
    state = SimpleNamespace(is_executing=False, inventory=inventory)
    host = SimpleNamespace(name="gpu1", state=state, executing_op_hash="op", print_prefix="")
    monkeypatch.setattr(node_upgrade, "host", host)
    monkeypatch.setattr(node_upgrade, "_failed", [])
    monkeypatch.setattr(
        node_service, "keep_out", lambda *arguments: messages.append(" ".join(arguments))
    )
    monkeypatch.setattr(node_upgrade, "messages", {("gpu1", "op"): "apt cannot\n  remedy: x"})
    upgrade_run.out = out

    def commands() -> Any:
        with node_upgrade._failures(upgrade_run):
            yield "a command"

    for executing in (False, True):
        state.is_executing = executing
        generator = commands()
        next(generator)
        generator.close()
        assert node_upgrade._failed == (["gpu1"] if executing else [])
    assert messages == (["cp1 gpu1 driver 595.71.05 → 595.91.07: apt cannot"] if out else [])
    assert node_upgrade._refusal(upgrade_run) is None
    host.name = "gpu2"
    cause = node_upgrade._refusal(upgrade())
    assert cause is not None
    assert "because gpu1 failed" in cause[0]


def test_so_many_nodes_are_away_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where hosts whose turn it is not run beside them."""
    state = SimpleNamespace(is_executing=True)
    monkeypatch.setattr(turns, "host", SimpleNamespace(state=state, executing_op_hash="op"))
    monkeypatch.setattr(turns, "_turns", {})
    nodes_away, counts = [0], list[int]()

    def upgraded(fails: bool) -> None:
        with suppress(GeneratorExit), turns.turn_of(2):
            nodes_away[0] += 1
            counts.append(nodes_away[0])
            gevent.sleep(0.001)
            nodes_away[0] -= 1
            if fails:
                raise GeneratorExit

    gevent.joinall([gevent.spawn(upgraded, number % 2 == 0) for number in range(6)])
    assert (len(counts), max(counts)) == (6, 2)
