"""Alerts on backups of etcd: too old, on the node and off it."""

from __future__ import annotations

from gpuboot.cluster.backup import (
    COPY_METRIC,
    METRIC,
    METRICS_FOLDER,
    PROGRAM,
    SERVICE,
    TIMER,
)
from gpuboot.cluster.backup_copy import SERVICE as COPY_SERVICE
from gpuboot.cluster.backup_copy import target
from gpuboot.config.settings import Settings
from gpuboot.monitoring.rules.alert import OWN_SOURCE, Alert
from gpuboot.monitoring.rules.promql import age
from gpuboot.monitoring.rules.requirements import Requirement

_NODE = "{{ with $labels.node }} of {{ . }}{{ end }}"
_LAST_STATE = f"What it told last, on the control-plane node: `ls -l {METRICS_FOLDER}`"
_VERIFY = "Verify: `gpuboot verify INVENTORY`; the link `backup` must pass."
_UNIT = "hours since the newest was taken; by default `backup.max_age_h`"


def alerts(settings: Settings) -> list[Alert]:
    """Both, the second one only where copies are made."""
    return [_old(settings.backup.max_age_h), _copy_old(settings)]


def _old(max_age_h: int) -> Alert:
    return Alert(
        name="EtcdBackupOld",
        severity="warning",
        component="cluster",
        action="none",
        expr=f"max by (node) ({age(METRIC)} / 3600) > {{threshold}}\n  or absent({METRIC})",
        hold_for="15m",
        threshold=max_age_h,
        unit=_UNIT,
        summary=f"There is no fresh backup of etcd{_NODE}",
        description="The newest good one is too old, or none is known.",
        meaning="No good backup of etcd has been taken on a control-plane node for longer than the "
        "site allows; without a node in the alert: Prometheus knows of none at all.",
        reason="What was made, changed or deleted since the newest backup is lost with etcd's "
        "data.",
        check=(f"On the node: `systemctl status {TIMER} {SERVICE}`",
               f"`journalctl -u {SERVICE}`", _LAST_STATE),
        remedy=(f"Take one by hand, which says what is wrong: `{PROGRAM} manual`. Often: a full "
                "disk, or etcd does not answer.",
                "The timer is gone or stopped: `pyinfra INVENTORY deploys/site.py`.",
                "Prometheus knows of none, while they are there: node-exporter does not run, or "
                "`monitoring.values` has other arguments for it, without the folder.", _VERIFY),
        requires=Requirement.ETCD_BACKUPS,
        source=OWN_SOURCE,
    )  # fmt: skip


def _copy_old(settings: Settings) -> Alert:
    return Alert(
        name="EtcdBackupCopyOld",
        severity="warning",
        component="cluster",
        action="none",
        expr=f"max by (node) ({age(COPY_METRIC)} / 3600) > {{threshold}}\n"
        f"  or max by (node) ({METRIC}) unless max by (node) ({COPY_METRIC})",
        hold_for="1h",
        threshold=settings.backup.max_age_h,
        unit=_UNIT,
        summary="There is no fresh copy off the node of the backups of etcd of {{ $labels.node }}",
        description="The newest backup that was copied is too old, or none ever was.",
        meaning="Backups of etcd are to be copied off their node, and no newer one has been for "
        "longer than the site allows.",
        reason="Backups that lie on the control plane's disk alone are lost with it.",
        check=(f"On the node: `systemctl status {COPY_SERVICE}`", f"`journalctl -u {COPY_SERVICE}`",
               _LAST_STATE),
        remedy=(f"Try it again: `systemctl start {COPY_SERVICE}`. Often: the machine or bucket is "
                "away or full, its SSH key or the access key has changed.",
                "Another machine, bucket or key: change `backup.rsync` or `backup.s3`, then "
                "`pyinfra INVENTORY deploys/site.py`.", _VERIFY),
        requires=Requirement.ETCD_BACKUPS,
        source=OWN_SOURCE,
        enabled=bool(target(settings.backup)),
    )  # fmt: skip
