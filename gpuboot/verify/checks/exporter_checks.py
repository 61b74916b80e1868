"""The link `exporter`: dcgm-exporter reports what nvidia-smi lists, with plausible values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuboot.telemetry.anchor import ANCHORS
from gpuboot.verify.checks.limits import (
    Limits,
    describe,
    monitored_devices,
    unidentified_series,
)
from gpuboot.verify.devices import Device, Host, Sensor, SeriesKey
from gpuboot.verify.evidence import Evidence, ExporterScrape, Reading
from gpuboot.verify.findings import Finding, FindingBuilder

MAX_TEMPERATURE = 125.0  # °C; GPUs shut themselves down before
_FIELDS: dict[Sensor, str] = {
    "temperature": "DCGM_FI_DEV_GPU_TEMP",
    "power": "DCGM_FI_DEV_POWER_USAGE",
    "memory": "DCGM_FI_DEV_FB_FREE and DCGM_FI_DEV_FB_USED",
}
STALE_AFTER_PERIODS = 3  # sampling periods after which an energy counter that stands still is dead


def exporter(host: Host, evidence: Evidence, limits: Limits) -> list[Finding]:
    """Judge whether the exporter reports what nvidia-smi lists alone, with plausible values."""
    seconds = evidence.durations.get("metrics", 0.0)
    builder = FindingBuilder("exporter", "dcgm-exporter series = nvidia-smi", host.node, seconds)
    if not host.uuids:
        return []
    answers = [answer for answer in evidence.metrics.exporters if answer.node == host.node]
    if error := evidence.metrics.errors.get("exporters"):
        return [builder.unknown(error, "verify again")]
    if not answers:
        detail = "no dcgm-exporter pod runs on this node"
        remedy = limits.remedies.exporter_down
        return [builder.failed(*evidence.metrics.explained("exporter", detail, remedy))]
    if len(answers) > 1:
        pods = ", ".join(answer.pod for answer in answers)
        reason = f"{len(answers)} dcgm-exporters report this node: {pods}"
        return [builder.failed(reason, limits.remedies.exporter_twice)]
    answer = answers[0]
    if answer.error:
        return [builder.failed(f"{answer.pod}: {answer.error}", limits.remedies.exporter_down)]
    readings = {reading.key: reading for reading in answer.readings}
    return [
        _device_finding(device, readings, host.node, evidence, limits, builder)
        for device in monitored_devices(host)
    ] + _unknown_devices(host, readings, limits, builder)


def _unknown_devices(
    host: Host, readings: Iterable[SeriesKey], limits: Limits, builder: FindingBuilder
) -> list[Finding]:
    """GPUs and slices that only the exporter knows."""
    known_keys: set[SeriesKey | None] = {(gpu.uuid, "") for gpu in host.gpus}
    known_keys |= {device.key for device in host.devices}
    # without `nvidia-smi -q` nobody can say which slices are its own
    unidentified = {device.gpu.uuid for device in host.devices if device.key is None}
    restart = limits.remedies.exporter_restart
    remedy = f"the exporter watches other GPUs than nvidia-smi lists: {restart}"
    return [
        builder.failed(
            f"it reports {uuid}{f', GPU_I_ID {slice_}' if slice_ else ''}, which the node lacks",
            remedy,
            uuid,
        )
        for uuid, slice_ in sorted(readings)
        if (uuid, slice_) not in known_keys and uuid not in unidentified
    ]


def _device_finding(
    device: Device,
    readings: Mapping[SeriesKey, Reading],
    node: str,
    evidence: Evidence,
    limits: Limits,
    builder: FindingBuilder,
) -> Finding:
    uuid, key = device.uuid, device.key
    if key is None:
        return unidentified_series(builder, uuid)
    reading = readings.get(key)
    if reading is None:
        detail = f"the exporter has no series of {describe(device)}"
        return builder.failed(detail, limits.remedies.exporter_down, uuid)
    restart = limits.remedies.exporter_restart
    if implausibility := _implausible(reading):
        remedy = f"DCGM answers without values: {restart}, then see nvidia-smi -q"
        return builder.failed(implausibility, remedy, uuid)
    if limits.every_sensor and (missing_sensors := _missing_sensors(device, reading)):
        fields = ", ".join(_FIELDS[sensor] for sensor in missing_sensors)
        reason = f"nvidia-smi shows {', '.join(missing_sensors)}, the exporter does not ({fields})"
        return builder.failed(reason, f"{restart}, and read its log", uuid)
    earlier = _earlier(evidence.exporters_before, node, key)
    still = (
        earlier is not None
        and reading.energy is not None
        and reading.energy == earlier.energy
        and evidence.before_age_s > STALE_AFTER_PERIODS * limits.interval_s
    )
    if still:
        remedy = f"DCGM no longer samples: {restart}"
        return builder.failed(f"values stand still for {evidence.before_age_s:.0f} s", remedy, uuid)
    return builder.passed(_values(reading), uuid)


def _values(reading: Reading) -> str:
    """A reading's values in words; those that this kind of GPU lacks are named as absent."""
    readings = [
        (reading.temperature, "°C", "temperature"),
        (reading.power, "W", "power draw"),
        (reading.memory, "MiB", "device memory"),
    ]
    return ", ".join(
        f"no {name}" if value is None else f"{value:g} {unit}" for value, unit, name in readings
    )


def _missing_sensors(device: Device, reading: Reading) -> list[Sensor]:
    """What nvidia-smi has a value of and the exporter has not.

    Under MIG, DCGM has no frame buffer of the GPU, and of slices not on every model
    (NVIDIA/dcgm-exporter issue 512).
    """
    values: dict[Sensor, float | None] = {
        "temperature": reading.temperature,
        "power": reading.power,
        "memory": reading.memory,
    }
    expected = {*device.gpu.sensors} - ({"memory"} if device.gpu.mig else set())
    return [sensor for sensor, value in values.items() if sensor in expected and value is None]


def _implausible(reading: Reading) -> str:
    """What cannot be true of a GPU that is on; "" when all is well.

    A value that is missing is no such thing: vGPU guests have no temperature, for one.
    """
    if not reading.anchored:
        return f"none of {', '.join(ANCHORS)} has a value"
    if reading.temperature is not None and not 0 < reading.temperature <= MAX_TEMPERATURE:
        return f"temperature is {reading.temperature} °C"
    if reading.power is not None and reading.power <= 0:
        return f"power draw is {reading.power} W"
    if reading.memory is not None and reading.memory <= 0:
        return f"device memory is {reading.memory} MiB"
    return ""


def _earlier(before: Iterable[ExporterScrape], node: str, key: SeriesKey) -> Reading | None:
    readings = (r for answer in before if answer.node == node for r in answer.readings)
    return next((reading for reading in readings if reading.key == key), None)
