"""What a cluster needs to outlive accidents: backups of etcd, restores, and fresh certificates.

One story of one machine: each test goes on where the one before it ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuboot.cluster.backup import PROGRAM, SERVICE, TIMER
from gpuboot.cluster.kubeadm import CRICTL
from tests.e2e.conftest import Lab, Run, assert_refused, fresh_lab, until
from tests.e2e.workloads import database

pytestmark = [pytest.mark.lab, pytest.mark.long]

NODE = "node1"
FOLDER = "/var/lib/gpuboot/backup"
VOLUMES = "/var/lib/gpuboot/volumes"
INVENTORY = "inventories/lab.py"
# kubeadm makes them as short as its configuration says; what uses them starts anew
SHORT = f"""
sed 's/^kind: ClusterConfiguration$/&\\ncertificateValidityPeriod: 60s/' /etc/gpuboot/kubeadm.yaml \
  >/root/short.yaml && kubeadm certs renew all --config /root/short.yaml || exit 1
for part in etcd kube-apiserver kube-controller-manager kube-scheduler; do
  {CRICTL} stop $({CRICTL} ps -q --name "^$part$")
done
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Lab]:
    """One machine that is control plane and worker, deployed."""
    with fresh_lab("test-backup", "--single") as lab:
        yield lab


def restore(site: Lab, *data: str, confirmed: bool = True) -> Run:
    data_options = [*data, *([f"gpuboot_restore=gpuboot-{site.name}"] if confirmed else [])]
    options = [part for item in data_options for part in ("--data", item)]
    return site.command(["pyinfra", INVENTORY, "deploys/restore.py", "-y", *options])


def backups(site: Lab) -> list[str]:
    return site.ssh(NODE, f"ls {FOLDER}").split()


def links(site: Lab) -> dict[str, str]:
    report = json.loads((site.reports / "latest/verify.json").read_text())
    result: dict[str, str] = report["links"]
    return result


def test_the_first_run_leaves_a_backup_and_a_timer(site: Lab) -> None:
    (first,) = backups(site)
    assert first.endswith("-first")
    assert site.ssh(NODE, f"systemctl is-active {TIMER}; systemctl is-enabled {TIMER}").split() == [
        "active",
        "enabled",
    ]
    assert site.ssh(NODE, f"find {FOLDER} -perm /077").split() == []
    site.ssh(NODE, f"systemctl start {SERVICE}")
    assert [name.rpartition("-")[2] for name in backups(site)] == ["first", "timer"]
    result, _ = site.verify()
    assert result.code == 0, result.details
    assert (links(site)["backup"], links(site)["certificates"]) == ("pass", "pass")


def test_a_restore_asks_first(site: Lab) -> None:
    result = restore(site, confirmed=False)
    assert_refused(result, "this restores the cluster", backups(site)[-1], "etcd is at revision")


def test_objects_are_as_they_were_at_the_backup(site: Lab) -> None:
    site.kubectl("create", "configmap", "before", "--from-literal=a=old")
    site.kubectl("create", "namespace", "deleted")
    site.ssh(NODE, f"{PROGRAM} manual")
    site.kubectl("create", "configmap", "after", "--from-literal=a=1")
    site.kubectl("patch", "configmap", "before", "-p", '{"data":{"a":"new"}}')
    site.kubectl("delete", "namespace", "deleted")
    result = restore(site)
    assert result.code == 0, result.details
    assert "PROVEN" in result.text
    data = json.loads(site.kubectl("get", "configmap", "before", "-o", "json"))["data"]
    assert data == {"a": "old"}
    assert "deleted" in site.kubectl("get", "namespaces", "-o", "name")
    assert "configmap/after" not in site.kubectl("get", "configmaps", "-o", "name")
    assert "etcd.before-" in site.ssh(NODE, "ls /var/lib")
    assert site.deploy("--json").changes == []


def test_a_deleted_claim_comes_back_with_its_data_or_is_named(site: Lab) -> None:
    site.kubectl("apply", "-f", "-", stdin=database("team", "orders", "scratch"))
    rollout = ("-n", "team", "rollout", "status", "deploy/database", "--timeout=240s")
    site.kubectl(*rollout)

    def inside(script: str) -> str:
        return site.ssh(NODE, f"kubectl -n team exec deploy/database -- sh -c '{script}'").strip()

    inside("for claim in orders scratch; do echo paid >/data/$claim/rows; done")
    site.ssh(NODE, f"{PROGRAM} manual")
    time.sleep(6)  # what is made from now on is younger than the backup
    site.kubectl("delete", "namespace", "team", "--timeout=240s")
    until(lambda: "team/" not in site.kubectl("get", "pv"), "the volumes are deleted")
    removed = site.ssh(NODE, f"ls {VOLUMES}/.removed").split()
    assert {name.rpartition("_")[2] for name in removed} == {"orders", "scratch"}
    site.ssh(NODE, f"rm -r {VOLUMES}/.removed/*_scratch")
    refusal = restore(site, confirmed=False)
    assert_refused(refusal, "these claims come back with their data", "team/orders (node1: ")
    assert_refused(refusal, "these claims come back WITHOUT their data", "team/scratch (node1: ")
    result = restore(site)
    assert result.code == 1, result.details
    assert "PROVEN" in result.text
    assert "claim team/scratch (node1: " in result.text
    assert "claim team/orders" not in result.text
    site.kubectl(*rollout)
    assert inside("cat /data/orders/rows") == "paid"
    assert inside("ls /data/scratch") == ""
    site.kubectl("delete", "namespace", "team", "--timeout=240s")
    assert site.deploy("--json").changes == []


def test_certificates_that_expire_soon_are_renewed_after_a_backup(site: Lab) -> None:
    site.ssh(NODE, SHORT.replace("60s", "240h"))
    result = site.deploy("--json")
    assert (
        "Kubernetes | Renew certificates that expire soon (kubeadm certs renew)" in result.changes
    )
    assert backups(site)[-1].endswith("-certificates")
    assert site.deploy("--json").changes == []


def test_a_cluster_whose_certificates_have_expired_comes_back(site: Lab) -> None:
    site.ssh(NODE, SHORT)
    time.sleep(65)
    result, report = site.verify()
    assert result.code == 1
    assert [item for item in report["findings"] if "expired: " in item["detail"]], result.details
    result = site.deploy()
    assert result.code == 0, result.details
    assert "PROVEN" in result.text
    assert site.ssh(NODE, "kubectl get --raw /readyz") == "ok"
    assert site.deploy("--json").changes == []


def test_a_machine_that_was_installed_anew_gets_its_cluster_back(site: Lab, tmp_path: Path) -> None:
    site.kubectl("create", "configmap", "precious", "--from-literal=a=1")
    site.ssh(NODE, f"{PROGRAM} manual")
    name = backups(site)[-1]
    copy_folder = tmp_path / name
    copy_folder.mkdir()
    for file in ("about.json", "etcd.db", "pki.tar"):
        text = site.ssh(NODE, f"od -An -v -t x1 {FOLDER}/{name}/{file}")
        (copy_folder / file).write_bytes(bytes.fromhex("".join(text.split())))
    cluster = f"gpuboot_reset=gpuboot-{site.name}"
    result = site.command(["pyinfra", INVENTORY, "deploys/reset.py", "-y", "--data", cluster])
    assert result.code == 0, result.details
    site.ssh(NODE, f"rm -rf {FOLDER} /var/lib/etcd*")
    result = site.command(["pyinfra", INVENTORY, "deploys/host_layers.py", "-y"])
    assert result.code == 0, result.details
    result = restore(site, f"gpuboot_backup={copy_folder}")
    assert result.code == 0, result.details
    assert "configmap/precious" in site.kubectl("get", "configmaps", "-o", "name")
    result = site.deploy()
    assert result.code == 0, result.details
    assert "PROVEN" in result.text
    assert site.deploy("--json").changes == []
