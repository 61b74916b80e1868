"""What publishers' apt repositories have: signatures checked, indices read."""

import gzip
import hashlib
import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gpuboot.mirror import packages, release, signing
from gpuboot.mirror.client import Client, FetchError
from gpuboot.mirror.packages import BadIndexError, Package

_READERS: Mapping[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.decompress,
    ".gz": gzip.decompress,
    "": bytes,
}


@dataclass(frozen=True)
class Source:
    """An apt repository to read.

    + name: what its packages are told by
    + url: without / at its end; suite, component: "" for a flat repository
    + key: the public key that signs it
    """

    name: str
    url: str
    key: bytes
    suite: str = ""
    component: str = ""

    @property
    def folder(self) -> str:
        """Where its Release is."""
        return f"{self.url}/dists/{self.suite}" if self.suite else self.url


def key_of(client: Client, url: str, fingerprint: str, sha256: str) -> bytes:
    """A publisher's public key. + fingerprint: what it must have; sha256: or what the file must

    Raises `FetchError` for another key than the one that is known.
    """
    content = client.text(url)
    digest = hashlib.sha256(content).hexdigest()
    if sha256 and digest != sha256:
        raise _other_key(url, f"sha256 {sha256}", digest)
    if not sha256:
        key_fingerprints = signing.fingerprints(content)
        if fingerprint not in key_fingerprints:
            raise _other_key(url, fingerprint, ", ".join(sorted(key_fingerprints)) or "none")
    return content


def _other_key(url: str, expected: str, actual: str) -> FetchError:
    return FetchError(
        f"the key at {url} is another than the one that is known: {expected} wanted, {actual} "
        "found",
        "do not trust it; where its publisher has a new key, a new gpuboot knows it; of a mirror "
        "give its digest in mirror.sources.apt",
    )


def keyring(path: str) -> bytes:
    """The distribution's public keys. Raises `FetchError`."""
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise FetchError(
            f"the distribution's key: {error}",
            "install it (apt-get install debian-archive-keyring ubuntu-keyring), or name its file "
            "in mirror.archives[].keyring",
        ) from None


def read(client: Client, source: Source, architecture: str) -> list[Package]:
    """All packages of a repository. Raises `FetchError` where a signature or digest is wrong."""
    vouched = release.parse(_verified(client, source).decode())
    if vouched.valid_until and vouched.valid_until.astimezone(UTC) < datetime.now(UTC):
        raise FetchError(
            f"{source.folder}: its Release was valid until {vouched.valid_until:%Y-%m-%d}",
            "ask who runs that repository: it is not kept up any more",
        )
    name = f"{source.component}/binary-{architecture}/Packages" if source.suite else "Packages"
    for ending, decompress in _READERS.items():
        index_file = vouched.files.get(name + ending)
        if index_file is None:
            continue
        url = f"{source.folder}/{name}{ending}"
        if vouched.by_hash:
            url = f"{url.rpartition('/')[0]}/by-hash/SHA256/{index_file.sha256}"
        content = client.text(url)
        if hashlib.sha256(content).hexdigest() != index_file.sha256:
            raise FetchError(
                f"{url} is not what its Release says",
                "run it again: a repository that is being changed gives two answers",
            )
        packages = _parsed(source, decompress(content).decode())
        return [package for package in packages if package.runs_on(architecture)]
    raise FetchError(
        f"{source.folder} has no packages for {architecture}",
        "take that architecture out of mirror.architectures, or name another repository",
    )


def _parsed(source: Source, text: str) -> list[Package]:
    try:
        return packages.parse(source.name, text)
    except BadIndexError as error:
        raise FetchError(f"{source.folder}: {error}", "ask who runs that repository") from None


def _verified(client: Client, source: Source) -> bytes:
    """The text of its Release: by InRelease, else by the two files that older ones have."""
    try:
        inline = client.exists(f"{source.folder}/InRelease")
        if inline is not None:
            return signing.verified(inline, source.key)
        plain = client.text(f"{source.folder}/Release")
        return signing.verified(plain, source.key, client.text(f"{source.folder}/Release.gpg"))
    except signing.SigningError as error:
        raise FetchError(
            f"{source.folder}: its signature is not of the key that is known: {error}",
            "do not use it; where it is right, name its key (mirror.sources, mirror.archives)",
        ) from None
