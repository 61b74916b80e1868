"""A cluster that is broken on purpose: the cause is named within a minute, and nothing else is."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, Lab
from tests.e2e.diagnose_absence import ABSENCE_FAULTS
from tests.e2e.diagnose_faults import HOST_FAULTS, Fault
from tests.e2e.diagnose_operands import OPERAND_FAULTS
from tests.e2e.diagnose_pods import POD_FAULTS
from tests.e2e.diagnose_ways import WAY_FAULTS

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("diagnose", "--gpus", "1,1")

WITHIN_S = 60.0
SETTLES_S = 240.0
TIMES = ROOT / "reports" / "diagnose"


def diagnosed(lab: Lab, *options: str) -> tuple[float, dict[str, Any]]:
    """Seconds that `gpuboot diagnose` took, and what it found."""
    start = time.monotonic()
    result = lab.command(["gpuboot", "diagnose", "inventories/lab.py", "--json", *options])
    elapsed = time.monotonic() - start
    assert result.code in (0, 1), result.details
    diagnosis: dict[str, Any] = json.loads(result.out)
    assert result.code == (1 if diagnosis["causes"] else 0)
    return elapsed, diagnosis


def ids(diagnosis: dict[str, Any]) -> list[str]:
    return [cause["id"] for cause in diagnosis["causes"]]


def healthy(lab: Lab) -> None:
    """Nothing is found, as soon as what was undone has settled."""
    end = time.monotonic() + SETTLES_S
    while (diagnosis := diagnosed(lab)[1])["causes"] or diagnosis["unread"]:
        assert time.monotonic() < end, json.dumps(diagnosis, indent=1)
        time.sleep(5)


def note(fault: Fault, injected_s: float, took_s: float, diagnosis: dict[str, Any]) -> None:
    """A line for people who compare: what was broken, what was named, how long it took."""
    TIMES.mkdir(parents=True, exist_ok=True)
    line = {
        "causes": fault.causes,
        "simulated": fault.simulated,
        "diagnose_s": round(took_s, 1),
        "since_injected_s": round(injected_s, 1),
        "named": [
            (cause["id"], cause["confidence"], cause["follows"]) for cause in diagnosis["causes"]
        ],
    }
    with Path(TIMES / "times.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")


# commands that a lab does not bear, or that fail as long as the symptom is there: they show it
NOT_TYPED = {
    "driver-mismatch": "drains the node and reboots it",
    "gpu-failed": "reboots the machine",
    "gpus-lost-in-containers": "there is no device of NVIDIA's kernel module",
    "driver-not-loaded": "reads the kernel's log, which is the computer's and has no such line",
    "certificates-expired": "starts the control plane anew",
    "control-plane-taint": "takes the taints of all nodes away",
    "component-missing": "runs the product",
    "alerts-silenced": "ends the silence, which then cannot be ended again",
    "host-silent": "the machine does not answer",
    "api-unreached": "nothing answers there",
    "clock-skew": "the machines have one clock",
    **dict.fromkeys(
        ("image-missing", "image-mirror", "image-ca", "image-proxy", "image-auth"),
        "the image is not pulled this time either",
    ),
}


def type_commands(lab: Lab, cause: dict[str, Any]) -> None:
    """Type what the remedy of a cause says, where it says: it is a command there, and works."""
    for item in cause["commands"][:1]:
        for part in re.split(r"; (?=ssh )", item["command"]):
            beyond = re.match(r"ssh (\S+) (.*)", part)
            machine, text = (beyond[1], beyond[2]) if beyond else (item["on"], part)
            result = lab.lab("ssh", "--name", lab.name, machine, f"set -eo pipefail; {text}")
            # a reader that has seen enough closes the pipe
            assert result.code in (0, 141), f"{cause['id']}: {machine}$ {text}\n{result.text}"


def test_a_healthy_cluster_yields_nothing(site: Lab) -> None:
    healthy(site)


@pytest.mark.parametrize(
    "fault", [*POD_FAULTS, *ABSENCE_FAULTS, *OPERAND_FAULTS, *HOST_FAULTS, *WAY_FAULTS], ids=str
)
def test_a_fault_is_named(site: Lab, fault: Fault) -> None:
    if fault.single:
        healthy(site)
    fault.inject(site)
    injected = time.monotonic()
    try:
        while True:
            elapsed, diagnosis = diagnosed(site)
            if set(fault.causes) <= set(ids(diagnosis)):
                break
            assert time.monotonic() - injected < 2 * WITHIN_S, json.dumps(diagnosis, indent=1)
        note(fault, time.monotonic() - injected, elapsed, diagnosis)
        assert elapsed < WITHIN_S
        text = site.command(["gpuboot", "diagnose", "inventories/lab.py"])
        (TIMES / f"{fault}.txt").write_text(text.out, encoding="utf-8")
        for cause in diagnosis["causes"]:
            if cause["id"] in set(fault.causes) - set(NOT_TYPED):
                type_commands(site, cause)
    finally:
        fault.undo(site)


def test_what_was_undone_is_named_no_more(site: Lab) -> None:
    healthy(site)


def test_a_bundle_of_the_site(site: Lab, tmp_path: Path) -> None:
    result = site.command(["gpuboot", "diagnose", "inventories/lab.py", "--bundle", str(tmp_path)])
    assert result.code == 0, result.details
    assert list(tmp_path.glob("*.tar.gz"))
