"""A living cluster: a worker more, parts that are switched off and on again, and its reset."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.e2e.conftest import Lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]

LAB = ("test-parts", "--gpus", "1,1", "--no-deploy")
MACHINES = ("cp1", "gpu1", "gpu2")
SMALLER = "tests/e2e/inventories/smaller/lab.py"  # without gpu2
OFF: dict[str, dict[str, Any]] = {
    "monitoring": {"monitoring": {"enabled": False}},
    "gpu_operator": {"gpu_operator": {"enabled": False}, "exporter": {"kind": "chart"}},
}


def plan(lab: Lab, settings: dict[str, Any]) -> str:
    """What `--dry` prints."""
    result = lab.dry(settings=settings)
    assert result.code == 0, result.details
    print(result.text)
    return result.text


def settled(lab: Lab, settings: dict[str, Any], *arguments: str, code: int = 0) -> None:
    """A run with these settings ends proven, and leaves the next one nothing to do.

    + code: of the run; 2: GPUs are held, or nothing offers them
    """
    start = time.monotonic()
    result = lab.deploy(*arguments, settings=settings)
    print(f"{settings}: {time.monotonic() - start:.0f} s\n{result.text[-3000:]}")
    assert result.code == code, result.details
    assert "proven" in result.text
    assert lab.deploy("--json", settings=settings).changes == []


def names(lab: Lab, kinds: str, namespace: str) -> list[str]:
    """The objects of these kinds in a namespace."""
    return lab.kubectl("-n", namespace, "get", kinds, "-o", "name").split()


def claims(lab: Lab) -> dict[str, str]:
    """Name -> UID of the volume claims of monitoring."""
    items = json.loads(lab.kubectl("-n", "monitoring", "get", "pvc", "-o", "json"))["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


def changed(lab: Lab) -> set[str]:
    """The hosts on which the newest run changed something."""
    run = json.loads((lab.reports / "latest/run.json").read_text())
    return {name for name, host in run["hosts"].items() if host["changed"]}


def test_a_worker_joins_and_no_other_host_is_changed(site: Lab) -> None:
    result = site.deploy(inventory=SMALLER)
    assert result.code == 0, result.details
    start = time.monotonic()
    result = site.deploy()
    print(f"another worker: {time.monotonic() - start:.0f} s\n{result.text[-6000:]}")
    assert result.code == 0, result.details
    assert "proven" in result.text
    assert changed(site) == {"cp1", "gpu2"}


def test_monitoring_goes_without_its_volumes_and_finds_them_when_it_comes_back(site: Lab) -> None:
    moment = time.time()
    until(lambda: site.prometheus(f"up @ {moment}"), "Prometheus has scraped something")
    before = claims(site)
    assert len(before) == 2, before
    plan_text = plan(site, OFF["monitoring"])
    assert "- Helm release kube-prometheus-stack: was kube-prometheus-stack" in plan_text
    assert "= kept: volumes of Prometheus, Alertmanager and Grafana" in plan_text

    settled(site, OFF["monitoring"])
    assert names(site, "all", "monitoring") == []
    assert "gpuboot" not in "".join(names(site, "prometheusrules,servicemonitors", "monitoring"))
    assert names(site, "secrets", "monitoring") == []
    remaining_names = names(site, "services,endpoints,endpointslices", "kube-system")
    assert not [name for name in remaining_names if "kubelet" in name], remaining_names
    assert claims(site) == before
    assert names(site, "deployments", "local-path-storage"), "volumes need it"

    settled(site, {})
    assert claims(site) == before
    assert site.prometheus(f"up @ {moment}"), "metrics from before it was switched off are there"


def test_one_exporter_takes_the_place_of_the_other(site: Lab) -> None:
    chart = {"exporter": {"kind": "chart"}}
    plan_text = plan(site, chart)
    assert "Helm release dcgm-exporter: dcgm-exporter" in plan_text
    settled(site, chart)
    assert "daemonset.apps/nvidia-dcgm-exporter" not in names(site, "daemonsets", "gpu-operator")
    assert one_series_for_each_gpu(site)

    plan_text = plan(site, {})
    assert "- Helm release dcgm-exporter: was dcgm-exporter" in plan_text
    settled(site, {})
    assert names(site, "all,servicemonitors", "dcgm-exporter") == []
    assert one_series_for_each_gpu(site)


def one_series_for_each_gpu(lab: Lab) -> bool:
    """Whether Prometheus has each GPU's temperature once, now."""
    samples = lab.prometheus("count by (UUID) (DCGM_FI_DEV_GPU_TEMP)")
    return [item["value"][1] for item in samples] == ["1", "1"]


HOLDER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "training", "namespace": "default"},
    "spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "containers": [
            {
                "name": "main",
                "image": "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0",
                "command": ["bash", "-c", "while :; do sleep 1; done"],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }
        ],
    },
}


def test_the_gpu_operator_goes_and_gpu_pods_run_on(site: Lab) -> None:
    site.kubectl("apply", "-f", "-", stdin=json.dumps(HOLDER))
    until(lambda: running(site) == "Running 0", "a pod runs on the GPU")
    site.kubectl("label", "node", "gpu1", "nvidia.com/device-plugin.config=mine")
    plan_text = plan(site, OFF["gpu_operator"])
    assert "- Helm release gpu-operator: was gpu-operator" in plan_text
    assert "- ClusterPolicy cluster-policy: was there" in plan_text
    assert "- node gpu1, gpu2: labels of the GPU Operator was" in plan_text
    assert "= kept: pods that run on GPUs" in plan_text

    settled(site, OFF["gpu_operator"], code=2)
    assert names(site, "all", "gpu-operator") == []
    assert running(site) == "Running 0"
    node = json.loads(site.kubectl("get", "node", "gpu1", "-o", "json"))
    remaining_labels = [
        key for key in node["metadata"]["labels"] if "nvidia.com" in key or "feature" in key
    ]
    assert remaining_labels == ["nvidia.com/device-plugin.config"]
    assert one_series_for_each_gpu(site)

    site.kubectl("delete", "pod", "training")
    site.kubectl("label", "node", "gpu1", "nvidia.com/device-plugin.config-")
    settled(site, {})


def running(lab: Lab) -> str:
    """Phase and restarts of the pod."""
    path = "{.status.phase} {.status.containerStatuses[0].restartCount}"
    return lab.kubectl("get", "pod", "training", "-o", f"jsonpath={path}")


def test_volumes_go_when_a_person_says_so_and_the_provisioner_with_them(site: Lab) -> None:
    give_up = ("--data", "gpuboot_delete_volumes=monitoring")
    rejected = site.deploy("--dry", *give_up)
    assert rejected.code == 1
    assert "only while it is switched off" in rejected.text
    folder = "mkdir -p /var/lib/gpuboot/volumes && ls /var/lib/gpuboot/volumes"
    volumes = [name for machine in MACHINES for name in site.ssh(machine, folder).split()]
    assert volumes
    result = site.deploy(*give_up, settings=OFF["monitoring"])
    assert result.code == 0, result.details
    assert claims(site) == {}
    assert site.kubectl("get", "pv,storageclass", "-o", "name") == ""
    assert names(site, "all", "local-path-storage") == []
    assert [site.ssh(machine, folder).strip() for machine in MACHINES] == ["", "", ""]
    assert site.deploy("--json", settings=OFF["monitoring"]).changes == []
    settled(site, {})


def test_a_site_that_was_reset_is_made_anew(site: Lab) -> None:
    confirmed = ("--data", f"gpuboot_reset=gpuboot-{site.name}")
    command = ["pyinfra", "inventories/lab.py", "deploys/reset.py", "-y"]
    rejected = site.command(command)
    assert rejected.code == 1
    assert f"--data gpuboot_reset=gpuboot-{site.name}" in rejected.text
    result = site.command([*command, *confirmed])
    print(result.text)
    assert result.code == 0, result.details
    for machine in MACHINES:
        site.ssh(
            machine, "test ! -e /etc/kubernetes/kubelet.conf && test ! -e /var/lib/etcd/member"
        )
        assert "kubepods" not in site.ssh(machine, "systemctl list-units --no-legend | cat")
    start = time.monotonic()
    settled(site, {})
    print(f"made anew and proven: {time.monotonic() - start:.0f} s")
