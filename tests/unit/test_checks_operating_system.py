"""PCI, driver, nvidia-smi, runtime: pass, fail with remedy, not covered, unknown."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.verify.checks import operating_system
from tests.unit.evidence import SLOTS, gpu, host, of, only, uuid


def test_a_sound_host_passes_every_link_for_every_gpu() -> None:
    findings = operating_system.evaluate(host(), "default")
    assert {(f.link, f.gpu_uuid, f.status) for f in findings} == {
        (link, uuid("gpu1", index), "pass")
        for link in ("pci", "driver", "nvidia-smi", "runtime")
        for index in (0, 1)
    }


def test_an_unread_host_is_unknown_not_failed() -> None:
    finding = only(
        operating_system.evaluate(host(error="cannot be reached", gpus=()), "default"), "unknown"
    )
    assert finding.detail == "cannot be reached"
    assert "SSH" in finding.remedy


@pytest.mark.parametrize(("count", "remedy"), [(1, "power cycle"), (3, "set gpus = 3")])
def test_pci_differs_from_the_inventory(count: int, remedy: str) -> None:
    finding = only(operating_system.pci(host(count=count, expected_gpus=2)), "fail")
    assert f"promises 2 GPUs, PCI shows {count}" in finding.detail
    assert remedy in finding.remedy


@pytest.mark.parametrize(("count", "remedy"), [(2, "lspci -nnk"), (3, "power cycle")])
def test_a_gpu_that_is_kept_from_the_cluster_has_not_left_the_bus(count: int, remedy: str) -> None:
    """The remedy for one of vfio-pci was a power cycle, then its replacement."""
    text = "0000:1c:00.0 H100 (kept by the driver vfio-pci)"
    observed = host(count=1, expected_gpus=count, left_alone=(text,))
    finding = only(operating_system.pci(observed), "fail")
    assert text in finding.detail
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("versions", "detail", "remedy"),
    [
        ({"driver_loaded": ""}, "no NVIDIA kernel module", "modprobe nvidia"),
        ({"driver_installed": "595.91.08"}, "loaded 595.91.07, installed 595.91.08", "reboot"),
        ({"driver_installed": ""}, "installed none", "reboot"),
        ({"driver_requested": "595.91.08"}, "requested 595.91.08", "deploys/site.py"),
    ],
)
def test_driver_versions_that_differ(versions: dict[str, Any], detail: str, remedy: str) -> None:
    finding = only(operating_system.driver(host(**versions)), "fail")
    assert detail in finding.detail
    assert remedy in finding.remedy


def test_a_driver_that_gpuboot_does_not_install_is_asked_for_nothing() -> None:
    assert len(of(operating_system.driver(host(driver_requested=None)), "pass")) == 2


def test_a_lost_gpu_is_named_and_the_others_pass() -> None:
    lost_gpu = gpu("gpu1", 1, index=None, is_lost=True)
    message = "Unable to determine the device handle for GPU00000000:1C:00.0: GPU is lost."
    findings = operating_system.nvidia_smi(host(gpus=(gpu("gpu1", 0), lost_gpu), smi_error=message))
    failed = only(findings, "fail")
    assert failed.gpu_uuid == uuid("gpu1", 1)
    assert SLOTS[1] in failed.detail
    assert "GPU is lost" in failed.detail
    assert "drain" in failed.remedy
    assert only(findings, "pass").gpu_uuid == uuid("gpu1", 0)


@pytest.mark.parametrize(
    ("message", "remedy"),
    [("GPU requires reset", "--gpu-reset"), ("GPU is lost", "reboot"), ("Unknown Error", "Xid")],
)
def test_a_gpu_that_says_so_in_place_of_its_values_fails(message: str, remedy: str) -> None:
    """It has index and UUID, and its memory size; it passed."""
    findings = operating_system.nvidia_smi(
        host(gpus=(gpu("gpu1", 0), gpu("gpu1", 1, fault=message)))
    )
    failed = only(findings, "fail")
    assert (failed.gpu_uuid, message in failed.detail) == (uuid("gpu1", 1), True)
    assert remedy in failed.remedy


def test_a_gpu_that_the_bus_lacks_fails() -> None:
    assert (
        "not on the PCI bus"
        in only(operating_system.nvidia_smi(host(pci_addresses=SLOTS[:1])), "fail").detail
    )


def test_nvidia_smi_without_an_answer_fails_for_the_node() -> None:
    silent = tuple(gpu("gpu1", i, index=None, uuid="") for i in (0, 1))
    finding = only(
        operating_system.nvidia_smi(host(gpus=silent, smi_error="Driver/library version mismatch")),
        "fail",
    )
    assert finding.gpu_uuid is None
    assert "mismatch" in finding.detail


def test_two_gpus_with_one_uuid_fail() -> None:
    twin = gpu("gpu1", 1, uuid=uuid("gpu1", 0))
    findings = of(operating_system.nvidia_smi(host(gpus=(gpu("gpu1", 0), twin))), "fail")
    assert [f.detail for f in findings] == [f"two devices have UUID {uuid('gpu1', 0)}"]


@pytest.mark.parametrize(
    ("mode", "state", "detail"),
    [
        ("default", {"runtime_handlers": ("runc",)}, "no runtime handler"),
        ("default", {"default_runtime": "runc"}, "default runtime is runc"),
        ("runtimeclass", {"runtime_handlers": ("runc",)}, "no runtime handler"),
    ],
)
def test_containerd_without_what_the_mode_needs(
    mode: str, state: dict[str, Any], detail: str
) -> None:
    finding = only(operating_system.runtime(host(**state), mode), "fail")
    assert detail in finding.detail
    assert "deploys/site.py" in finding.remedy


def test_runtimeclass_needs_no_default_runtime() -> None:
    findings = operating_system.runtime(host(default_runtime="runc"), "runtimeclass")
    assert {f.status for f in findings} == {"pass"}


def test_cdi_names_devices_by_index_or_uuid() -> None:
    by_index = host(cdi_devices=("nvidia.com/gpu=0", "nvidia.com/gpu=1", "nvidia.com/gpu=all"))
    assert {f.status for f in operating_system.runtime(by_index, "cdi")} == {"pass"}
    assert {f.status for f in operating_system.runtime(host(), "cdi")} == {"pass"}


def test_a_gpu_without_its_cdi_device_fails_in_mode_cdi_alone() -> None:
    stale = host(cdi_devices=("nvidia.com/gpu=0",))
    failed = only(operating_system.runtime(stale, "cdi"), "fail")
    assert failed.gpu_uuid == uuid("gpu1", 1)
    assert "nvidia-cdi-refresh" in failed.remedy
    assert {f.status for f in operating_system.runtime(stale, "default")} == {"pass"}


def test_containerd_without_an_answer_is_unknown() -> None:
    assert (
        "crictl info"
        in only(operating_system.runtime(host(runtime_handlers=()), "default"), "unknown").remedy
    )


def test_cdi_without_an_answer_is_unknown() -> None:
    assert only(operating_system.runtime(host(cdi_devices=None), "cdi"), "unknown").node == "gpu1"
