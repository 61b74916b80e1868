"""When a host is rebooted, and how long it is waited for."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyinfra.api.host import Host

from deploys.engine import privilege
from deploys.parts.nodes.node_parts import DriverPart
from deploys.parts.reboot import reboot as rebooting
from deploys.parts.reboot.reboot import RebootError, reboot
from gpuboot.config.settings import parse_settings
from tests.noise import noisy


def shell_output(*lines: str) -> SimpleNamespace:
    """What the shell prints: a banner beside the command's own lines."""
    return SimpleNamespace(stdout_lines=noisy(lines), stderr_lines=[], output="")


class Machine:
    """A host by what its shell answers: its boot id, and that it was told to reboot."""

    name = "gpu1"
    connected = True

    def __init__(self, boots: list[str], memory_kib: str = "") -> None:
        self.boots, self.memory_kib = list(boots), memory_kib
        self.rebooted = False

    def run_shell_command(
        self, command: object, **arguments: object
    ) -> tuple[bool, SimpleNamespace]:
        text = str(command)
        if "boot_id" in text:
            boot = self.boots.pop(0) if len(self.boots) > 1 else self.boots[0]
            return bool(boot), shell_output(boot)
        if "meminfo" in text and self.memory_kib:
            return True, shell_output(f"MemTotal:       {self.memory_kib} kB")
        self.rebooted = self.rebooted or "systemctl reboot" in text
        return True, shell_output()

    def disconnect(self) -> None:
        self.connected = False

    def connect(self, show_errors: bool) -> None:
        self.connected = True


@pytest.fixture(autouse=True)
def _local_boot_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    boot_id_file = tmp_path / "boot_id"
    boot_id_file.write_text("boot_id-of-this-machine\n")
    monkeypatch.setattr(rebooting, "BOOT_ID", boot_id_file)
    monkeypatch.setattr(rebooting, "POLL_S", 0)
    monkeypatch.setattr(privilege, "become_arguments", lambda host: {})
    monkeypatch.setattr(privilege, "prepare_askpass", lambda host: None)


def test_only_another_boot_is_a_reboot() -> None:
    machine = Machine(["first", "first", "", "second"])
    reboot(cast(Host, machine), "another driver is loaded", timeout_s=10)
    assert machine.rebooted


def test_the_machine_that_runs_gpuboot_is_left_to_its_user() -> None:
    machine = Machine(["boot_id-of-this-machine"])
    with pytest.raises(RebootError, match="loaded, and gpu1 is the machine"):
        reboot(cast(Host, machine), "another driver is loaded", timeout_s=10)
    assert not machine.rebooted


@pytest.mark.parametrize(
    ("boots", "message", "rebooted"),
    [([""], "does not tell its boot id", False), (["first"], "did not come back within 0 s", True)],
)
def test_what_cannot_be_seen_is_no_reboot(boots: list[str], message: str, rebooted: bool) -> None:
    machine = Machine(boots)
    with pytest.raises(RebootError, match=message):
        reboot(cast(Host, machine), "another driver is loaded", timeout_s=0)
    assert machine.rebooted is rebooted


GIB = 1024**2  # KiB


@pytest.mark.parametrize(
    ("memory_kib", "setting", "limit_s"),
    [
        ("16384000", None, 900 + 15),  # a workstation
        (str(2063 * GIB), None, 900 + 2063),  # HGX with 2 TiB
        (str(4031 * GIB), None, 900 + 4031),
        ("", None, 900),  # it does not tell
        (str(2063 * GIB), 600, 600),  # the site's own wins, be it shorter
        ("16384000", 7200, 7200),
    ],
)
def test_a_machine_with_much_memory_may_take_longer(
    monkeypatch: pytest.MonkeyPatch, memory_kib: str, setting: int | None, limit_s: int
) -> None:
    clock = iter(range(0, 100_000, 60))
    monkeypatch.setattr(f"{rebooting.__name__}.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(f"{rebooting.__name__}.time.sleep", lambda _: None)
    machine = Machine(["first"], memory_kib)
    with pytest.raises(RebootError, match=f"did not come back within {limit_s} s"):
        reboot(cast(Host, machine), "another driver is loaded", timeout_s=setting)
    assert machine.rebooted


def test_a_machine_with_2_tib_that_takes_half_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 100_000, 60))
    monkeypatch.setattr(f"{rebooting.__name__}.time.monotonic", lambda: next(now))
    monkeypatch.setattr(f"{rebooting.__name__}.time.sleep", lambda _: None)
    machine = Machine(["first"] * 15 + ["second"], str(2063 * GIB))
    assert reboot(cast(Host, machine), "another driver is loaded", timeout_s=None) == "second"


def test_every_reboot_leaves_the_time_to_that_rule() -> None:
    assert parse_settings({}).driver.reboot_timeout_s is None
    assert DriverPart(version="595.91.07", packages={}).reboot_s is None
