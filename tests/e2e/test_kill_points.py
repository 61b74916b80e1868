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

from tests.e2e.conftest import ROOT, Lab, Run, fresh
from tests.e2e.kill_points import Copies, How, Killed, KillPoint, found_in, kill_at

pytestmark = [pytest.mark.lab, pytest.mark.long]

TABLE = ROOT / "reports" / "kill-points"
AT_LEAST = {"bare": 17, "older": 8}
CONFIGMAP = ("configmap", "-n", "default", "kept", "-o", "jsonpath={.metadata.uid}")
CORDONED = ("nodes", "-o", "jsonpath={.items[?(@.spec.unschedulable)].metadata.name}")


@dataclass(frozen=True)
class Scene:
    """Machines from which every run begins, and the kill points of such a run.

    + settings: of the runs that are killed, and of those that finish
    """

    lab: Lab
    copies: Copies
    points: list[KillPoint]
    title: str


def record(lab: Lab) -> Mapping[str, Any]:
    """What a run that nobody kills notes of itself."""
    done = lab.deploy()
    assert done.code == 0, done.told
    noted: dict[str, Any] = json.loads((lab.reports / "latest/run.json").read_text())
    return noted


@pytest.fixture
def bare() -> Iterator[Scene]:
    """A control plane and two GPU nodes, bare."""
    with fresh("test-kill-first", "--gpus", "1,1", "--no-deploy") as lab:
        copies = Copies(lab.name)
        yield Scene(lab, copies, found_in(record(lab)), "first deploy")


@pytest.fixture
def older() -> Iterator[Scene]:
    """The same with earlier releases of Kubernetes and driver, a ConfigMap, a person's cordon."""
    with fresh("test-kill-upgrade", "--gpus", "1,1", "--previous-release") as lab:
        lab.kubectl("create", "configmap", "kept", "--from-literal=by=etcd")
        lab.kubectl("cordon", "cp1")
        copies = Copies(lab.name)
        yield Scene(lab, copies, found_in(record(lab)), "upgrade")


def chosen(points: list[KillPoint]) -> Iterator[tuple[int, KillPoint, How]]:
    """Number, point and way to kill; every third is a power cut of a machine.

    $GPUBOOT_KILL_POINTS, e.g. 4-9, leaves out all others.
    """
    first, _, last = os.environ.get("GPUBOOT_KILL_POINTS", "").partition("-")
    for number, point in enumerate(points):
        if int(first or 0) <= number <= int(last or len(points)):
            yield number, point, "power cut" if number % 3 == 2 else "SIGKILL"


def answered(lab: Lab, what: tuple[str, ...]) -> str:
    """What the cluster says now; "" where there is none, or one that was not made to its end."""
    begun = "test -e /etc/kubernetes/admin.conf && ! test -e /etc/gpuboot/kubeadm-init.started"
    line = " ".join(f"'{word}'" for word in what)
    kubectl = f"kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=5s get {line}"
    return lab.ssh("cp1", f"{{ {begun} && {kubectl}; }} 2>/dev/null || true").strip()


def kill(scene: Scene, point: KillPoint, how: How) -> tuple[dict[str, Any], list[str]]:
    """One line of the table, and what is wrong with it."""
    lab = scene.lab
    scene.copies.put_back()
    killed = kill_at(lab, point, how)
    identity = answered(lab, ("namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"))
    kept, cordoned = answered(lab, CONFIGMAP), answered(lab, CORDONED)
    began = time.monotonic()
    done = lab.deploy()
    took = time.monotonic() - began
    after = lab.deploy("--json") if done.code == 0 else done
    row = {
        "scene": scene.title,
        "point": str(point),
        "how": f"{how} of {killed.machine}" if killed.machine else how,
        "said": said(done),
        "seconds": round(took),
        "proven": done.code == 0 and "proven" in done.text,
        "then_changed": after.changes if after.code == 0 else None,
    }
    return row, wrong(row, killed, done, scene, identity, kept, cordoned)


def wrong(
    row: Mapping[str, Any], killed: Killed, done: Run, scene: Scene, *before: str
) -> list[str]:
    """What must not be after a kill, in words."""
    identity, kept, cordoned = before
    found = []
    if not killed.at:
        found.append("the run ended before it was killed")
    if not row["proven"]:
        return [*found, f"the next run did not end proven:\n{done.told}"]
    if row["then_changed"] != []:
        found.append(f"the run after that changed {row['then_changed']}")
    asked = ("namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
    if identity and answered(scene.lab, asked) != identity:
        found.append("the cluster was made anew")
    if kept and answered(scene.lab, CONFIGMAP) != kept:
        found.append("a ConfigMap is lost")
    if scene.title == "upgrade" and answered(scene.lab, CORDONED) != "cp1":
        found.append(f"a person's cordon is lost (before: {cordoned or 'not known'})")
    return found


def said(done: Run) -> str:
    """What a run told of what it found, besides its changes."""
    told = ("earlier", "interrupted", "did not end", "half-", "begun", "remedy")
    lines = (line.strip() for line in done.text.splitlines() if "verify:" not in line)
    return " / ".join(dict.fromkeys(line for line in lines if any(one in line for one in told)))


@pytest.mark.parametrize("scene", ["bare", "older"])
def test_the_next_run_finishes_what_a_killed_one_left(
    scene: str, request: pytest.FixtureRequest
) -> None:
    begun: Scene = request.getfixturevalue(scene)
    assert len(begun.points) >= AT_LEAST[scene]
    TABLE.mkdir(parents=True, exist_ok=True)
    failed = {}
    for number, point, how in chosen(begun.points):
        row, problems = kill(begun, point, how)
        line = {"number": number, **row, "wrong": problems}
        print(json.dumps({key: value for key, value in line.items() if key != "wrong"}), flush=True)
        with (TABLE / f"{scene}.jsonl").open("a") as table:
            table.write(json.dumps(line) + "\n")
        if problems:
            failed[str(point)] = problems
    assert not failed, "\n".join(f"{at}: {'; '.join(found)}" for at, found in failed.items())
