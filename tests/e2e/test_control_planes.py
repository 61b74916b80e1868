"""Three control planes: growth from one, the loss of each, a dead leader, a machine made anew.

One story of one lab: each test goes on where the one before it ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.api_requests import CONTROLS, bears_the_loss, begin, healthy, power, ready
from tests.e2e.conftest import Lab, assert_refused, fresh_lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]

ONE_CONTROL_PLANE = "tests/e2e/inventories/one_control_plane/lab.py"
NAMES = ["cp1", "cp2", "cp3", "gpu1"]


@pytest.fixture(scope="module")
def site() -> Iterator[Lab]:
    """Three machines for control planes and a GPU node, bare."""
    with fresh_lab("test-planes", "--control-planes", "3", "--gpus", "2", "--no-deploy") as lab:
        yield lab


def test_one_control_plane_is_made(site: Lab) -> None:
    result = site.deploy(inventory=ONE_CONTROL_PLANE)
    assert result.code == 0, result.details
    assert "proven" in result.text
    assert ready(site) == {"cp1": True, "gpu1": True}


def test_it_grows_to_three_by_the_inventory_alone(site: Lab) -> None:
    result = site.deploy()
    assert result.code == 0, result.details
    assert "proven" in result.text
    assert ready(site) == dict.fromkeys(NAMES, True)
    assert "127.0.0.1 gpuboot-api" in site.ssh("gpu1", "cat /etc/hosts")
    rerun = site.deploy("--json")
    assert rerun.changes == []


def test_no_request_is_lost_with_any_control_plane(site: Lab) -> None:
    token = begin(site)
    for machine in CONTROLS:
        bears_the_loss(site, machine, token)


def test_a_run_goes_on_without_its_leader(site: Lab) -> None:
    power(site, "cp1", "off")
    result = site.deploy(settings={"monitoring": {"retention": "9d"}})
    assert result.code == 1, result.details
    assert "[cp1] cannot be reached" in result.text
    assert "the run goes on without it" in result.text
    report = json.loads((site.reports / "latest/verify.json").read_text())
    statuses = {item["status"] for item in report["findings"] if item["node"] == "gpu1"}
    assert statuses == {"pass"}
    power(site, "cp1", "on")
    until(lambda: healthy(site, "cp1"), "cp1 is back")
    back = site.deploy(settings={"monitoring": {"retention": "9d"}})
    assert back.code == 0, back.details


def test_a_control_plane_made_anew_joins_under_its_old_name(site: Lab) -> None:
    """The first of the inventory: another one leads, and etcd forgets the earlier member."""
    site.ssh(
        "cp1",
        "systemctl stop kubelet; crictl --timeout 2m rmp -fa >/dev/null 2>&1; "
        "umount -R /var/lib/kubelet/pods/*/volumes/*/* 2>/dev/null; ip link delete cni0; "
        "ip link delete flannel.1; rm -rf /etc/kubernetes /var/lib/kubelet /var/lib/etcd "
        "/etc/gpuboot /root/.kube; true",
    )
    result = site.deploy()
    assert result.code == 0, result.details
    assert "etcd still has a member of cp1's earlier installation" in result.text
    assert ready(site) == dict.fromkeys(NAMES, True)
    # it leads again: what a leader has on its own disk is written there
    assert len(site.deploy("--json").changes) <= 2
    assert site.deploy("--json").changes == []


def test_a_control_plane_is_replaced_only_while_the_others_are_a_majority(site: Lab) -> None:
    power(site, "cp3", "off")
    until(lambda: not ready(site)["cp3"], "cp3 NotReady")
    remove = ["pyinfra", "inventories/lab.py", "deploys/remove.py", "-y", "--data"]
    assert_refused(site.command([*remove, "gpuboot_remove=cp2"]), "etcd would lose its majority")
    result = site.command([*remove, "gpuboot_remove=cp3"])
    assert ready(site) == {name: True for name in NAMES if name != "cp3"}, result.details
