"""What Helm has deployed, what would change it, and what that changes by key."""

import gzip
import json
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from gpuboot.cluster.managed_objects import Key
from gpuboot.cluster.readiness import Part, workloads_ready
from gpuboot.cluster.values import changed_keys
from gpuboot.hosts.fact_output import Fields
from gpuboot.plan.differences import value_changes
from gpuboot.plan.model import Change

Action = Literal["none", "install", "upgrade", "unlock"]

# On the Secret in which Helm keeps a revision; Helm copies it to those that follow. It tells the
# releases of gpuboot from a site's own, which may have the same name, and which are never removed.
MANAGED = "gpuboot.io/managed"

ROLLOUT_S = 900  # how long what a chart installs may take to become ready, images included


def rollout_part(namespace: str, required: Mapping[str, int] | Iterable[str]) -> Part:
    """What a run waits for in a namespace. + required: as of `readiness.workloads_ready`"""
    return Part(
        lambda state: workloads_ready(state, namespace, required),
        ROLLOUT_S,
        f"see `kubectl -n {namespace} get pods,events`",
    )


@dataclass(frozen=True)
class Release:
    """A Helm release as its newest revision says it; `status` "" means that there is none.

    + status: deployed, failed, pending-install, pending-upgrade, pending-rollback, uninstalling …
    + config: the values it was given (Helm calls them its config)
    + manifest: its objects as YAML, Secrets among them; without those of hooks
    + error: why Helm could not tell; "" when it could
    + managed: gpuboot has installed it, or was told to keep it as its own
    """

    chart: str = ""
    version: str = ""
    status: str = ""
    revision: int = 0
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    error: str = ""
    manifest: str = field(default="", repr=False)
    managed: bool = False


@dataclass(frozen=True)
class Decision:
    """What is to be done for a release, and why, in words that hold no values."""

    action: Action
    reasons: tuple[str, ...] = ()


def release_path(release: str, namespace: str) -> str:
    """Where the API server lists the Secrets in which Helm keeps the revisions of a release."""
    selector = quote(f"owner=helm,name={release}", safe="")
    return f"/api/v1/namespaces/{namespace}/secrets?pretty=true&labelSelector={selector}"


def parse_releases(lines: Iterable[str]) -> dict[str, Release]:
    """What `deploys/parts/helm/fact.sh` printed, by `release_path`. Raises `FactOutputError`."""
    values = Fields(lines)
    paths = values.all("asked")
    if error := values.first("error"):
        return dict.fromkeys(paths, Release(error=error))
    statuses, revisions = values.pairs("status"), values.pairs("release")
    managed = values.all("managed")
    releases = {}
    for number, path in enumerate(paths):
        status, revision = statuses.get(str(number)), revisions.get(str(number))
        if status != "200":
            releases[path] = Release(error=f"the API server answers {status}")
        else:
            releases[path] = (
                Release() if revision is None else _release(revision, str(number) in managed)
            )
    return releases


def parse_released(lines: Iterable[str]) -> dict[str, tuple[Key, ...] | None]:
    """What `deploys/parts/helm/fact.sh` printed of names: the objects of each release, by its path.

    None where there is no release; one whose Secrets cannot be read is left out, and an empty
    namespace is that of the release. Raises `FactOutputError`.
    """
    values = Fields(lines)
    statuses, present = values.pairs("status"), values.pairs("named")
    objects: dict[str, list[Key]] = defaultdict(list)
    for number, kind, namespace, name in values.words("object", 4):
        objects[number].append((kind, namespace.strip("-"), name))
    return {
        path: tuple(objects[str(number)]) if str(number) in present else None
        for number, path in enumerate(values.all("asked"))
        if statuses.get(str(number)) == "200"
    }


def _release(revision: str, managed: bool) -> Release:
    """The release in base64 of gzip of JSON, as Helm's storage driver for Secrets writes it."""
    if not revision:
        return Release(error="its newest revision went while it was read")
    record = json.loads(gzip.decompress(b64decode(revision)))
    chart = record["chart"]["metadata"]
    return Release(
        chart=chart["name"],
        version=chart["version"],
        status=record["info"]["status"],
        revision=int(record["version"]),
        config=record.get("config") or {},
        manifest=record.get("manifest") or "",
        managed=managed,
    )


# Helm refuses to upgrade a release whose newest revision is one of these (helm v4.3.1,
# pkg/action/upgrade.go, prepareUpgrade): it takes a pending one for another Helm at work, and what
# it began to uninstall for a release that was never deployed. No Helm is left that would end them.
_UNFINISHED = ("pending-install", "pending-upgrade", "pending-rollback", "uninstalling", "unknown")


def evaluate(release: Release, chart: str, version: str, values: Mapping[str, Any]) -> Decision:
    """What brings a release to this chart, version and values.

    `unlock`: Helm was killed at its newest revision, whose record has to go before an upgrade can
    finish the work: from the revision before, or by an install that takes over what is there.
    A `failed` one, and one that is `superseded` because a newer record was deleted, Helm upgrades
    from as they are; what is `uninstalled` with its history kept, it installs again.
    """
    if not release.status:
        return Decision("install", (f"{chart} {version} is not there",))
    reasons = []
    if release.status in _UNFINISHED:
        return Decision("unlock", (f"revision {release.revision} is {release.status}",))
    if release.status != "deployed":
        reasons.append(f"revision {release.revision} is {release.status}")
    if (release.chart, _bare(release.version)) != (chart, _bare(version)):
        reasons.append(f"{release.chart} {release.version} becomes {chart} {version}")
    reasons += [f"value {key}" for key in changed_keys(release.config, values)]
    return Decision("upgrade" if reasons else "none", tuple(reasons))


def needs_crds(release: Release, version: str) -> bool:
    """Whether the chart's CRDs must be applied before its release is brought to this version.

    Helm applies them with an install alone, and gives them a minute. A Helm that was killed, or
    a cluster that lost its power, may have left some of them half made, whatever its records say:
    so they are applied unless this version's release has been deployed.
    """
    return release.status != "deployed" or _bare(release.version) != _bare(version)


def _bare(version: str) -> str:
    return version.removeprefix("v")


def release_changes(
    subject: str, release: Release, chart: str, version: str, values: Mapping[str, Any]
) -> list[Change]:
    """The changes that bring a release to this chart, version and values.

    + subject: of the changes; + release: as Helm has it
    """
    new = f"{chart} {version}"
    if not release.status:
        return [Change(subject=subject, new=f"{new} with {_leaf_count(values)} values")]
    old = f"{release.chart} {release.version}"
    is_current = (release.chart, release.version.removeprefix("v")) == (
        chart,
        version.removeprefix("v"),
    )
    changes = [] if is_current else [Change(subject=subject, field="chart", old=old, new=new)]
    if release.status != "deployed":
        changes.append(Change(subject=subject, field="status", old=release.status, new="deployed"))
    return [*changes, *value_changes(subject, dict(release.config), dict(values))]


def _leaf_count(value: Any) -> int:
    """How many values a tree of maps has; a list is one."""
    return sum(map(_leaf_count, value.values())) if isinstance(value, Mapping) else 1
