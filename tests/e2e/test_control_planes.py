"""Three control planes: growth from one, the loss of each, a dead leader, a machine made anew.

One story of one lab: each test goes on where the one before it ended.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Lab, fresh, refused, until

pytestmark = [pytest.mark.lab, pytest.mark.long]

ONE = "tests/e2e/inventories/one_control_plane/lab.py"
REQUESTS = Path(__file__).with_name("requests.sh")
# of each loss, from a quiet beginning until long after it
SECONDS = 60
QUIET_S = 15
FAILING = 0.01
FAILING_S = 10.0
NAMES = ["cp1", "cp2", "cp3", "gpu1"]


@pytest.fixture(scope="module")
def site() -> Iterator[Lab]:
    """Three machines for control planes and a GPU node, bare."""
    with fresh("test-planes", "--control-planes", "3", "--gpus", "2", "--no-deploy") as lab:
        yield lab


@dataclass(frozen=True)
class Request:
    """One request of `requests.sh`. Times in seconds since 1970."""

    kind: str
    number: int
    begun: float
    ended: float
    status: int

    @property
    def failed(self) -> bool:
        return not 200 <= self.status < 300


def ready(site: Lab) -> dict[str, bool]:
    return {name: status == ["True"] for name, status in site.snapshot()["ready"].items()}


def healthy(site: Lab, machine: str) -> bool:
    """Whether every member of etcd answers, asked on a machine."""
    said = site.ssh(
        machine,
        "curl -s --max-time 5 http://127.0.0.1:2381/health; kubectl get --raw /readyz; true",
    )
    return '"health":"true"' in said and said.endswith("ok")


def power(site: Lab, machine: str, switch: str) -> None:
    done = site.lab("power", "--name", site.name, machine, switch)
    assert done.code == 0, done.told


def kubectl(site: Lab, machine: str, command: str) -> str:
    """On any control plane: the lab's own command asks the first one, which may be off."""
    return site.ssh(machine, f"kubectl --kubeconfig /etc/kubernetes/admin.conf {command}")


def test_one_control_plane_is_made(site: Lab) -> None:
    done = site.deploy(inventory=ONE)
    assert done.code == 0, done.told
    assert "proven" in done.text
    assert ready(site) == {"cp1": True, "gpu1": True}


def test_it_grows_to_three_by_the_inventory_alone(site: Lab) -> None:
    done = site.deploy()
    assert done.code == 0, done.told
    assert "proven" in done.text
    assert ready(site) == dict.fromkeys(NAMES, True)
    assert "127.0.0.1 gpuboot-api" in site.ssh("gpu1", "cat /etc/hosts")
    again = site.deploy("--json")
    assert again.changes == []


def test_no_request_is_lost_with_any_control_plane(site: Lab) -> None:
    site.kubectl("create", "namespace", "requests")
    site.kubectl("-n", "requests", "create", "configmap", "known")
    site.kubectl("-n", "requests", "create", "serviceaccount", "client")
    site.kubectl("-n", "requests", "create", "rolebinding", "client", "--clusterrole=admin",
                 "--serviceaccount=requests:client")  # fmt: skip
    token = site.kubectl("-n", "requests", "create", "token", "client", "--duration=1h")
    for machine in ("cp1", "cp2", "cp3"):
        found = requests_during(site, machine, token)
        failed = [item for item in found if item.failed]
        print(f"{machine}: {told(found)}")
        assert len(failed) <= FAILING * len(found), told(found)
        if failed:
            took = max(item.ended for item in failed) - min(item.begun for item in failed)
            assert took <= FAILING_S, told(found)
        until(lambda: all(healthy(site, name) for name in NAMES[:3]), f"{machine} is back")
        until(lambda: all(ready(site).values()), "all nodes are Ready")
        listed = json.loads(site.kubectl("-n", "requests", "get", "configmaps", "-o", "json"))
        kept = {item["metadata"]["name"] for item in listed["items"]}
        acknowledged = {
            f"{machine}-{item.number}" for item in found
            if item.kind == "write" and not item.failed
        }  # fmt: skip
        assert acknowledged
        assert acknowledged <= kept


def requests_during(site: Lab, machine: str, token: str) -> list[Request]:
    """What became of each request while a control plane lost power, and came back."""
    script = REQUESTS.read_text()
    command = ["scripts/lab", "ssh", "--name", site.name, "gpu1"]
    remote = f"cat >/run/requests.sh <<'END'\n{script}\nEND\nchmod +x /run/requests.sh"
    site.ssh("gpu1", remote)
    with subprocess.Popen(
        [*command, f"/run/requests.sh {SECONDS} {machine}"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as client:  # fmt: skip
        assert client.stdin is not None
        client.stdin.write(token)
        client.stdin.close()
        client.stdin = None
        time.sleep(QUIET_S)
        power(site, machine, "off")
        out, _ = client.communicate(timeout=SECONDS + 60)
    power(site, machine, "on")
    rows = [line.split() for line in out.splitlines()]
    return [
        Request(kind, int(number), float(begun), float(ended), int(status))
        for kind, number, begun, ended, status in rows
    ]


def told(found: list[Request]) -> str:
    """What a person wants to know of them."""
    failed = [item for item in found if item.failed]
    slow = max(item.ended - item.begun for item in found)
    lines = [f"{len(failed)} of {len(found)} requests failed; the slowest took {slow:.1f} s"]
    start = min(item.begun for item in found)
    lines += [
        f"{item.kind} {item.number} at {item.begun - start:.1f} s for "
        f"{item.ended - item.begun:.1f} s: {item.status}"
        for item in failed
    ]
    return "\n".join(lines)


def test_a_run_goes_on_without_its_leader(site: Lab) -> None:
    power(site, "cp1", "off")
    done = site.deploy(settings={"monitoring": {"retention": "9d"}})
    assert done.code == 1, done.told
    assert "[cp1] cannot be reached" in done.text
    assert "the run goes on without it" in done.text
    report = json.loads((site.reports / "latest/verify.json").read_text())
    statuses = {item["status"] for item in report["findings"] if item["node"] == "gpu1"}
    assert statuses == {"pass"}
    power(site, "cp1", "on")
    until(lambda: healthy(site, "cp1"), "cp1 is back")
    back = site.deploy(settings={"monitoring": {"retention": "9d"}})
    assert back.code == 0, back.told


def test_a_control_plane_made_anew_joins_under_its_old_name(site: Lab) -> None:
    """The first of the inventory: another one leads, and etcd forgets the earlier member."""
    site.ssh(
        "cp1",
        "systemctl stop kubelet; crictl rm -fa >/dev/null 2>&1; umount -R /var/lib/kubelet/pods/*/"
        "volumes/*/* 2>/dev/null; rm -rf /etc/kubernetes /var/lib/kubelet /var/lib/etcd "
        "/etc/gpuboot /root/.kube; true",
    )
    done = site.deploy()
    assert done.code == 0, done.told
    assert "etcd still has a member of cp1's earlier installation" in done.text
    assert ready(site) == dict.fromkeys(NAMES, True)
    # it leads again: what a leader has on its own disk is written there
    assert len(site.deploy("--json").changes) <= 2
    assert site.deploy("--json").changes == []


def test_a_control_plane_is_replaced_only_while_the_others_are_a_majority(site: Lab) -> None:
    power(site, "cp3", "off")
    until(lambda: not ready(site)["cp3"], "cp3 NotReady")
    remove = ["pyinfra", "inventories/lab.py", "deploys/remove.py", "-y", "--data"]
    refused(site.command([*remove, "gpuboot_remove=cp2"]), "etcd would lose its majority")
    done = site.command([*remove, "gpuboot_remove=cp3"])
    assert ready(site) == {name: True for name in NAMES if name != "cp3"}, done.told
