"""Complete the stand-in charts with the files that come from Go modules, and pack them.

A chart folder here holds what the lab wrote. Large files that upstream publishes in its Go module
(Prometheus operator's CRDs and RBAC, NFD's chart) are not kept in this repository: they are copied
from the module, at the version whose binaries the lab runs, when the mirror is built.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from lab.build.golang import module_dir, module_version
from lab.charts.schema import json_schema
from lab.state import LabError

CHARTS_DIR = Path(__file__).parent
CHARTS = ("gpu-operator", "kube-prometheus-stack", "dcgm-exporter")

PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
NFD = "sigs.k8s.io/node-feature-discovery"


class ChartError(LabError):
    """A chart cannot be completed: its module is missing or not as expected."""


@dataclass(frozen=True)
class Part:
    """A folder or file of a Go module and where it goes in the chart."""

    module: str
    source: str
    destination: str


PARTS: dict[str, tuple[Part, ...]] = {
    "gpu-operator": (
        Part(NFD, "deployment/helm/node-feature-discovery", "charts/node-feature-discovery"),
    ),
    "kube-prometheus-stack": (
        Part(PROMETHEUS_OPERATOR, "example/prometheus-operator-crd", "charts/crds/crds"),
        Part(
            PROMETHEUS_OPERATOR,
            "example/rbac/prometheus-operator/prometheus-operator-cluster-role.yaml",
            "files/prometheus-operator-cluster-role.yaml",
        ),
    ),
    "dcgm-exporter": (),
}


def assemble(name: str, out: Path) -> Path:
    """Write the complete chart `name` to `out/<name>` (replaced if it exists) and return that path.

    Needs `go` and, the first time, the module proxy. Raises `LabError` when a module cannot be
    downloaded.
    """
    if name not in CHARTS:
        raise ChartError(f"no chart {name!r}; the lab has {', '.join(CHARTS)}")
    target = out / name
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(CHARTS_DIR / name, target)
    for part in PARTS[name]:
        _copy(module_dir(part.module) / part.source, target / part.destination)
    if name == "gpu-operator":
        version = module_version(NFD).removeprefix("v")
        _set_version(target / "charts/node-feature-discovery/Chart.yaml", version)
    schema = json.dumps(json_schema(name), separators=(",", ":"), sort_keys=True)
    (target / "values.schema.json").write_text(schema)
    return target


def package(name: str, out: Path) -> Path:
    """Assemble chart `name` and pack it as `out/<name>-<version>.tgz`, the same bytes each time."""
    folder = assemble(name, out)
    version = chart_version(folder)
    archive = out / f"{name}-{version}.tgz"
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            info = tarfile.TarInfo(f"{name}/{path.relative_to(folder)}")
            info.size, info.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                tar.addfile(info, file)
    archive.write_bytes(gzip.compress(raw.getvalue(), mtime=0))
    shutil.rmtree(folder)
    return archive


def chart_version(folder: Path) -> str:
    """The `version` in a chart folder's Chart.yaml."""
    match = re.search(r"^version: (\S+)$", (folder / "Chart.yaml").read_text(), re.MULTILINE)
    if match is None:
        raise ChartError(f"{folder}/Chart.yaml has no version")
    return match[1]


def _copy(source: Path, destination: Path) -> None:
    if not source.exists():
        raise ChartError(f"the module has no {source}")
    destination.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copyfile(source, destination)
        return
    shutil.copytree(source, destination, copy_function=shutil.copyfile, dirs_exist_ok=True)
    for folder in (destination, *(p for p in destination.rglob("*") if p.is_dir())):
        folder.chmod(0o755)  # copytree keeps the module cache's read-only mode


def _set_version(chart_yaml: Path, version: str) -> None:
    """Write the version of NFD's chart, which has a placeholder; Helm requires a real one."""
    text, count = re.subn(r"(?m)^version: .*$", f"version: {version}", chart_yaml.read_text())
    if count != 1:
        raise ChartError(f"{chart_yaml}: expected one version line, found {count}")
    chart_yaml.write_text(text)


def images(name: str | None = None) -> tuple[str, ...]:
    """Images that chart `name` (None: all charts) runs with its defaults, from images.txt."""
    lines = (CHARTS_DIR / "images.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return tuple(dict.fromkeys(image for chart, image in rows if name in (None, chart)))
