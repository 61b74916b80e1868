"""Nodes that come, go, fall silent and come back; and two people who do that at the same time.

One story of one lab: each test goes on where the one before it ended.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from lab.settings import home
from tests.e2e.conftest import ROOT, Lab, Run, assert_refused, until
from tests.e2e.workloads import web

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-nodes", "--gpus", "1,1", "--no-deploy")

ALL = "inventories/lab.py"
SMALLER = "tests/e2e/inventories/smaller/lab.py"
REMOVE = "deploys/remove.py"
# on a bare machine there is no such file yet
LOCK_CHECK = (
    "if test -s /run/gpuboot/run.lock && ! flock -n /run/gpuboot/run.lock true; "
    "then echo held; else echo free; fi"
)
ANOTHER_RUN = "another run changes this site"


@contextmanager
def at_work(site: Lab, inventory: str) -> Iterator[subprocess.Popen[str]]:
    """A run of somebody else that holds the lock; it is killed at the end."""
    with subprocess.Popen(
        ["pyinfra", inventory, "deploys/site.py", "-y"],
        cwd=ROOT,
        env=site.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as competitor:
        try:
            until(lambda: site.ssh("cp1", LOCK_CHECK).strip() == "held", "the other run's lock")
            yield competitor
        finally:
            competitor.send_signal(signal.SIGCONT)
            competitor.kill()


def changed(site: Lab) -> Mapping[str, list[str]]:
    """What the newest run changed, by host."""
    run_record = json.loads((site.reports / "latest/run.json").read_text())
    return {name: host["changed"] for name, host in run_record["hosts"].items()}


def ready(site: Lab) -> dict[str, Any]:
    return {name: status == ["True"] for name, status in site.snapshot()["ready"].items()}


def remove(site: Lab, node: str, *arguments: str, inventory: str = ALL) -> Run:
    data = ("--data", f"gpuboot_remove={node}") if node else ()
    return site.command(["pyinfra", inventory, REMOVE, "-y", *data, *arguments])


def test_the_second_of_two_runs_on_bare_machines_stops(site: Lab) -> None:
    with at_work(site, SMALLER) as competitor:
        second = site.deploy(inventory=SMALLER)
        assert_refused(second, ANOTHER_RUN, "root@", "deploys/site.py -y", "nothing was changed")
        dry = site.dry(SMALLER)
        assert ANOTHER_RUN not in dry.text  # what it reads of a cluster that is being made may fail
        assert competitor.poll() is None, "it must still be at work"
        assert site.ssh("cp1", LOCK_CHECK).strip() == "held"
    killed = time.monotonic()
    until(lambda: site.ssh("cp1", LOCK_CHECK).strip() == "free", "the lock of a killed run")
    assert time.monotonic() - killed < 10


def test_a_run_that_stands_still_loses_the_lock_and_stops(site: Lab) -> None:
    with at_work(site, SMALLER) as competitor:
        competitor.send_signal(signal.SIGSTOP)  # as a laptop whose lid is closed
        until(lambda: site.ssh("cp1", LOCK_CHECK).strip() == "free", "the lock of a silent run")
        with at_work(site, SMALLER):
            competitor.send_signal(signal.SIGCONT)
            output, _ = competitor.communicate(timeout=300)
        assert competitor.returncode == 1
        assert "this run lost its lock" in output
        assert ANOTHER_RUN in output


def test_what_killed_runs_left_is_finished_by_the_next(site: Lab) -> None:
    result = site.deploy(inventory=SMALLER)
    assert result.code == 0, result.details
    assert "proven" in result.text
    assert site.deploy("--json", inventory=SMALLER).changes == []


def test_a_worker_joins_and_the_others_are_left_alone(site: Lab) -> None:
    # its pod is replaced: it has the names of the nodes whose certificates it approves
    other_pods = "app!=kubelet-csr-approver"
    before = site.snapshot(other_pods)
    result = site.deploy()
    assert result.code == 0, result.details
    assert ready(site) == {"cp1": True, "gpu1": True, "gpu2": True}
    assert changed(site)["gpu1"] == []
    pods = site.snapshot(other_pods)["pods"]
    assert {uid: pods[uid] for uid in before["pods"] if uid in pods} == before["pods"]


def test_a_pod_that_may_not_go_keeps_its_node(site: Lab) -> None:
    site.kubectl("apply", "-f", "-", stdin=web("gpu2", cache=True))
    site.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    unconfirmed = remove(site, "", "--limit", "gpu2")
    assert_refused(unconfirmed, "this removes node gpu2", "(Deployment web)",
            "--data gpuboot_remove=gpu2", "emptyDir cache",
            "PodDisruptionBudget default/web")  # fmt: skip
    leader = remove(site, "cp1")
    assert_refused(leader, "the only control plane", "deploys/reset.py")
    refusal = remove(site, "gpu2", "--data", "gpuboot_drain_timeout_s=15")
    cause = "node gpu2 is not drained, and stays cordoned"
    kept_by = "(Deployment web) is kept by PodDisruptionBudget default/web"
    assert_refused(refusal, cause, kept_by, "kubectl uncordon gpu2")
    assert ready(site)["gpu2"]
    assert "SchedulingDisabled" in site.kubectl("get", "node", "gpu2")


def test_a_removed_node_is_drained_deleted_and_reset(site: Lab) -> None:
    site.kubectl("delete", "pdb", "web")
    result = remove(site, "gpu2", "--limit", "gpu2")
    assert result.code == 0, result.details
    assert "take it out of the inventory" in result.text
    assert ready(site) == {"cp1": True, "gpu1": True}
    assert site.ssh("gpu2", "ls /etc/kubernetes/kubelet.conf 2>/dev/null; true") == ""
    query = ("get", "pods", "-A", "-o", "name", "--field-selector", "spec.nodeName=gpu2")
    until(lambda: not site.kubectl(*query).strip(), "DaemonSets' pods collected")
    site.kubectl("delete", "deployment", "web")
    after = site.deploy(inventory=SMALLER)
    assert after.code == 0, after.details
    repeated = remove(site, "gpu2")
    assert repeated.code == 0, repeated.details


def test_a_machine_that_was_installed_anew_joins_under_its_old_name(site: Lab) -> None:
    assert site.lab("power", "--name", site.name, "gpu1", "off").code == 0
    shutil.rmtree(home(site.name) / "machines/gpu1/root")
    assert site.lab("--name", site.name, *LAB[1:]).code == 0
    assert site.ssh("gpu1", "ls -d /etc/kubernetes /etc/containerd 2>/dev/null; true") == ""
    result = site.deploy(inventory=SMALLER)
    assert result.code == 0, result.details
    assert "proven" in result.text
    assert "was on this host and is gone: it begins empty" in result.text
    assert ready(site) == {"cp1": True, "gpu1": True}


def test_a_machine_on_which_kubernetes_was_wiped_joins_again(site: Lab) -> None:
    """Its pods and their network are still there, with addresses that the node gets no more."""
    site.ssh(
        "gpu1",
        "systemctl stop kubelet; crictl rm -fa >/dev/null 2>&1; umount -R /var/lib/kubelet/pods/*/"
        "volumes/*/* 2>/dev/null; rm -rf /etc/kubernetes /var/lib/kubelet; true",
    )
    result = site.deploy(inventory=SMALLER)
    assert result.code == 0, result.details
    assert "proven" in result.text
    assert ready(site) == {"cp1": True, "gpu1": True}


def test_a_node_that_somebody_deleted_is_registered_again(site: Lab) -> None:
    site.kubectl("delete", "node", "gpu1")
    result = site.deploy(inventory=SMALLER)
    assert result.code == 0, result.details
    assert "its kubelet restarts" in result.text
    assert ready(site) == {"cp1": True, "gpu1": True}


def test_a_run_goes_on_without_a_node_that_is_silent(site: Lab) -> None:
    assert site.deploy().code == 0  # gpu2 is back
    assert site.lab("power", "--name", site.name, "gpu2", "off").code == 0
    result = site.deploy(settings={"monitoring": {"retention": "9d"}})
    assert result.code == 1, result.details
    assert "[gpu2] cannot be reached" in result.text
    assert "the run goes on without it" in result.text
    report = json.loads((site.reports / "latest/verify.json").read_text())
    statuses = {
        node: {item["status"] for item in report["findings"] if item["node"] == node}
        for node in ("gpu1", "gpu2")
    }
    assert statuses["gpu1"] == {"pass"}
    assert statuses["gpu2"] & {"fail", "unknown"}
    assert changed(site)["cp1"], "the others are changed as the settings say"


def test_a_machine_that_is_gone_is_removed_by_its_name(site: Lab) -> None:
    until(lambda: not ready(site)["gpu2"], "gpu2 NotReady")
    result = remove(site, "gpu2")
    assert ready(site) == {"cp1": True, "gpu1": True}, result.details
    after = site.deploy(inventory=SMALLER)
    assert after.code == 0, after.details
    assert site.lab("power", "--name", site.name, "gpu2", "on").code == 0


def test_a_removed_machine_that_comes_back_can_join_again(site: Lab) -> None:
    result = site.deploy()
    assert result.code == 0, result.details
    assert ready(site) == {"cp1": True, "gpu1": True, "gpu2": True}
