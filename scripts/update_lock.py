#!/usr/bin/env python3
"""`scripts/lock --update`: propose the newest versions for the version lock, with their digests.

Package repositories, chart repositories, registries and Helm's publisher are asked, and the module
proxy of Go for those that do not answer. What is of the branch that is locked, and against which no
table speaks, is written into `gpuboot/config/versions.toml`; the rest is listed for a person.
Changes nothing else. Exit code: 0 all was asked, 1 something did not answer or a test failed.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpuboot.cluster.manifests import YAML_LOADER
from gpuboot.config import outdated
from gpuboot.config.compose_images import REPOSITORIES
from gpuboot.config.outdated import Row
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock, parse
from gpuboot.hosts import platforms, repositories
from gpuboot.hosts.downloads import helm_url
from gpuboot.mirror import images
from gpuboot.mirror.client import Client, FetchError
from gpuboot.monitoring.charts.chart_repositories import repository

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "gpuboot/config/versions.toml"
TESTS = ("test_contract.py", "test_settings.py", "test_support.py", "test_outdated.py")
# key -> Go module; Kubernetes' own module lacks releases that its libraries have
MODULES = {
    "toolkit.version": "github.com/NVIDIA/nvidia-container-toolkit",
    "containerd.version": "github.com/containerd/containerd/v2",
    "docker.version": "github.com/docker/cli",
    "docker.compose": "github.com/docker/compose/v5",
    "kubernetes.version": "k8s.io/client-go",
    "kubernetes.cri_tools": "sigs.k8s.io/cri-tools",
    "kubernetes.cni": "github.com/containernetworking/plugins",
    "flannel.version": "github.com/flannel-io/flannel",
    "helm.version": "helm.sh/helm/v4",
    "images.prometheus": "github.com/prometheus/prometheus",
    "images.alertmanager": "github.com/prometheus/alertmanager",
    "images.node_exporter": "github.com/prometheus/node_exporter",
    "images.local_path_provisioner": "github.com/rancher/local-path-provisioner",
    "images.metrics_server": "sigs.k8s.io/metrics-server",
}
# a module's version and the program's: Go has no v3.16.0 without a path /v3
_PROGRAMS = {
    "kubernetes.version": (re.compile(r"0\.(\d+\.\d+)"), r"1.\1"),
    "images.prometheus": (re.compile(r"0\.3(\d\d)\.(\d+)"), r"3.\1.\2"),
}
# leading numbers of a version that a person decides about; of all others the first, of 0.x two
_DECIDED = {"kubernetes.version": 2, "kubernetes.cri_tools": 2, "kubernetes.cni": 2,
            "containerd.version": 2}  # fmt: skip
IMAGES = {
    **REPOSITORIES,
    "local_path_provisioner": "docker.io/rancher/local-path-provisioner",
    "metrics_server": "registry.k8s.io/metrics-server/metrics-server",
    "kubelet_csr_approver": "ghcr.io/postfinance/kubelet-csr-approver",
    "busybox": "docker.io/library/busybox",
}
_STANZA = re.compile(r"^(Package|Version): (\S+)$", re.MULTILINE)


@dataclass
class Publishers:
    """Who is asked. + fetch: what is at an address, with these headers; raises `FetchError`

    + module_versions: the versions of Go modules; silent: what did not answer
    """

    fetch: Callable[[str, Mapping[str, str]], bytes]
    module_versions: Callable[[Sequence[str]], Mapping[str, list[str]]]
    silent: list[str] = field(default_factory=list)

    def text(self, url: str, **headers: str) -> bytes | None:
        """What is at an address; None where it does not answer, which is noted."""
        try:
            return self.fetch(url, headers)
        except FetchError as error:
            self.silent.append(error.cause)
            return None


def module_versions(modules: Sequence[str]) -> dict[str, list[str]]:
    """The versions that Go's module proxy lists, by module."""
    command = ["go", "list", "-m", "-e", "-versions", *modules]
    result = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    return {line[0]: [text.removesuffix("+incompatible") for text in line[1:]] for line in lines}


def served(lock: Lock, publishers: Publishers) -> dict[str, list[str]]:
    """The versions of each key that anybody serves; repositories count for more than modules."""
    versions: dict[str, list[str]] = {}
    modules = publishers.module_versions(list(MODULES.values()))
    for key, module in MODULES.items():
        texts = [text.removeprefix("v") for text in modules.get(module, ()) if "-" not in text]
        if key in _PROGRAMS:
            pattern, program = _PROGRAMS[key]
            matches = filter(None, map(pattern.fullmatch, texts))
            texts = [match.expand(program) for match in matches]
        prefix = "v" if _locked(lock, key).startswith("v") else ""
        versions[key] = [prefix + text for text in texts]
    answer: dict[str, Any] = {"packages": _packages(lock, publishers), "charts": {}}
    for name, chart in lock.charts.items():
        entries = _chart_entries(publishers, chart.repository, name)
        answer["charts"][name] = [entry["version"] for entry in entries]
    versions |= outdated.served([answer])
    return {key: texts for key, texts in versions.items() if texts}


def _packages(lock: Lock, publishers: Publishers) -> dict[str, list[str]]:
    packages: dict[str, list[str]] = {}
    minors = {lock.kubernetes.minor, outdated.next_minor(lock)}
    debian = next(item for item in platforms.PLATFORMS if item.id == "debian")
    folders = {
        repositories.repository(name, debian, "x86_64", minor, Settings()).url
        for name in ("cuda", "toolkit", "kubernetes")
        for minor in minors
    }
    for folder in sorted(folders):
        content = publishers.text(f"{folder}Packages") or b""
        for stanza in content.decode(errors="replace").split("\n\n"):
            fields = dict(_STANZA.findall(stanza))
            if len(fields) == len(("Package", "Version")):
                packages.setdefault(fields["Package"], []).append(fields["Version"])
    return packages


def _chart_entries(publishers: Publishers, name: str, chart: str) -> list[dict[str, Any]]:
    content = publishers.text(f"{repository(name, Settings())}/index.yaml")
    index = yaml.load(content, Loader=YAML_LOADER) if content else {}
    entries: list[dict[str, Any]] = index.get("entries", {}).get(chart, [])
    return entries


def proposals(lock: Lock, versions: Mapping[str, Sequence[str]]) -> Iterator[tuple[Row, str]]:
    """Each key that something newer is served of, and the version to take by itself; "" for none.

    Charts and images of charts are a person's: somebody has to read what relies on them.
    """
    for key, texts in versions.items():
        locked = _locked(lock, key)
        row = outdated.row(lock, key, locked, texts)
        if not row.is_newer:
            continue
        parts = _DECIDED.get(key, 1 if parse(locked)[0] else 2)
        branch = [text for text in texts if _numbers(text)[:parts] == parse(locked)[:parts]]
        branch_row = outdated.row(lock, key, locked, branch)
        version = (
            ""
            if key.startswith("charts.") or branch_row.verdict
            else branch_row.newest or branch_row.patch
        )
        yield row, version


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return parse(outdated.plain(text))
    except ValueError:
        return ()


def _locked(lock: Lock, key: str) -> str:
    value: Any = lock.model_dump()
    for part in key.split("."):
        value = value[part]
    return str(value)


def digests(lock: Lock, publishers: Publishers) -> Iterator[tuple[str, str]]:
    """Digests that the lock lacks and publishers have: key and digest; of images with their tag."""
    for name, chart in lock.charts.items():
        if not chart.sha256:
            for entry in _chart_entries(publishers, chart.repository, name):
                if entry["version"] == chart.version and entry.get("digest"):
                    yield f"charts.{name}.sha256", str(entry["digest"]).removeprefix("sha256:")
    for architecture, sha256 in lock.helm.sha256.items():
        url = helm_url(Settings(), lock.helm.version, architecture)
        if not sha256 and (content := publishers.text(f"{url}.sha256")):
            yield f"helm.sha256.{architecture}", content.decode().split()[0]
    for key, tag in lock.images.model_dump().items():
        if "@" in tag:
            continue
        image = images.reference(f"{IMAGES[key]}:{tag}")
        url = f"{images.base_url(image.registry, {})}/{image.repository}/manifests/{tag}"
        if content := publishers.text(url, Accept=images.ACCEPT):
            images.parse(str(image), content, ("amd64", "arm64"))
            yield f"images.{key}", f"{tag}@sha256:{hashlib.sha256(content).hexdigest()}"


def with_value(text: str, key: str, value: str) -> str:
    """The text of the lock with another value; comments stay. + key: as `helm.sha256.amd64`"""
    table, _, name = key.rpartition(".")
    if table == "helm.sha256":
        return re.sub(rf'(\b{name} = )"[^"]*"', rf'\g<1>"{value}"', text, count=1)
    head = re.escape(f"[{table}]")
    pattern = rf'(^{head}[^\[]*?^{name} = )"[^"]*"'
    result, count = re.subn(pattern, rf'\g<1>"{value}"', text, count=1, flags=re.MULTILINE)
    if not count:
        raise KeyError(key)
    return result


def update(text: str, publishers: Publishers) -> tuple[str, list[str]]:
    """The lock's text with what can be taken, and lines about it for a person."""
    lines = []
    lock = Lock.model_validate(tomllib.loads(text))
    for row, version in proposals(lock, served(lock, publishers)):
        if version:
            revision = "-1" if row.key == "toolkit.version" else ""
            text = with_value(text, row.key, version + revision)
            lines.append(f"taken: {row.key} {row.locked} -> {version}{revision}")
            if row.key == "helm.version":
                for architecture in lock.helm.sha256:
                    text = with_value(text, f"helm.sha256.{architecture}", "")
        newest = row.newest or row.patch
        if newest != version:
            remarks = "; ".join(filter(None, (row.verdict, *row.changes)))
            lines.append(f"a person decides: {row.key} {row.locked} -> {newest}: {remarks or '-'}")
    lock = Lock.model_validate(tomllib.loads(text))
    for key, value in digests(lock, publishers):
        text = with_value(text, key, value)
        lines.append(f"digest: {key} = {value}")
    return text, [*lines, *(f"did not answer: {line}" for line in dict.fromkeys(publishers.silent))]


def main() -> int:
    """Update the lock of this checkout, run the tests about it, and print what is to do."""
    client = Client(sleep=lambda _: None)
    publishers = Publishers(lambda url, headers: client.text(url, headers), module_versions)
    text, lines = update(LOCK.read_text(), publishers)
    LOCK.write_text(text)
    print(*lines, sep="\n")
    tests = [f"tests/unit/{name}" for name in TESTS]
    passed = subprocess.run([sys.executable, "-m", "pytest", "-q", *tests], cwd=ROOT, check=False)
    print('read docs/development.md, "A version", for what follows from each')
    return int(bool(publishers.silent) or passed.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
