"""Pods that were given no GPU see none; the proof notices where they do, and the next run mends it.

The toolkit, containerd and the kubelet are real.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import Lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-isolation", "--single")
NODE = "node1"
VARIABLE = "accept-nvidia-visible-devices-envvar-when-unprivileged"
MOUNT = "accept-nvidia-visible-devices-as-volume-mounts"
IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"
BY_ANNOTATION = """\
version = 3
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
pod_annotations = ["cdi.k8s.io/*"]
"""
SITE_FILE = "/etc/containerd/conf.d/50-site.toml"


def pod(name: str, **spec: Any) -> str:
    """A pod of two containers, both with the variable; the first one has a request."""
    container = {
        "image": IMAGE,
        "command": ["sh", "-c", "ls -d /dev/nvidia[0-9]* 2>/dev/null; exec sleep 36000"],
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
    }
    gpu_container = {**container, "name": "one", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    sidecar = {**container, "name": "beside"}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [gpu_container, sidecar],
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }
    return json.dumps(manifest)


def visible_gpus(site: Lab, name: str, container: str) -> list[str]:
    """The GPUs that a container of a running pod has listed."""
    running = ("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    site.kubectl(*running)
    log = site.kubectl("logs", name, "-c", container)
    return [line for line in log.split() if line.startswith("/dev/nvidia")]


def accept(site: Lab, option: str) -> None:
    site.ssh(NODE, f"nvidia-ctk --quiet config --in-place --set {option}=true")


def isolation(site: Lab) -> dict[str, Any]:
    """What the verification says of the link."""
    _, report = site.verify()
    [finding] = [item for item in report["findings"] if item["link"] == "isolation"]
    return dict(finding)


def started(site: Lab) -> str:
    return site.ssh(NODE, "systemctl show -p ExecMainStartTimestamp --value containerd")


def close(site: Lab) -> list[str]:
    """The next run; the operations that changed something."""
    return site.deploy("--json").changes


def test_a_pod_sees_what_it_asked_for_and_no_more(site: Lab) -> None:
    assert isolation(site)["status"] == "pass"
    site.kubectl("apply", "-f", "-", stdin=pod("first"))
    site.kubectl("apply", "-f", "-", stdin=pod("second"))
    first, second = visible_gpus(site, "first", "one"), visible_gpus(site, "second", "one")
    assert sorted([*first, *second]) == ["/dev/nvidia0", "/dev/nvidia1"]
    assert visible_gpus(site, "first", "beside") == []
    site.kubectl("delete", "pod", "first", "second")


@pytest.mark.parametrize("name", ["nvidia", "nvidia-cdi", "nvidia-legacy"])
def test_every_runtime_class_starts_pods_and_gives_no_more(site: Lab, name: str) -> None:
    site.kubectl("apply", "-f", "-", stdin=pod(name, runtimeClassName=name))
    assert len(visible_gpus(site, name, "one")) == 1
    assert visible_gpus(site, name, "beside") == []
    site.kubectl("delete", "pod", name)


def test_a_node_of_an_earlier_version_is_closed_without_a_restart(site: Lab) -> None:
    accept(site, VARIABLE)
    site.kubectl("apply", "-f", "-", stdin=pod("open"))
    assert visible_gpus(site, "open", "beside") == ["/dev/nvidia0", "/dev/nvidia1"], (
        "the leak is real"
    )
    finding = isolation(site)
    assert finding["status"] == "fail"
    assert "/dev/nvidia0" in finding["detail"]
    assert VARIABLE in finding["remedy"]
    before, containerd = site.snapshot(), started(site)
    assert [name for name in close(site) if "choose GPUs" in name], "the run notices"
    pods = site.snapshot()["pods"]
    assert {uid: pods.get(uid) for uid in before["pods"]} == before["pods"]
    assert started(site) == containerd
    assert isolation(site)["status"] == "pass"
    site.kubectl("delete", "pod", "open")


def test_a_mounted_device_is_noticed_and_closed(site: Lab) -> None:
    accept(site, MOUNT)
    finding = isolation(site)
    assert (finding["status"], MOUNT in finding["remedy"]) == ("fail", True)
    close(site)
    assert isolation(site)["status"] == "pass"


def test_annotations_that_a_site_passes_on_are_noticed(site: Lab) -> None:
    restart = "systemctl restart containerd"
    site.ssh(NODE, f"cat >{SITE_FILE} <<'E'\n{BY_ANNOTATION}E\n{restart}")
    try:
        finding = until(lambda: fails(site), "the annotation gives GPUs", within_s=60)
        assert "pod_annotations" in finding["remedy"]
    finally:
        site.ssh(NODE, f"rm {SITE_FILE}; {restart}")


def fails(site: Lab) -> dict[str, Any] | None:
    finding = isolation(site)
    return finding if finding["status"] == "fail" else None
