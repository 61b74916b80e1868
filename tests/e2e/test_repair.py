"""A living cluster whose nodes somebody stopped, cut off or left half installed."""

from __future__ import annotations

import json
import time

import pytest

from tests.e2e.conftest import Lab, Run, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-repair", "--gpus", "1")

# takes the port as soon as flannel, which has it, ends
SQUAT = (
    "systemd-run --unit=squatter -p Restart=always -p RestartSec=100ms -p StartLimitIntervalSec=0"
    " socat TCP-LISTEN:8081,fork,reuseaddr /dev/null"
)
RUNS = "systemctl is-active kubelet; systemctl is-enabled kubelet"
# dpkg notes what it does in this folder until it has written its database as a whole
KILL_DPKG = """
export DEBIAN_FRONTEND=noninteractive
apt-get install -y -q --reinstall --allow-change-held-packages kubelet >/dev/null 2>&1 &
until ls /var/lib/dpkg/updates | grep -q '[0-9]'; do :; done
pkill -9 -x dpkg; pkill -9 -x apt-get; wait
ls /var/lib/dpkg/updates; dpkg-query -W -f '${db:Status-Status}' kubelet
"""


def plan(lab: Lab) -> str:
    """What `--dry` prints."""
    result = lab.dry()
    assert result.code == 0, result.details
    return result.text


def repaired(lab: Lab, within_s: float) -> Run:
    """A run that ends proven in that time, and leaves the next one nothing to do."""
    start = time.monotonic()
    result = lab.deploy()
    elapsed = time.monotonic() - start
    assert result.code == 0, result.details
    assert "proven" in result.text
    print(f"proven in {elapsed:.0f} s")
    assert elapsed < within_s, result.details
    assert lab.deploy("--json").changes == []
    return result


@pytest.mark.parametrize("action", ["stop", "disable --now", "mask --now"])
def test_a_kubelet_that_somebody_stopped_runs_again(site: Lab, action: str) -> None:
    site.ssh("gpu1", f"systemctl {action} kubelet")
    plan_text = plan(site)
    assert "unit kubelet.service" in plan_text, plan_text
    assert "inactive" in plan_text, plan_text
    repaired(site, within_s=120)
    assert site.ssh("gpu1", RUNS).split() == ["active", "enabled"]


def test_the_api_server_is_waited_for_where_the_kubelet_has_to_start_it(site: Lab) -> None:
    """Its kubelet was disabled, and the machine went through a power cut."""
    site.ssh("cp1", "systemctl disable kubelet; sync")
    for switch in ("off", "on"):
        assert site.lab("power", "--name", site.name, "cp1", switch).code == 0
    repaired(site, within_s=300)
    assert site.ssh("cp1", RUNS).split() == ["active", "enabled"]


def test_a_killed_dpkg_is_finished_by_the_next_run(site: Lab) -> None:
    output = site.ssh("gpu1", KILL_DPKG)
    print(output)
    plan_text = plan(site)
    assert "dpkg" in plan_text, plan_text
    assert "interrupted" in plan_text, plan_text
    repaired(site, within_s=240)
    assert site.ssh("gpu1", "dpkg --audit; ls /var/lib/dpkg/updates | grep '[0-9]'; true") == ""
    assert site.ssh("gpu1", "apt-mark showhold | grep -x kubelet").strip() == "kubelet"


def test_a_crash_loop_whose_cause_is_gone_is_ended_by_the_run(site: Lab) -> None:
    """flannel cannot listen on its port for a while: its next start would be minutes away."""
    site.ssh("gpu1", SQUAT)
    select = ("-l", "app=flannel", "--field-selector", "spec.nodeName=gpu1")
    site.kubectl("-n", "kube-flannel", "delete", "pod", *select)

    def restarts() -> int:
        pods = json.loads(site.kubectl("-n", "kube-flannel", "get", "pods", *select, "-o", "json"))
        return max(
            (container["restartCount"] for pod in pods["items"] for container in crashed(pod)),
            default=0,
        )

    # its next start is 80 s away or more
    until(lambda: restarts() >= 4, "flannel crashes", within_s=240)
    site.ssh("gpu1", "systemctl stop squatter")
    result = repaired(site, within_s=100)
    assert "bind: address already in use" in result.text
    assert "restarting" in result.text


def crashed(pod: dict[str, object]) -> list[dict[str, int]]:
    """The statuses of its containers that wait for their next start."""
    status = pod["status"]
    assert isinstance(status, dict)
    return [
        container
        for container in status.get("containerStatuses", [])
        if "waiting" in container["state"]
    ]


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_worker_whose_join_was_cut_off_is_joined_again(site: Lab, power_cut: bool) -> None:
    """Without a power cut the bridge of its pods is left, with addresses that it gets no more."""
    site.ssh("gpu1", "touch /etc/gpuboot/kubeadm-join.started; sync")
    for switch in ("off", "on") if power_cut else ():
        assert site.lab("power", "--name", site.name, "gpu1", switch).code == 0
    result = repaired(site, within_s=240)
    assert "an earlier kubeadm join did not end" in result.text
