"""Pieces of PromQL that many rules are made of."""

from __future__ import annotations

import json

# The exporter's job: `nvidia-dcgm-exporter` under the operator, `dcgm-exporter` from its chart.
EXPORTER = 'job=~".*dcgm-exporter"'
UP = f"up{{{EXPORTER}}}"
# What a GPU is to the scheduler. kube-state-metrics writes nvidia.com/mig-1g.10gb with underscores.
RESOURCES = 'resource=~"nvidia_com_(gpu|mig_.+)"'
GPU = "node, UUID, gpu"
# One GPU or MIG instance; several pods hold the same one under time-slicing.
DEVICE = "node, UUID, GPU_I_ID"
HOLDER = "node, UUID, gpu, modelName, namespace, pod, container, GPU_I_ID, GPU_I_PROFILE"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"


def quoted(text: str) -> str:
    """`text` as a string of PromQL, quotes included."""
    return json.dumps(text, ensure_ascii=False)


def now_and(function: str, metric: str, matchers: str, window: str) -> str:
    """`function` over `window` of the series that are there now.

    A window alone would keep a pod's series for its whole length after the pod has ended, and
    count its GPU twice, since the same GPU goes on without the pod's labels.

    + matchers: inside of the braces, may be ""
    """
    series = f"{metric}{{{matchers}}}" if matchers else metric
    return f"({function}({series}[{window}]) and {series})"


def engine(function: str, window: str, matchers: str = "") -> str:
    """How busy each GPU's engine was, 0 to 1, with labels `HOLDER`.

    GPUs without profiling fields (GeForce) answer with GPU_UTIL, the share of time in which any
    kernel ran. While somebody profiles a GPU its fields pause: that is no reason to take GPU_UTIL,
    which means something else, so the field must be gone for an hour.

    + function: one of PromQL's `*_over_time`
    """
    return (
        f"max by ({HOLDER}) ({now_and(function, ENGINE, matchers, window)})\n"
        f"or max by ({HOLDER}) ({now_and(function, UTIL, matchers, window)} / 100\n"
        f"  unless on (node, UUID) max_over_time({ENGINE}[1h]))"
    )


def level(metric: str, labels: str = GPU) -> str:
    """The value of each GPU, whatever pod holds it and however often it is exported.

    An alert on the raw series would end and start anew with every pod that comes or goes.
    """
    return f"max by ({labels}) ({metric})"
