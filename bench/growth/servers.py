"""An SSH server that is all simulated hosts: each has an address of its own on the loopback."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import template
from lab.host import run
from lab.state import Lab, LabError

NAMESPACE = "gbgrowth"
PORT = 2222
_INSIDE = "/mnt"  # where the server sees its folder
_FORCED = Path(__file__).with_name("forced.sh")
# The template's own server and shell, with our folder in it; what is mounted is seen by no other.
_START = (
    f'mount --make-rprivate / && mount --bind "$1" "$2{_INSIDE}" && mount -t tmpfs tmpfs "$2/run" '
    '&& mkdir -m 755 "$2/run/sshd" && mount --bind /dev "$2/dev" '
    f'&& exec chroot "$2" /usr/sbin/sshd -D -e -f {_INSIDE}/sshd_config'
)


@dataclass(frozen=True)
class Counted:
    """What the server's log tells. + most: connections that were open at once"""

    connections: int
    most: int
    commands: int


@dataclass(frozen=True)
class Servers:
    """The running server. + prefix: what to put before a command that is to reach it"""

    folder: Path
    process: subprocess.Popen[bytes]
    prefix: tuple[str, ...]

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def cpu_s(self) -> float:
        """CPU time of the server and of all that it started, as far as they have ended."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")

    def counted(self, since: int = 0) -> Counted:
        """What happened since the log was so many bytes long."""
        with self.log.open() as stream:
            stream.seek(since)
            return count(stream)

    def unknown(self) -> str:
        """The first command that nobody has recorded; "" if there was none."""
        unknown_files = sorted((self.folder / "unknown").glob("*"))
        return unknown_files[0].read_text() if unknown_files else ""


def count(lines: Iterable[str]) -> Counted:
    """Connections and commands of an OpenSSH server's log at LogLevel VERBOSE."""
    opened = now = peak = commands = 0
    for line in lines:
        if line.startswith("Accepted publickey "):
            opened, now = opened + 1, now + 1
            peak = max(peak, now)
        elif re.match(r"Disconnected from user |Connection closed by user ", line):
            now -= 1
        elif line.startswith("Starting session: "):
            commands += 1
    return Counted(opened, peak, commands)


@contextlib.contextmanager
def serve(lab: Lab, folder: Path, addresses: Sequence[str] = ()) -> Iterator[Servers]:
    """A server whose hosts' answers are in a folder, for as long as the `with` lasts.

    + addresses: on this computer's loopback; none: all of a network namespace of its own
    """
    _write(lab, folder, addresses)
    prefix: tuple[str, ...] = ()
    if not addresses:
        _remove_namespace()
        run(["ip", "netns", "add", NAMESPACE])
        run(["ip", "-n", NAMESPACE, "link", "set", "dev", "lo", "up"])
        prefix = ("nsenter", f"--net=/run/netns/{NAMESPACE}", "--")
    command = ["unshare", "--mount", "--", "sh", "-ec", _START, "sshd", str(folder)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*prefix, *command, str(template.root(lab))], stderr=log)
    running_servers = Servers(folder, process, prefix)
    try:
        _wait(running_servers)
        yield running_servers
    finally:
        process.terminate()
        process.wait()
        if not addresses:
            _remove_namespace()


def _write(lab: Lab, folder: Path, addresses: Sequence[str]) -> None:
    shutil.copy(_FORCED, folder)
    shutil.rmtree(folder / "unknown", ignore_errors=True)
    key = folder / "host_key"
    if not key.exists():
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
    shutil.copy(f"{lab.ssh_key}.pub", folder / "authorized_keys")
    options = {
        "Port": PORT,
        "HostKey": f"{_INSIDE}/host_key",
        "AuthorizedKeysFile": f"{_INSIDE}/authorized_keys",
        "ForceCommand": f"exec sh {_INSIDE}/forced.sh {_INSIDE}",
        "PermitRootLogin": "yes",
        "StrictModes": "no",
        "UsePAM": "no",
        "UseDNS": "no",
        "PrintMotd": "no",
        "LogLevel": "VERBOSE",
        "MaxStartups": 5000,
        "LoginGraceTime": 600,
    }
    lines = [f"{name} {value}\n" for name, value in options.items()]
    lines += [f"ListenAddress {address}\n" for address in addresses or ["0.0.0.0"]]
    (folder / "sshd_config").write_text("".join(lines))


def _wait(servers: Servers) -> None:
    for _ in range(100):
        if "Server listening" in servers.log.read_text():
            return
        if servers.process.poll() is not None:
            break
        time.sleep(0.1)
    raise LabError(f"the simulated hosts' SSH server does not start: {servers.log.read_text()}")


def _remove_namespace() -> None:
    if Path(f"/run/netns/{NAMESPACE}").exists():
        run(["ip", "netns", "delete", NAMESPACE])


def known_hosts(folder: Path, addresses: Iterable[str]) -> Path:
    """A file with the server's key for each of its addresses."""
    key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    path = folder / "known_hosts"
    path.write_text("".join(f"[{address}]:{PORT} {key}\n" for address in addresses))
    return path
