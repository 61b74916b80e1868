"""A scratch folder that real apt takes for a host, and signed repositories served by HTTP."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from gpuboot.mirror import release

HAS_APT = shutil.which("apt-get") is not None and shutil.which("gpg") is not None
REASON = "there is no apt here, or no gpg"


class Key:
    """An OpenPGP key that is made for a test. + expires: as gpg takes it, e.g. `2026-01-01`"""

    def __init__(self, home: Path, expires: str = "0", at: str = "") -> None:
        self.home = home
        home.mkdir(mode=0o700)
        clock = ["--faked-system-time", at] if at else []
        self._gpg(*clock, "--quick-generate-key", "repository", "ed25519", "sign", expires)
        listing = self._gpg("--with-colons", "--list-keys").decode()
        self.fingerprint = next(
            line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr")
        )

    def public(self) -> bytes:
        return self._gpg("--armor", "--export")

    def clearsigned(self, text: str, at: str = "") -> bytes:
        clock = ["--faked-system-time", at] if at else []
        return self._gpg(*clock, "--clearsign", stdin=text.encode())

    def extend(self, expires: str) -> None:
        """Give the same key a later end, as a publisher does."""
        self._gpg("--quick-set-expire", self.fingerprint, expires)

    def add_subkey(self, expires: str) -> None:
        """Add a subkey that signs."""
        self._gpg("--quick-add-key", self.fingerprint, "ed25519", "sign", expires)

    def _gpg(self, *words: str, stdin: bytes = b"") -> bytes:
        command = ["gpg", "--homedir", str(self.home), "--batch", "--passphrase", ""]
        command += ["--pinentry-mode", "loopback", *words]
        return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout


class Host:
    """What apt reads and writes, below a folder: sources, lists, dpkg's state, /run/gpuboot."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.chmod(0o755)
        for name in (
            "etc/apt/sources.list.d", "etc/apt/keyrings", "etc/apt/apt.conf.d", "run",
            "etc/apt/preferences.d", "var/lib/apt/lists/partial", "var/lib/dpkg",
            "var/cache/apt/archives/partial", "www",
        ):  # fmt: skip
            (root / name).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        (root / "apt.conf").write_text(
            f'Dir "{root}/";\nDir::State::status "{root}/var/lib/dpkg/status";\n'
            'Dir::Bin::methods "/usr/lib/apt/methods";\nAPT::Architecture "amd64";\n'
            'APT::Architectures { "amd64"; };\nAcquire::Languages "none";\nAcquire::Retries "0";\n'
        )

    def path(self, name: str) -> Path:
        """A path of the host, below its folder."""
        return self.root / name.lstrip("/")

    def write(self, name: str, text: str | bytes) -> Path:
        """A file of the host, which all may read."""
        path = self.path(name)
        path.write_bytes(text if isinstance(text, bytes) else self.below(text).encode())
        path.chmod(0o644)
        return path

    def below(self, text: str) -> str:
        """A text that names paths of a host, with the folder before those that lack it."""
        for name in ("/etc/apt", "/run/gpuboot", "/usr/share/keyrings", "/var/lib/apt"):
            text = text.replace(f"{self.root}{name}", name).replace(name, f"{self.root}{name}")
        return text

    def run(
        self, script: str, shell: str = "dash", umask: int = 0o22, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script of a fact or an operation on this host."""
        environment: Mapping[str, str] = {
            "PATH": os.environ["PATH"],
            "APT_CONFIG": f"{self.root}/apt.conf",
            "HOME": str(self.root),
            **variables,
        }
        command = [*shell.split(), "-c", self.below(script)]
        return subprocess.run(
            command, capture_output=True, text=True, umask=umask, env=environment, timeout=60
        )


@contextlib.contextmanager
def host() -> Iterator[Host]:
    """A host below /tmp: the folders of pytest are closed to apt's own user."""
    # a gpg-agent that ends removes its sockets while the folder is being removed
    with tempfile.TemporaryDirectory(prefix="gpuboot-apt-", ignore_cleanup_errors=True) as folder:
        yield Host(Path(folder))


class Repository:
    """A flat repository below a host's `www`, served by HTTP."""

    def __init__(self, folder: Path, key: Key) -> None:
        self.folder, self.key, self.published = folder, key, 0
        folder.mkdir(parents=True, exist_ok=True)

    def publish(self, packages: Mapping[str, str], extra_fields: str = "", at: str = "") -> None:
        """Write the index of these packages and sign it. + extra_fields: of every package"""
        text = "".join(
            f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: x\n"
            f"Filename: {name}.deb\nSize: 1\nSHA256: {'0' * 64}\n{extra_fields}Description: x\n\n"
            for name, version in packages.items()
        ).encode()
        (self.folder / "Packages").write_bytes(text)
        fields = {"Origin": "test", "Date": release.date(), "Architectures": "amd64"}
        signed = self.key.clearsigned(release.text(fields, {"Packages": text}), at)
        (self.folder / "InRelease").write_bytes(signed)
        self.published += 1  # HTTP tells times by the second
        later = time.time() + 10 * self.published
        os.utime(self.folder / "InRelease", (later, later))


class _SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder by HTTP; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_SilentHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
