"""Swap that comes back: what its fact reads, and commands, run in a folder that looks like a host.

What systemctl prints is of systemd 252, booted with such units.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from deploys.parts.kernel import operations as kernel
from deploys.parts.kernel.fact import Swap, SwapState

FSTAB = """\
UUID=1 / ext4 defaults 0 1
UUID=2 none swap sw 0 0
# UUID=3 none swap sw 0 0
/dev/sdb1\tswap\tswap\tdefaults,nofail 0 0
  UUID=6 none swap sw 0 0
UUID=4 none swap noauto 0 0
UUID=5 none swap sw,noauto,pri=1 0 0
/swap.img none swap sw,x-systemd.device-timeout=noautomatic 0 0
//nas/swap /swap cifs noauto 0 0
"""
UNIT_PROPERTIES = """\
Requires=swap.img.swap -.mount
Wants=dev-nvme0n1p3.swap dev-zram0.swap
LoadState=loaded
"""


class Machine:
    """A folder that looks like a host, and keeps what systemctl was called with."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "calls"
        for folder in ("bin", "etc/gpuboot", "proc"):
            (root / folder).mkdir(parents=True)
        (root / "proc/swaps").write_text("Filename Type Size Used Priority\n")
        self.systemctl("")

    def systemctl(self, properties: str, enabled: str = "", code: int = 0) -> None:
        (self.root / "shown").write_text(properties)
        (self.root / "enabled").write_text(enabled)
        program = self.root / "bin/systemctl"
        program.write_text(
            f'#!/bin/sh\necho "$*" >>{self.log}\ncase $1 in show) cat {self.root}/shown ;;\n'
            f"list-unit-files) cat {self.root}/enabled; [ -s {self.root}/enabled ] ;;\n"
            f"cat) exit {code} ;; esac\n"
        )
        program.chmod(0o755)

    def run(self, command: str, shell: list[str]) -> list[str]:
        for folder in ("/etc/", "/proc/"):
            command = command.replace(folder, f"{self.root}{folder}")
        result = subprocess.run(
            [*shell, "-c", command],
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin", "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout.splitlines()

    def state(self, shell: list[str]) -> SwapState:
        fact = Swap()
        arguments = {"services": kernel.SWAP_SERVICES}
        return fact.value(self.run(fact.bare_command(arguments), shell))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture(params=(["dash"], ["busybox", "ash"]), ids=" ".join)
def shell(request: pytest.FixtureRequest) -> list[str]:
    value: list[str] = request.param
    return value


def test_no_swap(machine: Machine, shell: list[str]) -> None:
    machine.systemctl("Requires=\nWants=\nLoadState=loaded\n")
    assert machine.state(shell) == SwapState()
    assert "zramswap.service" in machine.log.read_text()


def test_all_that_would_bring_swap_back(machine: Machine, shell: list[str]) -> None:
    (machine.root / "proc/swaps").write_text("Filename Type\n/dev/zram0 partition 1 0 100\n")
    (machine.root / "etc/fstab").write_text(FSTAB)
    machine.systemctl(
        UNIT_PROPERTIES, "zramswap.service enabled enabled\nmy.swap enabled enabled\n"
    )
    assert machine.state(shell) == SwapState(
        active=("/dev/zram0",),
        fstab=("UUID=2", "/dev/sdb1", "UUID=6", "/swap.img"),
        units=("zramswap.service", "my.swap"),
        pulled=("swap.img.swap", "dev-nvme0n1p3.swap", "dev-zram0.swap"),
    )


def test_a_mask_holds(machine: Machine, shell: list[str]) -> None:
    machine.systemctl("Requires=\nWants=\nLoadState=masked\n")
    assert machine.state(shell) == SwapState(masked=True)


def test_lines_of_fstab_with_noauto_stay(machine: Machine, shell: list[str]) -> None:
    """With none left, systemd would look for GPT partitions; and nothing starts these."""
    (machine.root / "etc/fstab").write_text(FSTAB)
    machine.run(kernel.WITHOUT_FSTAB, shell)
    changed = (machine.root / "etc/fstab").read_text().splitlines()
    before = FSTAB.splitlines()
    commented = [new for old, new in zip(before, changed, strict=True) if old != new]
    assert commented == [f"# gpuboot: {before[number]}" for number in (1, 3, 4, 7)]
    assert machine.state(shell).fstab == ()


def test_a_line_that_an_earlier_run_commented_out_is_no_hold(
    machine: Machine, shell: list[str]
) -> None:
    """Its area may be a GPT partition, whose unit is there only when systemd reloads."""
    (machine.root / "etc/fstab").write_text("# gpuboot: UUID=2 none swap sw 0 0\n")
    assert machine.state(shell) == SwapState(pulled=("UUID=2",))


def test_a_reset_gives_back_what_a_run_took(machine: Machine, shell: list[str]) -> None:
    units = machine.root / "etc/gpuboot/swap-units"
    machine.run(kernel.SWAP_BACK, shell)
    assert not machine.log.exists()
    units.write_text("zramswap.service\nswap.target\n")
    machine.run(kernel.SWAP_BACK, shell)
    calls = machine.log.read_text().splitlines()
    assert calls == ["cat zramswap.service", "enable zramswap.service", "unmask swap.target"]
    assert not units.exists()


def test_a_unit_that_is_gone_is_not_missed(machine: Machine, shell: list[str]) -> None:
    machine.systemctl("", code=1)
    (machine.root / "etc/gpuboot/swap-units").write_text("zramswap.service\n")
    machine.run(kernel.SWAP_BACK, shell)
    assert machine.log.read_text() == "cat zramswap.service\n"
