"""What apt would do with a run's packages on used hosts: real apt, other vendors' packages."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.unit import apt_host
from tests.unit.rehearsed_host import CONTAINERD, DRIVER, UsedHost, azure, problems, used_host

pytestmark = pytest.mark.skipif(not apt_host.HAS_APT, reason=apt_host.REASON)


@pytest.fixture
def used() -> Iterator[UsedHost]:
    with used_host() as scratch_host:
        yield scratch_host


def test_a_running_runtime_of_another_vendor_is_named_and_kept(used: UsedHost) -> None:
    azure(used)
    outcome = used.rehearsed(CONTAINERD)
    assert not outcome.error
    assert outcome.transaction.removed == {
        "moby-engine": "24.0.9-u1", "moby-containerd": "1.7.20", "moby-runc": "1.1.12",
    }  # fmt: skip
    assert outcome.uses == {"moby-engine": ("docker.service",)}
    assert problems(outcome) == [
        "the packages of this run would remove moby-engine (docker.service uses it); "
        "run `apt-get remove moby-engine` there once nothing needs it, or let the run do so: "
        'preflight.allow_removals = ["moby-engine"]'
    ]
    assert problems(outcome, "moby-engine") == []


def test_a_runtime_that_nobody_uses_goes(used: UsedHost) -> None:
    azure(used, running=False)
    outcome = used.rehearsed(CONTAINERD)
    assert len(outcome.transaction.removed) == 3
    assert problems(outcome) == []


def test_a_program_that_a_service_runs_is_missed_without_a_unit_of_its_own(used: UsedHost) -> None:
    """As containerd's shims do, or a library that a site's own service has open."""
    azure(used, running=False)
    process = used.host.path("proc/71")
    process.mkdir()
    (process / "cgroup").write_text("0::/system.slice/site-worker.service\n")
    (process / "maps").write_text("5-6 r-xp 0 08:01 9      /usr/bin/containerd\n")
    container = used.host.path("proc/72")
    container.mkdir()
    (container / "cgroup").write_text("0::/system.slice/docker-17ab.scope\n")
    (container / "maps").write_text("5-6 r-xp 0 08:01 9      /usr/bin/containerd\n")
    outcome = used.rehearsed(CONTAINERD)
    assert outcome.uses == {"moby-containerd": ("site-worker.service",)}
    assert problems(outcome)


def test_podman_keeps_its_runc_by_another_name(used: UsedHost) -> None:
    used.has("podman", "4.9.3", auto=False, depends="crun | runc")
    used.has("runc", "1.1.12-0ubuntu3")
    outcome = used.rehearsed(CONTAINERD)
    assert outcome.transaction.removed == {"runc": "1.1.12-0ubuntu3"}
    assert problems(outcome) == []


def test_the_distributions_docker_that_somebody_installed_is_kept(used: UsedHost) -> None:
    used.has("docker.io", "27.5.1", auto=False, depends="containerd")
    used.has("containerd", "1.7.27")
    [problem] = problems(used.rehearsed({**CONTAINERD, "docker-ce": "5:29.1.3-*"}))
    assert "remove docker.io (installed by hand);" in problem


def ubuntus_driver(used: UsedHost) -> None:
    source = "nvidia-graphics-drivers-570-open"
    used.has("nvidia-driver-570-open", "570.86-0u1", auto=False, depends="libnvidia-compute-570",
             source=source)  # fmt: skip
    used.has("libnvidia-compute-570", "570.86-0u1", source=source,
             files=["/usr/lib/x86_64-linux-gnu/libcuda.so.570.86"])  # fmt: skip
    used.has("linux-modules-nvidia-570-open-generic", "6.8.0-90", auto=False,
             depends="libnvidia-compute-570", source="linux-restricted-modules")  # fmt: skip


def test_ubuntus_driver_goes_for_the_one_that_the_settings_ask_for(used: UsedHost) -> None:
    """Whoever installed it; and at the version that is pinned, not the newest."""
    ubuntus_driver(used)
    process = used.host.path("proc/71")
    process.mkdir()
    (process / "cgroup").write_text("0::/system.slice/ollama.service\n")
    maps = "5-6 r-xp 0 08:01 9      /usr/lib/x86_64-linux-gnu/libcuda.so.570.86\n"
    (process / "maps").write_text(maps)
    outcome = used.rehearsed(DRIVER)
    assert not outcome.error
    assert outcome.transaction.installed["libnvidia-compute"] == ("", "595.91.07-1")
    assert sorted(outcome.transaction.removed) == [
        "libnvidia-compute-570",
        "linux-modules-nvidia-570-open-generic",
        "nvidia-driver-570-open",
    ]
    assert outcome.uses == {"libnvidia-compute-570": ("ollama.service",)}
    assert problems(outcome) == []


@pytest.mark.parametrize("name", ["lambda-stack-cuda", "dgx-workstation", "site-gpu-node"])
def test_what_a_vendor_or_a_person_made_of_it_is_kept(used: UsedHost, name: str) -> None:
    ubuntus_driver(used)
    used.has(name, "1.0", auto=False, depends="nvidia-driver-570-open")
    [problem] = problems(used.rehearsed(DRIVER))
    assert f"would remove {name} (installed by hand);" in problem


def test_a_desktop_is_no_driver(used: UsedHost) -> None:
    ubuntus_driver(used)
    used.has("xserver-xorg", "1", auto=False, depends="nvidia-driver-570-open")
    [problem] = problems(used.rehearsed(DRIVER))
    assert "would remove xserver-xorg (installed by hand);" in problem


def test_a_container_toolkit_is_no_driver(used: UsedHost) -> None:
    used.offers("nvidia-container-toolkit", "1.20.1-1", conflicts="nvidia-docker2")
    used.has("nvidia-docker2", "2.13", auto=False)
    outcome = used.rehearsed({**DRIVER, "nvidia-container-toolkit": "1.20.1-1"})
    assert ["nvidia-docker2 (installed by hand)" in item for item in problems(outcome)] == [True]


def test_the_kernel_that_runs_is_missed(used: UsedHost) -> None:
    release = os.uname().release
    used.has("linux-image-site", "1", files=[f"/boot/vmlinuz-{release}"], conflicts="kubelet")
    [problem] = problems(used.rehearsed({"kubelet": ""}))
    assert "linux-image-site (the running kernel uses it)" in problem


def test_what_is_downgraded_or_held_is_named(used: UsedHost) -> None:
    used.has("kubelet", "1.36.7-1.1", on_hold=True)
    used.has("libnvidia-compute", "600.10-1", source="nvidia-graphics-drivers")
    packages = {"kubelet": "1.36.6-*", "libnvidia-compute": "595.91.07-*", **DRIVER}
    transaction = used.rehearsed(packages).transaction
    assert transaction.held_packages == ("kubelet",)
    assert sorted(transaction.downgraded) == ["kubelet", "libnvidia-compute"]
    assert transaction.installed["kubelet"] == ("1.36.7-1.1", "1.36.6-1.1")
