"""Keys are made once, however many labs come up at the same time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from lab.mirror.keys import SigningKey

MAKE = """
import sys
from pathlib import Path
from lab.mirror.keys import CertificateAuthority, SigningKey
folder = Path(sys.argv[1])
key = SigningKey.ensure(folder / "gpg", "tests <tests@gpuboot.invalid>")
assert b"BEGIN PGP SIGNATURE" in key.detached(b"text")
sys.stdout.buffer.write(key.public())
sys.stdout.buffer.write(CertificateAuthority.ensure(folder / "ca").certificate.read_bytes())
"""


def test_labs_that_come_up_together_have_one_signing_key_and_one_authority(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKE, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(4)]
    outputs = {process.communicate(timeout=60)[0] for process in running}
    assert [process.returncode for process in running] == [0] * 4
    assert len(outputs) == 1
    authority_key = serialization.load_pem_private_key((tmp_path / "ca/ca.key").read_bytes(), None)
    certificate = x509.load_pem_x509_certificate((tmp_path / "ca/ca.crt").read_bytes())
    assert authority_key.public_key() == certificate.public_key()


# An agent that takes half a second between its answer that it ends and its end: the answer is
# given, its socket is still there.
_SLOW_END = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
int remove(const char *path) {
  const char *name = strrchr(path, '/');
  if (name && !strcmp(name, "/S.gpg-agent")) usleep(500000);
  return ((int (*)(const char *)) dlsym(RTLD_NEXT, "remove"))(path);
}
"""


@pytest.fixture
def slow_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, library = tmp_path / "slow.c", tmp_path / "slow.so"
    source.write_text(_SLOW_END)
    command = ["gcc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.usefixtures("slow_end")
def test_a_signature_returns_when_its_agent_is_gone(tmp_path: Path) -> None:
    key = SigningKey.ensure(tmp_path / "gpg", "tests <tests@gpuboot.invalid>")
    socket = tmp_path / "gpg/S.gpg-agent"
    for sign in (key.detached, key.clearsigned, key.detached):
        assert b"BEGIN PGP SIGNATURE" in sign(b"text")
        assert not socket.exists()
        assert _agents(key.home) == []


def _agents(home: Path) -> list[str]:
    """The processes of gpg-agent that serve a home, those that have ended left out."""
    command = ["ps", "-eo", "stat=,args="]
    processes = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line for line in processes.splitlines() if f"gpg-agent --homedir {home} " in line]


SIGN = """
import sys
from pathlib import Path
from lab.mirror.keys import SigningKey
key = SigningKey(Path(sys.argv[1]), "")
for number in range(int(sys.argv[2])):
    assert b"BEGIN PGP SIGNATURE" in key.clearsigned(str(number).encode())
"""


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_two_processes_that_sign_lose_no_signature(tmp_path: Path, count: int) -> None:
    key = SigningKey.ensure(tmp_path / "gpg", "tests <tests@gpuboot.invalid>")
    command = [sys.executable, "-c", SIGN, str(key.home), str(count)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    messages = [process.communicate(timeout=900)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], messages
