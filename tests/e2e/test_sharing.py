"""GPUs that several pods share: a node in use is drained, changed, proven; and quotas of teams.

Device plugin, its config-manager and GPU feature discovery are real. MIG is in test_mig.py.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from tests.e2e.conftest import Lab, Run, assert_refused, until
from tests.e2e.workloads import train

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-sharing", "--gpus", "1,1")
SLICED = {"sharing": {"gpu1": {"time_slices": 4, "one_per_pod": True}}}
TEAMS = {"teams": {"vision": {"gpus": 1, "priority": 100}}}
LABEL = "nvidia.com/device-plugin.config"
# what makes it again when it is drained, and computes on a GPU as long as it runs
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: vision}
spec:
  restartPolicy: Never
  priorityClassName: team-vision
  containers:
  - name: cuda
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    command: [sleep, infinity]
    resources: {limits: {nvidia.com/gpu: 1}}
"""


def node(lab: Lab, name: str = "gpu1") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(lab.kubectl("get", "node", name, "-o", "json"))
    return document


def allocatable(lab: Lab, name: str = "gpu1") -> str:
    return str(node(lab, name)["status"]["allocatable"]["nvidia.com/gpu"])


def train_on(lab: Lab) -> str:
    """The node on which the only pod of `train` runs; "" while there is none."""
    output = lab.kubectl("get", "pods", "-l", "app=train", "-o", "json")
    pods = [pod for pod in json.loads(output)["items"] if pod["status"]["phase"] == "Running"]
    return str(pods[0]["spec"]["nodeName"]) if len(pods) == 1 else ""


def create(lab: Lab, name: str) -> Run:
    """A pod of the team, as `kubectl create` makes it or not."""
    command = ["scripts/lab", "kubectl", "--name", lab.name, "create", "-f", "-"]
    return lab.command(command, stdin=POD.replace("NAME", name))


def test_wrong_settings_are_refused_before_anything_is_touched(site: Lab) -> None:
    wrong_settings = {
        "sharing": {"gpu1": {"time_slices": 4, "mps": 2}, "gpu9": {"mig": "all-seven"}}
    }
    assert_refused(
        site.deploy(settings=wrong_settings),
        "time_slices and mps exclude each other",
        "all-seven is no MIG layout that gpuboot knows",
        "sharing names 'gpu9'",
        "nothing was changed",
    )


def test_a_node_in_use_is_drained_shared_and_proven(site: Lab) -> None:
    site.kubectl("apply", "-f", "-", stdin=train("gpu1"))
    until(lambda: train_on(site) == "gpu1", "the pod computes on gpu1")
    plan = site.dry(settings=SLICED)
    print(plan.err)
    assert "default/train-" in plan.text, "the plan names the pod that is moved away"
    result = site.deploy(settings=SLICED)
    print(result.details)
    assert result.code == 2, result.details
    # the pod holds gpu2's only GPU
    assert "1 of 2 GPUs proven, 0 failed, 1 not covered" in result.text
    assert "gpu1: 1 GPUs, vectorAdd passed on 4" in result.text
    assert allocatable(site) == "4"
    assert "unschedulable" not in node(site)["spec"]
    assert node(site)["metadata"]["labels"]["nvidia.com/gpu.replicas"] == "4"
    until(lambda: train_on(site) == "gpu2", "the pod computes on gpu2")
    assert allocatable(site, "gpu2") == "1"


def test_a_second_run_has_nothing_to_do(site: Lab) -> None:
    assert site.deploy("--json", settings=SLICED).changes == []


def test_a_pod_that_nobody_may_move_keeps_the_node_as_it_is(site: Lab) -> None:
    site.kubectl("scale", "deployment", "train", "--replicas=0")
    until(lambda: not train_on(site), "the pod is gone")
    no_drain = {"sharing": {"gpu1": {"time_slices": 2}}, "upgrade": {"drain": "never"}}
    site.kubectl("scale", "deployment", "train", "--replicas=1")
    until(lambda: train_on(site) == "gpu1", "the pod computes on gpu1 again")
    assert_refused(site.deploy(settings=no_drain), "default/train-", "still hold some")
    assert allocatable(site) == "4"
    assert "unschedulable" not in node(site)["spec"]
    assert train_on(site) == "gpu1"
    site.kubectl("delete", "deployment", "train")


def test_a_team_gets_no_more_than_its_quota(site: Lab) -> None:
    combined = {**SLICED, **TEAMS}
    assert site.deploy(settings=combined).applied
    assert create(site, "one").code == 0
    second = create(site, "two")
    assert second.code != 0
    assert "exceeded quota: gpus" in second.text
    print(second.text)
    output = site.kubectl("get", "pod", "one", "-n", "vision", "-o", "json")
    assert json.loads(output)["spec"]["priority"] == 100
    assert site.deploy("--json", settings=combined).changes == []
    larger_quota = {**SLICED, "teams": {"vision": {"gpus": 2, "priority": 200}}}
    assert site.deploy(settings=larger_quota).applied, "a PriorityClass is made anew"
    assert create(site, "two").code == 0


def test_quota_and_priority_go_with_the_team_and_its_pods_stay(site: Lab) -> None:
    plan = site.dry(settings=SLICED)
    print(plan.err)
    assert "namespace vision" in plan.text
    assert site.deploy(settings=SLICED).applied
    names = partial(site.kubectl, "get", "-o", "name")
    assert names("resourcequota", "-n", "vision") == ""
    assert "team-vision" not in names("priorityclass")
    assert names("pod", "-n", "vision").split() == ["pod/one", "pod/two"]
    site.kubectl("delete", "namespace", "vision")


def test_without_the_entry_the_gpu_is_whole_again(site: Lab) -> None:
    result = site.deploy()
    assert result.code == 0, result.details
    assert allocatable(site) == "1"
    assert LABEL not in node(site)["metadata"]["labels"]
