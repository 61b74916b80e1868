"""A site, and publishers on this machine, for all tests of mirrors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuboot.mirror.mirror_requirements import Site
from gpuboot.mirror.signing import Home
from tests.unit.mirror.mirror_site import fill_upstream, made_key, made_site
from tests.unit.mirror.mirror_upstream import Upstream, running


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, Path]]:
    """The publishers' key, and the file with the site's."""
    folder = tmp_path_factory.mktemp("k")
    publisher, site = made_key(folder / "p"), made_key(folder / "s")
    secret = folder / "site.key"
    with publisher.agent(), site.agent():
        secret.write_bytes(site.run("--armor", "--export-secret-keys"))
        secret.chmod(0o600)
        yield publisher, secret


@pytest.fixture(scope="module")
def published(keys: tuple[Home, Path]) -> dict[str, bytes]:
    server = Upstream()
    fill_upstream(server, keys[0])
    return server.files


@pytest.fixture
def upstream(published: dict[str, bytes]) -> Iterator[Upstream]:
    with running() as server:
        server.files |= published
        yield server


@pytest.fixture
def site(upstream: Upstream, keys: tuple[Home, Path], tmp_path: Path) -> Site:
    return made_site(upstream, keys, tmp_path)
