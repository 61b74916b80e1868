"""One run changes driver, Kubernetes and sharing: each node is drained once, after a rehearsal."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from typing import Any

import pytest

from tests.e2e.conftest import Lab, assert_refused
from tests.e2e.test_upgrade_kubernetes import SERVED

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-one-stay", "--gpus", "2,2", "--previous-release")
SHARED = {"sharing": {"gpu1": {"time_slices": 4}, "gpu2": {"time_slices": 2}}}
# two replicas on different nodes, none of which may be away
STRICT = """
apiVersion: v1
kind: Namespace
metadata: {name: strict}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: strict, namespace: strict}
spec:
  replicas: 2
  selector: {matchLabels: {app: strict}}
  template:
    metadata: {labels: {app: strict}}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: strict}}
      containers:
      - name: strict
        image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
        command: [bash, -c, "while :; do sleep 1; done"]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: strict, namespace: strict}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: strict}}
"""
# each pod with its node, twice a second
WATCH = """
cat > /run/watch.sh <<'END'
export KUBECONFIG=/etc/kubernetes/admin.conf
row='{.metadata.uid} {.metadata.labels.app} {.spec.nodeName}{"\\n"}'
while :; do
  kubectl get pods -A -l 'app in (serve, strict)' \\
    -o "jsonpath={range .items[*]}$row{end}" >> /run/watched
  sleep 0.5
done
END
systemd-run --unit=watch --collect sh /run/watch.sh
"""


@pytest.fixture(scope="module")
def busy(site: Lab) -> Lab:
    """A control plane and two GPU nodes with earlier releases, and pods under budgets."""
    for text, name in ((SERVED, "serve"), (STRICT, "strict")):
        site.kubectl("apply", "-f", "-", stdin=text)
        space = "ml" if name == "serve" else name
        rolled = ("rollout", "status", f"deployment/{name}", "--timeout=180s")
        site.kubectl("-n", space, *rolled)
    return site


def allocatable(lab: Lab, node: str) -> dict[str, Any]:
    resources = json.loads(lab.kubectl("get", "node", node, "-o", "json"))["status"]["allocatable"]
    return {name: count for name, count in resources.items() if "nvidia" in name and count != "0"}


def test_a_budget_that_lets_no_pod_go_is_noticed_before_anything_changes(busy: Lab) -> None:
    before = busy.snapshot()
    for result in (busy.dry(settings=SHARED), busy.deploy(settings=SHARED)):
        message = "PodDisruptionBudget strict/strict lets no pod go however long one waits"
        assert_refused(
            result, "1 problem; nothing was changed", message, "(Deployment strict) on gpu1"
        )
    assert busy.snapshot() == before
    assert busy.versions()["kubelet"] == {"v1.36.3"}


def test_each_node_is_drained_once(busy: Lab) -> None:
    spare = json.dumps({"spec": {"maxUnavailable": 1}})
    busy.kubectl("-n", "strict", "patch", "pdb", "strict", "--type=merge", "-p", spare)
    time.sleep(5)
    plan = busy.dry(settings=SHARED)
    assert plan.code == 0, plan.details
    busy.ssh("cp1", WATCH)
    result = busy.deploy(settings=SHARED)
    busy.ssh("cp1", "systemctl stop watch")
    assert result.applied, result.details
    for name in ("gpu1", "gpu2"):
        assert plan.text.count(f"node {name} is drained") == 1, plan.details
        assert result.text.count(f"draining {name}:") == 1, result.details
    rows = {tuple(line.split()) for line in busy.ssh("cp1", "cat /run/watched").splitlines()}
    pods = Counter(row[1] for row in rows if len(row) == 3)
    print(Counter(row[1:] for row in rows if len(row) == 3))
    print(*re.findall("draining .*", result.text), sep="\n")
    # two replicas, each evicted at most once from each node
    assert max(pods.values()) <= 2 + 2 * 2, pods
    assert allocatable(busy, "gpu1") == {"nvidia.com/gpu": "8"}
    assert allocatable(busy, "gpu2") == {"nvidia.com/gpu": "4"}
    assert len(busy.versions()["kubelet"]) == 1
    assert busy.deploy("--json", settings=SHARED).changes == []
