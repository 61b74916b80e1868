"""Helm and the charts of a mirror, and the images that the charts' objects name."""

import json
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import yaml

from gpuboot.cluster.manifests import YAML_LOADER
from gpuboot.cluster.values import Values
from gpuboot.config.versions import ChartLock
from gpuboot.hosts import downloads
from gpuboot.mirror import images, mirror_layout
from gpuboot.mirror.apt_content import sources
from gpuboot.mirror.client import Client, FetchError
from gpuboot.mirror.content import Item, make_item
from gpuboot.mirror.manifest import File
from gpuboot.mirror.mirror_requirements import Site
from gpuboot.monitoring.charts import log_values
from gpuboot.monitoring.charts.chart_repositories import repository, used
from gpuboot.monitoring.charts.exporter import exporter_values
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.monitoring.charts.monitoring_values import monitoring_values

# kinds that our charts' templates ask for before they make objects of them
_APIS = ("monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor")


def helm(client: Client, site: Site, architecture: str) -> list[Item]:
    """Helm's tarball and the file with its digest. Raises `FetchError`."""
    lock = site.lock.helm
    url = downloads.helm_url(sources(site.settings), lock.version, architecture)
    digest = lock.sha256.get(architecture, "")
    if not digest:
        digest = client.text(f"{url}.sha256").decode().split()[0]
    path = f"{mirror_layout.HELM}/{url.rpartition('/')[2]}"
    file = File(path, digest, _size(client, url), url, "helm")
    return [Item(file), make_item(f"{path}.sha256", f"{digest}\n".encode(), "helm")]


def _size(client: Client, url: str) -> int:
    size = client.size(url)
    if size is None:
        raise FetchError(f"{url}: its server does not say how large it is", "ask who runs it")
    return size


def chart_values(site: Site) -> dict[str, Values]:
    """The charts that are installed, with their values."""
    settings, lock = site.settings, site.lock
    values: dict[str, Callable[[], Values]] = {
        "gpu-operator": lambda: operator_values(settings, lock),
        "dcgm-exporter": lambda: exporter_values(settings, lock),
        "kube-prometheus-stack": lambda: monitoring_values(settings),
        # both releases of it have the same image
        log_values.CHART: lambda: next(iter(log_values.releases(settings).values())),
    }
    return {} if site.docker else {chart: values[chart]() for chart in used(settings)}


def archive(client: Client, site: Site, chart: str) -> Item:
    """A chart's archive, as its repository's index has it. Raises `FetchError`."""
    locked = site.lock.charts[chart]
    base = repository(locked.repository, sources(site.settings))
    entry = _entry(client, base, chart, locked)
    url = urljoin(f"{base}/", entry["urls"][0])
    digest = locked.sha256 or str(entry.get("digest", "")).removeprefix("sha256:")
    path = f"{mirror_layout.charts(locked.repository)}/{chart}-{entry['version']}.tgz"
    return Item(File(path, digest, _size(client, url), url, "charts"))


def _entry(client: Client, base: str, chart: str, locked: ChartLock) -> dict[str, Any]:
    index = yaml.load(client.text(f"{base}/index.yaml"), Loader=YAML_LOADER)
    entries: list[dict[str, Any]] = index.get("entries", {}).get(chart, [])
    for entry in entries:
        if entry["version"].lstrip("v") == locked.version.lstrip("v"):
            return entry
    raise FetchError(
        f"{base} has no {chart} {locked.version}",
        "correct charts in settings.versions, or the address in mirror.sources.charts",
    )


def indices(folder: Path, items: list[Item]) -> list[Item]:
    """The index.yaml of each chart repository; the archives are in the folder."""
    grouped: dict[str, dict[str, bytes]] = {}
    for item in items:
        place, _, name = item.file.path.rpartition("/")
        grouped.setdefault(place, {})[name] = (folder / item.file.path).read_bytes()
    return [
        make_item(f"{place}/index.yaml", index_text(archives), "charts")
        for place, archives in grouped.items()
    ]


def index_text(archives: dict[str, bytes]) -> bytes:
    """An index.yaml as Helm writes it: `gpuboot.hosts.downloads` reads its digests with awk."""
    return yaml.safe_dump(mirror_layout.chart_index(archives), sort_keys=False).encode()


def program(tarball: Path, folder: Path) -> Path:
    """Helm itself, unpacked into `folder` from its tarball."""
    target = folder / "helm"
    with tarfile.open(tarball) as archive:
        member = next(entry for entry in archive if entry.isfile() and entry.name.endswith("/helm"))
        source = archive.extractfile(member)
        assert source is not None
        target.write_bytes(source.read())
    target.chmod(0o755)
    return target


def named_images(helm: Path, site: Site, archives: dict[str, Path]) -> list[str]:
    """Images that the charts' objects name. + archives: chart -> its archive

    Raises `FetchError` with Helm's words when it refuses chart or values.
    """
    image_names: set[str] = set()
    for chart, values in chart_values(site).items():
        image_names |= set(images.of_objects(_rendered(helm, site, chart, archives[chart], values)))
    return sorted(image_names)


def _rendered(
    helm: Path, site: Site, chart: str, archive: Path, values: Values
) -> Iterator[dict[str, Any]]:
    command = [str(helm), "template", chart, str(archive)]
    command += ["--kube-version", site.lock.kubernetes.version, "--values", "-"]
    command += [word for api in _APIS for word in ("--api-versions", api)]
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(helm.parent)}
    result = subprocess.run(
        command,
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if result.returncode != 0:
        raise FetchError(
            f"helm template {chart}: {result.stderr.strip()}",
            "correct the chart's values in the settings, or its version",
        )
    yield from (
        document for document in yaml.load_all(result.stdout, Loader=YAML_LOADER) if document
    )
