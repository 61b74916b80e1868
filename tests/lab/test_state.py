"""Names, addresses and indices of labs; and that nothing dead is taken for running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuboot.hosts.platforms import PLATFORMS
from lab import processes, state
from lab.debian_releases import DEBIAN_RELEASES
from lab.state import LabError


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBOOT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("GPUBOOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(state, "_DEVICES", tmp_path / "devices")


def test_the_default_lab() -> None:
    lab = state.plan("lab", 0, (2, 4), single=False)
    assert [(m.name, m.address, m.gpus, m.role) for m in lab.machines] == [
        ("cp1", "10.77.0.11", 0, "control_plane"),
        ("gpu1", "10.77.0.21", 2, "worker"),
        ("gpu2", "10.77.0.22", 4, "worker"),
    ]
    assert (lab.bridge, lab.host_address, lab.leader.name) == ("gblab0", "10.77.0.1", "cp1")


def test_a_single_machine_is_control_plane_and_has_the_gpus() -> None:
    lab = state.plan("single", 3, (2,), single=True)
    assert [(m.name, m.address, m.gpus, m.role) for m in lab.machines] == [
        ("node1", "10.77.3.11", 2, "control_plane")
    ]


def test_no_two_machines_share_gpu_seeds_or_names_on_the_host() -> None:
    labs = [state.plan(f"l{i}", i, (2, 4), single=False) for i in range(3)]
    seeds = [lab.seed(machine) for lab in labs for machine in lab.machines]
    units = [lab.unit(machine.name) for lab in labs for machine in lab.machines]
    assert len(set(seeds)) == len(set(units)) == 9
    # the kernel's limit for network devices, which are named after units
    assert max(len(f"vb-{unit}") for unit in units) < 16


@pytest.mark.parametrize(
    ("name", "gpus", "single", "expected"),
    [
        ("Lab", (2,), False, "no name for a lab"),
        ("../x", (2,), False, "no name for a lab"),
        ("lab", (), False, "1 to 20 machines"),
        ("lab", (17,), False, "0 to 16 GPUs"),
        ("lab", (2, 4), True, "one number"),
    ],
)
def test_wrong_plans_are_refused(
    name: str, gpus: tuple[int, ...], single: bool, expected: str
) -> None:
    with pytest.raises(LabError, match=expected):
        state.plan(name, 0, gpus, single)


def test_releases_of_debian_are_named_as_the_product_names_them() -> None:
    platforms = {platform.version: platform for platform in PLATFORMS if platform.id == "debian"}
    assert set(DEBIAN_RELEASES) == set(platforms)
    for version, release in DEBIAN_RELEASES.items():
        product = platforms[version]
        assert (release.codename, release.cuda) == (product.codename, product.cuda)
        assert release.cuda_key == product.cuda_key[0]


def test_a_lab_keeps_its_release_of_debian() -> None:
    new_lab = state.ensure("lab", (1,), True, DEBIAN_RELEASES["13"])
    assert state.load("lab") == new_lab
    assert new_lab.debian.codename == "trixie"
    with pytest.raises(LabError, match=r"exists with other machines: .* of Debian 13"):
        state.ensure("lab", (1,), True, DEBIAN_RELEASES["12"])


def test_bridges_of_another_state_folder_are_left_alone(tmp_path: Path) -> None:
    for device in ("lo", "gblab0", "gblab2"):
        (tmp_path / "devices" / device).mkdir(parents=True)
    assert [state.ensure(name, (2,), True).index for name in ("a", "b")] == [1, 3]


def test_labs_get_the_lowest_free_index() -> None:
    first = state.ensure("first", (1,), False)
    second = state.ensure("second", (1,), False)
    assert (first.index, second.index) == (0, 1)
    state.remove(first)
    assert state.ensure("third", (1,), False).index == 0
    assert [lab.name for lab in state.labs()] == ["third", "second"]


def test_the_same_lab_is_found_again() -> None:
    new_lab = state.ensure("lab", (2, 4), False)
    assert state.ensure("lab", (2, 4), False) == new_lab == state.load("lab")


def test_another_shape_needs_another_name() -> None:
    state.ensure("lab", (2, 4), False)
    with pytest.raises(LabError, match=r"gpu2 \(4 GPUs\).*down --name lab"):
        state.ensure("lab", (2,), False)


def test_an_unknown_lab_names_those_there_are() -> None:
    state.ensure("real", (1,), False)
    with pytest.raises(LabError, match="'unreal'; there are: real"):
        state.load("unreal")


def test_a_damaged_state_is_named() -> None:
    lab = state.ensure("lab", (1,), False)
    (lab.folder / "lab.json").write_text("{")
    with pytest.raises(LabError, match="damaged"):
        state.load("lab")


def test_forget_removes_the_lab_and_follows_no_links(tmp_path: Path) -> None:
    outside = tmp_path / "kept"
    outside.mkdir()
    (outside / "file").touch()
    lab = state.ensure("lab", (1,), False)
    (lab.folder / "link").symlink_to(outside)
    state.remove(lab)
    assert not lab.folder.exists()
    assert (outside / "file").exists()


def test_a_process_id_alone_proves_nothing(tmp_path: Path) -> None:
    pidfile = tmp_path / "supervisor.pid"
    assert processes.running_pid(pidfile, "gb0-cp1") is None
    pidfile.write_text(f"{os.getpid()}\n")
    assert processes.running_pid(pidfile, "gb0-cp1") is None
    script = "import sys; print(flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "gb0-cp1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()  # its arguments show a moment after it is started
    try:
        pidfile.write_text(f"{process.pid}\n")
        assert processes.running_pid(pidfile, "gb0-cp1") == process.pid
        assert processes.running_pid(pidfile, "gb0-cp10") is None
    finally:
        process.communicate(b"")
    assert processes.running_pid(pidfile, "gb0-cp1") is None


def test_a_lab_is_worked_on_by_one_command_at_a_time() -> None:
    with state.lock("lab-x"):
        with pytest.raises(LabError, match="another command"), state.lock("lab-x", wait=False):
            pass
        with state.lock("lab-y", wait=False):
            pass


def test_a_cgroup_that_vanishes_while_it_is_read_has_no_members(tmp_path: Path) -> None:
    (tmp_path / "pod").mkdir()
    (tmp_path / "pod" / "cgroup.procs").write_text("12\n13\n")
    assert processes._members([tmp_path, tmp_path / "gone"]) == {12, 13}
