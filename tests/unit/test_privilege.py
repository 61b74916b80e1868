"""sudo's password, and the shell of a run's commands, on hosts that are hardened."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host

from deploys.engine import privilege

ROOT = Path(__file__).resolve().parents[2]


class Machine:
    """A host whose commands run here, with folders in which no program can be run."""

    print_prefix, name = "", "gpu1"

    def __init__(self, folder: Path, *closed: str) -> None:
        self.folder, self.closed = folder, closed
        self.connector_data: dict[str, Any] = {}
        for name in ("temp", "home", "var", "shm"):
            (folder / name).mkdir()

    def get_temp_dir_config(self) -> str:
        return str(self.folder / "temp")

    def run_shell_command(
        self, command: StringCommand, **arguments: Any
    ) -> tuple[bool, SimpleNamespace]:
        text = command.get_raw_value()
        for name, folder in (("/var/tmp", "var"), ("/dev/shm", "shm")):
            text = text.replace(f" {name}", f" {self.folder / folder}")
        # what noexec does: the file cannot be run
        closed = "|".join(f"*/{name}/*" for name in self.closed) or "-"
        text = text.replace(
            'chmod 755 "$file"', f'case $file in {closed}) : ;; *) chmod 755 "$file" ;; esac'
        )
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home")}
        result = subprocess.run(
            ["dash", "-c", text], capture_output=True, text=True, env=environment, umask=0o77
        )
        lines = result.stdout.splitlines()
        output = SimpleNamespace(
            stdout_lines=lines, stderr_lines=result.stderr.splitlines(), output=result.stdout
        )
        return result.returncode == 0, output


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "become_arguments", lambda host: {"_sudo_password": "secret"})


def program(machine: Machine) -> Path:
    privilege.prepare_askpass(cast(Host, machine))
    (path,) = machine.connector_data.values()
    return Path(path)


def test_the_password_is_given_from_a_folder_that_can_hold_a_program(tmp_path: Path) -> None:
    program_path = program(Machine(tmp_path))
    assert program_path.parent == tmp_path / "temp"
    environment = {"PYINFRA_SUDO_PASSWORD": "pass word"}
    result = subprocess.run([program_path], capture_output=True, text=True, env=environment)
    assert result.stdout == "pass word\n"


def test_tmp_without_programs(tmp_path: Path) -> None:
    program_path = program(Machine(tmp_path, "temp"))
    assert program_path.parent == tmp_path / "home"
    assert list((tmp_path / "temp").iterdir()) == [], "nothing is left where it does not work"


def test_no_folder_at_all(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "temp", "home", "var", "shm")
    with pytest.raises(PyinfraError, match=r"no program can be run from .*; remedy: mount"):
        privilege.prepare_askpass(cast(Host, machine))
    assert machine.connector_data == {}


def test_commands_of_a_run_have_a_umask_and_a_language_of_their_own(tmp_path: Path) -> None:
    """Through the real command line, whatever the shell has that it starts from."""
    environment = {**os.environ, "LC_ALL": "de_DE.UTF-8", "PYTHONPATH": str(ROOT)}
    command = ["pyinfra", "@local", "exec", "--", 'umask; echo "[$LC_ALL]"']
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=environment, umask=0o77, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert "0022" in result.stdout + result.stderr
    assert "[C]" in result.stdout + result.stderr
