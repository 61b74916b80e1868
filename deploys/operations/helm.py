"""Helm: the binary, charts that are verified before they are used, and releases."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from pydantic import SecretStr
from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.context import host

from deploys.facts.details import HelmManifests, HiddenInput
from deploys.facts.helm import FileDigest, HelmRelease, HelmVersion
from deploys.lib import changes
from deploys.lib.answers import read
from deploys.lib.commands import Commands, executing, fail, inform, shell_failure
from deploys.lib.download_retries import with_retries
from deploys.lib.kubectl import ADMIN_CONF, KUBECTL, KUBECTL_APPLY
from deploys.lib.operation import operation
from gpuboot.hosts.downloads import NOT_PINNED, chart_script, helm_script, with_environment
from gpuboot.kubernetes.helm import Decision, Release, evaluate, needs_crds
from gpuboot.plan import Change, Unknown
from gpuboot.plan.differences import safe_text
from gpuboot.plan.releases import release_changes
from gpuboot.plan.workloads import release_effects

BINARY = "/usr/local/bin/helm"
VALUES = "/etc/gpuboot/helm"
CACHE = "/var/cache/gpuboot/charts"
# of the documents in a file, those with one of these names
_SELECTED = """\
function flush(i) { for (i = 0; keep && i < n; i++) print lines[i]; n = keep = 0 }
/^---/ { flush() } { lines[n++] = $0 } /^  name: (%s)$/ { keep = 1 } END { flush() }"""
_HELM = f"{BINARY} --kubeconfig {ADMIN_CONF}"


@operation()
def installed(
    version: str, url: str, sha256: str = "", environment: SecretStr | None = None
) -> Commands:
    """Ensure that this version of Helm is at /usr/local/bin/helm.

    + version: with its v
    + url: of the release's tarball
    + sha256: the tarball's digest; "": what the publisher's own .sha256 file says, with a warning
    + environment: shell commands for proxy and certificate authority; shown nowhere
    """
    present = read(HelmVersion, path=BINARY)
    if present == version:
        host.noop(f"Helm {version}")
        return
    changes.record(Change(subject="Helm", field="version", old=present or None, new=version))
    if not sha256:
        inform(NOT_PINNED.format(what=f"Helm {version}", key="helm.sha256"))
    yield _download(helm_script(url, sha256, BINARY), f"Helm {version}", environment)


@operation()
def chart(
    chart: str,
    version: str,
    repository: str,
    sha256: str = "",
    environment: SecretStr | None = None,
) -> Commands:
    """Ensure that a chart's archive is on the host, verified before it is put in place.

    + repository: base URL of the chart repository
    + sha256: the archive's digest; "": what the repository's index says, with a warning
    + environment: shell commands for proxy and certificate authority; shown nowhere
    """
    path = archive(chart, version)
    present_sha256 = read(FileDigest, path=path)
    if present_sha256 and (not sha256 or present_sha256 == sha256):
        host.noop(f"{chart} {version} is in the cache")
        return
    changes.record(
        Change(
            subject=f"chart {chart} {version}",
            old="another digest" if present_sha256 else None,
            new="in the cache",
        )
    )
    if not sha256:
        inform(NOT_PINNED.format(what=f"chart {chart} {version}", key=f"charts.{chart}.sha256"))
    script = chart_script(chart, version, repository, sha256, path)
    yield _download(script, f"chart {chart} {version}", environment)


def _download(script: str, what: str, environment: SecretStr | None) -> FunctionCommand:
    text = with_environment(script) if environment else script
    return with_retries(StringCommand("sh -ec", QuoteString(text)), what, environment)


def archive(chart: str, version: str) -> str:
    """Where a chart's archive is kept on the host."""
    return f"{CACHE}/{chart}-{version}.tgz"


@operation()
def custom_resources(
    release: str, chart: str, version: str, namespace: str, first: Sequence[str] = ()
) -> Commands:
    """Ensure that the cluster knows the custom resources of a chart, as this version has them.

    Helm installs their definitions with a release's first version, and never renews them.

    + chart, version: an archive that `chart` has put on the host
    + first: names of definitions that are needed before the release's first version; these alone
      are applied then, since the API server takes seconds for a large one
    """
    live = read(HelmRelease, release=release, namespace=namespace, kubeconfig=ADMIN_CONF)
    if not (needs_crds(live, version) or (first and not live.status)):
        host.noop(f"the custom resources are those of {chart} {live.version or version}")
        return
    changes.record(
        Change(subject=f"custom resources of {chart}", old=live.version or None, new=version)
    )
    chosen = "cat" if live.status else f"awk {shlex.quote(_SELECTED % '|'.join(first))}"
    yield StringCommand(
        'all=$(mktemp) crds=$(mktemp) && trap \'rm -f "$all" "$crds"\' EXIT &&',
        BINARY, "show crds", QuoteString(archive(chart, version)),
        f'>"$all" && {chosen} "$all" >"$crds" && {{ ! test -s "$crds" || {{',
        f'{KUBECTL_APPLY} "$crds" && {KUBECTL} wait -f "$crds"',
        "--for=condition=Established --timeout=60s; }; }",
    )  # fmt: skip


@operation()
def release(
    release: str, chart: str, version: str, namespace: str, values: dict[str, Any]
) -> Commands:
    """Ensure that a release runs this chart, version and values; it does not wait for pods.

    What differs is told by the values' names. Values travel by standard input to a file that only
    root reads.

    + chart, version: an archive that `chart` has put on the host
    + values: all values that differ from the chart's own defaults
    """
    live = read(HelmRelease, release=release, namespace=namespace, kubeconfig=ADMIN_CONF)
    if live.error and executing():
        yield fail(f"Helm cannot read release {release}: {live.error}", "run again")
        return
    change = evaluate(live, chart, version, values)
    if change.action == "none":
        host.noop(f"{release} is {chart} {version} with these values")
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
    source = QuoteString(archive(chart, version))
    yield StringCommand(
        _HELM, "upgrade --install", QuoteString(release), source, "--namespace",
        QuoteString(namespace), "--create-namespace --reset-values --history-max 5 --timeout 10m",
        "--values", QuoteString(path), ">/dev/null",
    )  # fmt: skip


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
        HelmManifests, helm=_HELM, release=release, namespace=namespace,
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
    shown = ", ".join(change.reasons[:12])
    more = f" and {len(change.reasons) - 12} more" if len(change.reasons) > 12 else ""
    words = {"unlock": "finishing what a killed Helm left"}.get(change.action, change.action)
    inform(f"{release}: {words}: {shown}{more}")


def _unlock(release: str, namespace: str, revision: int) -> StringCommand:
    """Remove the record of a Helm that was killed, unless one is at work on this host."""
    busy = shell_failure("another Helm is at work on this host", "let it end, then run again")
    return StringCommand(
        "! pgrep -x helm >/dev/null ||", busy, ";",
        KUBECTL, "-n", QuoteString(namespace), "delete secret",
        QuoteString(f"sh.helm.release.v1.{release}.v{revision}"),
    )  # fmt: skip


@operation()
def absent(release: str, namespace: str) -> Commands:
    """Ensure that there is no such release."""
    live = read(HelmRelease, release=release, namespace=namespace, kubeconfig=ADMIN_CONF)
    if not live.status:
        host.noop(f"release {release} does not exist")
        return
    changes.record(Change(subject=f"Helm release {release}", old=f"{live.chart} {live.version}"))
    yield StringCommand(
        _HELM, "uninstall", QuoteString(release), "--namespace", QuoteString(namespace),
        "--timeout 10m",
    )  # fmt: skip
