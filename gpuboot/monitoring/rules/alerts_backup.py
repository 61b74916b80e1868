"""Alerts on backups of etcd: too old, on the node and off it."""

from __future__ import annotations

from gpuboot.cluster.backup import COPY_METRIC, METRIC
from gpuboot.cluster.backup_copy import target
from gpuboot.config.settings import Settings
from gpuboot.monitoring.rules.alert import Alert
from gpuboot.monitoring.rules.promql import age
from gpuboot.monitoring.rules.requirements import Requirement

_NODE = "{{ with $labels.node }} of {{ . }}{{ end }}"


def alerts(settings: Settings) -> list[Alert]:
    """Alerts of an old backup, and of an old copy where copies are made."""
    return [_old(settings.backup.max_age_h), _copy_old(settings)]


def _old(max_age_h: int) -> Alert:
    return Alert(
        name="EtcdBackupOld",
        severity="warning",
        component="cluster",
        expr=f"max by (node) ({age(METRIC)} / 3600) > {{threshold}}\n  or absent({METRIC})",
        hold_for="15m",
        threshold=max_age_h,
        summary=f"There is no fresh backup of etcd{_NODE}",
        description="The newest good one is too old, or none is known.",
        requires=Requirement.ETCD_BACKUPS,
    )


def _copy_old(settings: Settings) -> Alert:
    return Alert(
        name="EtcdBackupCopyOld",
        severity="warning",
        component="cluster",
        expr=f"max by (node) ({age(COPY_METRIC)} / 3600) > {{threshold}}\n"
        f"  or max by (node) ({METRIC}) unless max by (node) ({COPY_METRIC})",
        hold_for="1h",
        threshold=settings.backup.max_age_h,
        summary="There is no fresh copy off the node of the backups of etcd of {{ $labels.node }}",
        description="The newest backup that was copied is too old, or none ever was.",
        requires=Requirement.ETCD_BACKUPS,
        enabled=bool(target(settings.backup)),
    )
