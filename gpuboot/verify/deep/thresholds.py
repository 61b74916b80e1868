"""What a model of GPU is known to reach. Where nobody has published a figure there is none here.

The figures are the limits of Azure's node health checks, which take machines out of service by
them: Azure/azurehpc-health-checks, conf/NAME.conf at 0e0a1ac (2026-05-01), `check_gpu_bw` and
`check_nccl_allreduce`. They are measured by the same test cases of the same programs, NCCL's with
messages of the same size. Those of GB200 stand at 215c644 alone. Those of B200 and B300 are
Oracle's, of its tests of one node: oracle-quickstart/oci-hpc at b5285a6 (2026-05-19).

Between nodes they are those by which Oracle tells bad nodes from good ones, in pairs too, with
messages of 10 GB: scripts/ncclscout.py there, of GB200 and GB300 its test of two nodes with
messages of up to 16 GB. They hold for the network of its machines only, so a network is part of
each.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from gpuboot.config.support import Source
from gpuboot.verify.deep.nccl_log import Network

SOURCE = Source(date(2026, 5, 19), "Azure/azurehpc-health-checks, oracle-quickstart/oci-hpc")
_AZURE = "Azure/azurehpc-health-checks conf/{}.conf"
_ORACLE = "oracle-quickstart/oci-hpc playbooks/roles/healthchecks/files/{}.py"
_PAIRS = _ORACLE.format("multi_node_active_healthcheck")


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Least bandwidths of one model, in GB/s; None: nothing is published.

    + model: how nvidia-smi's name of it begins
    + host: between host and GPU, by its copy engine
    + peer: between two GPUs by NVLink, likewise; None where the model has no NVLink
    + all_reduce: bus bandwidth of NCCL's all-reduce among `gpus` GPUs of a node, of large messages
    + source: who says so
    """

    model: str
    host: float | None = None
    peer: float | None = None
    all_reduce: float | None = None
    gpus: int = 8
    source: str


TABLE: tuple[Threshold, ...] = (
    Threshold(
        model="NVIDIA GB200",
        host=48,
        peer=335,
        all_reduce=432,
        gpus=4,
        source=_AZURE.format("nd128isr_ndr_gb200_v6"),
    ),
    Threshold(model="NVIDIA B300", all_reduce=800, source=_ORACLE.format("active_healthcheck")),
    Threshold(model="NVIDIA B200", all_reduce=440, source=_ORACLE.format("active_healthcheck")),
    Threshold(
        model="NVIDIA H200",
        host=48,
        peer=335,
        all_reduce=431,
        source=_AZURE.format("nd96isr_h200_v5"),
    ),
    # with PCIe, and an NVLink bridge between two of them
    Threshold(
        model="NVIDIA H100 NVL",
        host=48,
        all_reduce=208,
        gpus=2,
        source=_AZURE.format("nc80adis_h100_v5"),
    ),
    Threshold(
        model="NVIDIA H100 80GB HBM3",
        host=48,
        peer=335,
        all_reduce=460,
        source=_AZURE.format("nd96isr_h100_v5"),
    ),
    Threshold(
        model="NVIDIA A100-SXM4-80GB",
        host=21,
        peer=238,
        all_reduce=228,
        source=_AZURE.format("nd96amsr_a100_v4"),
    ),
    Threshold(
        model="NVIDIA A100-SXM4-40GB",
        host=21,
        peer=235,
        all_reduce=228,
        source=_AZURE.format("nd96asr_v4"),
    ),
    Threshold(
        model="NVIDIA A100 80GB PCIe",
        host=21,
        all_reduce=193,
        gpus=2,
        source=_AZURE.format("nc48ads_a100_v4"),
    ),
    Threshold(
        model="Tesla V100-SXM2-32GB", host=9, all_reduce=110, source=_AZURE.format("nd40rs_v2")
    ),
)


@dataclass(frozen=True, kw_only=True)
class InternodeThreshold:
    """Least bus bandwidth in GB/s of NCCL's all-reduce between two nodes.

    + model: how nvidia-smi's name of it begins
    + network: Gb/s of all adapters of a node, InfiniBand or RoCE
    + gpus: of each node
    + source: who says so
    """

    model: str
    network: float
    all_reduce: float
    gpus: int = 8
    source: str = "oracle-quickstart/oci-hpc scripts/ncclscout.py"


INTERNODE: tuple[InternodeThreshold, ...] = (
    InternodeThreshold(model="NVIDIA A100-SXM4-40GB", network=1600, all_reduce=185),
    InternodeThreshold(model="NVIDIA A100-SXM4-80GB", network=1600, all_reduce=185),
    InternodeThreshold(model="NVIDIA H100 80GB HBM3", network=3200, all_reduce=440),
    InternodeThreshold(model="NVIDIA H200", network=3200, all_reduce=440),
    InternodeThreshold(model="NVIDIA B200", network=3200, all_reduce=440),
    InternodeThreshold(model="NVIDIA B300", network=6400, all_reduce=750),
    InternodeThreshold(model="NVIDIA GB200", network=3200, all_reduce=300, gpus=4, source=_PAIRS),
    InternodeThreshold(model="NVIDIA GB300", network=3200, all_reduce=440, gpus=4, source=_PAIRS),
)


def internode_threshold(model: str, gpus: int, network: Network) -> InternodeThreshold | None:
    """That of two alike nodes of a model over a network; None: nobody has published any."""
    if network.layer not in ("IB", "RoCE"):
        return None
    return next(
        (
            item
            for item in INTERNODE
            if model.startswith(item.model) and (item.gpus, item.network) == (gpus, network.gbps)
        ),
        None,
    )


def threshold(model: str) -> Threshold | None:
    """That of a model, by the name that nvidia-smi gives it; None: nobody has published any."""
    return next((item for item in TABLE if model.startswith(item.model)), None)
