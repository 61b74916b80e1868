"""Which pods a reboot of their node interrupts."""

from deploys.lib.cordon import gpu_pods


def pod(name, limits, phase="Running"):
    return {
        "metadata": {"namespace": "ml", "name": name},
        "spec": {"containers": [{"name": "side"}, {"resources": {"limits": limits}}]},
        "status": {"phase": phase},
    }


def test_only_running_pods_with_gpus():
    pods = [
        pod("train", {"nvidia.com/gpu": "2", "cpu": "4"}),
        pod("slice", {"nvidia.com/mig-1g.10gb": "1"}),
        pod("web", {"cpu": "1"}),
        pod("none", None),
        pod("done", {"nvidia.com/gpu": "1"}, phase="Succeeded"),
    ]
    assert gpu_pods({"items": pods}) == ["ml/train", "ml/slice"]
