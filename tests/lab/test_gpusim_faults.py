"""`gpu-sim`, the tool that injects faults, and what they do to what the driver's libraries say."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from gpuboot.config.settings import Settings
from gpuboot.monitoring.rules import all_alerts
from lab.gpusim import builds
from lab.gpusim.pci_devices import STATE_DIR
from tests.lab.gpusim_machine import GPU_SIM, VERSION, Machine, make_machine

ROOT = Path(__file__).resolve().parents[2]
NVML_SOURCES = Path(builds.__file__).parent / "nvml"


@pytest.fixture(scope="module")
def bins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gpusim-faults")
    builds.build(out, (VERSION,))
    return out


@pytest.fixture
def machine(bins: Path, tmp_path: Path) -> Machine:
    return make_machine(tmp_path / "root", bins)


def faults(machine: Machine) -> list[str]:
    return machine.sim("show").split("# faults in force\n")[1].splitlines()


def keys() -> dict[str, tuple[str, int, int]]:
    """Until when a key lasts, its smallest and largest value, from the tool's own table."""
    table = GPU_SIM.read_text().split("cat << TEXT\n")[1].split("\nTEXT\n")[0]
    rows = [line.split() for line in table.splitlines()]
    return {row[0]: (row[1], int(row[2]), int(row[3])) for row in rows}


def test_every_key_is_read_by_a_library_and_every_key_read_can_be_set() -> None:
    sources = "".join(path.read_text() for path in NVML_SOURCES.glob("*.c"))
    sources += "".join(path.read_text() for path in NVML_SOURCES.parent.glob("c[ou]*/*.c"))
    for key in keys():
        read = key.removesuffix("_rate")
        assert f'"{read}"' in sources, key
    counted = re.findall(r'COUNT, "(\w+)"|sim_count\([^,]+, "(\w+)"', sources)
    for names in counted:
        assert f"{''.join(names)}_rate" in keys()


def test_the_lab_page_has_every_key_and_only_alerts_that_exist() -> None:
    page = (ROOT / "docs/lab.md").read_text().split("## Faults")[1]
    for key in keys():
        assert re.search(rf"\b{key}\b|`_{key.removeprefix('health_')}`", page), key
    alerts = {alert.name for group in all_alerts(Settings()).values() for alert in group}
    alert_names = set(re.findall(r"\bGPU[A-Z]+[a-z]\w+", page))
    assert len(alert_names) > 30
    assert alert_names <= alerts, alert_names - alerts


def test_every_key_can_be_set_to_its_limits_and_no_further(machine: Machine) -> None:
    for key, (_, smallest, largest) in keys().items():
        machine.sim("set", 0, key, largest)
        assert "is from" in machine.sim("set", 0, key, largest + 1, code=1) or key[:6] in (
            "health",
            "pcie_w",
        )
        if smallest > 0:
            machine.sim("set", 0, key, smallest - 1, code=1)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("0", "warp_core", "1"), "unknown key: warp_core; there are: lost xid temperature"),
        (("0", "util", "101"), "util is from 0 to 100, not 101"),
        (("0", "util", "-1"), "not a whole number: -1"),
        (("0", "util", "08"), "not a whole number: 08"),
        (("0", "pcie_width", "3"), "pcie_width is 1, 2, 4, 8 or 16, not 3"),
        (("0", "health_mem", "5"), "health_mem is 0, 10 or 20, not 5"),
        (("2", "util", "1"), "this machine has 2 GPUs, none is number 2"),
        (("one", "util", "1"), "not a GPU: one"),
    ],
)
def test_what_cannot_be_set_is_refused(
    machine: Machine, arguments: tuple[str, ...], complaint: str
) -> None:
    before = machine.conf.read_text()
    assert complaint in machine.sim("set", *arguments, code=1)
    assert machine.conf.read_text() == before


def test_nothing_can_be_injected_without_a_driver(machine: Machine) -> None:
    (machine.root / "proc/driver/nvidia/version").unlink()
    assert "the driver is not loaded" in machine.sim("set", 0, "util", 1, code=1)
    assert "# driver: not loaded" in machine.sim("show")


def test_clear_ends_conditions_and_leaves_what_a_gpu_counts(machine: Machine) -> None:
    for key, value in (("temperature", 91), ("ecc_dbe", 2), ("row_remap_failure", 1)):
        machine.sim("set", 0, key, value)
    machine.sim("set", 1, "util", 90)
    machine.sim("clear", 0)
    assert faults(machine) == [
        "0.ecc_dbe = 2 (until reset)",
        "0.ecc_dbe_agg = 2 (until repair)",
        "0.row_remap_failure = 1 (until repair)",
        "1.util = 90 (until clear)",
    ]
    assert machine.smi("temperature.gpu", "ecc.errors.uncorrected.volatile.total") == ["34", "2"]


def test_reset_ends_what_a_reset_ends_and_repair_the_rest(machine: Machine) -> None:
    volatile = "ecc.errors.uncorrected.volatile.total"
    for_life = "ecc.errors.uncorrected.aggregate.total"
    machine.sim("set", 0, "ecc_dbe", 3)
    machine.sim("set", 0, "ecc_dbe", 5)
    machine.sim("set", 0, "row_remap_pending", 1)
    assert machine.smi(volatile, for_life, "remapped_rows.pending") == ["5", "5", "1"]
    machine.sim("reset", 0)
    assert machine.smi(volatile, for_life, "remapped_rows.pending") == ["0", "5", "0"]
    machine.sim("set", 0, "ecc_dbe", 1)
    assert machine.smi(volatile, for_life) == ["1", "6"]
    machine.sim("repair", 0)
    assert machine.smi(volatile, for_life) == ["0", "0"]
    assert faults(machine) == []


def test_what_a_gpu_remembers_for_life_survives_a_reboot(machine: Machine) -> None:
    machine.sim("set", 1, "row_remap_failure", 1)
    machine.sim("set", 1, "ecc_sbe", 7)
    machine.sim("set", 1, "temperature", 91)
    machine.load()
    assert faults(machine) == [
        "1.ecc_sbe_agg = 7 (until repair)",
        "1.row_remap_failure = 1 (until repair)",
    ]
    assert machine.smi("remapped_rows.failure", "temperature.gpu", gpu=1) == ["1", "34"]
    machine.sim("repair")
    machine.load()
    assert faults(machine) == []


def test_a_reset_does_not_bring_a_lost_gpu_back(machine: Machine) -> None:
    machine.sim("set", 1, "lost", 1)
    config = machine.root / STATE_DIR / "pci/0000:1c:00.0/config"
    assert set(config.read_bytes()) == {0xFF}
    assert "GPU 1 is lost" in machine.sim("reset", 1, code=1)
    machine.sim("clear", 1)
    assert config.read_bytes()[:2] == b"\xde\x10"


def test_nvidia_smi_resets_a_gpu(machine: Machine) -> None:
    machine.sim("set", 0, "ecc_dbe", 2)
    machine.sim("set", 1, "ecc_dbe", 2)
    result = subprocess.run(
        [machine.bins / f"nvidia-smi.{VERSION}", "--gpu-reset", "-i", "0"],
        env=machine.env()
        | {"PATH": f"{GPU_SIM.parent}:{os.environ['PATH']}", "GPU_SIM_ROOT": str(machine.root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout == "GPU 00000000:10:00.0 was successfully reset.\nAll done.\n"
    volatile = "ecc.errors.uncorrected.volatile.total"
    assert machine.smi(volatile) + machine.smi(volatile, gpu=1) == ["0", "2"]


def test_linux_shows_the_lanes_too(machine: Machine) -> None:
    lanes = machine.root / STATE_DIR / "pci/0000:10:00.0/current_link_width"
    machine.sim("set", 0, "pcie_width", 8)
    assert lanes.read_text() == "8\n"
    machine.sim("clear")
    assert lanes.read_text() == "16\n"


def test_time_slowed_down_is_counted_only_while_it_lasts(machine: Machine) -> None:
    machine.inject("0.hw_thermal = 1", ago=50)
    machine.inject("0.hw_thermal = default", ago=20)
    machine.inject("0.power_brake = 1", ago=10)
    hw_thermal, brake, sw_thermal, cap = machine.nvml("f(270), f(271), f(269), f(74)")
    assert hw_thermal / 1e9 == pytest.approx(30, abs=0.01)
    assert brake / 1e9 == pytest.approx(10, abs=5)
    assert (sw_thermal, cap) == (0, 0)
    assert machine.smi("clocks.sm", "clocks_event_reasons.active") == [
        "1000",
        "0x0000000000000088",
    ]


def test_heat_counts_as_slowdown_by_the_hardware(machine: Machine) -> None:
    machine.inject("0.temperature = 95", ago=40)
    machine.inject("0.temperature = 60", ago=10)
    (hw_thermal,) = machine.nvml("[f(270)]")
    assert hw_thermal / 1e9 == pytest.approx(30, abs=0.01)


def test_counters_grow_by_their_rate_and_start_again_at_a_reset(machine: Machine) -> None:
    machine.inject("0.nvlink_crc_data = 100", ago=60)
    machine.inject("0.nvlink_crc_data_rate = 600", ago=30)
    machine.inject("0.nvlink_crc_data_rate = default", ago=20)
    crc, flit = machine.nvml("f(45), f(38)")
    assert (crc, flit) == (200, 0)
    machine.sim("reset", 0)
    assert machine.nvml("f(45), f(38)") == [0, 0]


def test_energy_is_the_integral_of_the_power(machine: Machine) -> None:
    machine.inject("0.util = 100", ago=40)
    machine.inject("0.util = 0", ago=10)
    (energy,) = machine.nvml("[n.nvmlDeviceGetTotalEnergyConsumption(d)]")
    assert energy / 1e6 == pytest.approx(0.7 * 30 + 0.072 * 70, abs=0.5)


def test_energy_counts_anew_after_a_reset(machine: Machine) -> None:
    machine.inject("0.util = 100", ago=40)
    machine.sim("reset", 0)
    (energy,) = machine.nvml("[n.nvmlDeviceGetTotalEnergyConsumption(d)]")
    assert energy / 1e6 < 14  # half of what 700 W had made before


def test_a_wave_of_load_never_lets_the_energy_fall(machine: Machine) -> None:
    machine.inject("0.util_max = 100", ago=90)
    samples = "[n.nvmlDeviceGetTotalEnergyConsumption(d) for _ in range(200)]"
    energies = machine.nvml(samples)
    assert energies == sorted(energies)
    assert 90 * 72e3 < energies[0] < 100 * 700e3


def test_links_are_up_where_there_is_somebody_to_link_with(machine: Machine) -> None:
    expression = "n.nvmlDeviceGetNvLinkState(d, 17), f(52)"
    assert machine.nvml(expression) == [1, 0]
    conf = machine.conf.read_text()
    machine.conf.write_text(conf.replace("count = 2", "count = 1"))
    assert machine.nvml(expression) == [0, -3]
