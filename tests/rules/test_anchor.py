"""The question by which verification finds every GPU and slice in Prometheus, asked of promtool."""

from __future__ import annotations

from pathlib import Path

import yaml

from gpuboot.telemetry.anchor import AGES
from tests.rules.model import G0, dcgm
from tests.rules.suite import run
from tests.unit.recordings import GB10, SLICE, VGPU


def _labels(**labels: str) -> dict[str, str]:
    return {"node": "gpu1", "UUID": "GPU-x", "gpu": "1", **labels}


KINDS = {
    "whole": (G0, ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL")),
    "vgpu": (_labels(UUID="GPU-v"), tuple(VGPU)),
    "gb10": (_labels(UUID="GPU-s"), tuple(GB10)),
    "slice 7": (_labels(GPU_I_ID="7", GPU_I_PROFILE="1g.10gb"), tuple(SLICE)),
    "slice 8": (_labels(GPU_I_ID="8", GPU_I_PROFILE="1g.10gb"), tuple(SLICE)),
    "without clock": (_labels(UUID="GPU-u"), ("DCGM_FI_DEV_GPU_UTIL",)),
    "shared": (_labels(UUID="GPU-t"), ("DCGM_FI_DEV_GPU_UTIL",)),
}
# two shares in one container: dcgm-exporter 4.8.4 gives pod_uid to GPU_UTIL alone
_SHARE = _labels(UUID="GPU-t", namespace="ml", pod="train-0", container="main")
SHARES = [_SHARE | {"vgpu": "0"}, _SHARE | {"vgpu": "1"}]


def test_each_kind_of_gpu_and_each_slice_is_there_once(tmp_path: Path) -> None:
    data = [
        {"series": dcgm(metric, of), "values": "1x10"}
        for of, metrics in KINDS.values()
        for metric in metrics
    ]
    for share in SHARES:
        data += [
            {"series": dcgm("DCGM_FI_DEV_SM_CLOCK", share), "values": "1x10"},
            {"series": dcgm("DCGM_FI_DEV_GPU_UTIL", share | {"pod_uid": "1"}), "values": "1x10"},
        ]
    suite = {
        "rule_files": [],
        "tests": [
            {
                "interval": "30s",
                "input_series": data,
                "promql_expr_test": [
                    {
                        "expr": f"count({AGES})",
                        "eval_time": "2m",
                        "exp_samples": [{"labels": "{}", "value": len(KINDS) + len(SHARES) - 1}],
                    }
                ],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(suite, sort_keys=False))
    result = run("test", "rules", tmp_path / "test.yml")
    assert result.returncode == 0, result.stdout
