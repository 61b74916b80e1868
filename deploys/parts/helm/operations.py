"""Helm releases, and the custom resources of their charts."""

import json
import shlex
from collections.abc import Sequence
from typing import Any

from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands, executing, fail, inform, shell_failure
from deploys.engine.framed import HiddenInput
from deploys.engine.operation import operation
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL, KUBECTL_APPLY
from deploys.parts.cluster.listed_objects import managed_objects
from deploys.parts.cluster.objects_fact import Managed
from deploys.parts.cluster.release_drift import MANAGER, describe, drift, put_back, record_drift
from deploys.parts.helm.download_operations import BINARY, archive
from deploys.parts.helm.fact import HelmManifests, HelmRelease
from deploys.parts.helm.helm_hooks import watched
from deploys.parts.monitoring.scrape_config import SCRAPE_NOW
from gpuboot.cluster.helm_releases import (
    MANAGED,
    Decision,
    Release,
    evaluate,
    needs_crds,
    release_changes,
)
from gpuboot.cluster.managed_objects import undefined
from gpuboot.cluster.release_objects import unknown_kinds
from gpuboot.cluster.values import keeping
from gpuboot.config.problems import join_first
from gpuboot.plan import Change, Unknown
from gpuboot.plan.differences import safe_text
from gpuboot.plan.restarted_workloads import release_effects

VALUES = "/etc/gpuboot/helm"
# of the documents in a file, those with one of these names
_SELECTED = """\
function flush(i) { for (i = 0; keep && i < n; i++) print lines[i]; n = keep = 0 }
/^---/ { flush() } { lines[n++] = $0 } /^  name: (%s)$/ { keep = 1 } END { flush() }"""
_MONITORS = {"PodMonitor", "ServiceMonitor"}
# it takes the API server a second; one that is refused or deleted never is
_ESTABLISHED_S = 45
_COLUMNS = "NAME:.metadata.name,DELETED:.metadata.deletionTimestamp" + "".join(
    f',{name.upper()}:.status.conditions[?(@.type=="{name}")].message'
    for name in ("Established", "NamesAccepted", "Terminating")
)
_ESTABLISHED = (
    f'{KUBECTL} wait -f "$crds" --for=condition=Established --timeout={_ESTABLISHED_S}s || '
    f"""{{ {KUBECTL} get -f "$crds" -o 'custom-columns={_COLUMNS}' >&2; exit 1; }}"""
)
HELM = f"{BINARY} --kubeconfig {ADMIN_CONF}"


@operation()
def custom_resources(
    release: str, chart: str, version: str, namespace: str, only: Sequence[str] = ()
) -> Commands:
    """Ensure that the cluster knows the custom resources of a chart, as this version has them.

    Helm applies their definitions with an install alone, waits a minute for them, and fails. An API
    server that was restarted meanwhile can take longer: here it gets its time.

    + chart, version: an archive that `chart` has put on the host
    + only: names of definitions that others need before there is the release: these alone, since
      the API server takes seconds for a large one, and only while there is no release
    """
    live = _released(release, namespace)
    due = not live.status if only else needs_crds(live, version)
    if not (due or _undefined(live, only)):
        host.noop(f"the custom resources are those of {chart} {live.version or version}")
        return
    old = live.version if live.status == "deployed" else f"{live.version} ({live.status})"
    changes.record(
        Change(
            subject=f"custom resources of {chart}",
            old=(old if live.status else None) if due else "deleted",
            new=version,
        )
    )
    select_command = f"awk {shlex.quote(_SELECTED % '|'.join(only))}" if only else "cat"
    yield StringCommand(
        f"for left in $(seq 25); do {KUBECTL} get --raw /readyz >/dev/null 2>&1 && break;",
        'sleep 2; done; all=$(mktemp) crds=$(mktemp) && trap \'rm -f "$all" "$crds"\' EXIT &&',
        BINARY, "show crds", QuoteString(archive(chart, version)),
        f'>"$all" && {select_command} "$all" >"$crds" && {{ ! test -s "$crds" || {{',
        f'{KUBECTL_APPLY} "$crds" && {{ {_ESTABLISHED}; }}; }}; }}',
    )  # fmt: skip


@operation()
def release(
    release: str,
    chart: str,
    version: str,
    namespace: str,
    values: dict[str, Any],
    retained: Sequence[str] = (),
) -> Commands:
    """Ensure that a release runs this chart, version and values; it does not wait for pods.

    What differs is told by the values' names. Values travel by standard input to a file that only
    root reads. Where a release is so, but somebody has deleted or changed its objects, these alone
    are applied as Helm has rendered them: no new revision, and no hooks.

    + chart, version: an archive that `chart` has put on the host, whose custom resources
      `custom_resources` has put into the cluster
    + values: all values that differ from the chart's own defaults
    + retained: path in the values at which entries of the live release stay beside these
    """
    live = _released(release, namespace)
    values = keeping(values, live.config, retained) if retained else values
    if live.error and executing():
        yield fail(f"Helm cannot read release {release}: {live.error}", "run again")
        return
    change = evaluate(live, chart, version, values)
    if change.action == "none":
        yield from _as_released(live, release, namespace)
        return
    _explain(release, change)
    _record(live, release, chart, version, namespace, values)
    path = f"{VALUES}/{release}.json"
    yield StringCommand(
        f"umask 077; mkdir -p {VALUES} && cat >", QuoteString(path),
        _stdin=json.dumps(values, indent=1, sort_keys=True),
    )  # fmt: skip
    if change.action == "unlock":
        yield _unlock(release, namespace, live.revision)
    yield _upgrade(release, archive(chart, version), namespace, path)


def _upgrade(release: str, source: str, namespace: str, values: str) -> FunctionCommand:
    """+ source: the chart's archive; values: their file"""
    # what a person has changed since is Helm's again, or it would refuse because of a conflict
    command = StringCommand(
        HELM, "upgrade --install", QuoteString(release), QuoteString(source), "--namespace",
        QuoteString(namespace), "--create-namespace --reset-values --history-max 5 --timeout 10m",
        "--skip-crds --server-side=true --force-conflicts --labels", f"{MANAGED}=true", "--values",
        QuoteString(values),
        ">/dev/null",
    )  # fmt: skip
    return watched(command, f"Helm release {release}", namespace)


def _released(release: str, namespace: str) -> Release:
    """The release; what is compared with it as well is read by the same command."""
    arguments = {"release": release, "namespace": namespace, "kubeconfig": ADMIN_CONF}
    foresee([(host, HelmRelease, arguments), (host, Managed, {"kubeconfig": ADMIN_CONF})])
    return read(HelmRelease, **arguments)


def _undefined(live: Release, only: Sequence[str]) -> bool:
    """Whether definitions that were there are not any more."""
    managed = read(Managed, kubeconfig=ADMIN_CONF)
    return bool(undefined(managed) & {*only} if only else unknown_kinds(live, managed))


def _as_released(live: Release, release: str, namespace: str) -> Commands:
    """Mark a release as ours, and put back its objects that somebody has deleted or changed."""
    managed = managed_objects()
    if managed.error and executing():
        yield fail(f"the objects of release {release} cannot be read: {managed.error}", "run again")
        return
    drifts = drift(live, managed, release, namespace)
    if live.managed and not drifts:
        host.noop(f"{release} is {live.chart} {live.version}, with these values and its objects")
        return
    if not live.managed:
        changes.record(Change(subject=f"Helm release {release}", field=MANAGED, new="true"))
    record_drift(drifts, namespace)
    if not live.managed:
        yield StringCommand(
            KUBECTL, "-n", QuoteString(namespace), "label --overwrite secret",
            QuoteString(f"sh.helm.release.v1.{release}.v{live.revision}"), f"{MANAGED}=true",
        )  # fmt: skip
    if drifts:
        inform(f"{release}: putting back what is not as it was released: {describe(drifts)}")
        yield from put_back(drifts, MANAGER, namespace)
    if {item.desired["kind"] for item in drifts} & _MONITORS:
        yield SCRAPE_NOW


def _record(
    live: Release,
    release: str,
    chart: str,
    version: str,
    namespace: str,
    values: dict[str, Any],
) -> None:
    subject = f"Helm release {release}"
    changes.record(*release_changes(subject, live, chart, version, values))
    if not live.status or executing():
        return
    manifests = read(
        HelmManifests, helm=HELM, release=release, namespace=namespace,
        archive=archive(chart, version), _stdin=HiddenInput([json.dumps(values)]),
    )  # fmt: skip
    if manifests.old and manifests.new:
        changes.record(*release_effects(manifests.old, manifests.new, namespace))
    else:
        until = "its chart is on the host"
        if manifests.error:
            until = f"Helm can render it, which fails now: {safe_text(manifests.error)}"
        changes.record(Unknown(what="which of its pods restart", until=until))


def _explain(release: str, change: Decision) -> None:
    words = {"unlock": "finishing what a killed Helm left"}.get(change.action, change.action)
    inform(f"{release}: {words}: {join_first(change.reasons, 12, ', ')}")


def _unlock(release: str, namespace: str, revision: int) -> StringCommand:
    """Remove the record of a Helm that was killed, unless one is at work on this host."""
    busy = shell_failure("another Helm is at work on this host", "let it end, then run again")
    return StringCommand(
        "! pgrep -x helm >/dev/null ||", busy, ";",
        KUBECTL, "-n", QuoteString(namespace), "delete secret",
        QuoteString(f"sh.helm.release.v1.{release}.v{revision}"),
    )  # fmt: skip
