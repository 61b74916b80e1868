"""What the tools of the level `deep` print: tables and documents as they were published.

Only what a test needs of them is here, and names of machines are others.

- nccl-tests on 8 A100-SXM4-80GB, by mpirun, whose lines stand between its own (a public page of
  measurements); across two nodes with H100 (NVIDIA/nccl-tests issue 294); before 2.13 (issue 44);
  with wrong values (issue 131)
- NCCL's log between two nodes with H100 over RoCE, NCCL 2.26, and mpirun's lines when it loses one
  (Open MPI 4.1)
- nvbandwidth 0.8 (json_output.cpp of NVIDIA/nvbandwidth)
- dcgmi diag of DCGM 4: NVIDIA/DCGM testing/python3/dcgm_diag_schema.json at v4.6.0, with the
  warning of persistence mode that DCGM 4.2.3 gives (error 29, category 8, severity 5)
"""

from __future__ import annotations

import json
from typing import Any

SETTING = {
    "error_category": 8,
    "error_id": 29,
    "error_severity": 5,
    "warning": "Persistence Mode: Persistence mode for GPU 0 is disabled.",
}
MEMORY = {
    "error_category": 3,
    "error_id": 1,
    "error_severity": 3,
    "warning": "Memory test: detected 1 uncorrectable memory errors on GPU 1. Drain the GPU and "
    "reset it or reboot the node.",
}
EIGHT = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 4294967296 step: 2(factor) warmup iters: 5 iters: 20 agg \
iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  56543 on       gpu1 device  0 [0x07] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid  56544 on       gpu1 device  1 [0x0a] NVIDIA A100-SXM4-80GB
#  Rank  2 Group  0 Pid  56545 on       gpu1 device  2 [0x45] NVIDIA A100-SXM4-80GB
#  Rank  3 Group  0 Pid  56546 on       gpu1 device  3 [0x4b] NVIDIA A100-SXM4-80GB
#  Rank  4 Group  0 Pid  56547 on       gpu1 device  4 [0x84] NVIDIA A100-SXM4-80GB
#  Rank  5 Group  0 Pid  56548 on       gpu1 device  5 [0x8a] NVIDIA A100-SXM4-80GB
#  Rank  6 Group  0 Pid  56549 on       gpu1 device  6 [0xc0] NVIDIA A100-SXM4-80GB
#  Rank  7 Group  0 Pid  56550 on       gpu1 device  7 [0xc3] NVIDIA A100-SXM4-80GB
#
#                                                              out-of-place                       \
in-place          
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   \
algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  \
(GB/s)  (GB/s)       
8 more processes have sent help message help-mtl-ofi.txt / OFI call fail
           8             2     float     sum      -1    20.26    0.00    0.00      0    17.74    \
0.00    0.00      0
   536870912     134217728     float     sum      -1   4248.8  126.36  221.13      0   4246.2  \
126.44  221.26      0
  2147483648     536870912     float     sum      -1    16288  131.84  230.72      0    16294  \
131.79  230.64      0
1 more process has sent help message help-mtl-ofi.txt / OFI call fail
  4294967296    1073741824     float     sum      -1    32285  133.03  232.81      0    32268  \
133.10  232.93      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 72.7724 
#
"""  # noqa: W291  as it was printed
OLD = """\
#                                             out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
    67108864      16777216   float     sum   1568.3   21.40   21.40  0e+00   1560.9   21.50   21.50  0e+00
   134217728      33554432   float     sum   3298.6   20.34   20.34  0e+00   3070.3   21.86   21.86  0e+00
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 6.6
"""  # noqa: E501  likewise
NCCL_ERROR = """\
gpu1:8756:8756 [0] NCCL INFO Bootstrap : Using eth0:192.168.0.183<0>
gpu1: Test NCCL failure common.cu:958 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '
 .. gpu1 pid 8756: Test failure common.cu:842
"""  # noqa: E501
SMI = "{uuid}, 100, {clock}, 1980, 690.12, {limit}, 700.00, 66, {gen}, 5, {width}, 16, {reasons}\n"


def nccl(count: int = 2, busbw: float = 470.0, wrong_values: int = 0, host: str = "gpu1") -> str:
    """A run on a node, as nccl-tests prints it with `-g COUNT`."""
    ranks = "".join(
        f"#  Rank {i:2} Group  0 Pid     31 on {host:>10} device {i:2} [0000:{i + 7:02x}:00] "
        "NVIDIA H100 80GB HBM3\n"
        for i in range(count)
    )
    return (
        f"# nThread 1 nGpus {count} minBytes 8589934592 maxBytes 8589934592 step: "
        f"1048576(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n"
        f"# Using devices\n{ranks}#\n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong\n"
        f"  8589934592    2147483648     float     sum      -1    31940  268.94  {busbw:.2f}"
        f"      {wrong_values}    31935  268.98  {busbw:.2f}      {wrong_values}\n"
        f"# Out of bounds values : {wrong_values} {'FAILED' if wrong_values else 'OK'}\n"
        f"# Avg bus bandwidth    : {busbw} \n#\n"
    )


ROCE = (
    "{host}:177793:177793 [0] NCCL INFO NET/IB: [{n}] mlx5_{n}:uverbs{n}:1/RoCE provider=Mlx5 "
    "speed=400000 context=0x558e4a17b8d0 pciPath=/sys/devices/pci0000:15/0000:15:01.0 ar=0\n"
)
LOST_NODE = """\
--------------------------------------------------------------------------
ORTE has lost communication with a remote daemon.

  HNP daemon   : [[13373,0],0] on node {first}
  Remote daemon: [[13373,0],1] on node {second}

This is usually due to either a failure of the TCP network
connection to the node, or possibly an internal failure of
the daemon itself. We cannot recover from this failure, and
therefore will terminate the job.
--------------------------------------------------------------------------
"""
NOT_JOINED = """\
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
This usually is caused by:

* not finding the required libraries and/or binaries on
  one or more nodes. Please check your PATH and LD_LIBRARY_PATH
  settings, or configure OMPI with --enable-orterun-prefix-by-default
--------------------------------------------------------------------------

gpuboot: exit 255
"""
UNREACHED = f"ssh: connect to host {{second}} port 2222: Connection timed out\n{NOT_JOINED}"


def between(
    gpus: dict[str, int], busbw: float = 470.0, wrong_values: int = 0, adapters: int = 8
) -> str:
    """A run over nodes by RoCE. + gpus: of each host; adapters: of each, of 400 Gb/s"""
    ranks = [(host, device) for host, count in gpus.items() for device in range(count)]
    log = "".join(ROCE.format(host=host, n=n) for host in gpus for n in range(adapters))
    name = "IB" if adapters else "Socket"
    first = next(iter(gpus))
    log += (
        f"{first}:177793:177941 [0] NCCL INFO Using network {name}\n"
        f"{first}:177793:177941 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/{name}/0"
        f"{'/GDRDMA' if adapters else ''}\n"
    )
    devices = "".join(
        f"#  Rank {i:2} Group  0 Pid  56543 on {host:>10} device {device:2} [0000:19:00] "
        "NVIDIA H100 80GB HBM3\n"
        for i, (host, device) in enumerate(ranks)
    )
    head, _, rows = nccl(busbw=busbw, wrong_values=wrong_values).partition("# Using devices\n")
    return f"{head}# Using devices\n{devices}{log}{rows[rows.index('#       size') :]}"


def diag(statuses: dict[str, list[str]], **extra: Any) -> str:
    """dcgmi's answer. + statuses: test -> status on each GPU. + extra: warnings by `test GPU`"""
    warnings = extra.pop("warnings", {})
    kinds = {"software": "Deployment", "memory": "Hardware", "pcie": "Integration"}
    categories = [
        {
            "category": kinds.get(test, "Stress"),
            "tests": [
                {
                    "name": test,
                    "results": [
                        {
                            "entity_group": "GPU",
                            "entity_group_id": 1,
                            "entity_id": gpu,
                            "status": status,
                            **(
                                {"warnings": [warnings[test, gpu]]}
                                if (test, gpu) in warnings
                                else {}
                            ),
                        }
                        for gpu, status in enumerate(gpu_statuses)
                    ],
                    "test_summary": {
                        "status": "Fail" if "Fail" in gpu_statuses else gpu_statuses[0]
                    },
                }
            ],
        }
        for test, gpu_statuses in statuses.items()
    ]
    root = {"test_categories": categories, **extra}
    data = {
        "DCGM Diagnostic": root,
        "metadata": {"Driver Version Detected": "595.91.07", "version": "4.6.1"},
    }
    return json.dumps(data, indent=8)


def nvbandwidth(
    host: list[float], peers: list[list[float | None]] | None = None, status: str = "Passed"
) -> str:
    """nvbandwidth's JSON. + host: GB/s between the host and each GPU; peers: between two"""

    def cells(row: list[float] | list[float | None]) -> list[str]:
        return ["N/A" if value is None else f"{value:g}" for value in row]

    cases: list[dict[str, Any]] = [
        {
            "name": name,
            "status": status,
            "bandwidth_matrix": [cells(host)],
            "bandwidth_description": "memcpy CE bandwidth (GB/s)",
            "sum": sum(host),
        }
        for name in ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
    ]
    between = {"name": "device_to_device_memcpy_read_ce"}
    cases.append(
        {**between, "status": "Passed", "bandwidth_matrix": [cells(row) for row in peers]}
        if peers
        else {**between, "status": "Waived"}
    )
    return json.dumps({"nvbandwidth": {"version": "v0.8", "testcases": cases}}, indent=3)
