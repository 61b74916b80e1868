"""Runs that are killed: at every boundary of phases, and in the midst of every long step.

Where these are is found in the record of a run that was not killed. Each kill begins from the same
machines; the run after it has to finish, and the one after that has nothing to do. The table of
all of them: reports/kill-points/.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, Lab, Run, fresh_lab
from tests.e2e.kill_points import Copies, Killed, KillMethod, KillPoint, found_in, kill_at

pytestmark = [pytest.mark.lab, pytest.mark.long]

TABLE = ROOT / "reports" / "kill-points"
AT_LEAST = {"bare": 17, "older": 8}
CONFIGMAP = ("configmap", "-n", "default", "kept", "-o", "jsonpath={.metadata.uid}")
CORDONED = ("nodes", "-o", "jsonpath={.items[?(@.spec.unschedulable)].metadata.name}")


@dataclass(frozen=True)
class Scene:
    """Machines from which every run begins, and the kill points of such a run."""

    lab: Lab
    copies: Copies
    points: list[KillPoint]
    title: str


def record(lab: Lab) -> Mapping[str, Any]:
    """What a run that nobody kills notes of itself."""
    result = lab.deploy()
    assert result.code == 0, result.details
    run_record: dict[str, Any] = json.loads((lab.reports / "latest/run.json").read_text())
    return run_record


@pytest.fixture
def bare() -> Iterator[Scene]:
    """A control plane and two GPU nodes, bare."""
    with fresh_lab("test-kill-first", "--gpus", "1,1", "--no-deploy") as lab:
        copies = Copies(lab.name)
        yield Scene(lab, copies, found_in(record(lab)), "first deploy")


@pytest.fixture
def older() -> Iterator[Scene]:
    """The same with earlier releases of Kubernetes and driver, a ConfigMap, a person's cordon."""
    with fresh_lab("test-kill-upgrade", "--gpus", "1,1", "--previous-release") as lab:
        lab.kubectl("create", "configmap", "kept", "--from-literal=by=etcd")
        lab.kubectl("cordon", "cp1")
        copies = Copies(lab.name)
        yield Scene(lab, copies, found_in(record(lab)), "upgrade")


def select_points(points: list[KillPoint]) -> Iterator[tuple[int, KillPoint, KillMethod]]:
    """Number, point and way to kill; every third is a power cut of a machine.

    $GPUBOOT_KILL_POINTS, e.g. 4-9, leaves out all others.
    """
    first, _, last = os.environ.get("GPUBOOT_KILL_POINTS", "").partition("-")
    for number, point in enumerate(points):
        if int(first or 0) <= number <= int(last or len(points)):
            yield number, point, "power cut" if number % 3 == 2 else "SIGKILL"


def answered(lab: Lab, query: tuple[str, ...]) -> str:
    """What the cluster says now; "" where there is none, or one that was not made to its end."""
    started = "test -e /etc/kubernetes/admin.conf && ! test -e /etc/gpuboot/kubeadm-init.started"
    line = " ".join(f"'{word}'" for word in query)
    kubectl = f"kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=5s get {line}"
    return lab.ssh("cp1", f"{{ {started} && {kubectl}; }} 2>/dev/null || true").strip()


def kill(scene: Scene, point: KillPoint, method: KillMethod) -> tuple[dict[str, Any], list[str]]:
    """One line of the table, and what is wrong with it."""
    lab = scene.lab
    scene.copies.put_back()
    killed = kill_at(lab, point, method)
    identity = answered(lab, ("namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"))
    configmap, cordoned = answered(lab, CONFIGMAP), answered(lab, CORDONED)
    start = time.monotonic()
    result = lab.deploy()
    elapsed = time.monotonic() - start
    after = lab.deploy("--json") if result.code == 0 else result
    row = {
        "scene": scene.title,
        "point": str(point),
        "how": f"{method} of {killed.machine}" if killed.machine else method,
        "said": summarize(result),
        "seconds": round(elapsed),
        "proven": result.code == 0 and "proven" in result.text,
        "then_changed": after.changes if after.code == 0 else None,
    }
    return row, problems_after_kill(row, killed, result, scene, identity, configmap, cordoned)


def problems_after_kill(
    row: Mapping[str, Any], killed: Killed, result: Run, scene: Scene, *before: str
) -> list[str]:
    """What must not be after a kill, in words."""
    identity, configmap, cordoned = before
    problems = []
    if not killed.at:
        problems.append("the run ended before it was killed")
    if not row["proven"]:
        return [*problems, f"the next run did not end proven:\n{result.details}"]
    if row["then_changed"] != []:
        problems.append(f"the run after that changed {row['then_changed']}")
    query = ("namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
    if identity and answered(scene.lab, query) != identity:
        problems.append("the cluster was made anew")
    if configmap and answered(scene.lab, CONFIGMAP) != configmap:
        problems.append("a ConfigMap is lost")
    if scene.title == "upgrade" and answered(scene.lab, CORDONED) != "cp1":
        problems.append(f"a person's cordon is lost (before: {cordoned or 'not known'})")
    return problems


def summarize(result: Run) -> str:
    """What a run told of what it found, besides its changes."""
    keywords = ("earlier", "interrupted", "did not end", "half-", "begun", "remedy")
    lines = (line.strip() for line in result.text.splitlines() if "verify:" not in line)
    return " / ".join(
        dict.fromkeys(line for line in lines if any(keyword in line for keyword in keywords))
    )


@pytest.mark.parametrize("scene", ["bare", "older"])
def test_the_next_run_finishes_what_a_killed_one_left(
    scene: str, request: pytest.FixtureRequest
) -> None:
    prepared: Scene = request.getfixturevalue(scene)
    assert len(prepared.points) >= AT_LEAST[scene]
    TABLE.mkdir(parents=True, exist_ok=True)
    failed = {}
    for number, point, method in select_points(prepared.points):
        row, problems = kill(prepared, point, method)
        line = {"number": number, **row, "wrong": problems}
        print(json.dumps({key: value for key, value in line.items() if key != "wrong"}), flush=True)
        with (TABLE / f"{scene}.jsonl").open("a") as table:
            table.write(json.dumps(line) + "\n")
        if problems:
            failed[str(point)] = problems
    assert not failed, "\n".join(f"{at}: {'; '.join(reasons)}" for at, reasons in failed.items())
