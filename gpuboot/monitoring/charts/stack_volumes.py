"""Where the monitoring stack keeps its data: claims, and how much Prometheus may fill."""

from __future__ import annotations

from gpuboot.cluster.values import Values
from gpuboot.config.settings import Monitoring

USABLE_SHARE = 0.85  # of its volume; the rest is room for the write-ahead log and for compaction
_MIB = {"M": 1, "G": 1024, "T": 1024**2}


def prometheus(monitoring: Monitoring) -> Values:
    """Values below `prometheusSpec`: how much of the volume it fills, and the claim."""
    storage = monitoring.storage
    values: Values = {"retentionSize": usable_size(storage.prometheus_size)}
    if storage.persistent:
        values["storageSpec"] = _template(storage.prometheus_size, storage.class_name)
    return values


def alertmanager(monitoring: Monitoring) -> Values:
    """Values below `alertmanagerSpec`: silences and the notification log survive a restart."""
    storage = monitoring.storage
    if not storage.persistent:
        return {}
    return {"storage": _template(storage.alertmanager_size, storage.class_name)}


def grafana(monitoring: Monitoring) -> Values:
    """Values below `grafana`. A volume that one pod may mount rules out rolling updates.

    Its claim is part of the release, so Helm has to be told that it outlives it (grafana 12.11.1,
    templates/pvc.yaml); those of Prometheus and Alertmanager are their StatefulSets'.
    """
    storage = monitoring.storage
    if not storage.persistent:
        return {}
    annotations = {"helm.sh/resource-policy": "keep"}
    persistence: Values = {
        "enabled": True,
        "size": storage.grafana_size,
        "annotations": annotations,
    }
    if storage.class_name:
        persistence["storageClassName"] = storage.class_name
    return {"persistence": persistence, "deploymentStrategy": {"type": "Recreate"}}


def usable_size(size: str) -> str:
    """What Prometheus may fill of so much space, in its own units (powers of 1024).

    Prometheus counts blocks and write-ahead log, deletes only whole blocks, and fails with its
    disk full: so this leaves room on the volume.

    + size: as Kubernetes writes it, e.g. `50Gi`
    """
    number, unit = int(size[:-2]), size[-2]
    mib = number / 1024 if unit == "K" else number * _MIB[unit]
    return f"{max(1, int(mib * USABLE_SHARE))}MB"


def _template(size: str, class_name: str | None) -> Values:
    spec: Values = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
    }
    if class_name:
        spec["storageClassName"] = class_name
    return {"volumeClaimTemplate": {"spec": spec}}
