"""Settings of GPUs: driver, runtime, operator, exporter and the proof."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gpuboot.config.settings.base import Form, Label, Model, Period, period, seconds


class Driver(Model):
    """The NVIDIA driver on the hosts."""

    enabled: bool = Field(True, description="Install the driver; `False`: it is there already.")
    version: Annotated[str, Form(r"\d+\.\d+(\.\d+)?", "a driver version", "595.91.07")] | None = (
        Field(None, description="Exact version; default: version lock.")
    )
    modules: Literal["auto", "open", "proprietary"] = Field(
        "auto", description="Kernel module flavour; auto: open wherever the GPUs allow it."
    )
    fabric_manager: Literal["auto", "always", "never"] = Field(
        "auto",
        description="nvidia-fabricmanager; auto: where the machine has NVSwitches: on the PCI bus, "
        "or behind the bridges of an HGX B100, B200 or B300 board, which get nvlsm, "
        "infiniband-diags and ib_umad too. GB200 and GB300 racks have theirs in the switch trays.",
    )
    reboot: Literal["when-needed", "never"] = Field(
        "when-needed", description="Reboot a node whose loaded driver is not the installed one."
    )
    secure_boot: Literal["refuse", "mok"] = Field(
        "refuse",
        description="Where Secure Boot is on, and the kernel has no key of the NVIDIA module's: "
        "`refuse`: stop before anything is changed; `mok`: have DKMS's key enrolled, which takes a "
        "reboot and a person at the machine's console (docs/secure-boot.md).",
    )
    reboot_timeout_s: int | None = Field(
        None,
        ge=30,
        description="How long a node may take to come back, in seconds; default: 900, and one more "
        "for each GiB of its memory, which firmware tests: 49 minutes for 2 TiB.",
    )


class Runtime(Model):
    """containerd and NVIDIA's container toolkit."""

    mode: Literal["default", "runtimeclass", "cdi"] = Field(
        "default",
        description="`default`: nvidia is containerd's default runtime; `runtimeclass`: only pods "
        "with runtimeClassName nvidia; `cdi`: workloads get GPUs by CDI alone, from a device "
        "plugin of your own, for clusters without the GPU Operator; runtimeClassName nvidia is "
        "there for dcgm-exporter. In each of them a device plugin must hand out GPUs by CDI "
        "(docs/sharing.md).",
    )
    restrict_oom_score_adj: bool = Field(
        False, description="containerd option for hosts without CAP_SYS_RESOURCE."
    )


def _label_expression(value: str) -> str:
    """Check a regular expression: it must mean the same to Python and to Go. Raises ValueError."""
    if not re.fullmatch(r"([A-Za-z0-9_./()|*+?\[\]-]|\\[./-])+", value) or "(?" in value:
        raise ValueError(
            "use letters, digits, - _ . / ( ) | * + ? [ ] and \\. only; it is for the whole name"
        )
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from None
    return value


PodLabel = Annotated[str, AfterValidator(_label_expression)]
_MIN_INTERVAL_S = 0.1


class Exporter(Model):
    """dcgm-exporter: the GPU metrics."""

    kind: Literal["operator", "chart"] = Field(
        "operator", description="Run it under the GPU Operator, or by its own Helm chart."
    )
    scrape_interval: Period = Field(
        "15s", description="How often it samples its fields, and Prometheus reads it."
    )
    arguments: tuple[str, ...] = Field((), description="Extra command-line arguments.")
    counters: tuple[str, ...] = Field(
        (), description="Opt-in fields to collect beside the default ones (see docs/metrics.md)."
    )
    collectors_file: str | None = Field(
        None, description="Path of your own collectors CSV on the control machine."
    )
    pod_labels: tuple[PodLabel, ...] = Field(
        (),
        description="Labels of pods that become labels of the series: an allow-list of regular "
        "expressions, each for a whole name, e.g. `team`. Labels with many values are costly.",
    )

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if self.collectors_file and self.counters:
            raise ValueError(
                "counters adds to our collectors file, and collectors_file replaces it: name the "
                "fields in that file instead"
            )
        if seconds(self.scrape_interval) < _MIN_INTERVAL_S:
            raise ValueError("scrape_interval takes 100ms or more")
        return self

    @property
    def interval_ms(self) -> int:
        """The sampling period in milliseconds: what is sampled more often is never read."""
        return round(seconds(self.scrape_interval) * 1000)

    @property
    def scrape_timeout(self) -> str:
        """How long a scrape may take: two thirds of the interval, 10 s of 15 s."""
        return period(self.interval_ms * 2 // 3)


class GpuOperator(Model):
    """NVIDIA's GPU Operator."""

    enabled: bool = Field(
        True, description="Install it; `False`: one that gpuboot installed is taken away."
    )
    namespace: Label = Field("gpu-operator", description="Its namespace.")
    mig_strategy: Literal["none", "single", "mixed"] = Field(
        "single",
        description="Under which names MIG instances are offered: `single` "
        "as `nvidia.com/gpu`, `mixed` as `nvidia.com/mig-1g.10gb` and so on (docs/sharing.md).",
    )
    mig_manager: bool = Field(
        True,
        description="The MIG manager: it divides GPUs as the label `nvidia.com/mig.config` of "
        "their node says (`sharing` sets it), and undoes every division of a node without one. "
        "`False`: divisions made by hand stay.",
    )
    time_slices: int = Field(
        1,
        ge=1,
        le=64,
        description="Pods that may share one GPU, on nodes without an entry of `sharing`.",
    )
    values: dict[str, Any] = Field(
        {},
        description="More chart values, merged over ours. What gpuboot decides, itself or by "
        "another setting, is refused.",
    )


Level = Literal["quick", "standard", "deep"]


Variable = Annotated[
    str, Form(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable", "NCCL_IB_HCA")
]


class Internode(Model):
    """NCCL's all-reduce between two nodes at a time."""

    image: str | None = Field(
        None,
        description="An image with nccl-tests that was built with `MPI=1`, Open MPI, ssh and sshd; "
        "without one the link `internode` is not covered.",
    )
    command: str = Field("all_reduce_perf", description="The program in it.")
    least_gbps: float | None = Field(
        None,
        gt=0,
        description="Least bus bandwidth between two nodes in GB/s; default: what is published for "
        "this model of GPU and network (docs/deep.md). Where nothing is, the link is unknown.",
    )
    host_network: bool = Field(False, description="Use the nodes' network instead of the pods'.")
    resources: dict[str, str] = Field(
        {}, description='What else its pods ask for, e.g. `{"rdma/hca": "8"}` for the adapters.'
    )
    environment: dict[Variable, str] = Field(
        {}, description="Variables for NCCL and Open MPI, e.g. `NCCL_IB_HCA`."
    )


class Deep(Model):
    """The level `deep`: long tests on nodes that no pod uses."""

    diag_level: Literal[2, 3, 4] = Field(
        3,
        description="Of `dcgmi diag -r`: 2 takes minutes, 3 up to half an hour, 4 hours: it also "
        "writes patterns into all memory (memtest).",
    )
    dcgm_image: str = Field(
        "nvcr.io/nvidia/cloud-native/dcgm:4.6.1-1-ubuntu24.04",
        description="NVIDIA's image with `nv-hostengine` and `dcgmi`.",
    )
    nvbandwidth_image: str = Field(
        "ghcr.io/nvidia/k8s-samples:nvbandwidth-v0.7-8d103163",
        description="NVIDIA's image with `nvbandwidth`.",
    )
    nccl_image: str | None = Field(
        None,
        description="An image with nccl-tests, e.g. one of NVIDIA's HPC benchmarks; without one "
        "the link `collective` is not covered.",
    )
    nccl_command: str = Field(
        "all_reduce_perf", description="The program in it; it is given sizes and `-g GPUS`."
    )
    internode: Internode = Field(Internode(), description="NCCL between nodes.")
    parallel: int = Field(4, ge=1, le=64, description="Nodes that are tested at once.")
    timeout_s: int = Field(3600, ge=60, description="How long one test of a node may take.")
    total_timeout_s: int = Field(4 * 3600, ge=60, description="How long all nodes may take.")


class Verify(Model):
    """The proof chain."""

    enabled: bool = Field(True, description="Verify at the end of `deploys/site.py`.")
    level: Level = Field(
        "standard",
        description="What `gpuboot verify` tries: `quick` starts no pods, `standard` computes on "
        "each free GPU, `deep` tests nodes that no pod uses for long. The proof at the end of a "
        "deploy is `standard`.",
    )
    deep: Deep = Field(Deep(), description="The level `deep`.")
    image: str = Field(
        "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0",
        description="vectorAdd's image; also getent, bash and timeout are run in it.",
    )
    outside_name: str | None = Field(
        None,
        description='A name beyond the cluster that pods and GPU nodes have to resolve; `""`: '
        "none. Default: what images are pulled by (the host of `proxy`, of the mirror or of the "
        "registry of `verify.image`), unless it is an address or stands in /etc/hosts.",
    )
    timeout_s: int = Field(300, ge=10, description="For the pods and for Prometheus to show them.")
    reports: str = Field("reports", description="Folder on the control machine.")
