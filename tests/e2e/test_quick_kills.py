"""A first deploy that is killed over and over, and a worker that loses power while it joins."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import suppress

import pytest

from tests.e2e.conftest import ROOT, Lab
from tests.e2e.kill_points import Copies, KillPoint, kill_at

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-quick-kills", "--gpus", "1,1", "--no-deploy")

KILLS = 30
FIRST_S, LATER_S = 6.0, 0.7  # when the first run is killed, and how much later each further one
JOIN = KillPoint("Kubernetes | Join the workers (kubeadm join)", 4.0, ("gpu1", "gpu2"))
PROVEN_WITHIN_S = 420


@pytest.fixture(scope="module")
def bare(site: Lab) -> Copies:
    """The disks of the machines before anything was deployed."""
    return Copies(site.name)


def proven(site: Lab) -> float:
    """Seconds of the run that finishes; the one after it has nothing to do."""
    start = time.monotonic()
    result = site.deploy()
    elapsed = time.monotonic() - start
    assert result.code == 0, result.details
    assert "proven" in result.text
    assert not site.deploy("--json").changes
    return elapsed


def restarts(site: Lab) -> dict[str, int]:
    """The pods whose containers were started again, and how often."""
    pods = json.loads(site.kubectl("get", "pods", "-A", "-o", "json"))["items"]
    counted = {
        pod["metadata"]["name"]: sum(
            container["restartCount"] for container in pod["status"].get("containerStatuses", ())
        )
        for pod in pods
    }
    return {name: count for name, count in counted.items() if count}


def killed(site: Lab, after_s: float) -> bool:
    """Whether a run was still at work when it was killed."""
    with subprocess.Popen(
        ["pyinfra", "inventories/lab.py", "deploys/site.py", "-y"],
        cwd=ROOT,
        env=site.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:
        with suppress(subprocess.TimeoutExpired):
            run.wait(after_s)
        at_work = run.poll() is None
        run.kill()
    return at_work


def test_a_worker_that_lost_power_while_it_joined(site: Lab, bare: Copies) -> None:
    stopped = kill_at(site, JOIN, "power cut")
    assert stopped.at == JOIN.operation, "the run ended before the workers joined"
    elapsed = proven(site)
    print(
        f"power of {stopped.machine} cut during its join; the next run: proven in {elapsed:.0f} s"
    )
    assert elapsed < PROVEN_WITHIN_S


def test_thirty_runs_killed_soon_after_each_other(site: Lab, bare: Copies) -> None:
    bare.put_back()
    at_work = [killed(site, FIRST_S + number * LATER_S) for number in range(KILLS)]
    assert sum(at_work) > KILLS // 2, "most runs had ended before they were killed"
    elapsed = proven(site)
    print(
        f"{sum(at_work)} of {KILLS} runs killed at work; the next run: proven in {elapsed:.0f} s; "
        f"restarts: {restarts(site)}"
    )
    assert elapsed < PROVEN_WITHIN_S
