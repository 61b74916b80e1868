"""What the version lock has, beside what the configured repositories serve now.

Kubernetes is compared within its minor and with the next one, since upstream allows no larger step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpuboot.config.versions import Lock, mismatches, parse

# driver and Kubernetes: branches that are kept up side by side -> parts that name the branch
_BRANCH = {"driver.version": 1, "kubernetes.version": 2}
# key -> packages whose versions are the key's; the driver's name depends on the kernel modules
PACKAGES = {
    "driver.version": ("nvidia-open", "cuda-drivers"),
    "dcgm.version": ("datacenter-gpu-manager-4-core",),
    "toolkit.version": ("nvidia-container-toolkit",),
    "containerd.version": ("containerd.io",),
    "kubernetes.version": ("kubelet",),
    "kubernetes.cni": ("kubernetes-cni",),
    "kubernetes.cri_tools": ("cri-tools",),
}
_PRERELEASE = re.compile(r"[-~.+](rc|alpha|beta|dev|pre)", re.IGNORECASE)
_EPOCH = re.compile(r"^\d+:")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One version of the lock.

    + key: as `settings.versions` has it, e.g. `charts.gpu-operator.version`
    + locked: the version that a run installs
    + patch: the newest of the same branch or minor, where the publisher keeps several; "" for none
      newer
    + newest: of all; "" for none newer
    + verdict: what speaks against the newest, by the lock's own rules; "" for nothing
    + unknown: why nobody knows what is served; "" where somebody does
    """

    key: str
    locked: str
    patch: str = ""
    newest: str = ""
    verdict: str = ""
    unknown: str = ""

    @property
    def is_newer(self) -> bool:
        """Whether something newer is served."""
        return bool(self.patch or self.newest)


def rows(lock: Lock, served: Mapping[str, Sequence[str]]) -> list[Row]:
    """All versions of the lock, with what is served. + served: key -> versions; missing: not known

    What the publishers have no list of that could be asked (images, flannel, Helm) is not known.
    """
    return [_row(lock, key, locked, served.get(key)) for key, locked in _locked(lock).items()]


def _locked(lock: Lock) -> dict[str, str]:
    kubernetes = lock.kubernetes
    return {
        "driver.version": lock.driver.version,
        "dcgm.version": lock.dcgm.version,
        "toolkit.version": lock.toolkit.version,
        "containerd.version": lock.containerd.version,
        "kubernetes.version": kubernetes.version,
        "kubernetes.cni": kubernetes.cni,
        "kubernetes.cri_tools": kubernetes.cri_tools,
        **{f"charts.{name}.version": chart.version for name, chart in lock.charts.items()},
        "helm.version": lock.helm.version,
        "flannel.version": lock.flannel.version,
        **{f"images.{name}": tag for name, tag in lock.images.model_dump().items()},
    }


def _row(lock: Lock, key: str, locked: str, served: Sequence[str] | None) -> Row:
    if served is None:
        return Row(key=key, locked=locked, unknown="no repository that was asked lists it")
    versions = sorted(
        {_plain(version) for version in served if not _PRERELEASE.search(version)}, key=parse
    )
    if not versions:
        return Row(key=key, locked=locked, unknown="the repository has no version of it")
    newer = [version for version in versions if parse(version) > parse(locked)]
    parts = _BRANCH.get(key, 0)
    same_branch = [version for version in newer if parse(version)[:parts] == parse(locked)[:parts]]
    patch = same_branch[-1] if parts and same_branch else ""
    newest = newer[-1] if newer and newer[-1] != patch else ""
    verdict = "; ".join(_against(lock, key, newest or patch)) if newer else ""
    return Row(key=key, locked=locked, patch=patch, newest=newest, verdict=verdict)


def _plain(version: str) -> str:
    """A package's version as the lock writes it: without epoch and the packager's revision."""
    return re.split(r"[-~]", _EPOCH.sub("", version))[0]


def _against(lock: Lock, key: str, version: str) -> list[str]:
    """What the lock's rules say against one newer version, all others as they are."""
    tree = lock.model_dump()
    *path, last = key.split(".")
    place: dict[str, Any] = tree
    for part in path:
        place = place[part]
    place[last] = version
    if key == "kubernetes.version":
        place["minor"] = ".".join(map(str, parse(version)[:2]))
    problems = mismatches(Lock.model_validate(tree), dcgm_on_hosts=key == "dcgm.version")
    return [problem.cause for problem in problems]


def next_minor(lock: Lock) -> str:
    """The Kubernetes minor after the locked one, as 1.37."""
    major, minor = parse(lock.kubernetes.version)[:2]
    return f"{major}.{minor + 1}"


def served(answers: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Key -> the versions that any host's repositories have; nobody knows those of other keys.

    + answers: of hosts, as deploys/outdated.py writes them
    """
    versions_by_key: dict[str, list[str]] = {}
    for answer in answers:
        for key, names in PACKAGES.items():
            for name in names:
                if versions := answer["packages"].get(name):
                    versions_by_key.setdefault(key, []).extend(versions)
        for chart, versions in answer["charts"].items():
            versions_by_key.setdefault(f"charts.{chart}.version", []).extend(versions)
    return versions_by_key


def silent(answers: Iterable[Mapping[str, Any]], lock: Lock) -> list[str]:
    """What did not answer, as `host: repository`; a minor that is not out yet has none."""
    unborn = f"kubernetes-{next_minor(lock)}"
    return [
        f"{answer['host']}: {name}"
        for answer in answers
        for name in answer["silent"]
        if name != unborn
    ]


def to_json(rows: Iterable[Row]) -> list[dict[str, str]]:
    """The rows, for programs."""
    return [asdict(row) for row in rows]
