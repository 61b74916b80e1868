"""Another driver on nodes in use: pods move, a node that is not proven stays out, and the way back.

Kubernetes' own upgrade: test_upgrade_kubernetes.py. One node, in each run of the tests:
test_upgrade.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gpuboot.cluster import node_upgrade
from lab.gpusim.builds import DRIVER_VERSIONS
from lab.settings import home
from tests.e2e.conftest import Lab, assert_refused, fresh_lab
from tests.e2e.test_upgrade_kubernetes import SERVED

pytestmark = [pytest.mark.lab, pytest.mark.long]

NODES = ("gpu1", "gpu2")
# how many pods of the Deployment can be reached, and how many nodes take none, twice a second
WATCH = """
cat > /run/watch.sh <<'END'
export KUBECONFIG=/etc/kubernetes/admin.conf
while :; do
  available=$(kubectl -n ml get deployment serve -o jsonpath={.status.availableReplicas})
  away=$(kubectl get nodes -o jsonpath='{.items[?(@.spec.unschedulable)].metadata.name}' | wc -w)
  echo "${available:-0} $away" >> /run/watched
  sleep 0.5
done
END
systemd-run --unit=watch --collect sh /run/watch.sh
"""
# a card that computes wrong after each boot
BREAKS = """
cat > /etc/systemd/system/gpu-breaks.service <<'UNIT'
[Unit]
After=nvidia-persistenced.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'until gpu-sim set 0 cuda_wrong 1; do sleep 1; done'
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload && systemctl enable gpu-breaks.service
"""
MENDED = "systemctl disable gpu-breaks.service && gpu-sim clear"


@pytest.fixture(scope="module")
def serving() -> Iterator[Lab]:
    """A control plane and two GPU nodes with the driver's earlier release, and pods on GPUs."""
    with fresh_lab("test-node-upgrades", "--gpus", "2,2", "--no-deploy") as lab:
        mirror = ("mirror", "--name", lab.name)
        assert lab.lab(*mirror, "withhold", "cuda", DRIVER_VERSIONS[0]).code == 0
        result = lab.deploy(settings=earlier(lab))
        assert result.code == 0, result.details
        assert lab.lab(*mirror, "restore").code == 0
        lab.kubectl("apply", "-f", "-", stdin=SERVED)
        lab.kubectl("-n", "ml", "rollout", "status", "deployment/serve", "--timeout=120s")
        yield lab


def earlier(lab: Lab) -> dict[str, Any]:
    """Settings with the driver's earlier release, of the lab's mirror."""
    lock = json.loads((home(lab.name) / "mirror/lab.lock.json").read_text())
    return {"driver": lock["previous"]["driver"]}


def drivers(lab: Lab) -> dict[str, str]:
    """The driver that is loaded on each node."""
    query = "nvidia-smi --query-gpu=driver_version --format=csv,noheader | uniq"
    return {node: lab.ssh(node, query).strip() for node in NODES}


def specs(lab: Lab) -> dict[str, dict[str, Any]]:
    """Each node's taints, cordon and reason."""
    items = json.loads(lab.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        item["metadata"]["name"]: {
            "taints": [taint["key"] for taint in item["spec"].get("taints", [])],
            "cordoned": bool(item["spec"].get("unschedulable")),
            "reason": item["metadata"].get("annotations", {}).get(node_upgrade.KEY, ""),
        }
        for item in items
        if item["metadata"]["name"] in NODES
    }


IN_SERVICE = {"taints": [], "cordoned": False, "reason": ""}


def test_the_plan_names_what_becomes_of_each_node(serving: Lab) -> None:
    plan = serving.dry()
    assert plan.code == 0, plan.details
    for node in NODES:
        assert f"node {node} is drained" in plan.text, plan.details
        assert f"node {node} reboots" in plan.text, plan.details
    assert "interrupted: ml/serve-" in plan.text


def test_nodes_are_upgraded_one_by_one_under_a_budget(serving: Lab) -> None:
    serving.ssh("cp1", WATCH)
    before = drivers(serving)
    result = serving.deploy()
    serving.ssh("cp1", "systemctl stop watch")
    assert result.applied, result.details
    assert "draining gpu1" in result.text
    assert "draining gpu2" in result.text
    now = drivers(serving)
    assert set(now.values()).isdisjoint(before.values())
    assert specs(serving) == dict.fromkeys(NODES, IN_SERVICE)
    watched = [line.split() for line in serving.ssh("cp1", "cat /run/watched").splitlines()]
    assert len(watched) > 20
    assert min(int(available) for available, _ in watched) >= 1
    assert {int(unavailable) for _, unavailable in watched} == {0, 1}
    assert serving.deploy("--json").changes == []


def test_a_node_that_is_not_proven_stops_the_way_back_and_the_next_run_goes_on(
    serving: Lab,
) -> None:
    before = drivers(serving)
    for node in NODES:
        serving.ssh(node, BREAKS)
    failed = serving.deploy(settings=earlier(serving))
    assert_refused(failed, "is not proven after its upgrade", "vectorAdd", "To go back")
    node_specs = specs(serving)
    [out] = [node for node, spec in node_specs.items() if spec["cordoned"]]
    [peer] = [node for node in NODES if node != out]
    assert node_upgrade.KEY in node_specs[out]["taints"]
    assert "is not proven after its upgrade" in node_specs[out]["reason"]
    assert node_specs[peer] == IN_SERVICE
    assert drivers(serving)[peer] == before[peer], "it was not begun"
    assert f"{peer} is not upgraded, because {out} failed" in failed.text
    for node in NODES:
        serving.ssh(node, MENDED)
    healed = serving.deploy(settings=earlier(serving))
    assert healed.applied, healed.details
    assert specs(serving) == dict.fromkeys(NODES, IN_SERVICE)
    assert set(drivers(serving).values()) == {earlier(serving)["driver"]["version"]}
    assert serving.deploy("--json", settings=earlier(serving)).changes == []
