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
    done = lab.dry(settings=settings)
    assert done.code == 0, done.told
    print(done.text)
    return done.text


def settled(lab: Lab, settings: dict[str, Any], *arguments: str) -> None:
    """A run with these settings ends proven, and leaves the next one nothing to do."""
    began = time.monotonic()
    done = lab.deploy(*arguments, settings=settings)
    print(f"{settings}: {time.monotonic() - began:.0f} s\n{done.text[-3000:]}")
    assert done.code == 0, done.told
    assert "proven" in done.text
    assert lab.deploy("--json", settings=settings).changes == []


def names(lab: Lab, kinds: str, namespace: str) -> list[str]:
    """The objects of these kinds in a namespace."""
    return lab.kubectl("-n", namespace, "get", kinds, "-o", "name").split()


def claims(lab: Lab) -> dict[str, str]:
    """Name -> UID of the volume claims of monitoring."""
    found = json.loads(lab.kubectl("-n", "monitoring", "get", "pvc", "-o", "json"))["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in found}


def changed(lab: Lab) -> set[str]:
    """The hosts on which the newest run changed something."""
    run = json.loads((lab.reports / "latest/run.json").read_text())
    return {name for name, host in run["hosts"].items() if host["changed"]}


def test_a_worker_joins_and_no_other_host_is_changed(site: Lab) -> None:
    done = site.deploy(inventory=SMALLER)
    assert done.code == 0, done.told
    began = time.monotonic()
    done = site.deploy()
    print(f"another worker: {time.monotonic() - began:.0f} s\n{done.text[-6000:]}")
    assert done.code == 0, done.told
    assert "proven" in done.text
    assert changed(site) == {"cp1", "gpu2"}


def test_monitoring_goes_without_its_volumes_and_finds_them_when_it_comes_back(site: Lab) -> None:
    moment = time.time()
    until(lambda: site.prometheus(f"up @ {moment}"), "Prometheus has scraped something")
    before = claims(site)
    assert len(before) == 2, before
    shown = plan(site, OFF["monitoring"])
    assert "- Helm release kube-prometheus-stack: was kube-prometheus-stack" in shown
    assert "= kept: volumes of Prometheus, Alertmanager and Grafana" in shown

    settled(site, OFF["monitoring"])
    assert names(site, "all", "monitoring") == []
    assert "gpuboot" not in "".join(names(site, "prometheusrules,servicemonitors", "monitoring"))
    assert names(site, "secrets", "monitoring") == []
    left = names(site, "services,endpoints,endpointslices", "kube-system")
    assert not [name for name in left if "kubelet" in name], left
    assert claims(site) == before
    assert names(site, "deployments", "local-path-storage"), "volumes need it"

    settled(site, {})
    assert claims(site) == before
    assert site.prometheus(f"up @ {moment}"), "metrics from before it was switched off are there"


def test_one_exporter_takes_the_place_of_the_other(site: Lab) -> None:
    chart = {"exporter": {"kind": "chart"}}
    shown = plan(site, chart)
    assert "Helm release dcgm-exporter: dcgm-exporter" in shown
    settled(site, chart)
    assert "daemonset.apps/nvidia-dcgm-exporter" not in names(site, "daemonsets", "gpu-operator")
    assert one_series_for_each_gpu(site)

    shown = plan(site, {})
    assert "- Helm release dcgm-exporter: was dcgm-exporter" in shown
    settled(site, {})
    assert names(site, "all,servicemonitors", "dcgm-exporter") == []
    assert one_series_for_each_gpu(site)


def one_series_for_each_gpu(lab: Lab) -> bool:
    """Whether Prometheus has each GPU's temperature once, now."""
    found = lab.prometheus("count by (UUID) (DCGM_FI_DEV_GPU_TEMP)")
    return [item["value"][1] for item in found] == ["1", "1"]


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
    site.kubectl("apply", "-f", "-", given=json.dumps(HOLDER))
    until(lambda: running(site) == "Running 0", "a pod runs on the GPU")
    site.kubectl("label", "node", "gpu1", "nvidia.com/device-plugin.config=mine")
    shown = plan(site, OFF["gpu_operator"])
    assert "- Helm release gpu-operator: was gpu-operator" in shown
    assert "- ClusterPolicy cluster-policy: was there" in shown
    assert "- node gpu1, gpu2: labels of the GPU Operator was" in shown
    assert "= kept: pods that run on GPUs" in shown

    settled(site, OFF["gpu_operator"])
    assert names(site, "all", "gpu-operator") == []
    assert running(site) == "Running 0"
    node = json.loads(site.kubectl("get", "node", "gpu1", "-o", "json"))
    left = [key for key in node["metadata"]["labels"] if "nvidia.com" in key or "feature" in key]
    assert left == ["nvidia.com/device-plugin.config"]
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
    refused = site.deploy("--dry", *give_up)
    assert refused.code == 1
    assert "only while it is switched off" in refused.text
    folder = "mkdir -p /var/lib/gpuboot/volumes && ls /var/lib/gpuboot/volumes"
    kept = [name for machine in MACHINES for name in site.ssh(machine, folder).split()]
    assert kept
    done = site.deploy(*give_up, settings=OFF["monitoring"])
    assert done.code == 0, done.told
    assert claims(site) == {}
    assert site.kubectl("get", "pv,storageclass", "-o", "name") == ""
    assert names(site, "all", "local-path-storage") == []
    assert [site.ssh(machine, folder).strip() for machine in MACHINES] == ["", "", ""]
    assert site.deploy("--json", settings=OFF["monitoring"]).changes == []
    settled(site, {})


def test_a_site_that_was_reset_is_made_anew(site: Lab) -> None:
    confirmed = ("--data", f"gpuboot_reset=gpuboot-{site.name}")
    command = ["pyinfra", "inventories/lab.py", "deploys/reset.py", "-y"]
    refused = site.command(command)
    assert refused.code == 1
    assert f"--data gpuboot_reset=gpuboot-{site.name}" in refused.text
    done = site.command([*command, *confirmed])
    print(done.text)
    assert done.code == 0, done.told
    for machine in MACHINES:
        site.ssh(
            machine, "test ! -e /etc/kubernetes/kubelet.conf && test ! -e /var/lib/etcd/member"
        )
        assert "kubepods" not in site.ssh(machine, "systemctl list-units --no-legend | cat")
    began = time.monotonic()
    settled(site, {})
    print(f"made anew and proven: {time.monotonic() - began:.0f} s")
