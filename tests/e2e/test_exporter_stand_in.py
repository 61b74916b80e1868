"""The exporter's stand-in as a process over simulated GPUs: what it prints, which faults show."""

from __future__ import annotations

import base64
import re
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuboot.telemetry import collectors_csv
from gpuboot.telemetry.fields import FIELDS, Limit
from lab.build.toolchain import environment, go
from lab.gpusim import builds
from tests.lab.exporter_process import Exporter, start
from tests.lab.gpusim_machine import VERSION, Machine, make_machine

pytestmark = pytest.mark.lab

# What an H100 without NVSwitches and virtual machines has not, in the table's own words.
NOT_ON_AN_H100 = {Limit.FAN, Limit.BEFORE_AMPERE, Limit.NVLINK_5}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exporter") / "sim-dcgm-exporter"
    subprocess.run(
        [str(go()), "build", "-o", str(out), "./cmd/sim-dcgm-exporter"],
        cwd=builds.GO_MODULE,
        env=environment(cgo=True),
        check=True,
        capture_output=True,
        timeout=1200,
    )
    return out


@pytest.fixture(scope="module")
def bins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gpusim-exporter")
    builds.build(out, (VERSION,))
    return out


@pytest.fixture
def machine(bins: Path, tmp_path: Path) -> Machine:
    return make_machine(tmp_path / "root", bins)


@pytest.fixture
def exporter(program: Path, machine: Machine) -> Iterator[Exporter]:
    stand_in = start(program, machine, csv=collectors_csv([field.name for field in FIELDS]))
    assert stand_in.process.poll() is None
    yield stand_in
    stand_in.process.terminate()
    stand_in.process.wait(timeout=10)


def test_every_field_of_the_product_is_served_or_is_none_of_an_h100(exporter: Exporter) -> None:
    series = exporter.scrape()
    for field in FIELDS:
        if field.kind == "label":
            continue
        rows = series.get(field.name, [])
        if NOT_ON_AN_H100 & set(field.limits):
            assert rows == [], field.name
        elif field.name not in ("DCGM_EXP_XID_ERRORS_TOTAL", "DCGM_EXP_CLOCK_EVENTS_TOTAL"):
            assert {has["gpu"] for has, _ in rows} == {"0", "1"}, field.name


def test_an_idle_gpu_is_idle_and_well(exporter: Exporter) -> None:
    series = exporter.scrape()
    values = {name: rows[0][1] for name, rows in series.items() if len(rows) == 2}
    zeroes = [
        name
        for name in values
        if re.search(r"PROF_|_NS$|VIOLATION|ECC_|REMAP|REPLAY|ERROR_COUNT|_UTIL|RECOVERY", name)
    ]
    assert len(zeroes) > 35
    assert {name: values[name] for name in zeroes if values[name] != 0} == {}
    assert values["DCGM_FI_DEV_POWER_USAGE"] == 72
    assert values["DCGM_FI_DEV_GPU_TEMP_LIMIT"] == 87 - values["DCGM_FI_DEV_GPU_TEMP"] == 53
    assert values["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] >= 72000 * 100
    assert {value for _, value in series["DCGM_EXP_GPU_HEALTH_STATUS"]} == {0}
    assert len(series["DCGM_EXP_GPU_HEALTH_STATUS"]) == 2 * 11


def test_a_load_shows_everywhere_at_once(machine: Machine, exporter: Exporter) -> None:
    machine.sim("set", 0, "util", 80)
    exporter.wait(lambda: exporter.gpu("DCGM_FI_DEV_GPU_UTIL") == 80)
    series = {name: rows[0][1] for name, rows in exporter.scrape().items() if len(rows) == 2}
    assert series["DCGM_FI_PROF_GR_ENGINE_ACTIVE"] == 0.8
    assert series["DCGM_FI_PROF_SM_ACTIVE"] == 0.72
    assert series["DCGM_FI_DEV_SM_CLOCK"] == series["DCGM_FI_DEV_MAX_SM_CLOCK"] == 1980
    assert series["DCGM_FI_DEV_FB_USED"] > 40000
    assert series["DCGM_FI_DEV_POWER_USAGE"] > 500
    assert series["DCGM_FI_DEV_GPU_TEMP"] == 66
    assert series["DCGM_FI_PROF_NVLINK_TX_BYTES"] > 1e11
    assert exporter.gpu("DCGM_FI_DEV_GPU_UTIL", 1) == 0


# fault, the series that shows it, and its value
GAUGES = [
    ("temperature 84", "DCGM_FI_DEV_GPU_TEMP_LIMIT", 3),
    ("memory_temperature 97", "DCGM_FI_DEV_MEMORY_TEMP", 97),
    ("ecc_dbe 2", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 2),
    ("ecc_sbe 2000", "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 2000),
    ("row_remap_failure 1", "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1),
    ("row_remap_pending 1", "DCGM_FI_DEV_ROW_REMAP_PENDING", 1),
    ("row_remap_uncorrectable 3", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 3),
    ("row_remap_banks_none 1", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", 1),
    ("sram_threshold 1", "DCGM_FI_DEV_THRESHOLD_SRM", 1),
    ("memory_unrepairable 1", "DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", 1),
    ("recovery_action 2", "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", 2),
    ("nvlink_replay 4", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 4),
    ("nvlink_recovery 4", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 4),
    ("nvlink_crc_flit 4", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 4),
    ("nvlink_crc_data 4", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 4),
    ("fabric_status 4", "DCGM_FI_DEV_FABRIC_MANAGER_STATUS", 4),
    ("pcie_width 8", "DCGM_FI_DEV_PCIE_LINK_WIDTH", 8),
    ("pcie_replay 90", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 90),
    ("sm_clock 600", "DCGM_FI_DEV_SM_CLOCK", 600),
    ("sm_active 60", "DCGM_FI_PROF_SM_ACTIVE", 0.6),
    ("clock_events 4", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 4),
    ("memory_used_mib 80500", "DCGM_FI_DEV_FB_USED", 80500),
]


def test_each_fault_moves_its_series_and_only_of_its_gpu(
    machine: Machine, exporter: Exporter
) -> None:
    for fault, _, _ in GAUGES:
        machine.sim("set", 0, *fault.split())
    exporter.wait(lambda: exporter.gpu("DCGM_FI_DEV_FB_USED") == 80500)
    series = exporter.scrape()
    for fault, name, value in GAUGES:
        assert [has["gpu"] for has, actual in series[name] if actual == value] == ["0"], fault
    machine.sim("repair", 0)

    def as_the_other() -> bool:
        series = exporter.scrape()
        return all(series[name][0][1] == series[name][1][1] for _, name, _ in GAUGES)

    exporter.wait(as_the_other)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("hw_thermal", "HW_THERM_SLOWDOWN"),
        ("sw_thermal", "SW_THERM_SLOWDOWN"),
        ("power_brake", "HW_POWER_BRAKE_SLOWDOWN"),
        ("power_cap", "SW_POWER_CAP"),
        ("sync_boost", "SYNC_BOOST"),
    ],
)
def test_time_slowed_down_rises_while_it_lasts(
    machine: Machine, exporter: Exporter, fault: str, reason: str
) -> None:
    name = f"DCGM_FI_DEV_CLOCKS_EVENT_REASON_{reason}_NS"
    machine.sim("set", 1, fault, 1)
    exporter.wait(lambda: (exporter.gpu(name, 1) or 0) > 5e8)
    machine.sim("clear", 1)
    exporter.wait(lambda: exporter.gpu("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 1) == 1)
    stopped = exporter.gpu(name, 1)
    time.sleep(0.5)
    assert exporter.gpu(name, 1) == stopped
    assert exporter.gpu(name, 0) == 0
    event = fault.replace("power_brake", "hw_power_brake")
    assert exporter.gpu("DCGM_EXP_CLOCK_EVENTS_TOTAL", 1, clock_event=event) == 1


def test_xids_count_from_one_and_only_a_restart_forgets_them(
    program: Path, machine: Machine, exporter: Exporter
) -> None:
    total = "DCGM_EXP_XID_ERRORS_TOTAL"
    assert total not in exporter.scrape()
    for xid in (79, 31, 31):
        machine.sim("set", 1, "xid", xid)
    exporter.wait(lambda: exporter.gpu(total, 1, xid="31") == 2)
    assert exporter.gpu(total, 1, xid="79") == 1
    last = exporter.scrape()["DCGM_FI_DEV_XID_ERRORS"]
    assert [(has["gpu"], has["err_code"], has["err_msg"], value) for has, value in last] == [
        ("0", "0", "No Error", 0),
        ("1", "31", "GPU memory page fault", 31),
    ]
    machine.sim("repair")
    health = "DCGM_EXP_GPU_HEALTH_STATUS"
    assert exporter.gpu(health, 1, health_watch="ALL") == 20
    assert exporter.gpu(health, 1, health_watch="MEM") == 10
    restarted = start(program, machine, csv=collectors_csv())
    try:
        assert restarted.gpu(total, 1) is None
        assert restarted.gpu(health, 1, health_watch="ALL") == 0
    finally:
        restarted.process.terminate()
        restarted.process.wait(timeout=10)


def test_health_watches_judge_state_trend_and_faults(machine: Machine, exporter: Exporter) -> None:
    machine.sim("set", 0, "nvlink_crc_data_rate", 60000)
    machine.sim("set", 0, "pcie_replay_rate", 60000)
    machine.sim("set", 0, "temperature", 92)
    machine.sim("set", 0, "recovery_action", 3)
    machine.sim("set", 0, "health_sm", 20)
    expected = {"NVLINK": 20, "PCIE": 10, "THERMAL": 10, "DRIVER": 10, "SM": 20, "MEM": 0, "ALL": 0}

    def as_expected() -> bool:
        rows = exporter.scrape()["DCGM_EXP_GPU_HEALTH_STATUS"]
        statuses = {has["health_watch"]: value for has, value in rows if has["gpu"] == "0"}
        return all(statuses[watch] == status for watch, status in expected.items())

    exporter.wait(as_expected)


def test_a_lost_gpu_has_no_values_and_comes_back(machine: Machine, exporter: Exporter) -> None:
    machine.sim("set", 1, "lost", 1)
    exporter.wait(lambda: exporter.gpu("DCGM_FI_DEV_GPU_TEMP", 1) is None)
    assert exporter.gpu("DCGM_FI_DEV_GPU_TEMP", 0) == 34
    machine.sim("clear", 1)
    exporter.wait(lambda: exporter.gpu("DCGM_FI_DEV_GPU_TEMP", 1) == 34)


def test_it_agrees_with_nvidia_smi(machine: Machine, exporter: Exporter) -> None:
    for fault in ("temperature 91", "ecc_dbe 4", "util 50", "pcie_width 4", "row_remap_failure 1"):
        machine.sim("set", 0, *fault.split())
    exporter.wait(lambda: exporter.gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE") == 1)
    for field, name in (
        ("temperature.gpu", "DCGM_FI_DEV_GPU_TEMP"),
        ("ecc.errors.uncorrected.volatile.total", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
        ("utilization.gpu", "DCGM_FI_DEV_GPU_UTIL"),
        ("memory.used", "DCGM_FI_DEV_FB_USED"),
        ("pcie.link.width.current", "DCGM_FI_DEV_PCIE_LINK_WIDTH"),
        ("clocks.sm", "DCGM_FI_DEV_SM_CLOCK"),
        ("remapped_rows.failure", "DCGM_FI_DEV_ROW_REMAP_FAILURE"),
    ):
        assert [float(value) for value in machine.smi(field)] == [exporter.gpu(name)], field


@pytest.mark.parametrize(
    "line",
    ["DCGM_FI_DEV_SM_OCCUPANCY, gauge, no such field", "DCGM_FI_DEV_GPU_TEMP, gauge, hot, hotter"],
)
def test_it_exits_over_a_bad_counters_file(program: Path, machine: Machine, line: str) -> None:
    stand_in = start(program, machine, csv=f"{line}\n")
    assert stand_in.process.wait(timeout=10) == 1
    assert stand_in.process.stderr is not None
    assert "SIMULATED" in stand_in.process.stderr.read()


def test_loading_the_counters_again_resets_the_totals(machine: Machine, exporter: Exporter) -> None:
    machine.sim("set", 0, "xid", 48)
    exporter.wait(lambda: exporter.gpu("DCGM_EXP_XID_ERRORS_TOTAL", xid="48") == 1)
    exporter.process.send_signal(signal.SIGHUP)
    exporter.wait(lambda: exporter.gpu("DCGM_EXP_XID_ERRORS_TOTAL") is None)


def test_tls_and_a_password_as_the_web_config_file_says(
    program: Path, machine: Machine, tmp_path: Path
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
        f"-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}".split(),
        check=True,
        capture_output=True,
        timeout=60,
    )
    # bcrypt of "s3cret"
    password = "$2b$04$T0MOHsl9p9d4zz3fS.XvMOcCNuDiICw7qE.nyEQ8O3VLzH2NkM9Wq"
    config = tmp_path / "web.yaml"
    config.write_text(
        f"tls_server_config:\n  cert_file: {certificate}\n  key_file: {key}\n"
        f"basic_auth_users:\n  prometheus: {password}\n"
    )
    stand_in = start(program, machine, f"--web-config-file={config}", csv=collectors_csv())
    url = f"https://{stand_in.address}/metrics"
    trust = ssl.create_default_context(cafile=str(certificate))
    try:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url, context=trust, timeout=10)
        login = base64.b64encode(b"prometheus:s3cret").decode()
        request = urllib.request.Request(url, headers={"Authorization": f"Basic {login}"})
        with urllib.request.urlopen(request, context=trust, timeout=10) as answer:
            assert "DCGM_FI_DEV_GPU_TEMP" in answer.read().decode()
    finally:
        stand_in.process.terminate()
        stand_in.process.wait(timeout=10)
