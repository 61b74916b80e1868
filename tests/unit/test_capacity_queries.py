"""The queries of `gpuboot capacity`, evaluated by promtool on clusters that are made up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from gpuboot.usage.capacity.pools import queries
from tests.tools import promtool

GPU = "nvidia_com_gpu"
SMALL = "nvidia_com_mig_1g_10gb"


def _series() -> dict[str, str]:
    """Two nodes of H100, the second cordoned; one of A100 with MIG; and nothing of it labelled."""
    rows = {}
    for name, resource, capacity, allocatable, cordoned in (
        ("h1", GPU, 8, 7, 0),
        ("h2", GPU, 8, 8, 1),
        ("a1", SMALL, 7, 7, 0),
    ):
        node_labels = f'node="{name}",resource="{resource}"'
        rows[f"kube_node_status_capacity{{{node_labels}}}"] = f"{capacity}x120"
        rows[f"kube_node_status_allocatable{{{node_labels}}}"] = f"{allocatable}x120"
        rows[f'kube_node_status_condition{{node="{name}",condition="Ready",status="true"}}'] = (
            "1x120"
        )
        rows[f'kube_node_spec_unschedulable{{node="{name}"}}'] = f"{cordoned}x120"
        if name != "a1":
            rows[f'kube_node_labels{{node="{name}",label_nvidia_com_gpu_product="H100"}}'] = "1x120"
    requested = "namespace_pod:gpu_requested:sum"
    for pod, name, resource, values, kind, owner in (
        ("w-0", "h1", GPU, "4x120", "Job", "train"),
        ("w-1", "h2", GPU, "4x120", "Job", "train"),
        ("web-1", "h1", GPU, "2x120", "ReplicaSet", "web"),  # replicas need not run at once
        ("web-2", "h2", GPU, "2x120", "ReplicaSet", "web"),
        ("half", "h1", GPU, "_x89 1x30", "Job", "half"),  # the second half of the hour
        ("slice", "a1", SMALL, "3x120", "<none>", "<none>"),
    ):
        pod_labels = f'namespace="t",pod="{pod}"'
        rows[f'{requested}{{{pod_labels},node="{name}",resource="{resource}"}}'] = values
        by = f'created_by_kind="{kind}",created_by_name="{owner}"'
        rows[f"kube_pod_info{{{pod_labels},{by}}}"] = "1x120"
    waits = f'namespace="t",pod="waits",container="main",resource="{GPU}"'
    rows[f"kube_pod_container_resource_requests{{{waits}}}"] = "16x120"
    rows['kube_pod_status_phase{namespace="t",pod="waits",phase="Pending"}'] = "1x120"
    finished_pod = f'namespace="t",pod="gone",container="main",resource="{GPU}"'
    rows[f"kube_pod_container_resource_requests{{{finished_pod}}}"] = "8x120"
    rows['kube_pod_status_phase{namespace="t",pod="gone",phase="Pending"}'] = "0x120"
    return rows


def _of(model: str, resource: str) -> str:
    return f'{{label_nvidia_com_gpu_product="{model}",resource="{resource}"}}'


EXPECTED: dict[str, dict[str, float]] = {
    # 12 held by pods of both halves, and one for half of the hour
    "allocated": {_of("H100", GPU): 12.5, _of("unknown model", SMALL): 3},
    "pending": {f'{{resource="{GPU}"}}': 16, f'{{resource="{SMALL}"}}': 0},
    "installed": {_of("H100", GPU): 16, _of("unknown model", SMALL): 7},
    # one that is unhealthy, and the eight of the cordoned node
    "unavailable": {_of("H100", GPU): 9, _of("unknown model", SMALL): 0},
    "gang": {_of("H100", GPU): 8, _of("unknown model", SMALL): 3},
}


def test_each_query_says_what_a_cluster_has(tmp_path: Path) -> None:
    assert set(queries()) == set(EXPECTED)
    expression_tests = [
        {
            "expr": expression,
            "eval_time": "119m",
            "exp_samples": [
                {"labels": labels, "value": value} for labels, value in EXPECTED[name].items()
            ],
        }
        for name, expression in queries().items()
    ]
    suite = {
        "rule_files": [],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": s, "values": v} for s, v in _series().items()],
                "promql_expr_test": expression_tests,
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(suite, sort_keys=False, width=1000))
    result = subprocess.run([promtool(), "test", "rules", tmp_path / "test.yml"],
                         capture_output=True, text=True, check=False)  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
