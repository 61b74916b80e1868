"""The script that asks repositories, run with apt's and Helm's own kinds of repository."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from deploys.parts.outdated.fact import ServedVersions
from gpuboot.hosts.fact_output import answer

HELM = str(Path(sys.executable).with_name("helm"))
CHART = (
    "  {name}:\n  - apiVersion: v2\n    name: {name}\n    version: {version}\n    urls: [x.tgz]\n"
)
INDEX = "apiVersion: v1\nentries:\n" + "".join(
    CHART.format(name=name, version=version)
    for name, version in (("gpu-operator-more", "9.9.9"), ("gpu-operator", "v26.7.1"))
)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A web server of a repository of packages and one of charts."""
    root = tmp_path / "web"
    flat = root / "kubernetes" / "v1.36" / "deb"
    flat.mkdir(parents=True)
    versions = ("1.36.6-1.1", "1.36.7-1.1")
    stanzas = [
        f"Package: kubelet\nVersion: {version}\nArchitecture: amd64\nFilename: ./{version}.deb\n"
        f"Size: 1\nSHA256: {'0' * 64}\n"
        for version in versions
    ]
    (flat / "Packages").write_text("\n".join(stanzas))
    (root / "index.yaml").write_text(INDEX)

    class SilentHandler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SilentHandler, directory=str(root))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_versions_of_packages_and_charts_are_found_and_what_is_silent_is_told(
    tmp_path: Path, url: str
) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    for name, path in (("kubernetes", "kubernetes/v1.36/deb/"), ("cuda", "nothing/")):
        text = f"Types: deb\nURIs: {url}/{path}\nSuites: /\nTrusted: yes\n"
        (sources / f"gpuboot-{name}.sources").write_text(text)
    charts = {"gpu-operator": url, "dcgm-exporter": f"{url}/nothing"}
    fact = ServedVersions()
    command = fact.command(
        ["kubelet", "nvidia-open"], "1.37", charts, sources=str(sources), helm=HELM
    )
    result = subprocess.run(["sh", "-c", command], input=":\n", capture_output=True, text=True)
    served_versions = fact.value(answer(result.stdout.splitlines()).lines)
    assert served_versions.packages == {"kubelet": ["1.36.7-1.1", "1.36.6-1.1"]}
    assert served_versions.charts == {"gpu-operator": ["v26.7.1"]}
    assert set(served_versions.silent) == {"cuda", "kubernetes-1.37", "dcgm-exporter"}
