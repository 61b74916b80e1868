"""Every query of every dashboard, run on the lab's Prometheus with real values for variables."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.monitoring.dashboards import dashboards
from lab import state
from lab.dashboard_preview.draw import prometheus_query
from lab.dashboard_preview.panels import Query, TimeRange, defaults, interpolate, panels
from lab.dashboard_preview.tunnel import prometheus
from lab.settings import settings as lab_settings
from tests.e2e.conftest import Lab

pytestmark = pytest.mark.lab

NAMESPACE = "dashboards"
SETTLES_WITHIN_S = 300
LOOK_BACK_S = 900

# What makes every panel's subject happen: a pod that holds the GPUs of a node, one that waits, a
# quota, a team, errors, an alert, a taint.
OBJECTS = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}, labels: {{team: research}}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {{name: gpus, namespace: {NAMESPACE}}}
spec: {{hard: {{requests.nvidia.com/gpu: 4}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: holder, namespace: {NAMESPACE}}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  nodeSelector: {{kubernetes.io/hostname: gpu1}}
  containers:
  - name: main
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    command: [sh, -c, "sleep 3600"]
    resources: {{limits: {{nvidia.com/gpu: 2}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: waits, namespace: default}}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    resources: {{limits: {{nvidia.com/gpu: 16}}}}
"""
FAULTS = (("0", "util", "90"), ("1", "util", "60"), ("0", "xid", "13"))
SIGNS = (
    f'namespace:gpu_requested:sum{{namespace="{NAMESPACE}"}}',
    f'namespace:gpu_power:sum{{namespace="{NAMESPACE}"}}',
    f'gpu:engine_active:avg5m{{namespace="{NAMESPACE}"}} > 0.1',
    # also at a full minute before now, as hours are counted
    f'sum_over_time((namespace_pod:gpu_requested:sum{{namespace="{NAMESPACE}"}})[5m:1m])',
    f'sum_over_time((gpu:engine_active:avg5m{{namespace="{NAMESPACE}"}} > 0.1)[5m:1m])',
    'kube_node_spec_taint{node="gpu2"}',
    'ALERTS{alertstate="firing",component="gpu"}',
    'kube_pod_status_phase{pod="waits",phase="Pending"} == 1',
    "changes(node:gpu_power:sum[2m]) >= 0 and count_over_time(node:gpu_power:sum[2m]) > 2",
)

# (dashboard, panel, its query) -> what the lab lacks for it. A query of these that does return
# data fails the test, so that this list stays true.
NO_APPLICATION = "an application that counts; tests/e2e/test_applications.py runs one"
UNCOUNTED = {
    *("Tokens a second", "Tokens a second and GPU", "Tokens per joule"),
    *("Samples a second", "Samples a second and GPU", "Samples per joule"),
    *("Requests waiting", "Requests running"),
}
LACKS: dict[tuple[str, str, str], str] = {
    **{("gpu-applications", title, "A"): NO_APPLICATION for title in UNCOUNTED},
    # of the table all columns but the pod's GPUs and their activity
    **{("gpu-applications", "Pods", column): NO_APPLICATION for column in "BCDEFGHI"},
    ("gpu-cluster", "Free GPUs by node", "B"): "a GPU node that is not ready",
    ("gpu-cluster", "Free GPUs by node", "D"): "a GPU node that gpuboot's taint closes",
    ("gpu-health", "Memory and links", "I"): "retired pages end with Ampere; it simulates Hopper",
    ("gpu-namespace", "Held and idle now", "A"): "it takes a GPU that was idle for an hour",
}


@pytest.fixture(scope="module")
def busy(lab: Lab) -> Iterator[Query]:
    """The lab with something of everything going on, and a way to ask its Prometheus."""
    lab.ssh("cp1", f"cat > /root/dashboards.yaml <<'EOF'\n{OBJECTS}\nEOF\n")
    lab.kubectl("apply", "-f", "/root/dashboards.yaml")
    lab.kubectl("cordon", "gpu2")
    try:
        ready = ("wait", "--for=condition=Ready", "pod/holder", "--timeout=120s")
        lab.kubectl(*ready, "-n", NAMESPACE)
        for fault in FAULTS:
            result = lab.lab("fault", "--name", lab.name, "gpu1", "set", *fault)
            assert result.code == 0, result.text
        with prometheus(state.load(lab.name)) as url:
            _settle(url)
            now = time.time()
            yield prometheus_query(url, TimeRange(now - LOOK_BACK_S, now, 15))
    finally:
        lab.lab("fault", "--name", lab.name, "gpu1", "repair")
        lab.kubectl("uncordon", "gpu2")
        lab.kubectl("delete", "-f", "/root/dashboards.yaml", "--now")


def _settle(url: str) -> None:
    until = time.monotonic() + SETTLES_WITHIN_S
    while True:
        now = time.time()
        query = prometheus_query(url, TimeRange(now - 60, now, 15))
        missing = [sign for sign in SIGNS if not query(sign, True)]
        if not missing:
            return
        assert time.monotonic() < until, f"after {SETTLES_WITHIN_S} s still nothing: {missing}"
        time.sleep(5)


def _values(board: dict[str, Any], run_query: Query) -> dict[str, str]:
    """Each variable with all values that Grafana would offer; without any, what All stands for."""
    selected = defaults(board)
    for variable in board["templating"]["list"]:
        if variable["type"] != "query":
            continue
        query = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
        assert query
        series, label = interpolate(query[1], selected), query[2]
        values = [labels[label] for labels, _ in run_query(f"group by ({label}) ({series})", True)]
        if values:
            # as Grafana writes several values: a regular expression inside PromQL's quotes
            pattern = "|".join(re.escape(value).replace("\\", "\\\\") for value in values)
            selected[variable["name"]] = f"({pattern})"
    return selected


@pytest.mark.parametrize("uid", dashboards(parse_settings({})))
def test_every_query_returns_data_or_lacks_hardware(uid: str, lab: Lab, busy: Query) -> None:
    board = dashboards(parse_settings(lab_settings(lab.name)))[uid]
    end = time.time()
    values = {
        **_values(board, busy),
        **TimeRange(end - LOOK_BACK_S, end, 15).variables(scrape_s=15),
    }
    empty = {
        (uid, panel["title"], target["refId"])
        for panel in panels(board)
        for target in panel["targets"]
        if not busy(interpolate(target["expr"], values), bool(target["instant"]))
    }
    assert empty == {key for key in LACKS if key[0] == uid}
