"""What somebody changes in a living cluster by hand: a plan names it, and a run puts it back."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import Lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-drift", "--gpus", "1")

STACK = "kube-prometheus-stack"
MONITOR = "servicemonitors.monitoring.coreos.com"
RULES = "prometheusrules.monitoring.coreos.com"
ROTATION = "kubeadm:node-autoapprove-certificate-rotation"
HELM = "helm --kubeconfig /etc/kubernetes/admin.conf"


def planned(lab: Lab) -> list[str]:
    """The lines that tell what a run would change."""
    result = lab.dry()
    assert result.code == 0, result.details
    plan = result.err.split("Preparing operation files...")[1].splitlines()
    return [line.strip() for line in plan if line.strip()[:2] in ("+ ", "- ", "~ ")]


def repaired(lab: Lab, *operations: str) -> None:
    """A run changes something in just these operations, and the next one nothing."""
    changed = lab.deploy("--json").changes
    matching = [item for item in changed if any(name in item for name in operations)]
    assert len(matching) == len(operations), changed
    assert lab.deploy("--json").changes == []
    assert planned(lab) == []


def dashboard(lab: Lab) -> str:
    """The name of one of our ConfigMaps of dashboards."""
    label = "app.kubernetes.io/managed-by=gpuboot,grafana_dashboard=1"
    names = lab.kubectl("-n", "monitoring", "get", "configmaps", "-l", label, "-o", "name")
    return sorted(names.split())[0].partition("/")[2]


def test_a_site_that_nobody_touched_has_no_drift(site: Lab) -> None:
    assert planned(site) == []
    before = site.snapshot()
    assert site.deploy("--json").changes == []
    assert site.snapshot() == before


def test_objects_that_were_deleted_come_back(site: Lab) -> None:
    board = dashboard(site)
    site.kubectl("-n", "gpu-operator", "delete", MONITOR, "nvidia-dcgm-exporter")
    site.kubectl("-n", "monitoring", "delete", "configmap", board)
    site.kubectl("-n", "monitoring", "delete", "service", f"{STACK}-prometheus")
    site.kubectl("-n", "kube-system", "delete", "deployment", "coredns")
    site.kubectl("delete", "clusterrolebinding", ROTATION)
    plan_lines = planned(site)
    assert "~ Deployment kube-system/coredns: deleted → created again" in plan_lines
    assert f"~ ClusterRoleBinding {ROTATION}: deleted → created again" in plan_lines
    assert (
        "~ ServiceMonitor gpu-operator/nvidia-dcgm-exporter: deleted → created again" in plan_lines
    )
    assert f"~ Service monitoring/{STACK}-prometheus: deleted → created again" in plan_lines
    assert f"+ ConfigMap monitoring/{board}: created" in plan_lines
    assert len(plan_lines) == 5
    repaired(
        site,
        *("Deploy gpu-operator", f"Deploy {STACK}", "Apply rules, dashboards"),
        "Keep kubeadm's objects",
    )
    site.kubectl("-n", "gpu-operator", "get", MONITOR, "nvidia-dcgm-exporter")


def test_what_was_added_and_changed_in_our_objects_is_put_back(site: Lab) -> None:
    board = dashboard(site)
    patch = json.dumps({"data": {"mine.json": "{}"}})
    site.kubectl("-n", "monitoring", "patch", "configmap", board, "--type=merge", "-p", patch)
    rule = site.kubectl(
        "-n", "monitoring", "get", RULES, "-l", "app.kubernetes.io/managed-by=gpuboot", "-o", "name"
    ).strip()
    group = [{"op": "add", "path": "/spec/groups/-", "value": {"name": "mine", "rules": []}}]
    site.kubectl("-n", "monitoring", "patch", rule, "--type=json", "-p", json.dumps(group))
    site.kubectl("-n", "monitoring", "label", "configmap", board, "team=ml")
    plan_lines = planned(site)
    assert f"- ConfigMap monitoring/{board}: data.mine.json was {{}}" in plan_lines
    assert len(plan_lines) == 2
    assert 'spec.groups[{"name":"mine"}] was added by hand' in plan_lines[1]
    repaired(site, "Apply rules, dashboards", "Reload Prometheus rules")
    configmap = json.loads(
        site.kubectl("-n", "monitoring", "get", "configmap", board, "-o", "json")
    )
    assert "mine.json" not in configmap["data"]
    assert configmap["metadata"]["labels"]["team"] == "ml"  # not ours


def test_operators_that_were_scaled_to_zero_run_again(site: Lab) -> None:
    operators = {"monitoring": f"{STACK}-operator", "gpu-operator": "gpu-operator"}
    for namespace, name in operators.items():
        site.kubectl("-n", namespace, "scale", f"deployment/{name}", "--replicas=0")
    plan_lines = planned(site)
    for namespace, name in operators.items():
        assert f"~ Deployment {namespace}/{name}: spec.replicas 0 → 1" in plan_lines
    assert len(plan_lines) == 2
    repaired(site, "Deploy gpu-operator", f"Deploy {STACK}")
    for namespace, name in operators.items():
        ready = ("-o", "jsonpath={.status.readyReplicas}")
        assert site.kubectl("-n", namespace, "get", "deployment", name, *ready) == "1"


def test_values_that_were_changed_by_hand_are_named_and_put_back(site: Lab) -> None:
    chart = site.ssh("cp1", f"ls /var/cache/gpuboot/charts/{STACK}-*.tgz").strip()
    site.ssh(
        "cp1",
        f"{HELM} upgrade {STACK} {chart} -n monitoring --reuse-values"
        " --set prometheus.prometheusSpec.retention=1d --force-conflicts",
    )
    plan_lines = planned(site)
    assert any("prometheus.prometheusSpec.retention 1d → " in line for line in plan_lines), (
        plan_lines
    )
    repaired(site, f"Deploy {STACK}")


def test_a_kubelet_s_configuration_that_was_edited_is_written_again(site: Lab) -> None:
    file = "/var/lib/kubelet/config.yaml"
    before = site.ssh("gpu1", f"cat {file}")
    site.ssh("gpu1", f"echo maxPods: 77 >>{file}")
    (plan_line,) = planned(site)
    assert plan_line == (
        f"~ kubelet's configuration of gpu1: {file} changed by hand → as kubeadm writes it"
    )
    repaired(site, "Reconfigure the nodes")
    assert site.ssh("gpu1", f"cat {file}") == before


def test_a_definition_that_was_deleted_comes_back_with_its_objects(site: Lab) -> None:
    site.kubectl("delete", "customresourcedefinition", MONITOR)
    plan_lines = planned(site)
    assert any(line.startswith(f"~ custom resources of {STACK}: deleted") for line in plan_lines), (
        plan_lines
    )
    changed = site.deploy("--json").changes
    assert any("Apply the first custom resources" in name for name in changed), changed
    assert planned(site) == []
    until(
        lambda: site.prometheus('up{job="nvidia-dcgm-exporter"} == 1'),
        "the exporter is scraped again",
    )


@pytest.mark.parametrize(
    "status", ["failed", "pending-upgrade", "pending-rollback", "uninstalling"]
)
def test_what_a_killed_helm_left_is_finished(site: Lab, status: str) -> None:
    """The newest record of a release says what a killed Helm had begun."""
    site.ssh(
        "cp1",
        f"""set -e; export KUBECONFIG=/etc/kubernetes/admin.conf
name=$(kubectl -n monitoring get secrets -l owner=helm,name={STACK},status=deployed -o name)
record=$(kubectl -n monitoring get "$name" -o 'jsonpath={{.data.release}}' | base64 -d |
  base64 -d | gzip -d | sed 's/"status":"deployed"/"status":"{status}"/' | gzip -c |
  base64 -w 0 | base64 -w 0)
printf '{{"data":{{"release":"%s"}}}}' "$record" >/root/record
kubectl -n monitoring patch "$name" --type=merge --patch-file /root/record
kubectl -n monitoring label --overwrite "$name" status={status}; rm /root/record""",
    )
    plan_lines = planned(site)
    assert f"~ Helm release {STACK}: status {status} → deployed" in plan_lines
    changed = site.deploy("--json").changes
    assert any(f"Deploy {STACK}" in name for name in changed), changed
    assert site.deploy("--json").changes == []
    releases = json.loads(site.ssh("cp1", f"{HELM} list -n monitoring -o json"))
    assert [item["status"] for item in releases] == ["deployed"]
