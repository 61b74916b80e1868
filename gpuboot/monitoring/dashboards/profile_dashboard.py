"""A GPU's profile: what its parts did, and what limits its work."""

from __future__ import annotations

from gpuboot.config.settings.profile import thresholds
from gpuboot.monitoring.dashboards.classify import (
    BY,
    CLASSES,
    DRAM_CEILING,
    SM_NEEDED,
    SM_POOR,
    WORK,
    classification,
)
from gpuboot.monitoring.dashboards.spec import (
    RED_ABOVE_NONE,
    Dashboard,
    Panel,
    Query,
    Row,
    Steps,
    by_node,
    graph,
    stat,
)
from gpuboot.monitoring.dashboards.variables import ON_GPU

WHICH = "{{node}} GPU {{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}}"
NAME = "{{node}} GPU {{gpu}}"
GPUS = f"{{{ON_GPU}}}"
BY_GPU = "max by (node, gpu)"
AT_WORK = thresholds()["idle_engine"]
SM_STEPS: Steps = ((None, "red"), (SM_POOR, "orange"), (SM_NEEDED, "green"))


def work(metric: str) -> str:
    """A field of each chosen GPU or MIG instance."""
    return f"max by ({BY}) ({metric}{{{WORK}}})"


def _now(title: str, help: str, metric: str, unit: str = "percentunit") -> Panel:
    return stat(title, help, f"avg({work(metric)})", unit)


def _at_work(title: str, help: str, metric: str, steps: Steps = ()) -> Panel:
    """A mean of the GPUs and MIG instances at work: idle ones would only dilute it."""
    busy = f"{work('gpu:engine_active:avg5m')} >= {AT_WORK}"
    help = f"Of GPUs at work (engine at {AT_WORK:.0%} or more). {help}"
    return stat(title, help, f"avg({work(metric)} and {busy})", "percentunit", steps, empty="idle")


NOW = (
    _now(
        "Engine active",
        "Share of the last 5 minutes in which any kernel ran. 100 % is easy to reach and says "
        "little: one small kernel after the other does it.",
        "gpu:engine_active:avg5m",
    ),
    _at_work(
        "SM active",
        "Share of cycles with a warp on a multiprocessor, over all of them. NVIDIA: 80 % or more "
        "is needed for good use, though not sufficient; below 50 % is likely ineffective.",
        "gpu:sm_active:avg5m",
        steps=SM_STEPS,
    ),
    _at_work(
        "Occupancy",
        "Resident warps as a share of the most possible. Higher helps only work that waits for "
        "memory.",
        "DCGM_FI_PROF_SM_OCCUPANCY",
    ),
    _at_work(
        "Tensor active",
        "Share of cycles in which tensor cores worked. Real training stays well below 100 %.",
        "gpu:tensor_active:avg5m",
    ),
    _at_work(
        "DRAM active",
        "Share of cycles that moved device memory; about 80 % is the practical ceiling (NVIDIA).",
        "gpu:dram_active:avg5m",
        steps=((None, "text"), (DRAM_CEILING, "purple")),
    ),
    _now(
        "Memory used",
        "Share of the device memory that is allocated. Inference servers take nearly all of it on "
        "purpose.",
        "gpu:memory_used:ratio",
    ),
    stat(
        "Power", "Sum of the chosen GPUs.", f"sum({BY_GPU} (DCGM_FI_DEV_POWER_USAGE{GPUS}))", "watt"
    ),
    stat(
        "XID errors",
        "Errors the driver reported since the exporter started, all codes.",
        f"sum(max by (node, gpu, xid) (DCGM_EXP_XID_ERRORS_TOTAL{GPUS})) or vector(0)",
        steps=RED_ABOVE_NONE,
    ),
)

CLASS = Panel(
    "state-timeline",
    "What limits it",
    "First match of: slowed by heat or power; idle (engine < 5 %); memory-bound (DRAM at 75 % or "
    "more of its 80 % ceiling and above every pipe); compute-bound (SM >= 80 % and a pipe >= "
    "50 %); input-bound (PCIe in at half the link or more: suspected, look at the host); "
    "latency-bound (engine >= 80 %, SM < 50 %: many small kernels). Where to look first, not a "
    "verdict.",
    (Query(by_node(classification()), "{{GPU}} {{GPU_I_PROFILE}} {{GPU_I_ID}}"),),
    size=(24, 8),
    states=CLASSES,
)


def _ratio(title: str, help: str, *queries: Query, steps: Steps = ()) -> Panel:
    return graph(
        title,
        help,
        *queries,
        unit="percentunit",
        range=(0, 1),
        steps=steps,
        limit=bool(steps),
        size=(12, 8),
    )


COMPUTE = (
    _ratio(
        "Engine and SM",
        "Engine far above SM: kernels are too small or too few to fill the GPU. Lines: 50 and "
        "80 % SM (NVIDIA).",
        Query(work("DCGM_FI_PROF_GR_ENGINE_ACTIVE"), WHICH + " engine"),
        Query(work("DCGM_FI_PROF_SM_ACTIVE"), WHICH + " SM"),
        steps=((None, "text"), (SM_POOR, "orange"), (SM_NEEDED, "green")),
    ),
    _ratio(
        "Occupancy",
        "Resident warps as a share of the most possible. Low is no fault by itself; tuned kernels "
        "often run at 25 to 50 %.",
        Query(work("DCGM_FI_PROF_SM_OCCUPANCY"), WHICH),
    ),
    _ratio(
        "Arithmetic pipes",
        "Share of cycles in which each pipe worked. Training in mixed precision that shows FP32 "
        "and no tensor activity runs on the wrong pipe.",
        *(
            Query(work(f"DCGM_FI_PROF_PIPE_{pipe}_ACTIVE"), f"{WHICH} {name}")
            for pipe, name in (
                ("TENSOR", "tensor"),
                ("FP64", "FP64"),
                ("FP32", "FP32"),
                ("FP16", "FP16"),
            )
        ),
    ),
    _ratio(
        "Device memory bandwidth",
        "Share of cycles that moved data. At the line, 80 %, memory gives all it can (NVIDIA's "
        "practical ceiling): faster kernels will not help, fewer bytes will.",
        Query(work("DCGM_FI_PROF_DRAM_ACTIVE"), WHICH),
        steps=((None, "text"), (DRAM_CEILING, "purple")),
    ),
)

LINK_MAX = (
    f"{BY_GPU} (DCGM_FI_DEV_PCIE_LINK_WIDTH{GPUS}) * 985e6"
    f" * 2 ^ ({BY_GPU} (DCGM_FI_DEV_PCIE_MAX_LINK_GEN{GPUS}) - 3)"
)


def _bytes(title: str, help: str, *queries: tuple[str, str]) -> Panel:
    panel_queries = tuple(Query(expr, f"{NAME} {label}") for expr, label in queries)
    return graph(title, help, *panel_queries, unit="Bps", range=(0, None))


MOVING = (
    _bytes(
        "PCIe against its limit",
        "In: host to GPU. The limit is 985 MB/s per lane in use at gen 3, twice with each "
        "generation, headers included; the generation is the highest possible, since it falls "
        "when idle.",
        (f"{BY_GPU} (DCGM_FI_PROF_PCIE_RX_BYTES{GPUS})", "in"),
        (f"{BY_GPU} (DCGM_FI_PROF_PCIE_TX_BYTES{GPUS})", "out"),
        (LINK_MAX, "limit"),
    ),
    _bytes(
        "NVLink",
        "Payload over all links. Per link and direction about 25 GB/s (NVLink 2 to 4) or 50 GB/s "
        "(NVLink 5). Empty: no NVLink.",
        (f"{BY_GPU} (DCGM_FI_PROF_NVLINK_RX_BYTES{GPUS})", "in"),
        (f"{BY_GPU} (DCGM_FI_PROF_NVLINK_TX_BYTES{GPUS})", "out"),
    ),
)


def _graph(title: str, help: str, unit: str, *queries: tuple[str, str], scale: str = "") -> Panel:
    panel_queries = tuple(
        Query(f"{BY_GPU} ({metric}{GPUS}){scale}", f"{NAME} {label}".strip())
        for metric, label in queries
    )
    return graph(title, help, *panel_queries, unit=unit, size=(8, 8), range=(0, None))


BODY = (
    _graph(
        "Device memory",
        "Used, and reserved by the driver.",
        "mbytes",
        ("DCGM_FI_DEV_FB_USED", "used"),
        ("DCGM_FI_DEV_FB_RESERVED", "reserved"),
    ),
    _graph(
        "SM clock",
        "Against the highest possible. Low clocks under load mean that something slows the GPU "
        "down: the node's dashboard says what.",
        "hertz",
        ("DCGM_FI_DEV_SM_CLOCK", "now"),
        ("DCGM_FI_DEV_MAX_SM_CLOCK", "highest"),
        scale=" * 1e6",
    ),
    _graph(
        "Power",
        "Against the limit in force.",
        "watt",
        ("DCGM_FI_DEV_POWER_USAGE", "draw"),
        ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "limit"),
    ),
    _graph(
        "Temperature",
        "Core and memory, and the margin until the GPU slows itself down.",
        "celsius",
        ("DCGM_FI_DEV_GPU_TEMP", "core"),
        ("DCGM_FI_DEV_MEMORY_TEMP", "memory"),
        ("DCGM_FI_DEV_GPU_TEMP_LIMIT", "margin"),
    ),
    graph(
        "Energy per hour",
        "Energy of the hour before each moment, from the GPU's own meter (counted in mJ).",
        (f"{BY_GPU} (increase(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{GPUS}[1h])) / 1e3", NAME),
        unit="joule",
        size=(8, 8),
        range=(0, None),
    ),
    graph(
        "XID errors by code",
        "Errors since the exporter started; a step is an error at that moment. What a code means "
        "stands in the health dashboard.",
        (f"max by (node, gpu, xid) (DCGM_EXP_XID_ERRORS_TOTAL{GPUS})", NAME + " XID {{xid}}"),
        size=(8, 8),
        range=(0, None),
    ),
)

PROFILE = Dashboard(
    "gpu-profile",
    "GPU profile",
    "What the parts of the chosen GPUs did, and what limits their work.",
    ("node", "modelName", "gpu", "namespace", "pod", "profile"),
    (
        Row("Now", NOW),
        Row("Limits", (CLASS,)),
        Row("Compute and memory", COMPUTE),
        Row("Moving data", MOVING),
        Row("Clocks, power, heat, errors", BODY),
    ),
    alerts='node=~"($node)|",gpu=~"($gpu)|"',
    since="now-1h",
)
