"""When certificates expire, which are renewed, and what a proof says of them and of backups."""

from __future__ import annotations

import base64
import datetime
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from deploys.parts.cluster.fact import HOST_SCRIPT
from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.phases import certificates as phase
from deploys.phases.kubernetes import control_planes
from deploys.run.context import Context
from gpuboot.cluster import node_certificates
from gpuboot.cluster.backup import Backup, Backups, Copied
from gpuboot.cluster.cluster_state import parse_kubeadm
from gpuboot.cluster.node_certificates import DAY_S, Certificate
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.verify.checks import control_plane_checks as checks
from gpuboot.verify.findings import Finding
from tests.unit.evidence import NOW, control_plane, evidence

END = datetime.datetime(2027, 5, 1, tzinfo=datetime.UTC)
KUBELET = "/var/lib/kubelet/pki/kubelet-client-current.pem"


@pytest.fixture(scope="module")
def certificate() -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(1)
    builder = builder.not_valid_before(END - datetime.timedelta(days=1)).not_valid_after(END)
    return builder.sign(key, hashes.SHA256())


def test_the_fact_reads_certificates_and_no_keys(
    tmp_path: Path, certificate: x509.Certificate
) -> None:
    kubernetes = tmp_path / "etc/kubernetes"
    for folder in (kubernetes / "pki/etcd", tmp_path / "var/lib/kubelet/pki"):
        folder.mkdir(parents=True)
    pem = certificate.public_bytes(Encoding.PEM).decode()
    key = "-----BEGIN EC PRIVATE KEY-----\nSECRET\n-----END EC PRIVATE KEY-----\n"
    (kubernetes / "pki/apiserver.crt").write_text(pem + pem)
    (tmp_path / KUBELET[1:]).write_text(key + pem + key)
    conf = f"    client-certificate-data: {base64.b64encode(pem.encode()).decode()}\n"
    (kubernetes / "admin.conf").write_text(conf + "    client-key-data: SECRET\n")
    script = HOST_SCRIPT
    for place in ("/etc/kubernetes", "/var/lib/kubelet", "/etc/gpuboot"):
        script = script.replace(place, f"{tmp_path}{place}")
    result = subprocess.run(
        ["sh", "-c", f"socket=/nothing\n{script}"], capture_output=True, text=True, check=True
    )
    assert "SECRET" not in result.stdout
    state = parse_kubeadm(result.stdout.replace(f"{tmp_path}/", "/").splitlines())
    assert {item.name: item.expires for item in state.certificates} == dict.fromkeys(
        ["pki/apiserver.crt", "admin.conf", KUBELET], END.timestamp()
    )
    assert state.clock > 1e9
    assert not state.restart_due


def test_certificates_that_kubeadm_renews_are_due_before_they_expire() -> None:
    issued = [
        Certificate("pki/apiserver.crt", NOW + 29 * DAY_S),
        Certificate("admin.conf", NOW - DAY_S),
        Certificate("pki/etcd/server.crt", NOW + 31 * DAY_S),
        Certificate("pki/ca.crt", NOW + DAY_S),
        Certificate(KUBELET, NOW + DAY_S),
    ]
    due = node_certificates.due(issued, NOW, 30)
    assert [item.name for item in due] == ["admin.conf", "pki/apiserver.crt"]
    assert [item.name for item in node_certificates.expired(issued, NOW)] == ["admin.conf"]


def evaluate_link(
    link: str, settings: dict[str, object] | None = None, **fields: object
) -> Finding:
    findings = checks.evaluate(
        evidence(control_planes=(control_plane(**fields),)), parse_settings(settings or {})
    )
    return next(item for item in findings if item.link == link)


@pytest.mark.parametrize(
    ("name", "days", "status", "message", "remedy"),
    [
        ("pki/apiserver.crt", 200, "pass", "in 200 days", ""),
        ("pki/apiserver.crt", 12, "pass", "in 12 days; deploys/site.py renews it", ""),
        ("pki/apiserver.crt", -1, "fail", "expired: pki/apiserver.crt", "run deploys/site.py"),
        (KUBELET, -1, "fail", f"expired: {KUBELET}", "kubeadm reset"),
        ("pki/ca.crt", -1, "fail", "expired: pki/ca.crt", "Manual Rotation"),
    ],
)
def test_the_proof_tells_when_certificates_expire(
    name: str, days: int, status: str, message: str, remedy: str
) -> None:
    finding = evaluate_link("certificates", certificates=(Certificate(name, NOW + days * DAY_S),))
    assert finding.status == status
    assert message in finding.detail
    assert remedy in finding.remedy


def test_a_control_plane_that_has_not_joined_yet_is_no_member_to_wait_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cluster of one that grows to three while its certificates expire soon."""
    nodes = tuple(
        Node(name, name, f"192.0.2.1{index}", "control_plane", 0, leader=not index)
        for index, name in enumerate(("cp1", "cp2", "cp3"))
    )
    joined = SimpleNamespace(kubeconfigs={ADMIN_CONF: ""}, half_made=False)
    bare = SimpleNamespace(kubeconfigs={}, half_made=False)
    context = SimpleNamespace(
        node=nodes[0],
        nodes=nodes,
        settings=parse_settings({}),
        states={"cp1": joined, "cp2": bare},  # cp3 does not answer: nobody knows
    )
    arguments: dict[str, Any] = {}
    operation = "deploys.parts.kubeadm.certificate_operations.renewed"
    monkeypatch.setattr(operation, lambda **options: arguments.update(options))
    phase.renewed(cast(Context, context), control_planes(cast(Context, context)))
    assert arguments["control_planes"] == ["cp1", "cp3"]
    assert arguments["_serial"]


def backups(age_h: float, failed: str = "", ca: str = "c1") -> Backups:
    newest = Backup("20270101T000000Z-timer", NOW - age_h * 3600, node="cp1", ca="c1")
    return Backups((newest,), failed, ca)


@pytest.mark.parametrize(
    ("observed", "status", "message"),
    [
        (backups(2), "pass", "1 backup, the newest 2.0 h old"),
        (backups(25), "fail", "the newest is 25 h old, more than 24 h"),
        (backups(-30), "fail", "the newest is of 30 h from now"),
        (backups(2, failed="exit-code"), "fail", "the timer's last one failed (exit-code)"),
        (backups(2, ca="c2"), "fail", "there is none of this cluster"),
        (Backups(ca="c1"), "fail", "there is none of this cluster"),
    ],
)
def test_the_proof_tells_how_old_the_newest_backup_is(
    observed: Backups, status: str, message: str
) -> None:
    finding = evaluate_link("backup", backups=observed)
    assert finding.status == status
    assert message in finding.detail
    assert bool(finding.remedy) is (status == "fail")


STORE = "backup@store.example:/srv/etcd"
RSYNC: dict[str, object] = {
    "backup": {"rsync": {"to": STORE, "key": {"file": "k"}, "known_hosts": "h"}}
}


@pytest.mark.parametrize(
    ("copied", "failed", "status", "message"),
    [
        (Copied("20270101T000000Z-timer", NOW - 3600, STORE), "", "pass", f"copied to {STORE}"),
        (None, "", "fail", f"none has been copied to {STORE}"),
        (Copied("x", NOW - 3600, "there:b"), "", "fail", f"none has been copied to {STORE}"),
        (Copied("x", NOW - 90000, STORE), "", "fail", "is 25 h old, more than 24 h"),
        (Copied("x", NOW + 90000, STORE), "", "fail", "is of 25 h from now"),
        (Copied("x", NOW - 3600, STORE), "exit-code", "fail", f"to {STORE} failed (exit-code)"),
    ],
)
def test_the_proof_tells_of_copies_off_the_node(
    copied: Copied | None, failed: str, status: str, message: str
) -> None:
    observed = replace(backups(2), copied=copied, copy_failed=failed)
    finding = evaluate_link("backup", RSYNC, backups=observed)
    assert finding.status == status
    assert message in finding.detail
    assert ("gpuboot-etcd-backup-copy" in finding.remedy) is (status == "fail")
    assert evaluate_link("backup", backups=observed).status == "pass"  # where none is asked for


def test_a_site_says_how_old_a_backup_may_be() -> None:
    assert (
        evaluate_link("backup", {"backup": {"max_age_h": 30}}, backups=backups(25)).status == "pass"
    )


def test_without_backups_none_is_missed() -> None:
    findings = checks.evaluate(
        evidence(control_planes=(control_plane(backups=Backups()),)),
        parse_settings({"backup": {"enabled": False}}),
    )
    assert [item.link for item in findings] == ["certificates"]


def test_a_control_plane_that_could_not_be_read_is_no_pass() -> None:
    for link in ("certificates", "backup"):
        assert evaluate_link(link, error="it could not be read: refused").status == "unknown"
