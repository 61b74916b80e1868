"""Settings of GPUs: driver, runtime, operator, exporter and the proof."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from gpuboot.settings.base import Duration, Label, Model


class Driver(Model):
    """The NVIDIA driver on the hosts."""

    enabled: bool = Field(True, description="Install the driver; `False`: it is there already.")
    version: str | None = Field(
        None, pattern=r"^\d+\.\d+(\.\d+)?$", description="Exact version; default: version lock."
    )
    modules: Literal["auto", "open", "proprietary"] = Field(
        "auto", description="Kernel module flavour; auto: open wherever the GPUs allow it."
    )
    fabric_manager: Literal["auto", "always", "never"] = Field(
        "auto", description="nvidia-fabricmanager; auto: where NVSwitches are found."
    )
    persistence: bool = Field(True, description="Run nvidia-persistenced.")
    reboot: Literal["when-needed", "never"] = Field(
        "when-needed", description="Reboot a node whose loaded driver is not the installed one."
    )
    reboot_timeout_s: int = Field(900, ge=30, description="How long a node may take to come back.")


class Runtime(Model):
    """containerd and NVIDIA's container toolkit."""

    mode: Literal["default", "runtimeclass", "cdi"] = Field(
        "default",
        description="`default`: nvidia is containerd's default runtime; `runtimeclass`: only pods "
        "with runtimeClassName nvidia; `cdi`: no nvidia runtime, devices by CDI alone, for "
        "clusters without the GPU Operator.",
    )
    restrict_oom_score_adj: bool = Field(
        False, description="containerd option for hosts without CAP_SYS_RESOURCE."
    )
    disable_hugetlb_controller: bool = Field(
        True, description="containerd option; False where pods ask for huge pages on cgroup v1."
    )


class Exporter(Model):
    """dcgm-exporter: the GPU metrics."""

    kind: Literal["operator", "chart"] = Field(
        "operator", description="Run it under the GPU Operator, or by its own Helm chart."
    )
    interval_ms: int = Field(15000, ge=100, description="Sampling period in milliseconds.")
    scrape_interval: Duration = Field("15s", description="How often Prometheus reads it.")
    scrape_timeout: Duration = Field("10s", description="Must be at most the scrape interval.")
    arguments: tuple[str, ...] = Field((), description="Extra command-line arguments.")
    counters: tuple[str, ...] = Field(
        (), description="Opt-in fields to collect beside the default ones (see docs/metrics.md)."
    )
    collectors_file: str | None = Field(
        None, description="Path of your own collectors CSV on the operator's machine."
    )
    pod_labels: tuple[str, ...] = Field(
        (),
        description="Pod labels that become labels of the series: an allow-list of regular "
        "expressions. Each value of each label makes new series.",
    )
    tls_secret: str | None = Field(
        None,
        description="Secret of type kubernetes.io/tls with which the exporter serves https; "
        '`kind = "chart"` only.',
    )
    basic_auth: str | None = Field(
        None,
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        description="Secret with `username`, `password` and `hash` (bcrypt) that Prometheus shows "
        'the exporter; `kind = "chart"` only.',
    )
    remote_engine: str | None = Field(
        None, description="`host:port` of a DCGM host engine to use instead of an embedded one."
    )
    devices: str | None = Field(
        None, description="GPUs and MIG instances to watch, e.g. `f`, `g:0,1` or `i:0-3`."
    )


class GpuOperator(Model):
    """NVIDIA's GPU Operator."""

    enabled: bool = True
    namespace: Label = "gpu-operator"
    mig_strategy: Literal["none", "single", "mixed"] = "single"
    time_slices: int = Field(1, ge=1, le=64, description="Pods that may share one GPU.")
    values: dict[str, Any] = Field({}, description="More chart values, merged over ours.")
    timeout_s: int = Field(900, ge=60, description="How long its operands may take.")


class Verify(Model):
    """The proof chain."""

    enabled: bool = True
    image: str = Field(
        "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0", description="vectorAdd's image."
    )
    timeout_s: int = Field(300, ge=10, description="For the pods and for Prometheus to show them.")
    reports: str = Field("reports", description="Folder on the operator's machine.")
    max_sample_age_s: int = Field(120, ge=5, description="Older GPU samples count as stale.")
