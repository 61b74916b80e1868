"""A cluster from its first, failing minutes to a newer driver, as its owner lives through it.

A newer Kubernetes: test_upgrade_kubernetes.py, which needs an earlier one built.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from deploys.parts.cluster.cordon import CORDON_MARK
from lab.gpusim.builds import DRIVER_VERSIONS
from lab.settings import home
from tests.e2e.conftest import Lab, assert_refused, fresh_lab

pytestmark = pytest.mark.lab
TODAY = DRIVER_VERSIONS[0]


@pytest.fixture(scope="module")
def two() -> Iterator[Lab]:
    """A control plane and a GPU node, bare; the mirror has the driver's earlier release too."""
    with fresh_lab("test-upgrade", "--gpus", "1", "--no-deploy") as lab:
        withheld = lab.lab("mirror", "--name", lab.name, "withhold", "cuda", TODAY)
        assert withheld.code == 0, withheld.details
        yield lab


@pytest.fixture(scope="module")
def lock(two: Lab) -> dict[str, Any]:
    """The versions of the lab's mirror."""
    document: dict[str, Any] = json.loads((home(two.name) / "mirror/lab.lock.json").read_text())
    return document


def driver(lab: Lab) -> str:
    """The driver that is loaded."""
    query = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
    return lab.ssh("gpu1", query).strip()


def test_a_plan_touches_nothing_of_bare_machines(two: Lab, lock: dict[str, Any]) -> None:
    plan = two.dry(settings={"driver": lock["previous"]["driver"]})
    assert plan.code == 0, plan.details
    assert two.ssh("cp1", "ls -d /etc/containerd /etc/kubernetes 2>/dev/null; true") == ""


def test_a_kubeadm_init_that_fails_halfway_is_finished_by_a_re_run(
    two: Lab, lock: dict[str, Any]
) -> None:
    earlier = {"driver": lock["previous"]["driver"]}
    # Without etcd, kubeadm writes its certificates and manifests, waits, and fails.
    two.ssh(
        "cp1",
        "systemd-run --unit=squatter --collect sh -c 'while :; do pkill -x etcd; sleep 0.2; done'",
    )
    failed = two.deploy(settings=earlier)
    assert_refused(failed, "cp1", "kubeadm")
    assert "started" in two.ssh("cp1", "test -e /etc/kubernetes/manifests && echo started")
    two.ssh("cp1", "systemctl stop squatter")
    finished = two.deploy(settings=earlier)  # what a person would do: run it again
    assert finished.code == 0, finished.details
    assert "proven" in finished.text
    assert two.snapshot()["ready"] == {"cp1": ["True"], "gpu1": ["True"]}
    assert driver(two) == earlier["driver"]["version"]


def test_a_run_with_a_newer_version_upgrades_the_driver(two: Lab) -> None:
    """Its index is of before the release: the run reads it before it touches the node."""
    two.kubectl("create", "configmap", "kept", "--from-literal=by=etcd")
    unknown = two.deploy()
    assert_refused(unknown, "gpu1", "the package manager cannot install this run's packages", TODAY)
    assert two.kubectl("get", "node", "gpu1", "-o", "jsonpath={.spec}").count("unschedulable") == 0
    assert two.lab("mirror", "--name", two.name, "restore").code == 0
    result = two.deploy()
    assert result.code == 0, result.details
    assert "proven" in result.text
    assert driver(two) == TODAY
    assert two.snapshot()["ready"] == {"cp1": ["True"], "gpu1": ["True"]}
    assert two.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.by}") == "etcd"
    assert two.deploy("--json").changes == []


def test_a_node_that_a_killed_run_kept_pods_off_is_let_in_again(two: Lab) -> None:
    unschedulable = ("get", "node", "gpu1", "-o", "jsonpath={.spec.unschedulable}")
    two.ssh("gpu1", f"touch {CORDON_MARK}")
    two.kubectl("cordon", "gpu1")
    (changed,) = two.deploy("--json").changes
    assert changed.startswith("Node upgrades | Go on with the workers")
    assert two.kubectl(*unschedulable) == ""
    assert two.ssh("gpu1", f"ls {CORDON_MARK} 2>/dev/null; true") == ""
