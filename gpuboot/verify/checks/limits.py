"""Limits of the metric checks, and the devices that they are about."""

from __future__ import annotations

from dataclasses import dataclass

from gpuboot.verify.checks.remedies import CLUSTER, Remedies
from gpuboot.verify.devices import Device, Host, MigStrategy
from gpuboot.verify.findings import Finding, FindingBuilder


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the settings say about metrics. Unit: seconds.

    + slices: pods that share one GPU by time-slicing
    + strategy: the device plugin's MIG strategy; a node's label wins over it
    + every_sensor: the exporter collects all that nvidia-smi has a value of; False where a site
      wrote its own collectors file
    + dcgm_on_hosts: a host engine is asked for health and diagnoses
    + remedies: what a person can do about findings, at this kind of site
    """

    monitoring: bool
    max_age_s: float
    interval_s: float
    slices: int = 1
    strategy: MigStrategy = "single"
    every_sensor: bool = True
    dcgm_on_hosts: bool = False
    remedies: Remedies = CLUSTER


def monitored_devices(host: Host) -> list[Device]:
    """What has series: GPUs and MIG devices, and GPUs with MIG that have no instance."""
    return sorted(
        [*host.devices, *(Device(gpu) for gpu in host.unpartitioned)],
        key=lambda device: device.uuid,
    )


def describe(device: Device) -> str:
    """A GPU or MIG device by the labels of its series, for people."""
    if device.instance is None:
        return "this GPU"
    return f"this MIG device (UUID {device.gpu.uuid}, GPU_I_ID {device.instance.gi})"


def unidentified_series(builder: FindingBuilder, uuid: str) -> Finding:
    """A MIG device whose series cannot be told from others."""
    reason = "nvidia-smi -q does not show its GPU instance, by which its series are labelled"
    return builder.unknown(reason, "run `nvidia-smi -q` on the node, and verify again", uuid)
