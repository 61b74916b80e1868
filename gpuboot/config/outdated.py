"""What the version lock has, beside what hosts run and what the configured repositories serve.

Kubernetes is compared within its minor and with the next one, since upstream allows no larger step.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

from gpuboot.config import support
from gpuboot.config.support import End
from gpuboot.config.versions import Lock, mismatches, parse, untried

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
# name of an image that runs -> key
_IMAGES = {
    "dcgm-exporter": "images.dcgm_exporter",
    "local-path-provisioner": "images.local_path_provisioner",
    "metrics-server": "images.metrics_server",
    "kubelet-csr-approver": "images.kubelet_csr_approver",
    "flannel": "flannel.version",
}
_PRERELEASE = re.compile(r"[-~.+](rc|alpha|beta|dev|pre)", re.IGNORECASE)
_EPOCH = re.compile(r"^\d+:")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A version of the lock.

    + key: as `settings.versions` has it, e.g. `charts.gpu-operator.version`
    + locked: the version that a run installs; of a repository's key its fingerprint
    + installed: the versions that the asked hosts and the cluster have
    + patch: the newest of the same branch or minor, where the publisher keeps several; "" for none
      newer
    + newest: of all; "" for none newer
    + verdict: what speaks against the newest, by the lock's own rules; "" for nothing
    + unknown: why nobody knows what is served; "" where somebody does
    + end: when support of what is installed ends (of what is locked, where that is not known), as
      2027-03-31; "" where no day is known, and "never" for a key without one
    + as_of: the day of what was read of that end, as 2026-11-09; "" for a key
    + changes: what a step to the newest changes, as far as known here
    + digest: of what is downloaded without a signature: `locked` where the lock has one, `first
      seen` where locks/ has that of the site's first download, `none`; "" for all else
    """

    key: str
    locked: str
    patch: str = ""
    newest: str = ""
    verdict: str = ""
    unknown: str = ""
    installed: tuple[str, ...] = ()
    end: str = ""
    as_of: str = ""
    changes: tuple[str, ...] = ()
    digest: str = ""

    @property
    def is_newer(self) -> bool:
        """Whether something newer is served."""
        return bool(self.patch or self.newest)


def rows(
    lock: Lock,
    served: Mapping[str, Sequence[str]],
    installed: Mapping[str, Sequence[str]] | None = None,
    first_seen: Collection[str] = (),
) -> list[Row]:
    """All versions of the lock, with what is served and what is installed.

    + served, installed: key -> versions; missing: not known
    + first_seen: digests of the site's locks/

    What the publishers have no list of that could be asked (images, flannel, Helm) is not known.
    """
    present = installed or {}
    return [
        replace(
            row(lock, key, locked, served.get(key)),
            installed=tuple(present.get(key, ())),
            end=_day(min_end(key, present.get(key) or [locked])),
            as_of=support.read_at(key).isoformat(),
            digest=_digest(lock, key, locked, first_seen),
        )
        for key, locked in _locked(lock).items()
    ]


def _digest(lock: Lock, key: str, locked: str, first_seen: Collection[str]) -> str:
    """The row's `digest`: see `Row`. + first_seen: digests that locks/ has"""
    kind, _, name = key.partition(".")
    if kind == "images":
        return "locked" if "@sha256:" in locked else "none"
    if kind == "charts":
        digests = {lock.charts[name.removesuffix(".version")].sha256}
    elif kind == "helm":
        digests = set(lock.helm.sha256.values())
    else:
        return ""
    if digests & set(first_seen):
        return "first seen"
    return "locked" if any(digests) else "none"


def min_end(key: str, versions: Iterable[str]) -> End:
    """The version of a key whose support ends first; those without a known end come last."""
    ends = [support.end(key, version) for version in versions]
    return min(ends, key=lambda item: item.day or date.max)


def lock_ends(lock: Lock, unused: Collection[str] = ()) -> list[End]:
    """When support of the locked versions ends, as far as it is known.

    + unused: keys of what the site does not install
    """
    ends = [support.end(key, locked) for key, locked in _locked(lock).items() if key not in unused]
    return [item for item in ends if item.day]


def key_rows(ends: Iterable[End]) -> list[Row]:
    """A row for each key of a package repository, with its end."""
    return [
        Row(key=end.key, locked=end.version, end=_day(end) or "never")
        for end in sorted(set(ends), key=lambda end: (end.key, end.version))
    ]


def _day(end: End) -> str:
    return end.day.isoformat() if end.day else ""


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


def row(lock: Lock, key: str, locked: str, served: Sequence[str] | None) -> Row:
    if served is None:
        return Row(key=key, locked=locked, unknown="no repository that was asked lists it")
    versions = sorted(
        {plain(version) for version in served if not _PRERELEASE.search(version)}, key=parse
    )
    if not versions:
        return Row(key=key, locked=locked, unknown="the repository has no version of it")
    newer = [version for version in versions if parse(version) > parse(locked)]
    parts = _BRANCH.get(key, 0)
    same_branch = [version for version in newer if parse(version)[:parts] == parse(locked)[:parts]]
    patch = same_branch[-1] if parts and same_branch else ""
    newest = newer[-1] if newer and newer[-1] != patch else ""
    if not newer:
        return Row(key=key, locked=locked)
    target = newest or patch
    return Row(
        key=key,
        locked=locked,
        patch=patch,
        newest=newest,
        verdict="; ".join(_against(lock, key, target)),
        changes=tuple(_changes(key, locked, target)),
    )


def _changes(key: str, old: str, new: str) -> Iterator[str]:
    """What is known to change between two versions."""
    for changed_key, since, text in support.table("steps").rows:
        if changed_key == key and parse(old) < parse(since) <= parse(new):
            yield f"{since} {text}"


def plain(version: str) -> str:
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
    changed = Lock.model_validate(tree)
    problems = mismatches(changed, dcgm_on_hosts=key == "dcgm.version")
    unknown = [line.partition("; remedy: ")[0] for line in untried(changed)]
    return [*(problem.cause for problem in problems), *unknown]


def next_minor(lock: Lock) -> str:
    """The Kubernetes minor after the locked one, as 1.37."""
    major, minor = parse(lock.kubernetes.version)[:2]
    return f"{major}.{minor + 1}"


def served(answers: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Key -> the versions that any host's repositories have; other keys are absent: not known.

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


def installed(answers: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Key -> the versions that the asked hosts and their cluster have.

    + answers: of hosts, as deploys/outdated.py writes them
    """
    versions_by_key: dict[str, list[str]] = {}
    keys = {name: key for key, names in PACKAGES.items() for name in names} | {
        "helm": "helm.version"
    }
    for answer in answers:
        present = [(keys[name], plain(text)) for name, text in answer["installed"] if name in keys]
        present += [(f"charts.{name}.version", text) for name, text in answer["releases"]]
        present += [(_IMAGES[name], text) for name, text in answer["images"] if name in _IMAGES]
        for key, version in present:
            if version not in versions_by_key.setdefault(key, []):
                versions_by_key[key].append(version)
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


def metrics(rows: Iterable[Row], keys: Iterable[End], cluster: str) -> str:
    """What is newer and what ends when, as text for node-exporter's textfile collector.

    + keys: when those of package repositories end
    """
    newer, ends = [], []
    for row in rows:
        ends.append(min_end(row.key, row.installed or [row.locked]))
        if row.is_newer:
            labels = {"cluster": cluster, "key": row.key, "locked": row.locked}
            labels["newest"] = row.newest or row.patch
            text = ",".join(f'{name}="{value}"' for name, value in labels.items())
            newer.append(f"gpuboot_version_newer{{{text}}} 1")
    name = "gpuboot_version_newer"
    head = (f"# HELP {name} A newer version is served.", f"# TYPE {name} gauge") if newer else ()
    lines = (*head, *newer, *support.metrics([*ends, *keys], cluster, "outdated"))
    return "".join(f"{line}\n" for line in lines)


def to_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows, for programs."""
    return [asdict(row) for row in rows]
