"""Backups of etcd off the node: to another machine by rsync, and what is told when that fails.

One story of one lab: each test goes on where the one before it ended. The worker plays the machine
to which the backups go.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from gpuboot.cluster.backup import COPY_METRIC, METRIC, PROGRAM
from gpuboot.cluster.backup_copy import SECRETS, SERVICE
from tests.e2e.conftest import Lab, fresh_lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]

NAME = "test-copies"
FOLDER = "/var/lib/gpuboot/backup"
STORE = "/srv/etcd"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A control plane, and a worker with a user who may write into a folder."""
    folder = tmp_path_factory.mktemp("copies")
    key = folder / "key"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(make, check=True, stdin=subprocess.DEVNULL)
    with fresh_lab(NAME, "--gpus", "1", "--no-deploy") as bare:
        public = key.with_suffix(".pub").read_text().strip()
        address = bare.ssh("gpu1", "hostname -I").split()[0]
        bare.ssh(
            "gpu1",
            "apt-get -qq update >/dev/null && apt-get -qq install -y rsync >/dev/null && "
            "useradd --create-home store && install -d -o store -m 700 /home/store/.ssh && "
            f"install -d -o store -m 700 {STORE} && "
            f"echo 'restrict {public}' >/home/store/.ssh/authorized_keys",
        )
        host_keys = bare.ssh("gpu1", "cut -d ' ' -f 1,2 /etc/ssh/ssh_host_*_key.pub")
        known_hosts = folder / "known_hosts"
        known_hosts.write_text("".join(f"{address} {line}\n" for line in host_keys.splitlines()))
        rsync = {
            "to": f"store@{address}:{STORE}",
            "key": {"file": str(key)},
            "known_hosts": str(known_hosts),
        }
        yield Lab(NAME, {"backup": {"rsync": rsync, "keep_copies": 2}})


def backup_link(site: Lab) -> tuple[str, str]:
    """Status and detail in the last report."""
    report = json.loads((site.reports / "latest/verify.json").read_text())
    (finding,) = [item for item in report["findings"] if item["link"] == "backup"]
    return finding["status"], finding["detail"]


def backups(site: Lab) -> list[str]:
    return site.ssh("cp1", f"ls {FOLDER}").split()


def copies(site: Lab) -> list[str]:
    return site.ssh("gpu1", f"ls {STORE}/cp1").split()


def value(site: Lab, name: str) -> float:
    """What Prometheus has of a metric that the control plane tells."""
    samples: list[dict[str, Any]] = until(lambda: site.prometheus(name), name)
    assert [sample["metric"]["node"] for sample in samples] == ["cp1"]
    return float(samples[0]["value"][1])


def test_the_first_backup_has_a_copy(site: Lab) -> None:
    result = site.deploy()
    assert result.code == 0, result.details
    assert "PROVEN" in result.text
    (first,) = backups(site)
    assert copies(site) == [first]
    assert site.ssh("gpu1", f"find {STORE} -perm /077") == ""
    digests = "sha256sum about.json etcd.db pki.tar"
    local_digests = site.ssh("cp1", f"cd {FOLDER}/{first} && {digests}")
    assert site.ssh("gpu1", f"cd {STORE}/cp1/{first} && {digests}") == local_digests
    status, detail = backup_link(site)
    assert status == "pass"
    assert "copied to store@" in detail
    secrets = " ".join(SECRETS)
    modes = site.ssh("cp1", f"stat -c %a {secrets} 2>/dev/null; true").split()
    assert modes == ["600", "600"]
    assert "PRIVATE KEY" not in result.text
    assert site.deploy("--json").changes == []


def test_prometheus_knows_when_both_were_taken(site: Lab) -> None:
    metadata = json.loads(site.ssh("cp1", f"cat {FOLDER}/*/about.json"))
    assert value(site, METRIC) == metadata["taken"]
    assert value(site, COPY_METRIC) == metadata["taken"]
    rules = json.dumps(json.loads(
        site.kubectl("-n", "monitoring", "get", "prometheusrule", "gpuboot", "-o", "json")
    )["spec"])  # fmt: skip
    assert "EtcdBackupOld" in rules
    assert "EtcdBackupCopyOld" in rules


def test_the_newest_copies_are_kept(site: Lab) -> None:
    for reason in ("second", "third"):
        site.ssh("cp1", f"{PROGRAM} {reason}")
    until(lambda: copies(site) == backups(site)[-2:], "the newest two are there")
    assert len(backups(site)) == 3


def test_a_copy_that_fails_is_told_and_the_next_one_makes_up_for_it(site: Lab) -> None:
    site.ssh("gpu1", f"mv {STORE} {STORE}.away")
    site.ssh("cp1", f"{PROGRAM} fourth")
    site.ssh("cp1", f"! systemctl start {SERVICE}")
    assert backups(site)[-1].endswith("-fourth")
    result, _ = site.verify()
    assert result.code == 1, result.details
    status, detail = backup_link(site)
    assert status == "fail"
    assert "failed (exit-code)" in detail
    result = site.deploy()
    assert result.code == 1, result.details
    assert "the backups of etcd are not copied to store@" in result.text
    assert "cannot be read" in result.text
    site.ssh("gpu1", f"mv {STORE}.away {STORE}")
    result = site.deploy()
    assert result.code == 0, result.details
    assert copies(site) == backups(site)[-2:]
    assert backup_link(site)[0] == "pass"
    assert site.deploy("--json").changes == []


def test_an_old_copy_raises_an_alert(site: Lab) -> None:
    now = {"threshold": 0.001, "hold_for": "0s"}
    rules = {"EtcdBackupOld": now, "EtcdBackupCopyOld": now}
    result = site.deploy(settings={"alerts": {"rules": rules}})
    assert result.code == 0, result.details
    for name in rules:
        query = f'ALERTS{{alertname="{name}", alertstate="firing", node="cp1"}}'
        until(partial(site.prometheus, query), query, 240)
