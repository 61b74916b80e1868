"""A node with MIG devices in which all is well; tests break one thing of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuboot.verify.alert_path import AlertPath, HeartbeatAlert
from gpuboot.verify.checks import (
    health_checks,
    host_checks,
    kubernetes_checks,
    operating_system,
    proof_chain,
)
from gpuboot.verify.checks import metrics_checks as metric_checks
from gpuboot.verify.checks.metrics_checks import Limits
from gpuboot.verify.devices import Device, Gpu, Host
from gpuboot.verify.evidence import (
    Evidence,
    ExporterScrape,
    HealthValue,
    Metrics,
    Reading,
    Target,
    WorkloadResult,
)
from gpuboot.verify.findings import GPU_LINKS, NOT_REACHED, Finding
from gpuboot.verify.gaps import gaps
from tests.unit import recordings as seen
from tests.unit.evidence import ERRORS, LOADED, NVRM, node

NODE = "dgx-1"


LIMITS = Limits(monitoring=True, max_age_s=60, interval_s=15)


OFFER = {"nvidia.com/mig-1g.10gb": 4, "nvidia.com/mig-3g.40gb": 1}


ALL = {device: seen.mig_uuid(device) for device in seen.A100_GI}


def machine(gpus: tuple[Gpu, ...] = seen.MIXED, **fields: Any) -> Host:
    slots = tuple(gpu.pci for gpu in gpus)
    plain = Host(
        node=NODE,
        expected_gpus=len(gpus),
        gpus=gpus,
        pci_addresses=slots,
        driver_requested=LOADED,
        driver_installed=LOADED,
        driver_loaded=LOADED,
        driver_text=NVRM,
    )
    return replace(
        plain, **({"runtime_handlers": ("nvidia",), "default_runtime": "nvidia"} | fields)
    )


def pod(device: Device) -> str:
    return f"gpuboot-verify/vectoradd-{device.uuid[-2:]}"


def reading(device: Device, **fields: Any) -> Reading:
    """As the DGX's exporter had it: a slice has its GPU's UUID, temperature and power."""
    key = device.key
    assert key is not None
    plain = Reading(
        uuid=key[0],
        node=NODE,
        pod=pod(device),
        temperature=35,
        power=102.176,
        memory=9856,
        energy=None,
        slice=key[1],
    )
    return replace(plain, **fields)


def answer(readings: tuple[Reading, ...]) -> ExporterScrape:
    """An exporter's, with a value that tells of the health of each card."""
    uuids = dict.fromkeys(reading.uuid for reading in readings)
    return ExporterScrape(
        node=NODE,
        pod="exporter",
        readings=readings,
        names=frozenset({ERRORS}),
        health=tuple(HealthValue(uuid=uuid, metric=ERRORS, value=0) for uuid in uuids),
    )


def evidence(host: Host, strategy: str = "mixed", **fields: Any) -> Evidence:
    """All is well: every device has its pod, and its series name it."""
    trials = tuple(
        WorkloadResult(
            pod=pod(device).partition("/")[2],
            namespace="gpuboot-verify",
            node=NODE,
            uuids=(device.uuid,),
            passed=True,
            seconds=3,
            resource=device.resource(strategy),  # type: ignore[arg-type]
        )
        for device in host.devices
    )
    label = {"nvidia.com/mig.strategy": strategy}
    # compute instances of one GPU instance have one series, which names the last of their pods
    series = {device.key: reading(device) for device in host.devices}
    readings = tuple(series.values())
    plain = Evidence(
        hosts=(host,),
        nodes={NODE: node(NODE, 1, mig=OFFER, labels=label)},
        workload_results=trials,
        metrics=Metrics(
            exporters=(answer(readings),),
            series=tuple(replace(item, age_s=3.0) for item in readings),
            targets=(Target(job="nvidia-dcgm-exporter", node=NODE, health="up"),),
            alert_path=AlertPath(heartbeat=HeartbeatAlert(labels={"alertname": "Watchdog"})),
        ),
        idle_series=(),
    )
    return replace(plain, **fields)


def evaluate(observed: Evidence, limits: Limits = LIMITS, mode: str = "default") -> list[Finding]:
    (host,) = observed.hosts
    findings = [
        *operating_system.evaluate(host, mode),
        *kubernetes_checks.evaluate(host, observed, limits.slices, limits.strategy),
        *metric_checks.evaluate(host, observed, limits),
        *health_checks.evaluate(host, observed, limits),
    ]
    return findings + gaps(
        host, findings, host_checks.without(GPU_LINKS, host), NOT_REACHED, proof_chain.FIX_FIRST
    )


def with_series(observed: Evidence, readings: tuple[Reading, ...]) -> Evidence:
    ages = tuple(replace(item, age_s=3.0) for item in readings)
    exporters = (answer(readings),)
    return replace(observed, metrics=replace(observed.metrics, exporters=exporters, series=ages))


def uniform() -> tuple[Gpu, ...]:
    """The capture's GPU 0: seven 1g.10gb with GPU instances 7 to 13."""
    cut = replace(
        seen.MIXED[0],
        instances=tuple(
            replace(seen.MIXED[0].instances[0], uuid=seen.mig_uuid(gi), index=index, gi=gi)
            for index, gi in enumerate(range(7, 14))
        ),
    )
    return (cut,)
