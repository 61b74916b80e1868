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
from typing import Any

from gpuboot.config.support import Source
from gpuboot.config.tables import read_table
from gpuboot.verify.deep.nccl_tests import Network

SOURCE = Source(date(2026, 5, 19), "Azure/azurehpc-health-checks, oracle-quickstart/oci-hpc")


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


def _rows(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table("verify/deep/thresholds.toml")[name]
    return rows


TABLE = tuple(Threshold(**row) for row in _rows("gpus"))
INTERNODE = tuple(InternodeThreshold(**row) for row in _rows("internode"))


def internode_threshold(model: str, gpus: int, network: Network) -> InternodeThreshold | None:
    """The threshold of two such nodes over a network; None: nothing is published."""
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
    """The threshold of a model, named as by nvidia-smi; None: nothing is published."""
    return next((item for item in TABLE if model.startswith(item.model)), None)
