"""Links about what the cluster stands on: its certificates, and backups of etcd."""

from __future__ import annotations

from gpuboot.cluster import backup, backup_copy, node_certificates
from gpuboot.cluster.node_certificates import DAY_S, Certificate
from gpuboot.config.settings import Settings
from gpuboot.config.settings.backup import Backup
from gpuboot.verify.control_plane import ControlPlane
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import Finding, FindingBuilder

_KUBELET = "/var/lib/kubelet/"
_RENEWAL = (
    "run deploys/site.py, which renews the control plane's certificates, expired ones as well"
)
_REJOIN = (
    "the kubelet could not renew its certificate in time: `kubeadm reset` on this node, then "
    "deploys/site.py, with which it joins again"
)
_BACKUP = "see `journalctl -u gpuboot-etcd-backup` on this node, then run deploys/site.py"
_COPY = f"see `journalctl -u {backup_copy.SERVICE}` on this node, then run deploys/site.py"


def evaluate(evidence: Evidence, settings: Settings) -> list[Finding]:
    """Certificates and backups of each control-plane node; [] where they were not read."""
    findings = []
    for item in evidence.control_planes or ():
        findings.append(_certificates(item))
        if settings.backup.enabled:
            findings.append(_backup(item, settings.backup))
    return findings


def _certificates(item: ControlPlane) -> Finding:
    builder = FindingBuilder("certificates", "certificates are valid", item.node)
    if item.error or not item.certificates:
        reason = item.error or "no certificate was found"
        return builder.unknown(reason, "let this run reach the node")
    if expired := node_certificates.expired(item.certificates, item.clock):
        return builder.failed(f"expired: {', '.join(map(str, expired))}", _expired_remedy(expired))
    first = min(item.certificates, key=lambda certificate: certificate.expires)
    days_left = int((first.expires - item.clock) // DAY_S)
    is_near = days_left < node_certificates.RENEWAL_DAYS
    text = f"the first to expire is {first}, in {days_left} days"
    return builder.passed(f"{text}; deploys/site.py renews it" if is_near else text)


def _expired_remedy(expired: list[Certificate]) -> str:
    if any(item.renewable for item in expired):
        return _RENEWAL
    if any(item.name.startswith(_KUBELET) for item in expired):
        return _REJOIN
    return (
        "it is not one that kubeadm renews: see kubernetes.io, Manual Rotation of CA Certificates"
    )


def _backup(item: ControlPlane, settings: Backup) -> Finding:
    builder = FindingBuilder("backup", "backup of etcd", item.node)
    if item.error:
        return builder.unknown(item.error, "let this run reach the node")
    backups, longest = backup.of_cluster(item.backups), settings.max_age_h
    if not backups:
        return builder.failed("there is none of this cluster", _BACKUP)
    age_h = (item.clock - backups[0].taken_at) / 3600
    if abs(age_h) > longest:
        if age_h < 0:
            future = f"the newest is of {-age_h:.0f} h from now: {backups[0]}"
            return builder.failed(f"{future}; the node's clock was set back", _BACKUP)
        old = f"the newest is {age_h:.0f} h old, more than {longest} h: {backups[0]}"
        return builder.failed(old, _BACKUP)
    if item.backups.failed:
        detail = (
            f"the timer's last one failed ({item.backups.failed}) and none was good since; the "
            f"newest is {backups[0]}"
        )
        return builder.failed(detail, _BACKUP)
    count = "1 backup" if len(backups) == 1 else f"{len(backups)} backups"
    text = f"{count}, the newest {age_h:.1f} h old: {backups[0]}"
    target = backup_copy.target(settings)
    if target and (copy_fault := _copy_fault(item, target, longest)):
        return builder.failed(f"{copy_fault}; on the node: {text}", _COPY)
    return builder.passed(f"{text}; copied to {target}" if target else text)


def _copy_fault(item: ControlPlane, target: str, max_age_h: int) -> str:
    """What is wrong with the copies off the node; "": nothing."""
    copied, failed = item.backups.copied, item.backups.copy_failed
    if failed:
        return f"the last copy to {target} failed ({failed}), and none was good since"
    if copied is None or copied.to != target:
        return f"none has been copied to {target}"
    age_h = (item.clock - copied.taken_at) / 3600
    if age_h < -max_age_h:
        return f"the newest in {target} is of {-age_h:.0f} h from now: the clock was set back"
    if age_h > max_age_h:
        return f"the newest in {target} is {age_h:.0f} h old, more than {max_age_h} h"
    return ""
