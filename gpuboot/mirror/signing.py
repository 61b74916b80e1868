"""OpenPGP by GnuPG: what signs a mirror's apt repositories, and what tells a publisher's key.

No secret is on a command line: the key goes in by standard input.
"""

import contextlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LOOPBACK = ("--pinentry-mode", "loopback", "--digest-algo", "SHA512")
_KEY_HOME = "gpuboot-key"
_AGENT_ENDS_WITHIN_S = 20


class SigningError(RuntimeError):
    """A key or a signature cannot be used; the text says why, and what to do."""


@dataclass(frozen=True)
class Home:
    """A GnuPG home folder; its key signs."""

    folder: Path

    def run(self, *args: str, stdin: bytes = b"") -> bytes:
        """What gpg prints. Raises `SigningError` with what it said when it fails."""
        command = ["gpg", "--homedir", str(self.folder), "--batch", "--yes", "--quiet", *_LOOPBACK]
        result = subprocess.run([*command, *args], input=stdin, capture_output=True, check=False)
        if result.returncode != 0:
            raise SigningError(f"gpg {args[-1]}: {result.stderr.decode(errors='replace').strip()}")
        return result.stdout

    def public(self) -> bytes:
        """The public key, ASCII-armoured as publishers have it."""
        return self.run("--armor", "--export")

    def detached(self, content: bytes) -> bytes:
        """An armoured signature of `content`, for `Release.gpg`."""
        return self.run("--armor", "--detach-sign", stdin=content)

    def clearsigned(self, content: bytes) -> bytes:
        """`content` with its signature, for `InRelease`."""
        return self.run("--clearsign", stdin=content)

    @contextlib.contextmanager
    def agent(self) -> Iterator[None]:
        """End the agent that gpg starts by itself when the block ends."""
        try:
            yield
        finally:
            self.stop_agent()

    def stop_agent(self) -> None:
        """End the agent, and wait for its end; nothing happens where there is none.

        The agent says that it ends, and then takes connections for a moment still: the next gpg
        would reach the one that is dying. Raises `SigningError` when it does not end.
        """
        stop = ["gpg-connect-agent", "--homedir", str(self.folder), "--no-autostart"]
        stop += ["getinfo pid", "killagent", "/bye"]
        result = subprocess.run(stop, check=False, capture_output=True, text=True)
        if result.returncode != 0:
            raise SigningError(f"gpg-connect-agent: {result.stderr.strip()}")
        if process := re.search(r"^D (\d+)$", result.stdout, re.MULTILINE):
            _wait_for_end(int(process[1]), self.folder)


def _wait_for_end(agent: int, folder: Path) -> None:
    deadline = time.monotonic() + _AGENT_ENDS_WITHIN_S
    while _runs(agent):
        if time.monotonic() > deadline:
            raise SigningError(f"gpg-agent {agent} of {folder} does not end: kill -9 {agent}")
        time.sleep(0.005)


@contextlib.contextmanager
def site_key(path: Path) -> Iterator[Home]:
    """The site's key, from the file that `gpg --export-secret-keys` wrote.

    Raises `SigningError` for a file that is no such key, or that others may read.
    """
    _remove_left_behind()
    with temporary_home(f"{_KEY_HOME}-{os.getpid()}-") as home, home.agent():
        home.run("--import", stdin=_secret(path))
        if not home.run("--list-secret-keys", "--with-colons"):
            raise SigningError(f"{path} holds no secret key: write it by gpg --export-secret-keys")
        yield home


def _secret(path: Path) -> bytes:
    try:
        content, mode = path.read_bytes(), path.stat().st_mode
    except OSError as error:
        raise SigningError(f"mirror.signing_key: {error}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SigningError(f"others may read the secret key {path}: chmod 600 {path}")
    return content


def _remove_left_behind() -> None:
    """Remove homes with a key, and their agents, that killed processes left behind."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_KEY_HOME}-*"):
        process = folder.name.removeprefix(f"{_KEY_HOME}-").partition("-")[0]
        if folder.lstat().st_uid == os.getuid() and process.isdigit() and not _runs(int(process)):
            Home(folder).stop_agent()
            shutil.rmtree(folder, ignore_errors=True)  # the agent removes its sockets meanwhile


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's, with a number that was used before
        return True
    # in a container nobody may ask for the status of a process that has ended
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


@contextlib.contextmanager
def temporary_home(prefix: str = "gpg-") -> Iterator[Home]:
    """A home of its own, gone afterwards. The path is short: gpg's sockets lie in it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield Home(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fingerprints(key: bytes) -> set[str]:
    """The fingerprints of the primary keys in a public key file."""
    with temporary_home() as home, home.agent():
        key_listing = home.run("--with-colons", "--show-keys", stdin=key).decode()
    primary_fingerprints, primary = set(), False
    for line in key_listing.splitlines():
        fields = line.split(":")
        if fields[0] in ("pub", "sub"):
            primary = fields[0] == "pub"
        elif fields[0] == "fpr" and primary:
            primary_fingerprints.add(fields[9])
    return primary_fingerprints
