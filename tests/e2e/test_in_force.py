"""What is in force beside what a run sets: drift names it, and a run puts back what is ours."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import Lab, Run, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-in-force", "--gpus", "1")

MANAGER = "/etc/kubernetes/manifests/kube-controller-manager.yaml"
FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
SYSCTLS = "/etc/sysctl.d/99-zzz-admin.conf"
EXPORTER = "daemonset/kube-prometheus-stack-prometheus-node-exporter"


def drift(lab: Lab) -> Run:
    return lab.command(["gpuboot", "drift", "inventories/lab.py"])


def pods_of(lab: Lab, node: str) -> int:
    """How many pods its kubelet takes."""
    path = f"/api/v1/nodes/{node}/proxy/configz"
    return int(json.loads(lab.kubectl("get", "--raw", path))["kubeletconfig"]["maxPods"])


def test_what_is_kubeadm_s_is_put_back(site: Lab) -> None:
    added = "    - --node-monitor-grace-period=5m0s"
    site.ssh("cp1", f"sed -i 's/    - --leader-elect=true/&\\n{added}/' {MANAGER}")
    site.ssh("gpu1", f"sed -i 's/\"$/ --max-pods=20\"/' {FLAGS}; systemctl restart kubelet")
    until(lambda: pods_of(site, "gpu1") == 20, "gpu1's kubelet runs with 20 pods")
    result = drift(site)
    assert result.code == 1, result.text
    assert "--node-monitor-grace-period=5m0s" in result.out
    assert f"kubelet's flags in {FLAGS}: was --max-pods=20" in result.out
    changes = site.deploy("--json").changes
    assert any("Put back what the API server runs by" in name for name in changes), changes
    assert any("Reconfigure the nodes" in name for name in changes), changes
    assert pods_of(site, "gpu1") == 110
    assert "grace-period" not in site.ssh("cp1", f"cat {MANAGER}")
    assert drift(site).code == 0


def test_what_is_somebody_s_is_named_and_stays(site: Lab) -> None:
    site.ssh(
        "gpu1",
        f"echo KUBELET_EXTRA_ARGS=--max-pods=30 >/etc/default/kubelet; systemctl restart kubelet; "
        f"echo fs.inotify.max_user_instances = 128 >{SYSCTLS}",
    )
    site.kubectl(
        "create", "clusterrolebinding", "everybody", "--clusterrole=view",
        "--group=system:unauthenticated",
    )  # fmt: skip
    until(lambda: pods_of(site, "gpu1") == 30, "gpu1's kubelet runs with 30 pods")
    try:
        for _ in ("before a run", "after it"):
            result = drift(site)
            assert result.code == 1, result.text
            for part in (
                "maxPods is 30, expected 110 (by /etc/default/kubelet:1",
                f"{SYSCTLS}:1 sets",
                "ClusterRoleBinding everybody gives system:unauthenticated",
            ):
                assert part in result.out
            assert site.deploy("--json").changes == []
    finally:
        site.kubectl("delete", "clusterrolebinding", "everybody")
        site.ssh(
            "gpu1",
            f"echo KUBELET_EXTRA_ARGS= >/etc/default/kubelet; rm {SYSCTLS}; "
            "systemctl restart kubelet",
        )
    until(lambda: pods_of(site, "gpu1") == 110, "gpu1's kubelet runs with 110 pods")
    assert drift(site).code == 0


def test_a_node_that_nobody_measures_fails_the_proof(site: Lab) -> None:
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "gpu1"}}}}}
    site.kubectl("-n", "monitoring", "patch", EXPORTER, "--type=merge", "-p", json.dumps(patch))
    site.kubectl("-n", "monitoring", "rollout", "status", EXPORTER, "--timeout=60s")
    assert "nodeSelector.kubernetes.io/hostname" in drift(site).out

    def failed() -> bool:
        result = site.command(["gpuboot", "verify", "inventories/lab.py"])
        return "Prometheus has no target node-exporter of it" in result.text

    until(failed, "the proof names cp1")
    assert any("kube-prometheus-stack" in name for name in site.deploy("--json").changes)
    assert drift(site).code == 0
