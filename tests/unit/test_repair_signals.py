"""Which signs of a fault are enough for which repair, and what never is one."""

from __future__ import annotations

import pytest

from gpuboot.config.settings import Settings
from gpuboot.hosts.health_watches import UNKNOWN, Card
from gpuboot.monitoring.rules.catalogue import all_alerts
from gpuboot.monitoring.rules.xid import FATAL, classes
from gpuboot.repair.repair_model import GpuNode
from gpuboot.repair.signals import NEVER, Case, Ignored, Signal, case_of, of_alert, of_node
from tests.unit.repair_site import (
    GPU_LOST,
    HEALTH,
    HOT,
    RECOVERY_REBOOT,
    RECOVERY_RESET,
    REMAP,
    XID_79,
    XID_119,
)

ON = {"node": "gpu1", "UUID": "GPU-a"}
UNHEALTHY = of_node(GpuNode(name="gpu1", capacity=4, allocatable=3))
XID_74 = XID_119 | {"xid": "74"}


def case(*alerts: dict[str, str], node: Signal | None = None) -> Case | None:
    signals = [
        of_alert(ON | alert if alert is not GPU_LOST else {"node": "gpu1"} | alert, {})
        for alert in alerts
    ]
    return case_of([alert for alert in [*signals, node] if isinstance(alert, Signal)])


@pytest.mark.parametrize(
    ("alerts", "action", "reason"),
    [
        ([XID_79], "reboot", "xid-79"),
        ([REMAP], "manual", "row-remap-failure"),
        ([RECOVERY_RESET], "reset", "recovery-action"),
        ([RECOVERY_REBOOT], "reboot", "recovery-action"),
        ([XID_119, HEALTH], "reset", "xid-119"),
        ([XID_119, GPU_LOST], "reboot", "lost"),
        ([XID_74, HEALTH], "reboot", "xid-74"),
        ([XID_119, RECOVERY_REBOOT], "reboot", "recovery-action"),
        ([XID_79, REMAP], "manual", "row-remap-failure"),
    ],
)
def test_what_is_enough(alerts: list[dict[str, str]], action: str, reason: str) -> None:
    repair_case = case(*alerts)
    assert repair_case is not None
    assert (repair_case.action, repair_case.reason) == (action, reason)
    assert repair_case.gpus == ("GPU-a",)


def test_the_kubelet_is_a_second_sign() -> None:
    repair_case = case(XID_119, node=UNHEALTHY)
    assert repair_case is not None
    assert repair_case.action == "reset"
    assert "offers 3 of 4 GPUs" in repair_case.cause
    assert "XID 119" in repair_case.cause


@pytest.mark.parametrize(
    "alerts", [[XID_119], [HEALTH], [GPU_LOST], [HEALTH, GPU_LOST], [XID_119, XID_74]]
)
def test_one_side_alone_is_not_enough(alerts: list[dict[str, str]]) -> None:
    repair_case = case(*alerts)
    assert repair_case is not None
    assert repair_case.action is None
    assert "only one side tells of it" in repair_case.cause


def test_signs_of_two_gpus_do_not_go_together() -> None:
    xid, health = of_alert(ON | XID_119, {}), of_alert(ON | HEALTH | {"UUID": "GPU-b"}, {})
    assert isinstance(xid, Signal)
    assert isinstance(health, Signal)
    repair_case = case_of([xid, health])
    assert repair_case is not None
    assert repair_case.action is None


@pytest.mark.parametrize(
    ("alert", "reason"),
    [
        (HOT, "heat"),
        (HEALTH | {"health_watch": "THERMAL"}, "heat"),
        (HEALTH | {"health_watch": "POWER"}, "power"),
        (HEALTH | {"health_watch": "ALL"}, "no second sign"),
        (HEALTH | {"health_error_code": "DCGM_FR_XID_ERROR"}, "no second sign"),
        ({"alertname": "GPUXidApplication", "xid": "31"}, "program"),
        ({"alertname": "GPUExporterDown"}, "not repaired"),
        ({"alertname": "GPUMetricsMissing"}, "not repaired"),
        ({"alertname": "GPUAllocatedIdle"}, "program"),
        (XID_119 | {"xid": "31"}, "of class application"),
        (RECOVERY_RESET | {"gpu_action": "drain"}, "for their owners"),
        # of the IMEX domain (action 5)
        (RECOVERY_RESET | {"gpu_action": "investigate"}, "neither a reset nor a reboot"),
    ],
)
def test_what_is_never_a_reason(alert: dict[str, str], reason: str) -> None:
    outcome = of_alert(ON | alert, {})
    assert isinstance(outcome, Ignored)
    assert reason in outcome.cause


NVLINK = HEALTH | {"health_watch": "NVLINK"}
NVLINK_ERRORS = NVLINK | {"health_error_code": "DCGM_FR_NVLINK_ERROR_CRITICAL"}
NO_BRIDGE = NVLINK | {"health_error_code": "DCGM_FR_NVLINK_DOWN"}
H100, A100 = Card("NVIDIA-H100-80GB-HBM3", 7), Card("NVIDIA-A100-80GB-PCIe", 3)


@pytest.mark.parametrize(
    ("alert", "card"),
    [
        (NVLINK_ERRORS, H100),
        (NVLINK_ERRORS, UNKNOWN),
        (NO_BRIDGE, A100),
        (NVLINK | {"health_error_code": "DCGM_FR_IMEX_UNHEALTHY"}, Card("NVIDIA-GB300", 3)),
        (NVLINK | {"health_error_code": "DCGM_FR_SOMETHING_NEW"}, H100),
    ],
)
def test_a_watch_that_fails_on_a_card_that_is_well_is_no_second_sign(
    alert: dict[str, str], card: Card
) -> None:
    outcome = of_alert(ON | alert, {}, card)
    assert isinstance(outcome, Ignored)
    repair_case = case_of(
        [signal for signal in (of_alert(ON | XID_119, {}), outcome) if isinstance(signal, Signal)]
    )
    assert repair_case is not None
    assert repair_case.action is None


@pytest.mark.parametrize(
    ("alert", "card"),
    [(NVLINK_ERRORS, Card("NVIDIA-B200", 7)), (NO_BRIDGE, H100), (HEALTH, UNKNOWN)],
)
def test_a_watch_that_fails_on_a_broken_card_is_one(alert: dict[str, str], card: Card) -> None:
    outcome = of_alert(ON | alert, {}, card)
    assert isinstance(outcome, Signal)
    repair_case = case_of(
        [signal for signal in (of_alert(ON | XID_119, {}), outcome) if isinstance(signal, Signal)]
    )
    assert repair_case is not None
    assert repair_case.action == "reset"


def test_other_alerts_say_nothing() -> None:
    assert of_alert(ON | {"alertname": "GPUPodPending"}, {}) is None
    assert of_alert({"alertname": "Watchdog"}, {}) is None
    assert of_alert(XID_79, {}) is None, "nobody knows on which node"


def test_a_site_decides_on_classes_of_xids() -> None:
    assert isinstance(of_alert(ON | XID_79, {79: "inspect"}), Ignored)
    outcome = of_alert(ON | XID_119 | {"xid": "31"}, {31: "reset"})
    assert isinstance(outcome, Signal)
    assert outcome.action == "reset"


def test_every_fatal_code_has_an_action_and_no_other() -> None:
    for code, kind in classes({}).items():
        outcome = of_alert(ON | XID_119 | {"xid": str(code)}, {})
        assert isinstance(outcome, Signal) == (kind in FATAL), code


def test_the_alerts_are_those_of_the_rules() -> None:
    rule_names = {alert.name for group in all_alerts(Settings()).values() for alert in group}
    alert_names = {
        labels["alertname"] for labels in (XID_79, GPU_LOST, HEALTH, REMAP, RECOVERY_RESET)
    }
    assert set(NEVER) | alert_names <= rule_names


def test_a_node_that_is_not_ready_says_nothing_of_its_gpus() -> None:
    assert of_node(GpuNode(name="gpu1", capacity=4, allocatable=0, ready=False)) is None
    assert of_node(GpuNode(name="gpu1", capacity=4, allocatable=4)) is None
    # a device plugin that restarts looks so
    assert of_node(GpuNode(name="gpu1", capacity=4, allocatable=0)) is None
