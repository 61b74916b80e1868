"""The lab's own keys: OpenPGP keys that sign apt repositories, and a certificate authority.

They are made once per cache and worth nothing outside the lab.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SigningKey:
    """An OpenPGP key pair in a GnuPG home folder of its own."""

    home: Path
    uid: str

    @classmethod
    def ensure(cls, home: Path, uid: str) -> SigningKey:
        """Return the key in `home`; make it when the folder has none. `uid`: its user id."""
        key = cls(home, uid)
        if not (home / "public.asc").exists():
            home.mkdir(parents=True, exist_ok=True)
            home.chmod(0o700)
            with key._agent():
                key._gpg("--passphrase", "", "--quick-generate-key", uid, "rsa3072", "sign", "0")
                (home / "public.asc").write_bytes(key._gpg("--armor", "--export"))
        return key

    def public(self, armor: bool = True) -> bytes:
        """The public key: ASCII-armoured as vendors publish it, or binary as a keyring."""
        if armor:
            return (self.home / "public.asc").read_bytes()
        with self._agent():
            return self._gpg("--export")

    def detached(self, content: bytes) -> bytes:
        """An armoured detached signature of `content`."""
        with self._agent():
            return self._gpg("--armor", "--detach-sign", stdin=content)

    def clearsigned(self, content: bytes) -> bytes:
        """`content` with an inline signature."""
        with self._agent():
            return self._gpg("--clearsign", stdin=content)

    def _gpg(self, *args: str, stdin: bytes = b"") -> bytes:
        command = ["gpg", "--homedir", str(self.home), "--batch", "--yes", "--quiet"]
        command += ["--pinentry-mode", "loopback", "--digest-algo", "SHA512", *args]
        return subprocess.run(command, input=stdin, check=True, stdout=subprocess.PIPE).stdout

    @contextlib.contextmanager
    def _agent(self) -> Iterator[None]:
        # gpg starts an agent per home folder and leaves it running; the lab leaves nothing.
        try:
            yield
        finally:
            subprocess.run(
                ["gpgconf", "--homedir", str(self.home), "--kill", "gpg-agent"],
                check=True,
                capture_output=True,
            )
