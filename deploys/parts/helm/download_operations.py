"""Helm and charts on the leader, verified before use; digests that no lock has are kept."""

from functools import partial

from pydantic import SecretStr
from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, inform, warn
from deploys.engine.download_retries import with_retries
from deploys.engine.operation import operation
from deploys.parts.helm.fact import FileDigest, HelmVersion
from gpuboot.config import first_digests
from gpuboot.config.settings import SettingsError
from gpuboot.hosts.downloads import (
    DIGEST_PREFIX,
    NOT_PINNED,
    chart_script,
    helm_script,
    with_environment,
)
from gpuboot.plan import Change

BINARY = "/usr/local/bin/helm"
CACHE = "/var/cache/gpuboot/charts"


@operation()
def installed(
    version: str,
    url: str,
    architecture: str,
    sha256: str = "",
    environment: SecretStr | None = None,
    cluster: str = "",
) -> Commands:
    """Ensure that this version of Helm is at /usr/local/bin/helm.

    + version: with its v
    + url: of the release's tarball, for this architecture
    + sha256: the tarball's digest; "": what the publisher's own .sha256 file says, which is kept
    + environment: shell commands for proxy and certificate authority; shown nowhere
    + cluster: whose file in locks/ gets the digest
    """
    present = read(HelmVersion, path=BINARY)
    if present == version:
        host.noop(f"Helm {version}")
        return
    changes.record(Change(subject="Helm", field="version", old=present or None, new=version))
    key = first_digests.helm_key(version, architecture) if cluster and not sha256 else ""
    yield _download(helm_script(url, sha256, BINARY), f"Helm {version}", environment, cluster, key)


@operation()
def chart(
    chart: str,
    version: str,
    repository: str,
    sha256: str = "",
    environment: SecretStr | None = None,
    cluster: str = "",
) -> Commands:
    """Ensure that a chart's archive is on the host, verified before it is put in place.

    + repository: base URL of the chart repository
    + sha256: the archive's digest; "": what the repository's index says, which is kept
    + environment: shell commands for proxy and certificate authority; shown nowhere
    + cluster: whose file in locks/ gets the digest
    """
    path = archive(chart, version)
    present_sha256 = read(FileDigest, path=path)
    key = first_digests.chart_key(chart, version) if cluster and not sha256 else ""
    if present_sha256 and not key and sha256 in ("", present_sha256):
        host.noop(f"{chart} {version} is in the cache")
        return
    if present_sha256 and key:
        file = str(first_digests.path(cluster))
        changes.record(Change(subject=f"chart {chart} {version}", field="digest", new=file))
        yield FunctionCommand(_keep_digest, (cluster, key, present_sha256), {})
        return
    changes.record(
        Change(
            subject=f"chart {chart} {version}",
            old="another digest" if present_sha256 else None,
            new="in the cache",
        )
    )
    script = chart_script(chart, version, repository, sha256, path)
    yield _download(script, f"chart {chart} {version}", environment, cluster, key)


def _download(
    script: str, description: str, environment: SecretStr | None, cluster: str, key: str
) -> FunctionCommand:
    """+ key: under which the digest that the script prints is kept; "": it is not"""
    text = with_environment(script) if environment else script
    on_success = None
    if key:
        inform(NOT_PINNED.format(what=description))
        on_success = partial(_keep_printed_digest, cluster, key)
    command = StringCommand("sh -ec", QuoteString(text))
    return with_retries(command, description, environment, on_success=on_success)


def _keep_printed_digest(cluster: str, key: str, output: str) -> None:
    _record(cluster, key, output.rpartition(DIGEST_PREFIX)[2].strip())


def _keep_digest(state: State, host: Host, cluster: str, key: str, sha256: str) -> None:
    _record(cluster, key, sha256)


def _record(cluster: str, key: str, sha256: str) -> None:
    """Write a digest into the site's file; a file that cannot be written ends no run."""
    try:
        file = first_digests.record(cluster, key, sha256)
    except (OSError, SettingsError) as error:
        warn(
            f"the digest of {key}, {sha256}, cannot be kept: {error}; remedy: put it into "
            f"{first_digests.path(cluster)} yourself, or into settings.versions"
        )
        return
    inform(f"{key}: every later download must be the same file: sha256 {sha256}, kept in {file}")


def archive(chart: str, version: str) -> str:
    """Where a chart's archive is kept on the host."""
    return f"{CACHE}/{chart}-{version}.tgz"
