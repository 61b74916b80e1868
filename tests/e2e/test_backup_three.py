"""Three control planes: a backup on each, a restore of all, and certificates one after the other.

One story of one lab: each test goes on where the one before it ended.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from gpuboot.cluster.backup import PROGRAM, TIMER
from gpuboot.cluster.kubeadm import CRICTL
from tests.e2e.conftest import Lab, assert_refused, until
from tests.e2e.test_backup import FOLDER, INVENTORY, SHORT

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-three", "--control-planes", "3", "--gpus", "1")
CONTROLS = ("cp1", "cp2", "cp3")


def backups(site: Lab, machine: str) -> list[str]:
    return site.ssh(machine, f"ls {FOLDER}").split()


def restore(site: Lab) -> Any:
    data = ["--data", f"gpuboot_restore=gpuboot-{site.name}"]
    return site.command(["pyinfra", INVENTORY, "deploys/restore.py", "-y", *data])


def members(site: Lab, machine: str) -> int:
    """How many members of etcd answer, asked on a machine."""
    pki = "/etc/kubernetes/pki/etcd"
    container = f"$({CRICTL} ps -q --state running --name '^etcd$')"
    etcdctl = f"etcdctl --cacert={pki}/ca.crt --cert={pki}/server.crt --key={pki}/server.key"
    health_command = f"{CRICTL} exec {container} {etcdctl} endpoint health --cluster -w json"
    output = site.ssh(machine, f"{health_command} 2>/dev/null; true")
    return sum(item["health"] for item in json.loads(output or "[]"))


def short(site: Lab, validity: str) -> None:
    """Certificates that expire soon, on all three."""
    config = "/etc/gpuboot/kubeadm.yaml"  # the leader alone has it
    text = site.ssh("cp1", f"cat {config}")
    for machine in CONTROLS:
        site.ssh(machine, f"cat >/root/leader.yaml <<'END'\n{text}\nEND")
        site.ssh(machine, SHORT.replace("60s", validity).replace(config, "/root/leader.yaml"))


def test_each_control_plane_has_a_backup_and_a_timer(site: Lab) -> None:
    for machine in CONTROLS:
        (first,) = backups(site, machine)
        assert first.endswith("-first")
        assert site.ssh(machine, f"systemctl is-active {TIMER}").strip() == "active"
    result, report = site.verify()
    assert result.code == 0, result.details
    findings = [item for item in report["findings"] if item["link"] == "backup"]
    assert [item["status"] for item in findings] == ["pass"] * 3


def test_all_members_are_restored_from_the_backup_of_one(site: Lab) -> None:
    site.kubectl("create", "configmap", "before", "--from-literal=a=old")
    site.ssh("cp2", f"{PROGRAM} manual")
    newest = backups(site, "cp2")[-1]
    site.kubectl("patch", "configmap", "before", "-p", '{"data":{"a":"new"}}')
    site.kubectl("create", "configmap", "after")
    result = restore(site)
    assert result.code == 0, result.told
    assert "PROVEN" in result.text
    for machine in CONTROLS:
        assert newest in backups(site, machine)
        assert "etcd.before-" in site.ssh(machine, "ls /var/lib")
        # each API server asks the etcd beside it
        configmaps = json.loads(site.ssh(machine, "kubectl get configmaps -o json"))["items"]
        names = {item["metadata"]["name"]: item.get("data") for item in configmaps}
        assert names["before"] == {"a": "old"}
        assert "after" not in names
    assert members(site, "cp1") == 3
    assert site.deploy("--json").changes == []


def test_a_restore_leaves_no_member_out(site: Lab) -> None:
    site.lab("power", "--name", site.name, "cp3", "off")
    assert_refused(restore(site), "cp3 cannot be reached, and would come back")
    site.lab("power", "--name", site.name, "cp3", "on")
    until(lambda: members(site, "cp1") == 3, "cp3 is back")


def test_certificates_are_renewed_on_one_after_the_other(site: Lab) -> None:
    short(site, "240h")
    until(lambda: members(site, "cp1") == 3, "etcd has its short certificates")
    result = site.deploy()
    assert result.code == 0, result.details
    assert "Renew certificates that expire soon (kubeadm certs renew)" in result.text
    assert "PROVEN" in result.text
    for machine in CONTROLS:
        assert backups(site, machine)[-1].endswith("-certificates")
    assert members(site, "cp1") == 3
    assert site.deploy("--json").changes == []


def test_three_whose_certificates_have_all_expired_come_back_in_one_run(site: Lab) -> None:
    short(site, "60s")
    time.sleep(65)
    result = site.deploy()
    assert result.code == 0, result.details
    assert "PROVEN" in result.text
    assert members(site, "cp1") == 3
    assert site.deploy("--json").changes == []
