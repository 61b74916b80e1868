"""When a host is rebooted, and how long it is waited for."""

from types import SimpleNamespace

import pytest

from deploys.operations import reboot as rebooting
from deploys.operations.reboot import RebootError, reboot
from tests.noise import noisy


def said(*lines):
    """What the shell prints: a banner beside the command's own lines."""
    return SimpleNamespace(stdout_lines=noisy(lines), stderr_lines=[], output="")


class Machine:
    """A host by what its shell answers: its boot id, and that it was told to reboot."""

    name = "gpu1"
    connected = True

    def __init__(self, boots):
        self.boots = list(boots)
        self.rebooted = False

    def run_shell_command(self, command, **arguments):
        text = str(command)
        if "boot_id" in text:
            boot = self.boots.pop(0) if len(self.boots) > 1 else self.boots[0]
            return bool(boot), said(boot)
        self.rebooted = self.rebooted or "systemctl reboot" in text
        return True, said()

    def disconnect(self):
        self.connected = False

    def connect(self, show_errors):
        self.connected = True


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    own = tmp_path / "boot_id"
    own.write_text("boot_id-of-this-machine\n")
    monkeypatch.setattr(rebooting, "BOOT_ID", own)
    monkeypatch.setattr(rebooting, "POLL_S", 0)
    monkeypatch.setattr(rebooting.privilege, "arguments", lambda host: {})
    monkeypatch.setattr(rebooting.privilege, "prepare", lambda host: None)


def test_only_another_boot_is_a_reboot():
    machine = Machine(["first", "first", "", "second"])
    reboot(machine, "another driver is loaded", timeout_s=10)
    assert machine.rebooted


def test_the_machine_that_runs_gpuboot_is_left_to_its_user():
    machine = Machine(["boot_id-of-this-machine"])
    with pytest.raises(RebootError, match="another driver is loaded; remedy: gpu1 is the machine"):
        reboot(machine, "another driver is loaded", timeout_s=10)
    assert not machine.rebooted


@pytest.mark.parametrize(
    ("boots", "said", "rebooted"),
    [([""], "does not tell its boot id", False), (["first"], "did not come back within 0 s", True)],
)
def test_what_cannot_be_seen_is_no_reboot(boots, said, rebooted):
    machine = Machine(boots)
    with pytest.raises(RebootError, match=said):
        reboot(machine, "another driver is loaded", timeout_s=0)
    assert machine.rebooted is rebooted
