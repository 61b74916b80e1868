"""Simulated GPUs that MIG divides: through NVIDIA's bindings, nvidia-smi, and their own clients."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpuboot.hosts import mig_devices, mig_profiles
from gpuboot.hosts.mig_devices import Instance
from lab.gpusim.pci_devices import gpu_uuid
from lab.state import cache_dir
from tests.lab.simulated_driver import SEED, SimulatedMachine

# PCI device id -> memory in MiB, as nvidia-smi shows it
CARDS = {0x20B2: 81920, 0x2330: 81559, 0x2335: 143771, 0x2901: 183359}


def enable_mig(machine: SimulatedMachine, gpus: int = 1, device: int = 0x2330) -> SimulatedMachine:
    machine.load(gpus)
    for line in ("mig = 1", f"pci_device_id = {device:#x}", f"memory_mib = {CARDS[device]}"):
        machine.inject(line)
    code, output = machine.smi("-mig", "1")
    assert code == 0
    assert output.endswith("All done.\n")
    return machine


def create(machine: SimulatedMachine, *profiles: str, gpu: int = 0) -> tuple[int, str]:
    return machine.smi("mig", "-i", str(gpu), "-cgi", ",".join(profiles), "-C")


def mig_uuid(gpu: int, instance: int) -> str:
    return f"MIG-{SEED:08x}-5157-5c6c-8abc-{gpu:04x}{instance:04x}0000"


def listing(machine: SimulatedMachine) -> dict[str, tuple[Instance, ...]]:
    """What `nvidia-smi -L` lists, as the fact of a host reads it."""
    return mig_devices.parse_list(line.strip() for line in machine.smi("-L")[1].splitlines())


@pytest.mark.parametrize("device", CARDS)
def test_profiles_are_those_of_the_model(machine: SimulatedMachine, device: int) -> None:
    """Both tables were made from NVIDIA's, each by itself."""
    card = mig_profiles.card(device)
    assert card is not None
    _, output = enable_mig(machine, device=device).smi("mig", "-lgip")
    rows = [line.split() for line in output.splitlines() if " MIG " in line]
    assert {row[3]: int(row[5].partition("/")[2]) for row in rows} == {
        profile.name: profile.most for profile in card.profiles
    }


@pytest.mark.parametrize(
    "profiles",
    [
        ["19"] * 7,
        ["3g.40gb", "3g.40gb"],
        ["4g.40gb", "3g.40gb"],
        ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb+me"],
        ["1g.20gb"] * 4,
        ["7g.80gb"],
    ],
)
def test_instances_that_fit(machine: SimulatedMachine, profiles: list[str]) -> None:
    enable_mig(machine)
    code, output = create(machine, *profiles)
    assert code == 0
    assert output.count("Successfully created compute instance") == len(profiles)
    instances = listing(machine)[gpu_uuid(SEED, 0)]
    assert len(instances) == len({item.uuid for item in instances}) == len(profiles)


@pytest.mark.parametrize(
    "profiles",
    [["19"] * 8, ["3g.40gb"] * 3, ["7g.80gb", "19"], ["3g.40gb", "3g.40gb", "19"], ["20", "20"]],
)
def test_instances_that_do_not_fit(machine: SimulatedMachine, profiles: list[str]) -> None:
    code, output = create(enable_mig(machine), *profiles)
    assert code == 23
    assert output.endswith("Failed to create GPU instances: Insufficient Resources\n")


def test_instances_are_destroyed_after_their_compute_instances(machine: SimulatedMachine) -> None:
    create(enable_mig(machine), "9", "19")
    assert "In use by another client" in machine.smi("mig", "-dgi")[1]
    assert "In use by another client" in machine.smi("-mig", "0")[1]
    assert machine.smi("mig", "-dci")[0] == 0
    assert machine.smi("mig", "-dgi")[0] == 0
    assert machine.smi("-mig", "0")[0] == 0
    assert machine.smi("mig", "-lgi")[1] == "No MIG-enabled devices found.\n"


def test_what_verification_reads_of_instances(machine: SimulatedMachine) -> None:
    create(enable_mig(machine, gpus=2), "3g.40gb", "1g.10gb", gpu=1)
    instances = listing(machine)
    assert instances[gpu_uuid(SEED, 0)] == ()
    assert [item.profile for item in instances[gpu_uuid(SEED, 1)]] == ["3g.40gb", "1g.10gb"]
    lines = [" ".join(line.split()) for line in machine.smi("-q")[1].splitlines()]
    ids = mig_devices.parse_ids(lines)
    assert ids == {("00000000:1C:00.0", 0): (1, 0), ("00000000:1C:00.0", 1): (7, 0)}


def test_bindings_read_instances(machine: SimulatedMachine) -> None:
    create(enable_mig(machine), "3g.40gb")
    output = machine.pynvml(
        "d = n.nvmlDeviceGetHandleByIndex(0)\n"
        "m = n.nvmlDeviceGetMigDeviceHandleByIndex(d, 0)\n"
        "a = n.nvmlDeviceGetAttributes_v2(m)\n"
        "print(n.nvmlDeviceGetMigMode(d), n.nvmlDeviceGetName(m))\n"
        "print(a.multiprocessorCount, a.gpuInstanceSliceCount, a.memorySizeMB)\n"
        "i = n.nvmlGpuInstanceGetInfo(n.nvmlDeviceGetGpuInstanceById(d, 1))\n"
        "print(i.id, i.profileId, i.placement.start, i.placement.size)\n"
        "u = n.nvmlDeviceGetUUID(m)\n"
        "print(n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByUUID(u)) == u)\n"
    )
    assert output.splitlines() == [
        "[1, 1] NVIDIA H100 80GB HBM3 MIG 3g.40gb",
        "48 3 40779",
        "1 9 4 4",
        "True",
    ]


def test_what_cannot_be_divided_says_so(machine: SimulatedMachine) -> None:
    machine.load(1)
    assert "Not Supported" in machine.smi("-mig", "1")[1]
    assert machine.smi("mig", "-lgip")[1] == "No MIG-supported devices found.\n"


def capabilities(gpu: int, instance: int) -> tuple[int, int]:
    """Minor numbers of a GPU instance and of its first compute instance: lab/gpusim/driver/load."""
    minor = 3 + 9 * (15 * gpu + instance)
    return minor, minor + 1


def test_a_container_sees_the_instances_that_it_was_given(machine: SimulatedMachine) -> None:
    create(enable_mig(machine, gpus=2), "3g.40gb", "1g.10gb", gpu=1)
    machine.offer_capabilities(*capabilities(1, 7))
    assert [item.profile for item in listing(machine)[gpu_uuid(SEED, 1)]] == ["1g.10gb"]
    machine.offer_capabilities(capabilities(1, 7)[0])
    assert listing(machine)[gpu_uuid(SEED, 1)] == ()


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, "MIG 3g.40gb"),
        ("0", "MIG 3g.40gb"),
        (mig_uuid(0, 7), "MIG 1g.10gb"),
        (f"{mig_uuid(0, 7)},{mig_uuid(0, 1)}", "MIG 1g.10gb"),
        (mig_uuid(0, 1)[:-1], ""),
        (mig_uuid(1, 7), ""),
    ],
)
def test_cuda_computes_on_one_instance(
    machine: SimulatedMachine, visible: str | None, expected: str
) -> None:
    create(enable_mig(machine), "3g.40gb", "1g.10gb")
    variable = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    code, output = machine.run("vectorAdd", "--verbose", **variable)
    assert output.count("[Vector addition of 50000 elements]") == (1 if expected else 0)
    assert expected in output
    assert code == (0 if expected else 1)


def test_cuda_shows_no_instance_beside_a_whole_gpu(machine: SimulatedMachine) -> None:
    create(enable_mig(machine, gpus=2), "7g.80gb")
    machine.smi("-i", "1", "-mig", "0")
    _, output = machine.run("vectorAdd", "--verbose")
    assert gpu_uuid(SEED, 1) in output
    assert "MIG" not in output


def test_a_divided_gpu_without_instances_is_none_to_cuda(machine: SimulatedMachine) -> None:
    code, output = enable_mig(machine).run("vectorAdd")
    assert (code, "CUDA_ERROR_NO_DEVICE" in output) == (1, True)


def discovery() -> list[Path]:
    """The real GPU feature discovery, where the lab has built it."""
    return sorted((cache_dir() / "store").glob("nvidia-device-plugin-*/bin/gpu-feature-discovery"))


@pytest.mark.skipif(not discovery(), reason="no gpu-feature-discovery: scripts/lab build makes it")
@pytest.mark.parametrize(
    ("strategy", "profiles", "labels"),
    [
        (
            "single",
            ["19"] * 7,
            {"gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "gpu.count": "7"},
        ),
        (
            "mixed",
            ["3g.40gb", "1g.10gb", "1g.10gb+me"],
            {"mig-3g.40gb.count": "1", "mig-1g.10gb.count": "1", "mig-1g.10gb.me.count": "1"},
        ),
    ],
)
def test_the_real_feature_discovery_sees_them(
    machine: SimulatedMachine,
    tmp_path: Path,
    strategy: str,
    profiles: list[str],
    labels: dict[str, str],
) -> None:
    create(enable_mig(machine), *profiles)
    output = tmp_path / "features"
    subprocess.run(
        [
            discovery()[-1],
            *("--oneshot", "--no-timestamp", "--use-node-feature-api=false"),
            *(f"--mig-strategy={strategy}", f"--output-file={output}"),
        ],
        env=machine.env(),
        check=True,
        capture_output=True,
        timeout=60,
    )
    feature_labels = dict(line.split("=", 1) for line in output.read_text().splitlines())
    assert {name: feature_labels.get(f"nvidia.com/{name}") for name in labels} == labels
