"""Keys are made once, however many labs come up at the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

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
    made = {process.communicate(timeout=60)[0] for process in running}
    assert [process.returncode for process in running] == [0] * 4
    assert len(made) == 1
    own = serialization.load_pem_private_key((tmp_path / "ca/ca.key").read_bytes(), None)
    certificate = x509.load_pem_x509_certificate((tmp_path / "ca/ca.crt").read_bytes())
    assert own.public_key() == certificate.public_key()
