"""The table of DCGM's health watches: what each result means on which card, and by which text."""

from __future__ import annotations

import pytest

from gpuboot.hosts import gpu_models, health_watches
from gpuboot.hosts.health_watches import BEFORE_BLACKWELL, BLACKWELL, LINKED, Card, severity
from tests.populations.model import Population
from tests.populations.table import POPULATIONS
from tests.unit.dcgm_outputs import incidents
from tests.unit.test_dcgm_check import Site, health, of, site

__all__ = ["site"]


def test_several_incidents_and_other_things_than_gpus(site: Site) -> None:
    site.provide(
        health=incidents(
            "Failure",
            (
                "GPU",
                "0",
                "Driver",
                "Failure",
                "GPU 0 requires a reset to recover from a fault. "
                "Recovery action: 1 (GPU_RESET). Terminate all GPU processes and reset the GPU.",
            ),
            (
                "GPU",
                "0",
                "Thermal system",
                "Warning",
                "Detected clocks event due to thermal violation in GPU 0.",
            ),
            ("GPU", "7", "PCIe system", "Failure", "something of a GPU that is not active"),
            (
                "Switch",
                "3",
                "Internal error",
                "Failure",
                "Detected fatal errors on NvSwitch 3 link 5",
            ),
        )
    )
    assert site.run("health").returncode == 0
    assert site.bad("health") == {
        health(0, "DRIVER", "GPU_RECOVERY_RESET"): 20,
        health(0, "THERMAL", "CLOCKS_EVENT_THERMAL"): 10,
        of("PCIE", "", gpu="7"): 20,
        of("NVSWITCH", "NVSWITCH_FATAL_ERROR", entity="Switch 3"): 20,
    }


_FIELD_DIAG = "Run a field diagnostic on the GPU."
_CRC = (
    "Detected 5 datalink layer CRC error counter NvLink errors on GPU 0's NVLink (should be 0) "
    + _FIELD_DIAG
)
_DOWN = "GPU 0's NvLink link {} is currently down Check DCGM and system logs for errors."
_IMEX = "IMEX {} status is {} ({}) Check IMEX installation, configuration, domain and daemon status"
# texts of dcgm_errors.h as `dcgmi health` joins them (Health.cpp, AppendSystemIncidents)
JOINED = [
    ("what DCGM counts since the last reset", "GPU", _CRC, {"NVLINK_ERROR_CRITICAL": 20}),
    ("links of a card without a bridge", "GPU", ", ".join(map(_DOWN.format, range(12))),
     {"NVLINK_DOWN": 20}),
    ("a link is down, and counters are not 0", "GPU", f"{_DOWN.format(3)}, {_CRC}",
     {"NVLINK_DOWN": 20, "NVLINK_ERROR_CRITICAL": 20}),
    ("few CRC errors, which DCGM only warns of, beside what it fails", "GPU",
     "Detected 2 nvlink_flit_crc_error_count_total NvLink errors on GPU 0's NVLink which exceeds "
     f"threshold of 1 Monitor the NVLink. It can still perform workload., {_CRC}",
     {"NVLINK_ERROR_THRESHOLD": 10, "NVLINK_ERROR_CRITICAL": 20}),
    ("something new beside what is known", "GPU", f"{_CRC}, A new sentence about link 3.",
     {"NVLINK_ERROR_CRITICAL": 20, "": 20}),
    ("an idle GB300: no IMEX daemon runs", "None", _IMEX.format("daemon", "-3", "not READY"),
     {"IMEX_UNHEALTHY": 20}),
    ("IMEX waits for its peers", "None", _IMEX.format("daemon", "2", "not READY"),
     {"IMEX_UNHEALTHY(state)": 20}),
    ("the IMEX domain is broken", "None", _IMEX.format("domain", "DEGRADED", "unhealthy"),
     {"IMEX_UNHEALTHY(state)": 20}),
    ("a driver too old to tell of a fabric", "GPU", "GPU 0: Fabric State is NvmlTooOld (6).",
     {"FABRIC_PROBE_STATE": 20}),
    ("a fabric that is not started", "GPU", "GPU 0: Fabric State is Not Started (1).",
     {"FABRIC_PROBE_STATE(state)": 20}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("group", "text", "codes"), [case[1:] for case in JOINED], ids=[case[0] for case in JOINED]
)
def test_each_result_has_its_error_code(
    site: Site, group: str, text: str, codes: dict[str, int]
) -> None:
    site.provide(health=incidents("Failure", (group, "0", "NVLINK system", "Failure", text)))
    assert site.run("health").returncode == 0
    expected = {
        health(0, "NVLINK", code) if group == "GPU" else of("NVLINK", code, entity="None 0"): level
        for code, level in codes.items()
    }
    assert site.bad("health") == expected


def test_every_code_of_the_table_has_one_text() -> None:
    codes = [entry["code"] for entry in health_watches.texts()]
    assert len(codes) == len(set(codes))
    assert set(codes) == {entry.codes[0] for entry in health_watches.MEANINGS}


H100, A100_PCIE = Card("NVIDIA H100 80GB HBM3", 7), Card("NVIDIA A100 80GB PCIe", 3)
B200, NEXT = Card("NVIDIA B200", 7), Card("NVIDIA Model Of Next Year", 7)


@pytest.mark.parametrize(
    ("code", "level", "card", "expected"),
    [
        ("NVLINK_ERROR_CRITICAL", 20, H100, "info"),
        ("NVLINK_ERROR_CRITICAL", 20, B200, "critical"),
        ("NVLINK_ERROR_CRITICAL", 10, B200, "info"),
        ("NVLINK_ERROR_CRITICAL", 20, NEXT, "warning"),
        ("NVLINK_ERROR_CRITICAL", 20, Card(), "warning"),
        ("NVLINK_DOWN", 20, H100, "critical"),
        ("NVLINK_DOWN", 20, Card(H100.model, other_gpus=0), "info"),
        ("NVLINK_DOWN", 20, A100_PCIE, "info"),
        ("NVLINK_DOWN", 20, Card("NVIDIA H100 NVL", 7), "info"),
        ("IMEX_UNHEALTHY", 20, Card("NVIDIA GB300", 3), "info"),
        ("NVLINK_CRC_ERROR_THRESHOLD", 20, H100, "critical"),
        ("SOMETHING_NEW", 20, H100, "warning"),
    ],
)
def test_an_nvlink_result_is_judged_by_code_level_and_card(
    code: str, level: int, card: Card, expected: str
) -> None:
    assert severity("NVLINK", f"DCGM_FR_{code}", level, card) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        # nvidia.com/gpu.product of GPU feature discovery has dashes
        ("NVIDIA-H100-80GB-HBM3", {BEFORE_BLACKWELL, LINKED}),
        ("NVIDIA-A100-SXM4-80GB", {BEFORE_BLACKWELL, LINKED}),
        ("NVIDIA-H100-NVL", {BEFORE_BLACKWELL}),
        ("NVIDIA H800 PCIe", {BEFORE_BLACKWELL}),
        ("NVIDIA H20-3e", {BEFORE_BLACKWELL, LINKED}),
        ("GRID A100D-40C", {BEFORE_BLACKWELL}),
        ("NVIDIA L40S", {BEFORE_BLACKWELL}),
        ("NVIDIA RTX 6000 Ada Generation", {BEFORE_BLACKWELL}),
        ("NVIDIA GeForce RTX 4090", {BEFORE_BLACKWELL}),
        ("Quadro RTX 8000", {BEFORE_BLACKWELL}),
        ("NVIDIA GeForce RTX 5090", {BLACKWELL}),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", {BLACKWELL}),
        ("NVIDIA-B300-SXM6-AC", {BLACKWELL, LINKED}),
        ("NVIDIA GB10", {BLACKWELL}),
        ("NVIDIA GB200", {BLACKWELL, LINKED}),
        ("Graphics Device", set()),
    ],
)
def test_a_model_s_name_tells_its_generation_and_board(model: str, expected: set[str]) -> None:
    card = Card(model, other_gpus=1)
    fits = {text for cards, text in health_watches.MODELS.items() if card.is_one_of(cards)}
    assert fits == expected


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_the_generation_of_every_kind_of_gpu_is_known(population: Population) -> None:
    card, device = Card(population.model, 1), int(population.device, 16)
    new = gpu_models.generation(device).name == "Blackwell or newer"
    assert card.is_one_of("Blackwell") is new
    assert card.is_one_of("before Blackwell") is not new


def test_what_dcgm_makes_of_xids_is_no_sign_beside_an_xid() -> None:
    for watch, code in (("ALL", "FALLEN_OFF_BUS"), ("MEM", "XID_ERROR"), ("ALL", "XID_ERROR")):
        meaning = health_watches.meaning(watch, f"DCGM_FR_{code}", H100)
        assert meaning is not None
        assert not meaning.sign
