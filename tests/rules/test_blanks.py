"""DCGM's marks for a value that it does not have are no values to any rule.

0x7ffffffffffffff0 and a little more, 2^47 and a little more (DCGM 4.6.0, dcgmlib/dcgm_structs.h,
DCGM_INT64_BLANK and DCGM_FP64_BLANK). Current exporters leave such samples out; older ones, and
other programs that write the same metrics, do not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpuboot.monitoring.rules.recording_xid import UNREPAIRED
from gpuboot.telemetry import metric_names
from tests.rules.model import HOLDER, dcgm
from tests.rules.suite import all_rules, run, write_rules

_BLANKS = ("9223372036854775794", "140737488355328")
# what a healthy GPU says, where that is not 0
_HEALTHY = {
    "DCGM_FI_DEV_SM_CLOCK": 1980,
    "DCGM_FI_DEV_MAX_SM_CLOCK": 1980,
    "DCGM_FI_DEV_GPU_TEMP_LIMIT": 40,
    "DCGM_FI_DEV_MEM_MAX_OP_TEMP": 95,
    "DCGM_FI_DEV_FABRIC_MANAGER_STATUS": 3,
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": 16,
    "DCGM_FI_DEV_PCIE_LINK_GEN": 5,
    "DCGM_FI_DEV_FB_FREE": 70000,
}
# Promised GPUs that nobody shows are missed, and that is right.
_MISSED = (
    "GPULost|GPUMetricsMissing|GPUExporterAbsent|EtcdNotMonitored|EtcdBackupOld|DCGMCheckStale"
)
_EXPRESSIONS = (
    f'ALERTS{{alertname!~"{_MISSED}"}}',
    f'{{__name__=~"(gpu|node|cluster|namespace.*):.+", __name__!="{UNREPAIRED}"}} > 1e6',
)


def _fields() -> list[str]:
    names = (metric_names(rule["expr"]) for rules in all_rules().values() for rule in rules)
    return sorted({name for group in names for name in group if name.startswith("DCGM_FI_")})


@pytest.mark.parametrize("blank_value", _BLANKS)
@pytest.mark.parametrize("course", ["{good}x30 {blank}x20 {good}x30", "{blank}x90"])
def test_no_rule_takes_them_for_values(tmp_path: Path, blank_value: str, course: str) -> None:
    write_rules(tmp_path / "rules.yml", [rule for rules in all_rules().values() for rule in rules])
    # counted nanoseconds pass 2^47 by themselves, and are whole numbers
    marked = {
        dcgm(name, **pod): course.format(
            good=_HEALTHY.get(name, 0), blank=_BLANKS[0] if name.endswith("_NS") else blank_value
        )
        for name in _fields()
        for pod in ({}, HOLDER)
    }
    expression_tests = [
        {"expr": expr, "eval_time": f"{minute}m", "exp_samples": []}
        for minute in range(5, 40)
        for expr in _EXPRESSIONS
    ]
    case = {
        "interval": "30s",
        "input_series": [{"series": name, "values": text} for name, text in marked.items()],
        "promql_expr_test": expression_tests,
    }
    suite = {"rule_files": ["rules.yml"], "evaluation_interval": "30s", "tests": [case]}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(suite, sort_keys=False))
    result = run("test", "rules", tmp_path / "test.yml")
    assert result.returncode == 0, result.stdout


def test_the_fields_of_many_rules_are_among_them() -> None:
    assert len(_fields()) > 30
