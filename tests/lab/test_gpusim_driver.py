"""The simulated driver libraries, seen through NVIDIA's own Python bindings and nvidia-smi."""

from __future__ import annotations

import pytest

from lab.gpusim.pci_devices import gpu_uuid
from tests.lab.simulated_driver import NO_LIBRARIES, SEED, VERSION, SimulatedMachine


def test_bindings_see_every_gpu_and_its_identity(machine: SimulatedMachine) -> None:
    machine.load(3)
    output = machine.pynvml(
        "print(n.nvmlSystemGetDriverVersion(), n.nvmlSystemGetCudaDriverVersion())\n"
        "for i in range(n.nvmlDeviceGetCount()):\n"
        "    d = n.nvmlDeviceGetHandleByIndex(i)\n"
        "    p = n.nvmlDeviceGetPciInfo(d)\n"
        "    print(n.nvmlDeviceGetUUID(d), p.busId, hex(p.pciDeviceId), n.nvmlDeviceGetName(d))\n"
    )
    assert output.splitlines() == [
        f"{VERSION} 13020",
        *(
            f"{gpu_uuid(SEED, i)} 00000000:{bus}:00.0 0x233010de NVIDIA H100 80GB HBM3"
            for i, bus in enumerate(("10", "1C", "28"))
        ),
    ]


def test_bindings_read_structures_at_the_offsets_they_declare(machine: SimulatedMachine) -> None:
    machine.load(1)
    machine.inject("0.memory_used_mib = 1000")
    machine.inject("0.util = 80")
    machine.inject("0.recovery_action = 2")
    output = machine.pynvml(
        "d = n.nvmlDeviceGetHandleByIndex(0)\n"
        "m = n.nvmlDeviceGetMemoryInfo(d, version=n.nvmlMemory_v2)\n"
        "print(m.total >> 20, m.used >> 20, m.reserved >> 20, m.free >> 20)\n"
        "v = n.nvmlDeviceGetMemoryInfo(d)\n"
        "print(v.total >> 20, v.used >> 20, v.free >> 20)\n"
        "u = n.nvmlDeviceGetUtilizationRates(d)\n"
        "print(u.gpu, u.memory, n.nvmlDeviceGetCudaComputeCapability(d))\n"
        "f = n.nvmlDeviceGetFieldValues(d, [n.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 1])\n"
        "print(f[0].nvmlReturn, f[0].value.uiVal, f[1].nvmlReturn)\n"
        "print(n.nvmlDeviceGetRemappedRows(d), n.nvmlDeviceGetPowerUsage(d) > 500000)\n"
    )
    assert output.splitlines() == [
        "81559 1000 550 80009",
        "81559 1550 80009",
        "80 40 (9, 0)",
        "0 2 3",
        "(0, 0, 0, 0) True",
    ]


def test_only_gpus_with_a_device_node_are_counted(machine: SimulatedMachine) -> None:
    machine.load(4, visible=(1, 3))
    output = machine.pynvml(
        "for i in range(n.nvmlDeviceGetCount()):\n"
        "    d = n.nvmlDeviceGetHandleByIndex(i)\n"
        "    print(n.nvmlDeviceGetIndex(d), n.nvmlDeviceGetMinorNumber(d), n.nvmlDeviceGetUUID(d))"
    )
    assert output.splitlines() == [f"0 1 {gpu_uuid(SEED, 1)}", f"1 3 {gpu_uuid(SEED, 3)}"]


def test_mig_is_not_supported(machine: SimulatedMachine) -> None:
    machine.load(1)
    output = machine.pynvml("n.nvmlDeviceGetMigMode(n.nvmlDeviceGetHandleByIndex(0))")
    assert "NVMLError_NotSupported" in output


def test_a_gpu_can_be_lost_while_a_process_runs_and_come_back(machine: SimulatedMachine) -> None:
    machine.load(2)
    output = machine.pynvml(
        f"conf = open({str(machine.conf)!r}, 'a', buffering=1)\n"
        "d = n.nvmlDeviceGetHandleByIndex(1)\n"
        "conf.write('1.lost = 1\\n')\n"
        "try:\n    n.nvmlDeviceGetTemperature(d, 0)\n"
        "except n.NVMLError_GpuIsLost as error:\n    print(error, n.nvmlDeviceGetCount())\n"
        "conf.write('1.lost = default\\n')\n"
        "print(n.nvmlDeviceGetTemperature(d, 0))\n"
    )
    assert output.splitlines() == ["GPU is lost 2", "34"]


def test_each_xid_is_one_event_and_older_ones_are_not_delivered(machine: SimulatedMachine) -> None:
    machine.load(2)
    machine.inject("1.xid = 31")
    output = machine.pynvml(
        f"conf = open({str(machine.conf)!r}, 'a', buffering=1)\n"
        "events = n.nvmlEventSetCreate()\n"
        "for i in (0, 1):\n"
        "    d = n.nvmlDeviceGetHandleByIndex(i)\n"
        "    n.nvmlDeviceRegisterEvents(d, n.nvmlEventTypeXidCriticalError, events)\n"
        "conf.write('1.xid = 79\\n1.xid = 79\\n')\n"
        "for _ in range(3):\n"
        "    try:\n"
        "        e = n.nvmlEventSetWait_v2(events, 0)\n"
        "        print(n.nvmlDeviceGetIndex(e.device), e.eventType, e.eventData)\n"
        "    except n.NVMLError_Timeout as error:\n        print(error)\n"
    )
    assert output.splitlines() == ["1 8 79", "1 8 79", "Timeout"]


def test_heat_slows_the_clocks_and_says_why(machine: SimulatedMachine) -> None:
    machine.load(1)
    machine.inject("0.temperature = 91")
    code, output = machine.smi(
        "--query-gpu=temperature.gpu,clocks.sm,clocks_event_reasons.active",
        "--format=csv,noheader,nounits",
    )
    assert (code, output) == (0, "91, 1000, 0x0000000000000048\n")


def test_smi_table_says_that_it_is_simulated(machine: SimulatedMachine) -> None:
    machine.load(2)
    code, output = machine.smi()
    assert code == 0
    assert "SIMULATED" in output.splitlines()[3]
    assert f"Driver Version: {VERSION}" in output
    assert {len(line) for line in output.splitlines()[1:] if line} == {91}


def test_smi_lists_and_queries(machine: SimulatedMachine) -> None:
    machine.load(2)
    assert machine.smi("-L") == (
        0,
        "".join(f"GPU {i}: NVIDIA H100 80GB HBM3 (UUID: {gpu_uuid(SEED, i)})\n" for i in range(2)),
    )
    assert machine.smi("--query-gpu=index,memory.total,pci.bus_id", "--format=csv", "-i", "1") == (
        0,
        "index, memory.total [MiB], pci.bus_id\n1, 81559 MiB, 00000000:1C:00.0\n",
    )


def test_smi_refuses_an_unknown_field(machine: SimulatedMachine) -> None:
    machine.load(1)
    code, output = machine.smi("--query-gpu=index,warp_core", "--format=csv")
    assert code == 2
    assert 'Field "warp_core" is not a valid field to query.' in output


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "[N/A], [N/A]"),
        (["nvswitches = 4"], "Not Started, [N/A]"),
        (["nvswitches = 4", "0.fabric = 1"], "Completed, Success"),
        (["nvswitches = 4", "0.fabric = 1", "0.fabric_status = 2"], "In Progress, [N/A]"),
        (["nvswitches = 4", "0.fabric = 1", "0.fabric_status = 4"], "Completed, Unknown Error"),
    ],
)
def test_smi_tells_the_fabric_of_nvswitches(
    machine: SimulatedMachine, lines: list[str], expected: str
) -> None:
    machine.load(1)
    for line in lines:
        machine.inject(line)
    query = ("--query-gpu=fabric.state,fabric.status", "--format=csv,noheader")
    assert machine.smi(*query) == (0, f"{expected}\n")


def test_smi_sets_the_persistence_mode(machine: SimulatedMachine) -> None:
    machine.load(1)
    query = ("--query-gpu=persistence_mode", "--format=csv,noheader")
    assert machine.smi(*query) == (0, "Disabled\n")
    assert machine.smi("-pm", "1")[0] == 0
    assert machine.smi(*query) == (0, "Enabled\n")


def test_smi_fails_on_a_lost_gpu_and_still_lists_the_others(machine: SimulatedMachine) -> None:
    machine.load(2)
    machine.inject("1.lost = 1")
    code, output = machine.smi()
    assert code == 15
    assert "Unable to determine the device handle for GPU0000:1C:00.0: GPU is lost." in output
    code, output = machine.smi("-L")
    assert code == 15
    assert f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {gpu_uuid(SEED, 0)})" in output


def test_smi_without_driver_module_library_or_with_another_version(
    machine: SimulatedMachine,
) -> None:
    machine.load(1, version="595.91.07")
    code, output = machine.smi()
    assert (code, output.splitlines()[0]) == (
        18,
        "Failed to initialize NVML: Driver/library version mismatch",
    )
    (machine.folder / "dev/nvidiactl").unlink()
    code, output = machine.smi()
    assert code == 9
    assert "couldn't communicate with the NVIDIA driver" in output
    assert machine.smi(libraries=NO_LIBRARIES)[0] == 12


def test_vectoradd_passes_on_every_visible_gpu(machine: SimulatedMachine) -> None:
    machine.load(4, visible=(0, 2))
    code, output = machine.run("vectorAdd", "--verbose")
    assert code == 0
    assert output.count("[Vector addition of 50000 elements]") == 2
    assert gpu_uuid(SEED, 2) in output
    assert output.splitlines()[-2:] == ["Test PASSED", "Done"]


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("1", [1]),
        ("2,0", [2, 0]),
        (gpu_uuid(SEED, 2), [2]),
        (gpu_uuid(SEED, 1)[:-1] + "9", []),
        (f"{gpu_uuid(SEED, 1)},MIG-1,0", [1]),
        ("7", []),
        ("", []),
    ],
)
def test_cuda_sees_the_gpus_that_its_variable_names(
    machine: SimulatedMachine, visible: str, expected: list[int]
) -> None:
    machine.load(3)
    code, output = machine.run("vectorAdd", "--verbose", CUDA_VISIBLE_DEVICES=visible)
    assert [index for index in range(3) if gpu_uuid(SEED, index) in output] == sorted(expected)
    assert ("PASSED" in output, code) == ((True, 0) if expected else (False, 1))


@pytest.mark.parametrize(
    ("gpus", "fault", "libraries", "reason"),
    [
        (0, "", None, "CUDA_ERROR_NO_DEVICE"),
        (1, "", NO_LIBRARIES, "cannot open shared object file"),
        (2, "1.lost = 1", None, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
        (2, "1.cuda_wrong = 1", None, "Result verification failed at element 25000"),
        (1, "nvswitches = 4", None, "CUDA_ERROR_SYSTEM_NOT_READY"),
    ],
)
def test_vectoradd_fails(
    machine: SimulatedMachine, gpus: int, fault: str, libraries: str | None, reason: str
) -> None:
    machine.load(gpus)
    machine.inject(fault)
    code, output = machine.run("vectorAdd", libraries=libraries)
    assert code == 1
    assert reason in output
    assert "Test FAILED" in output
    assert "PASSED" not in output
