"""A cluster of two GPU nodes in which all is well; tests break one thing of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuboot.cluster.backup import Backup, Backups
from gpuboot.cluster.node_certificates import DAY_S, Certificate
from gpuboot.cluster.objects import Node
from gpuboot.verify.alert_path import AlertPath, HeartbeatAlert
from gpuboot.verify.control_plane import ControlPlane
from gpuboot.verify.devices import Gpu, Host
from gpuboot.verify.evidence import (
    Evidence,
    ExporterScrape,
    HealthValue,
    IsolationResult,
    Metrics,
    Reading,
    Rule,
    ServiceProbeResult,
    Target,
    WorkloadResult,
)
from gpuboot.verify.findings import Finding

SLOTS = ("0000:10:00.0", "0000:1c:00.0", "0000:2b:00.0", "0000:3d:00.0")
LOADED = "595.91.07"
NVRM = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.91.07  Release Build  "
    "(SIMULATED by the gpuboot lab)"
)


def uuid(node: str, index: int) -> str:
    seed = {"gpu1": "51aa0001", "gpu2": "51aa0002"}[node]
    return f"GPU-{seed}-5157-4c6c-8abc-{index:012x}"


def gpu(node: str, number: int, **fields: Any) -> Gpu:
    plain = Gpu(
        pci=SLOTS[number],
        uuid=uuid(node, number),
        index=number,
        name="NVIDIA H100 80GB HBM3",
        memory_mib=81559,
        sensors=("temperature", "power", "memory"),
    )
    return replace(plain, **fields)


def host(node: str = "gpu1", count: int = 2, **fields: Any) -> Host:
    plain = Host(
        node=node,
        expected_gpus=count,
        gpus=tuple(gpu(node, index) for index in range(count)),
        pci_addresses=SLOTS[:count],
        driver_requested=LOADED,
        driver_installed=LOADED,
        driver_loaded=LOADED,
        driver_text=NVRM,
        smi_error="",
        cdi_devices=tuple(f"nvidia.com/gpu={uuid(node, index)}" for index in range(count)),
        runtime_handlers=("nvidia", "runc"),
        default_runtime="nvidia",
    )
    return replace(plain, **fields)


NOW = 1_800_000_000.0


def control_plane(**fields: Any) -> ControlPlane:
    backup = Backup("20270115T080000Z-timer", NOW - 3600, node="cp1", ca="c1")
    plain = ControlPlane(
        node="cp1",
        certificates=(Certificate("pki/apiserver.crt", NOW + 200 * DAY_S),),
        backups=Backups((backup,), ca="c1"),
        clock=NOW,
    )
    return replace(plain, **fields)


def node(name: str, gpus: int, mig: Mapping[str, int] | None = None, **fields: Any) -> Node:
    plain = Node(
        name=name,
        ready=True,
        allocatable={"nvidia.com/gpu": str(gpus), **{k: str(n) for k, n in (mig or {}).items()}},
        versions={"kubelet": "v1.36.3"},
        labels={"kubernetes.io/hostname": name},
    )
    return replace(plain, **fields)


def pod_of(name: str, index: int) -> str:
    return f"vectoradd-{name}-{index}"


def workload_result(name: str, index: int, **fields: Any) -> WorkloadResult:
    plain = WorkloadResult(
        pod=pod_of(name, index),
        namespace="gpuboot-verify",
        node=name,
        uuids=(uuid(name, index),),
        passed=True,
        seconds=4.2,
    )
    return replace(plain, **fields)


def reading(name: str, index: int, **fields: Any) -> Reading:
    plain = Reading(
        uuid=uuid(name, index),
        node=name,
        pod=f"gpuboot-verify/{pod_of(name, index)}",
        temperature=34,
        power=71.2,
        memory=81559,
        energy=5e6,
    )
    return replace(plain, **fields)


ERRORS = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"


def scrape(name: str, count: int, **fields: Any) -> ExporterScrape:
    readings = tuple(reading(name, index) for index in range(count))
    plain = ExporterScrape(
        node=name,
        pod=f"nvidia-dcgm-exporter-{name}",
        readings=readings,
        names=frozenset({ERRORS}),
        health=tuple(HealthValue(uuid=item.uuid, metric=ERRORS, value=0) for item in readings),
    )
    return replace(plain, **fields)


def series(name: str, count: int, **fields: Any) -> tuple[Reading, ...]:
    return tuple(reading(name, index, age_s=3.0, **fields) for index in range(count))


SIZES = {"gpu1": 2, "gpu2": 4}


def metrics(**fields: Any) -> Metrics:
    plain = Metrics(
        exporters=tuple(scrape(name, count) for name, count in SIZES.items()),
        series=tuple(item for name, count in SIZES.items() for item in series(name, count)),
        targets=(
            *(Target(job="nvidia-dcgm-exporter", node=name, health="up") for name in SIZES),
            Target(job="apiserver", node="", health="up"),
        ),
        rules=(Rule(name="GPULost", health="ok"), Rule(name="Watchdog", health="ok")),
        alertmanagers=("http://10.244.1.7:9093/api/v2/alerts",),
        alertmanager_ready=True,
        dashboards=3,
        alert_path=AlertPath(heartbeat=HeartbeatAlert(labels={"alertname": "Watchdog"})),
    )
    return replace(plain, **fields)


def evidence(**fields: Any) -> Evidence:
    plain = Evidence(
        hosts=tuple(host(name, count) for name, count in SIZES.items()),
        nodes={"cp1": node("cp1", 0)} | {name: node(name, count) for name, count in SIZES.items()},
        gpu_pods=(),
        workload_results=tuple(
            workload_result(name, index) for name, count in SIZES.items() for index in range(count)
        ),
        metrics=metrics(),
        idle_series=tuple(
            reading(name, index, pod="", age_s=2.0)
            for name, count in SIZES.items()
            for index in range(count)
        ),
        durations={"workload": 6.1, "metrics": 7.5},
        service_probes=tuple(
            ServiceProbeResult(
                node=name,
                pod=f"services-{name}",
                name="kubernetes",
                address="a:1",
                resolved=True,
                connected=True,
            )
            for name in SIZES
        ),
        isolation_results=tuple(
            IsolationResult(node=name, pod=f"isolation-{name}", devices={"all": ()})
            for name in SIZES
        ),
    )
    return replace(plain, **fields)


def of(findings: list[Finding], status: str, link: str | None = None) -> list[Finding]:
    return [f for f in findings if f.status == status and link in (None, f.link)]


def only(findings: list[Finding], status: str) -> Finding:
    """The one finding of this status."""
    matches = of(findings, status)
    assert len(matches) == 1, findings
    return matches[0]
