"""MIG devices read from what nvidia-smi printed on a real H200."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from deploys.parts.driver.fact import Driver
from deploys.parts.driver.nvidia_fact import SCRIPT
from gpuboot.hosts import mig_devices
from gpuboot.hosts.mig_devices import Instance
from gpuboot.verify.devices import Device
from gpuboot.verify.gpu_state import parse
from tests.unit import recordings as seen


def fact(*rows: str, listing: tuple[str, ...] = (), details: tuple[str, ...] = ()) -> list[str]:
    """What deploys/parts/driver/nvidia_fact.sh prints."""
    output = [f"smi\t{row}" for row in rows]
    output += [f"mig\t{line}" for line in listing] + [f"mig_id\t{line}" for line in details]
    return [*output, "end\tok"]


def test_a_real_h200s_mig_devices_have_profile_uuid_and_ids() -> None:
    (gpu,) = parse(fact(seen.H200_ROW, listing=seen.H200_LIST, details=seen.H200_DETAILS)).gpus
    assert gpu.mig
    assert [(item.profile, item.gi, item.ci) for item in gpu.instances] == [
        ("1c.3g.71gb", 2, 0),
        ("2c.3g.71gb", 2, 1),
        ("2g.35gb", 3, 0),
        ("1g.18gb", 9, 0),
        ("1g.18gb", 10, 0),
    ]
    assert gpu.instances[4].uuid == "MIG-00000004-0000-0000-0000-000000000004"
    assert [item.partial_compute for item in gpu.instances] == [True, True, False, False, False]
    assert Device(gpu, gpu.instances[3]).key == (seen.H200_UUID, "9")


def test_without_the_long_answer_the_ids_are_unknown() -> None:
    (gpu,) = parse(fact(seen.H200_ROW, listing=seen.H200_LIST)).gpus
    assert {Device(gpu, item).key for item in gpu.instances} == {None}


def test_a_gpu_that_the_list_lacks_is_at_fault() -> None:
    (gpu,) = parse(fact(seen.H200_ROW, listing=("Unable to determine the device handle",))).gpus
    assert "nvidia-smi -L" in gpu.fault


def test_mig_without_instances_is_no_fault() -> None:
    (gpu,) = parse(fact(seen.H200_ROW, listing=seen.H200_LIST[:1])).gpus
    assert (gpu.mig, gpu.instances, gpu.fault) == (True, (), "")


def test_the_ids_of_processes_are_not_those_of_mig_devices() -> None:
    """`nvidia-smi -q` writes the latter with a small i, and N/A without MIG."""
    lines = (*seen.H200_DETAILS, "GPU instance ID : 2", "Compute instance ID : 0")
    assert len(mig_devices.parse_ids(lines)) == 5


def test_old_drivers_put_the_ids_into_the_uuid() -> None:
    """NVIDIA's MIG User Guide: MIG-GPU-<UUID>/<GPU instance>/<compute instance> before R470."""
    lines = (
        "GPU 0: A100-SXM4-40GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)",
        "MIG 1g.5gb Device 0: (UUID: MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/7/0)",
    )
    (device,) = mig_devices.parse_list(lines)["GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f"]
    assert (device.profile, device.gi, device.ci) == ("1g.5gb", 7, 0)


@pytest.mark.parametrize(
    ("profile", "resource"),
    [
        ("1g.10gb", "nvidia.com/mig-1g.10gb"),
        ("1g.10gb+me", "nvidia.com/mig-1g.10gb.me"),
    ],
)
def test_the_device_plugins_name_of_a_profile(profile: str, resource: str) -> None:
    """k8s-device-plugin internal/rm/rm.go: strings.ReplaceAll("mig-"+p.String(), "+", ".")."""
    assert Instance(uuid="MIG-x", profile=profile, index=0).resource == resource


@pytest.mark.parametrize("text", ["[GPU requires reset]", "[GPU is lost]"])
def test_a_gpu_that_asks_for_a_reset_is_at_fault_in_whichever_column(text: str) -> None:
    """In public logs it stands in temperature, utilization, power or pstate; memory goes on.

    E.g. an RTX PRO 6000: `ERR! ERR! ERR! N/A / N/A 58222MiB / 97887MiB`, temperature.gpu ->
    [GPU requires reset]; another: pstate [GPU requires reset], utilization [N/A].
    """
    columns = seen.H200_ROW.replace("Enabled", "Disabled").split(", ")
    for place in (6, 7, 8):
        row = ", ".join([*columns[:place], text, *columns[place + 1 :]])
        (gpu,) = parse(fact(row)).gpus
        assert gpu.fault == text.strip("[]")


def test_a_gpu_with_mig_that_needs_a_reset_keeps_its_instances() -> None:
    row = seen.H200_ROW.replace("Enabled", "[GPU requires reset]")
    (gpu,) = parse(fact(row, listing=seen.H200_LIST, details=seen.H200_DETAILS)).gpus
    assert (gpu.fault, gpu.mig, len(gpu.instances)) == ("GPU requires reset", True, 5)


def test_a_gpu_that_has_lost_its_uuid_as_well_is_a_silent_one() -> None:
    row = seen.H200_ROW.replace(seen.H200_UUID, "[GPU requires reset]")
    state = parse(fact(row))
    assert state.gpus == ()
    assert state.gpu_errors == {"0000:83:00.0": "GPU requires reset"}


def test_a_missing_sensor_is_no_fault_and_is_remembered() -> None:
    """A vGPU guest has no temperature, GB10 no memory of its own, a GT 1030 no power."""
    row = "0, GPU-0946f70c-659b-4c39-8b78-7e7600000000, GRID A100-40C, 00000000:03:00.0, 40960, "
    (gpu,) = parse(fact(row + "[N/A], [N/A], [N/A], P0")).gpus
    assert (gpu.fault, gpu.sensors, gpu.mig) == ("", ("memory",), False)
    (gpu,) = parse(fact(row.replace("40960", "[N/A]") + "[N/A], 38, 9.82, P0")).gpus
    assert gpu.sensors == ("temperature", "power")
    # power alone may be a board without its sensor, temperature and pstate are read from all
    (gpu,) = parse(fact(row + "[N/A], 38, [Unknown Error], P0")).gpus
    assert gpu.fault == ""
    (gpu,) = parse(fact(row + "[N/A], [Unknown Error], [Unknown Error], P0")).gpus
    assert gpu.fault == "Unknown Error"


@pytest.mark.parametrize(
    ("card", "sensors"),
    [
        ("a10g", ("temperature", "power", "memory")),
        ("tesla-t4", ("temperature", "power", "memory")),
        ("quadro-p400", ("temperature", "memory")),
    ],
)
def test_cards_without_mig_and_without_a_power_sensor(card: str, sensors: tuple[str, ...]) -> None:
    (gpu,) = parse(fact(seen.TELEGRAF[card])).gpus
    assert (gpu.mig, gpu.fault, gpu.sensors) == (False, "", sensors)


SMI = """#!/bin/sh
case "$*" in
  *--query-gpu=*) echo "$ROW" ;;
  -L) printf '%s\\n' "$LIST" ;;
  -q) printf '%s\\n' "$LONG" ;;
esac
"""


@pytest.mark.parametrize(
    ("mode", "mig"), [("Enabled", True), ("Disabled", False), ("[GPU requires reset]", True)]
)
def test_the_script_asks_for_mig_devices_where_there_are_any(
    tmp_path: Path, mode: str, mig: bool
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(SMI)
    program.chmod(0o755)
    long = [f"    {line}" if index else line for index, line in enumerate(seen.H200_DETAILS)]
    noise = ["    Platform Info", "        Tray Index : 3", "        GPU instance ID : N/A"]
    answer = subprocess.run(
        ["sh", "-c", SCRIPT],
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "ROW": seen.H200_ROW.replace("Enabled", mode),
            "LIST": "\n".join([seen.H200_LIST[0], *(f"  {line}" for line in seen.H200_LIST[1:])]),
            "LONG": "\n".join([*long, *noise]),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    (gpu,) = parse(answer.stdout.splitlines()).gpus
    assert [(item.gi, item.ci) for item in gpu.instances] == list(seen.H200_IDS if mig else ())


def test_the_drivers_fact_counts_gpus_and_not_their_mig_devices(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(SMI)
    program.chmod(0o755)
    answer = subprocess.run(
        ["sh", "-c", Driver().command(timeout_s=5)],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "LIST": "\n".join(seen.H200_LIST)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Driver().process(answer.stdout.splitlines()).gpus == (seen.H200_UUID,)
