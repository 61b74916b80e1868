"""The field table and the collectors file made from it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gpuboot import telemetry
from gpuboot.config import exporter_versions
from gpuboot.config.settings import SettingsError, parse_settings
from gpuboot.config.versions import parse
from gpuboot.site.load_site import load
from gpuboot.telemetry import (
    BY_NAME,
    FIELDS,
    CollectorsError,
    UnknownField,
    collectors_csv,
    field_numbers,
    parse_collectors,
)
from lab.build import toolchain

# dcgm-exporter's etc/default-counters.csv at 4.6.0-4.8.3: what is on without a file of ours
EXPORTER_DEFAULTS = 26
GPUSIM = Path(__file__).parents[2] / "lab" / "gpusim" / "go"


def test_names_and_ids_are_unique() -> None:
    ids = [field.id for field in FIELDS if field.id is not None]
    assert len(BY_NAME) == len(FIELDS)
    assert len(ids) == len(set(ids))


def test_only_the_exporter_s_own_metrics_have_no_id() -> None:
    for field in FIELDS:
        assert (field.id is None) == field.name.startswith("DCGM_EXP_"), field.name


@pytest.mark.parametrize(
    ("name", "id_", "unit"),
    [
        ("DCGM_FI_DEV_GPU_TEMP", 150, "°C"),
        ("DCGM_FI_DEV_POWER_USAGE", 155, "W"),
        ("DCGM_FI_DEV_GPU_TEMP_LIMIT", 153, "°C"),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 112, "bitmask"),
        ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 164, "W"),
        ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 310, ""),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 311, ""),
        ("DCGM_FI_PROF_SM_ACTIVE", 1002, "ratio"),
    ],
)
def test_fields_that_guides_get_wrong(name: str, id_: int, unit: str) -> None:
    assert (BY_NAME[name].id, BY_NAME[name].unit) == (id_, unit)


def test_default_file_is_one_the_exporter_accepts() -> None:
    parsed = parse_collectors(collectors_csv())
    assert len(telemetry.UPSTREAM) == EXPORTER_DEFAULTS
    assert list(parsed) == [field.name for field in FIELDS if field.default]
    assert parsed["DCGM_FI_DRIVER_VERSION"] == "label"
    assert parsed["DCGM_EXP_XID_ERRORS_TOTAL"] == "counter"


def test_every_field_at_once_is_accepted_too() -> None:
    assert parse_collectors(collectors_csv(list(BY_NAME))) == {f.name: f.kind for f in FIELDS}


def test_extra_fields_are_added_once() -> None:
    extra = ["DCGM_FI_DEV_FAN_SPEED", "DCGM_FI_DEV_FAN_SPEED", "DCGM_FI_DEV_GPU_TEMP"]
    parsed = parse_collectors(collectors_csv(extra))
    assert set(parsed) - set(parse_collectors(collectors_csv())) == {"DCGM_FI_DEV_FAN_SPEED"}


def test_unknown_field_names_the_nearest() -> None:
    with pytest.raises(UnknownField, match="did you mean DCGM_FI_PROF_SM_OCCUPANCY"):
        collectors_csv(["DCGM_FI_DEV_SM_OCCUPANCY"])


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("DCGM_FI_DEV_GPU_TEMP, gauge, hot, very", "4 columns"),
        ("DCGM_FI_DEV_GPU_TEMP, gauge", "2 columns"),
        ("DCGM_FI_DEV_GPU_TEMP, meter, hot", "unknown type"),
        ("DCGM_FI_DEV_GPU_TEMP, histogram, hot", "unknown type"),
        ('DCGM_FI_DEV_GPU_TEMP, gauge, "hot"', "quote"),
        ('DCGM_FI_DEV_GPU_TEMP, gauge, 5" hot', "quote"),
        ("DCGM_FI_DEV_GPU_TEMP, gauge, t\n ", "line 2: 1 columns"),
        ("temperature, gauge, hot", "unknown DCGM field temperature"),
        ("DCGM_FI_DEV_SM_OCCUPANCY, gauge, o", "did you mean DCGM_FI_PROF_SM_OCCUPANCY"),
        ("DCGM_FI_DEV_PCIE_RX_THROUGHPUT, gauge, r", "use DCGM_FI_PROF_PCIE_RX_BYTES"),
        ("DCGM_FI_DEV_GPU_UTIL, gauge, a\nDCGM_FI_DEV_GPU_UTIL_RATIO, gauge, b", "there twice"),
        ("# nothing", "no field"),
        ("DCGM_FI_DEV_GPU_TEMP, gauge, a\nDCGM_FI_DEV_GPU_TEMP, gauge, b", "there twice"),
    ],
)
def test_what_stops_the_exporter_is_refused(line: str, cause: str) -> None:
    with pytest.raises(CollectorsError, match=cause):
        parse_collectors(line)


def test_a_site_s_own_file_replaces_the_table(tmp_path: Path) -> None:
    collectors = tmp_path / "own.csv"
    collectors.write_text(
        "DCGM_FI_DEV_GPU_TEMP, gauge, hot\nDCGM_FI_DRIVER_VERSION, label, version\n"
    )
    settings = parse_settings({"exporter": {"collectors_file": str(collectors)}})
    assert telemetry.collectors(settings.exporter) == collectors.read_text()
    assert telemetry.collected(settings) == {"DCGM_FI_DEV_GPU_TEMP"}


def test_what_is_collected_follows_the_settings() -> None:
    default = telemetry.collected(parse_settings({}))
    assert "DCGM_FI_DEV_GPU_TEMP" in default
    assert "DCGM_FI_DRIVER_VERSION" not in default, "a label makes no series"
    extended = telemetry.collected(
        parse_settings({"exporter": {"counters": ["DCGM_FI_DEV_FAN_SPEED"]}})
    )
    assert extended - default == {"DCGM_FI_DEV_FAN_SPEED"}


def test_what_the_exporter_accepts_is_accepted() -> None:
    text = """# a comment
DCGM_FI_DEV_GPU_TEMP ,   gauge,a blank before the comma

DCGM_FI_DEV_GPU_UTIL_RATIO,gauge,"a name of DCGM 4.6, a comma and a ""word"" in quotes"
dcgm_power_usage, untyped, a name of exporter 1.x
DCGM_EXP_P2P_STATUS, gauge, the exporter's own
"""
    assert list(parse_collectors(text)) == [
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_GPU_UTIL_RATIO",
        "dcgm_power_usage",
        "DCGM_EXP_P2P_STATUS",
    ]


def test_names_and_ids_are_dcgm_s() -> None:
    known_numbers = field_numbers()
    for field in FIELDS:
        if field.id is not None:
            assert known_numbers.get(field.name) == field.id, field.name


def test_list_of_names_is_go_dcgm_s() -> None:
    result = subprocess.run(
        [toolchain.go(), "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-dcgm"],
        cwd=GPUSIM,
        capture_output=True,
        text=True,
        env={**toolchain.environment(), "GOPROXY": "off", "GOFLAGS": "-mod=readonly"},
    ).stdout.strip()
    if not result:
        pytest.skip("go-dcgm is not in the lab's module cache: python -m lab.build")
    source = (Path(result) / "pkg/dcgm/const_fields.go").read_text()
    numbers = re.findall(r'^\s+"(\w+)":\s+(\d+),', source, re.MULTILINE)
    assert field_numbers() == {name: int(number) for name, number in numbers}


def test_every_exporter_that_is_let_through_knows_every_field() -> None:
    have = {"exporter": exporter_versions.lowest(), "DCGM": (4, 6)}  # 4.8.3 came with DCGM 4.6.0
    for field in FIELDS:
        if field.since:
            component, version = field.since
            assert parse(version) <= have[component], field.name


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("DCGM_FI_DEV_SM_OCCUPANCY, gauge, o\n", "did you mean DCGM_FI_PROF_SM_OCCUPANCY"),
        (None, "No such file"),
    ],
)
def test_a_file_the_exporter_would_exit_on_stops_the_run(
    tmp_path: Path, text: str | None, cause: str
) -> None:
    collectors = tmp_path / "own.csv"
    if text is not None:
        collectors.write_text(text)
    with pytest.raises(SettingsError, match=cause) as error_info:
        load({"exporter": {"collectors_file": str(collectors)}})
    assert len(error_info.value.problems) == 1
    assert str(collectors) in str(error_info.value)


def test_an_unknown_counter_stops_the_run() -> None:
    with pytest.raises(SettingsError, match=r"exporter\.counters: .*did you mean .*FAN_SPEED"):
        load({"exporter": {"counters": ["DCGM_FI_DEV_FANSPEED"]}})
