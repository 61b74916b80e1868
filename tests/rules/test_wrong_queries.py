"""Queries that guides and other rule sets recommend, and what is wrong with them.

Each stands here with the same data that ours gets right, so that nobody brings one of them back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.rules.model import G0, HOLDER, dcgm, series, values
from tests.rules.suite import Rule, all_rules, closure, run, write_rules

_UTIL = "DCGM_FI_DEV_GPU_UTIL"


def _alert(name: str, expr: str, hold: str) -> Rule:
    return {"alert": name, "expr": expr, "for": hold}


def _own_rule(name: str) -> Rule:
    """Our alert alone, without labels of its own."""
    rule = all_rules()[name][0]
    return {key: rule[key] for key in ("alert", "expr", "for") if key in rule}


def _holds(folder: Path, rules: list[Rule], test: dict[str, Any], step: str = "30s") -> None:
    expressions = [check["expr"] for check in (*test.get("promql_expr_test", ()), *rules)]
    records = closure("\n".join(expressions), all_rules()[""])
    write_rules(folder / "rules.yml", [*records, *rules])
    suite = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": step,
        "tests": [{"interval": step, **test}],
    }
    (folder / "test.yml").write_text(yaml.safe_dump(suite, sort_keys=False))
    result = run("test", "rules", folder / "test.yml")
    assert result.returncode == 0, result.stdout


def _fires(name: str, minute: int, *alerts: dict[str, str]) -> Rule:
    return {
        "eval_time": f"{minute}m",
        "alertname": name,
        "exp_alerts": [{"exp_labels": labels} for labels in alerts],
    }


def _sample(expr: str, minute: int, value: float, labels: str = "{}") -> Rule:
    return {
        "expr": expr,
        "eval_time": f"{minute}m",
        "exp_samples": [{"labels": labels, "value": value}],
    }


def test_throttle_reasons_above_zero_fire_on_every_idle_gpu(tmp_path: Path) -> None:
    """It is a bitmask, and 1 in it says idle."""
    idle = series("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", **G0)
    data = {idle: "1x100", dcgm("DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS"): "0x100"}
    _holds(
        tmp_path,
        [_alert("Wrong", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS > 0", "2m"),
         _own_rule("GPUThermalThrottle")],
        {
            "input_series": [{"series": s, "values": v} for s, v in data.items()],
            "alert_rule_test": [_fires("Wrong", 20, G0), _fires("GPUThermalThrottle", 20)],
        },
    )  # fmt: skip


def test_the_last_xid_above_zero_pages_for_ever(tmp_path: Path) -> None:
    """The gauge holds the last XID until the driver is loaded again; this one was a program's."""
    last = series("DCGM_FI_DEV_XID_ERRORS", **G0)
    data = {
        last: "0x10 31x600",
        dcgm("DCGM_EXP_XID_ERRORS_TOTAL", xid="31"): "_x11 1x600",
        dcgm("DCGM_FI_DEV_GPU_TEMP"): "40x600",
    }
    _holds(
        tmp_path,
        [_alert("Wrong", "DCGM_FI_DEV_XID_ERRORS > 0", "1m"), _own_rule("GPUXidFatal")],
        {
            "input_series": [{"series": s, "values": v} for s, v in data.items()],
            "alert_rule_test": [
                _fires("Wrong", 10, G0), _fires("Wrong", 300, G0), _fires("GPUXidFatal", 8),
            ],
        },
    )  # fmt: skip


def test_increase_alone_misses_the_first_xid(tmp_path: Path) -> None:
    expr = "increase(DCGM_EXP_XID_ERRORS_TOTAL[10m]) > 0"
    data = {
        dcgm("DCGM_EXP_XID_ERRORS_TOTAL", xid="48"): "_x20 1x60",
        dcgm("DCGM_FI_DEV_GPU_TEMP"): "40x80",
    }
    _holds(
        tmp_path,
        [_alert("Wrong", expr, "0s"), {**_own_rule("GPUXidFatal"), "alert": "Ours"}],
        {
            "input_series": [{"series": s, "values": v} for s, v in data.items()],
            "alert_rule_test": [_fires("Wrong", 12), _fires("Ours", 12, {**G0, "xid": "48"})],
        },
    )


def test_a_rise_of_errors_is_blind_to_a_gpu_that_came_up_with_them(tmp_path: Path) -> None:
    data = {dcgm("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"): "3x40"}
    wrong_expr = "increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[5m]) > 0"
    _holds(
        tmp_path,
        [_alert("Wrong", wrong_expr, "0s"), _own_rule("GPUUncorrectableECC")],
        {
            "input_series": [{"series": s, "values": v} for s, v in data.items()],
            "alert_rule_test": [_fires("Wrong", 10), _fires("GPUUncorrectableECC", 10, G0)],
        },
    )


def test_the_age_of_a_sample_is_not_idle_time(tmp_path: Path) -> None:
    """After three hours of idling it says 0 seconds; ours says which GPU is held for nothing."""
    idle = dcgm(_UTIL, G0, **HOLDER)
    _holds(
        tmp_path,
        [],
        {
            "input_series": [{"series": idle, "values": "0x800"}],
            "promql_expr_test": [
                _sample(f"sum by (node) (time() - timestamp({_UTIL} < 10))", 180, 0,
                       '{node="gpu1"}'),
                _sample("namespace:gpu_idle_held:count", 180, 1,
                       'namespace:gpu_idle_held:count{namespace="ml"}'),
            ],
        },
        step="15s",
    )  # fmt: skip


def test_an_average_over_a_day_bills_a_pod_of_one_hour_for_the_whole_day(tmp_path: Path) -> None:
    """avg_over_time averages the samples that there are. Sums of minutes count what there was."""
    pod_labels = {"namespace": "a", "pod": "p"}
    hour = values((None, 600), (1, 60), (None, 780), step=60)
    data = {
        series("kube_pod_container_resource_requests", **pod_labels, container="c", node="gpu1",
               resource="nvidia_com_gpu"): hour,
        series("kube_pod_status_phase", **pod_labels, phase="Running"): hour,
    }  # fmt: skip
    requested = "namespace_pod:gpu_requested:sum"
    _holds(
        tmp_path,
        [],
        {
            "input_series": [{"series": s, "values": v} for s, v in data.items()],
            "promql_expr_test": [
                _sample(f"sum by (namespace) (avg_over_time({requested}[1d])) * 24", 1439, 24,
                       '{namespace="a"}'),
                _sample(f"sum by (namespace) (sum_over_time({requested}[1d:1m])) / 60", 1439, 1,
                       '{namespace="a"}'),
            ],
        },
        step="1m",
    )  # fmt: skip


def test_memory_that_is_nearly_full_is_no_alert_by_itself(tmp_path: Path) -> None:
    """Inference servers take all memory when they start."""
    full = {
        dcgm("DCGM_FI_DEV_FB_USED", G0, namespace="serve", pod="vllm"): "80000x100",
        dcgm("DCGM_FI_DEV_FB_FREE", G0, namespace="serve", pod="vllm"): "500x100",
    }
    wrong_expr = (
        "max by (node) (DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)) > .9"
    )
    _holds(
        tmp_path,
        [_alert("Wrong", wrong_expr, "5m"), _own_rule("GPUMemoryNearFull")],
        {
            "input_series": [{"series": s, "values": v} for s, v in full.items()],
            "alert_rule_test": [
                _fires("Wrong", 30, {"node": "gpu1"}), _fires("GPUMemoryNearFull", 30),
            ],
        },
    )  # fmt: skip


def test_underused_fires_on_gpus_that_nobody_holds(tmp_path: Path) -> None:
    _holds(
        tmp_path,
        [_alert("Wrong", f"max by (UUID) ({_UTIL}) < 10", "30m"), _own_rule("GPUAllocatedIdle")],
        {
            "input_series": [{"series": dcgm(_UTIL), "values": "0x400"}],
            "alert_rule_test": [
                _fires("Wrong", 120, {"UUID": "GPU-0"}), _fires("GPUAllocatedIdle", 120),
            ],
        },
    )  # fmt: skip


def test_gpu_hours_by_subtracting_times_is_not_even_promql(tmp_path: Path) -> None:
    write_rules(tmp_path / "rules.yml", [{"record": "wrong", "expr": "time() - time() offset 1h"}])
    result = run("check", "rules", tmp_path / "rules.yml")
    assert result.returncode != 0
    assert "parse error" in result.stdout
