"""Whatever goes wrong in the lab's command is one line, and what was made before is kept."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest

from gpuboot.mirror.signing import SigningError
from lab import cli, failures, machines, preflight, processes, publishers, state
from lab import up as lab_up
from lab.alert_receivers import service as alerts
from lab.alert_receivers.endpoints import FOLDER
from lab.mirror import docroot, lock, service
from lab.mirror.keys import CertificateAuthority
from lab.state import Lab, LabError

ERRORS = {
    "gpg --clearsign: gpg: can't connect to the agent: End of file": SigningError(
        "gpg --clearsign: gpg: can't connect to the agent: End of file"
    ),
    "ip link add … failed with status 2: RTNETLINK: File exists": subprocess.CalledProcessError(
        2, ["ip", "link", "add", "x"], b"", b"warning\nRTNETLINK: File exists\n"
    ),
    "No space left on device: /var/cache/gpuboot/store/x": OSError(
        errno.ENOSPC, "No space left on device", "/var/cache/gpuboot/store/x"
    ),
    "cp -a base … failed with status 1: cp: no space": LabError(
        "cp -a base … failed with status 1:\ncp: many lines\ncp: no space"
    ),
    "KeyError: 'packages'": KeyError("packages"),
}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBOOT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("GPUBOOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(state, "_DEVICES", tmp_path / "devices")
    monkeypatch.setattr(preflight, "missing", lambda: iter(()))


def _fails_with(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def base_root(*_: object) -> Path:
        raise error

    monkeypatch.setattr(lab_up, "base_root", base_root)


@pytest.mark.parametrize("cause", ERRORS)
def test_a_failure_is_one_line_and_the_traceback_is_in_the_log_that_it_names(
    cause: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ERRORS[cause]
    _fails_with(error, monkeypatch)
    assert cli.main(["--single"]) == 1
    log = failures.log_file()
    line = f"lab: {cause}; the same command goes on from here; details: {log}\n"
    assert capsys.readouterr().err == line
    assert "in base_root" in log.read_text()
    assert str(error) in log.read_text()


@pytest.mark.parametrize("command", [["status"], ["down"], ["mirror", "start"]])
def test_no_command_ends_with_a_traceback(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> Lab:
        raise PermissionError(errno.EACCES, "Permission denied", "/var/lib/gpuboot/labs")

    monkeypatch.setattr(state, "load", broken)
    monkeypatch.setattr(state, "labs", broken)
    assert cli.main(command) == 1
    assert capsys.readouterr().err.startswith("lab: Permission denied: /var/lib/gpuboot/labs; ")


def test_a_log_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _fails_with(ERRORS["KeyError: 'packages'"], monkeypatch)
    monkeypatch.setattr(failures, "log_file", lambda: tmp_path)
    assert cli.main(["--single"]) == 1
    output = capsys.readouterr().err
    assert output.count("\n") == 1
    assert output.endswith(f"details cannot be written to {tmp_path}: Is a directory\n")


def test_what_a_person_asked_wrongly_is_told_without_a_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["--gpus", "many"]) == 1
    assert capsys.readouterr().err == "lab: --gpus takes numbers such as 2,4, not 'many'\n"
    assert not failures.log_file().exists()


def made_lab() -> Lab:
    lab = state.plan("lab", 0, (1,), single=True)
    state.save(lab)
    return lab


def test_an_ssh_key_whose_making_was_interrupted_is_made_again() -> None:
    lab = made_lab()
    lab.ssh_key.parent.mkdir(parents=True)
    lab.ssh_key.write_text("half a key")  # ssh-keygen writes it before its public half
    machines.ensure_ssh_key(lab)
    public = lab.ssh_key.with_suffix(".pub").read_text()
    read = ["ssh-keygen", "-y", "-f", str(lab.ssh_key)]
    derived_key = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    assert derived_key.split()[:2] == public.split()[:2]
    machines.ensure_ssh_key(lab)
    assert lab.ssh_key.with_suffix(".pub").read_text() == public


def test_certificates_whose_making_was_interrupted_are_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = made_lab()
    original = Path.write_bytes

    def interrupted(path: Path, content: bytes) -> int:
        if path.name.startswith("mirror.") and b"CERTIFICATE" in content:
            original(path, content[:10])
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return original(path, content)

    CertificateAuthority.ensure(state.cache_dir() / "keys" / "ca")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", interrupted)
        with pytest.raises(OSError, match="No space"):
            service.trust(lab)
    service.trust(lab)
    assert "END CERTIFICATE" in (lab.folder / "mirror.crt").read_text()


def test_secrets_of_the_receivers_whose_making_was_interrupted_are_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = made_lab()
    original = Path.write_text

    def interrupted(path: Path, text: str) -> int:
        if not path.name.startswith("receiver.json"):
            return original(path, text)
        original(path, "")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    service.trust(lab)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", interrupted)
        with pytest.raises(OSError, match="No space"):
            alerts.trust(lab)
    alerts.trust(lab)
    for name in ("receiver.json", "pagerduty-routing-key", "email-password"):
        path = lab.folder / FOLDER / name
        assert len(path.read_text()) > 20
        assert path.stat().st_mode & 0o077 == 0


def test_a_mirror_whose_replacement_was_interrupted_is_laid_out_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = made_lab()
    for folder in ("mirror", "mirror.old", "mirror.part"):
        (lab.folder / folder).mkdir()
        (lab.folder / folder / "file").touch()
    monkeypatch.setattr(lock, "served", lambda *_: {})
    monkeypatch.setattr(lock, "lock", lambda *_: {})
    docroot.install(lab, [])
    assert [path.name for path in lab.docroot.iterdir()] == ["lab.lock.json"]
    assert not (lab.folder / "mirror.old").exists()


def test_a_part_that_runs_and_does_not_listen_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = iter([True, True, False])
    monkeypatch.setattr(processes, "is_running", lambda *_: next(running))
    with pytest.raises(LabError, match=r"mirror does not listen on 127\.0\.0\.1:1; .*console\.log"):
        processes.wait_for_port("mirror", tmp_path, "127.0.0.1", 1)


def test_the_lab_with_internet_names_what_the_host_lacks_in_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(publishers, "missing", lambda: iter(["one thing", "another"]))
    assert cli.main(["--upstream"]) == 1
    assert capsys.readouterr().err == (
        "lab: the lab cannot run on this host:\n  - one thing\n  - another\n"
    )
