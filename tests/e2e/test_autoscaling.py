"""An HPA on GPU load by prometheus-adapter, and AI conformance with it, Kueue and a Gateway.

The adapter is upstream's, built from its module, with upstream's manifests. No registry that the
lab reaches serves its image and its chart: it runs from a node's disk, and gets of our values for
the chart what the chart would hand on.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.build.recipe import make
from lab.build.software_metrics import ADAPTER, adapter, adapter_manifests
from tests.e2e.ai_components import apply, image, install_kueue, install_traefik, machine_path
from tests.e2e.conftest import Lab, until
from tests.e2e.workloads import computing

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("autoscaling", "--gpus", "2")

NODE = "gpu1"
FOLDER = "/opt/prometheus-adapter"
METRIC = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/%2A/gpu_sm_active"
WITHIN_S = 420
UNMOVED_S = 150
REMOVED_WITHIN_S = 120
# of upstream's manifests: the others serve metrics of CPU and memory, as metrics-server does
MANIFESTS = (
    *("service-account", "service", "cluster-role", "cluster-role-binding"),
    *("cluster-role-binding-delegator", "cluster-role-binding-hpa-custom-metrics"),
    "role-binding-auth-reader",
)
READERS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "custom-metrics-server-resources"},
    "rules": [{"apiGroups": ["custom.metrics.k8s.io"], "resources": ["*"], "verbs": ["*"]}],
}
API = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1beta1.custom.metrics.k8s.io"},
    "spec": {
        "group": "custom.metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": "monitoring", "name": ADAPTER},
    },
}


def manifest(name: str) -> Any:
    return yaml.safe_load((adapter_manifests() / f"{name}.yaml").read_text(encoding="utf-8"))


def adapter_objects(site: Lab) -> list[Any]:
    """Upstream's objects, with the values that `gpuboot autoscaling adapter` prints."""
    values = yaml.safe_load(site.command(["gpuboot", "autoscaling", "adapter"]).out)
    config = manifest("config-map")
    config["data"]["config.yaml"] = yaml.safe_dump({"rules": values["rules"]["custom"]})
    deployment = manifest("deployment")
    deployment["spec"]["replicas"] = 1
    pod = deployment["spec"]["template"]["spec"]
    prometheus = values["prometheus"]
    pod["nodeSelector"] = {"kubernetes.io/hostname": NODE}
    pod["volumes"].append({"name": "program", "hostPath": {"path": FOLDER}})
    [container] = pod["containers"]
    container["image"] = image(site, "busybox")
    container["volumeMounts"].append({"name": "program", "mountPath": FOLDER, "readOnly": True})
    container["command"] = [f"{FOLDER}/{ADAPTER}"]
    container["args"] = [
        "--cert-dir=/var/run/serving-cert",
        "--config=/etc/adapter/config.yaml",
        f"--metrics-relist-interval={values['metricsRelistInterval']}",
        f"--prometheus-url={prometheus['url']}:{prometheus['port']}",
        "--secure-port=6443",
    ]
    return [*map(manifest, MANIFESTS), config, READERS, deployment, API]


def install_adapter(site: Lab) -> None:
    """Put the program on the node's disk, and make its objects."""
    folder = machine_path(site, NODE) / FOLDER.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(make(adapter(), {}) / "bin" / ADAPTER, folder)
    apply(site, *adapter_objects(site))


def load(site: Lab, *words: str) -> None:
    for gpu in ("0", "1"):
        action = ("set", gpu, *words) if words else ("clear", gpu)
        result = site.lab("fault", "--name", site.name, NODE, *action)
        assert result.code == 0, result.details


def figures(site: Lab) -> list[float]:
    """SM activity of each pod, as HPAs get it."""
    result = site.command(["scripts/lab", "kubectl", "--name", site.name, "get", "--raw", METRIC])
    if result.code != 0:
        return []
    values = [item["value"] for item in json.loads(result.out)["items"]]
    return [int(text[:-1]) / 1000 if text.endswith("m") else float(text) for text in values]


def replicas(site: Lab) -> int:
    answer = json.loads(site.kubectl("get", "deployment", "infer", "-o", "json"))
    return int(answer["spec"]["replicas"])


def active(site: Lab) -> tuple[str, str]:
    """Whether the HPA scales, and why not."""
    status = json.loads(site.kubectl("get", "hpa", "infer", "-o", "json")).get("status", {})
    conditions = {entry["type"]: entry for entry in status.get("conditions") or ()}
    entry = conditions.get("ScalingActive", {})
    return entry.get("status", ""), entry.get("reason", "")


def export(site: Lab, value: str) -> None:
    """Run the exporter on the node, or do not: the label that the GPU Operator goes by."""
    label = f"nvidia.com/gpu.deploy.dcgm-exporter={value}"
    site.kubectl("label", "node", NODE, label, "--overwrite")


def test_a_deployment_follows_the_load_of_its_gpus(site: Lab) -> None:
    install_adapter(site)
    site.kubectl("apply", "-f", "-", stdin=computing("infer"))
    words = ("hpa", "infer", "-n", "default", "--max", "2", "--target", "0.6")
    scaler = yaml.safe_load(site.command(["gpuboot", "autoscaling", *words]).out)
    # ten minutes in what gpuboot writes; without it nothing but the figures holds the pods
    scaler["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 0
    until(lambda: figures(site), "the adapter has a figure of the pod", WITHIN_S)
    apply(site, scaler)
    until(lambda: active(site)[0] == "True", "the HPA has figures", WITHIN_S)
    assert replicas(site) == 1
    load(site, "util", "90")
    until(lambda: replicas(site) == 2, "the load has brought a second pod", WITHIN_S)
    load(site)
    until(lambda: replicas(site) == 1, "without load one pod is left", WITHIN_S)


def test_pods_without_figures_stay(site: Lab) -> None:
    load(site, "util", "90")
    until(lambda: replicas(site) == 2, "the load has brought a second pod", WITHIN_S)
    export(site, "false")
    try:
        load(site)
        until(lambda: active(site)[0] == "False", "the HPA has no figures", WITHIN_S)
        assert active(site)[1] == "FailedGetPodsMetric"
        with pytest.raises(pytest.fail.Exception):
            until(lambda: replicas(site) != 2, "nothing is scaled", UNMOVED_S)
    finally:
        export(site, "true")
    until(lambda: replicas(site) == 1, "idle GPUs are seen again", WITHIN_S)


def address(site: Lab, node: str) -> str:
    """The node's address inside the cluster."""
    item = json.loads(site.kubectl("get", "node", node, "-o", "json"))
    addresses = {entry["type"]: str(entry["address"]) for entry in item["status"]["addresses"]}
    return addresses["InternalIP"]


def test_conformance_has_evidence_of_every_demand(site: Lab, tmp_path: Path) -> None:
    """With Kueue, a Gateway and the adapter nothing that CNCF's programme demands is left open."""
    site.kubectl("delete", "hpa,deployment", "infer", "--wait")
    load(site)
    install_kueue(site, NODE)
    install_traefik(site, NODE, address(site, NODE))
    command = ["gpuboot", "conformance", "inventories/lab.py", "--out", str(tmp_path)]
    result = site.command(command)
    document = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    statuses = {entry["id"]: entry["status"] for entry in document["results"]}
    print(result.text)
    passed = {name for name, status in statuses.items() if status == "pass"}
    assert {
        *("dra_support", "secure_accelerator_access", "accelerator_metrics"),
        *("ai_service_metrics", "pod_autoscaling", "driver_runtime_management"),
        *("gang_scheduling", "robust_controller", "ai_inference"),
    } <= passed, result.details
    demands = {entry["id"] for entry in document["results"] if entry["level"] == "MUST"}
    without = {name for name in demands if statuses[name] in ("fail", "not_run")}
    assert not without, result.details
    assert result.code == 0, result.details
    kinds = "clusterqueues.kueue.x-k8s.io,resourceflavors.kueue.x-k8s.io,namespaces"
    until(
        lambda: "conformance" not in site.kubectl("get", kinds, "-o", "name"),
        "nothing is left of it",
        REMOVED_WITHIN_S,
    )
