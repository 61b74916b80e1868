"""When a host is rebooted, and how long it is waited for."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyinfra.api.host import Host

from deploys.lib import privilege
from deploys.operations import reboot as rebooting
from deploys.operations.reboot import RebootError, reboot
from tests.noise import noisy


def said(*lines: str) -> SimpleNamespace:
    """What the shell prints: a banner beside the command's own lines."""
    return SimpleNamespace(stdout_lines=noisy(lines), stderr_lines=[], output="")


class Machine:
    """A host by what its shell answers: its boot id, and that it was told to reboot."""

    name = "gpu1"
    connected = True

    def __init__(self, boots: list[str]) -> None:
        self.boots = list(boots)
        self.rebooted = False

    def run_shell_command(
        self, command: object, **arguments: object
    ) -> tuple[bool, SimpleNamespace]:
        text = str(command)
        if "boot_id" in text:
            boot = self.boots.pop(0) if len(self.boots) > 1 else self.boots[0]
            return bool(boot), said(boot)
        self.rebooted = self.rebooted or "systemctl reboot" in text
        return True, said()

    def disconnect(self) -> None:
        self.connected = False

    def connect(self, show_errors: bool) -> None:
        self.connected = True


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "boot_id"
    own.write_text("boot_id-of-this-machine\n")
    monkeypatch.setattr(rebooting, "BOOT_ID", own)
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
    ("boots", "said", "rebooted"),
    [([""], "does not tell its boot id", False), (["first"], "did not come back within 0 s", True)],
)
def test_what_cannot_be_seen_is_no_reboot(boots: list[str], said: str, rebooted: bool) -> None:
    machine = Machine(boots)
    with pytest.raises(RebootError, match=said):
        reboot(cast(Host, machine), "another driver is loaded", timeout_s=0)
    assert machine.rebooted is rebooted
