"""Shell scripts that download Helm and charts: verified first, then put in place.

They run under `sh -e` with curl; proxy and certificate authority come by their environment.
"""

import shlex

from pydantic import SecretStr

from gpuboot.config.settings import Settings
from gpuboot.hosts import proxy

HELM_PUBLISHER = "https://get.helm.sh"
NOT_PINNED = (
    "{what} has no digest in the version lock: this first time it is compared with its publisher's "
    "own word (TLS)"
)
# before the digest that a script prints of what no lock has a digest of
DIGEST_PREFIX = "sha256 "
_PRINT_DIGEST = f'echo "{DIGEST_PREFIX}$found"'
_CURL = "curl -fsSL --connect-timeout 15"
# An index as Helm writes it: charts two spaces in, each version a list item two spaces in.
INDEX_DIGEST = r"""
function flush() { if (inside && version == wanted) print digest; version = digest = "" }
function plain(text) { gsub(/["']/, "", text); return text }
/^  [^ -]/ { flush(); inside = (plain($1) == chart ":"); next }
/^  - / { flush(); sub(/^  - /, "    ") }
/^    digest:/ { digest = plain($2) }
/^    version:/ { version = plain($2) }
END { flush() }
"""


def environment(settings: Settings, mirrored: bool) -> SecretStr | None:
    """Shell commands that set the environment of a download on a host; None: there is none.

    + mirrored: it comes from the site's mirror, whose certificate the site's authority signed
    """
    authority = settings.mirrors.ca_bundle if mirrored else None
    # the second is Go's name for it, for Helm
    names = ("CURL_CA_BUNDLE", "SSL_CERT_FILE") if authority else ()
    return proxy.exports(settings, dict.fromkeys(names, authority or ""))


def with_environment(script: str) -> str:
    """The script, with an environment from standard input: that may hold a password."""
    return f'eval "$(cat)"\n{script}'


def helm_url(settings: Settings, version: str, architecture: str) -> str:
    """Where Helm's tarball is. `architecture`: amd64 or arm64."""
    base = settings.mirrors.helm or HELM_PUBLISHER
    return f"{base}/helm-{version}-linux-{architecture}.tar.gz"


def helm_script(url: str, sha256: str, binary: str) -> str:
    """Install Helm's binary from its tarball.

    + sha256: of the tarball; "": what `<url>.sha256` says; it is printed then
    """
    source = shlex.quote(url)
    expected = sha256 or f"$({_CURL} {shlex.quote(url + '.sha256')} | cut -c 1-64)"
    return "\n".join(
        [
            "work=$(mktemp -d); trap 'rm -rf \"$work\"' EXIT",
            f'{_CURL} -o "$work/file" {source}',
            f"wanted={expected}",
            _verified(url),
            'tar -xzf "$work/file" -C "$work"',
            f'install -m 0755 "$work"/linux-*/helm {shlex.quote(binary)}',
            *([] if sha256 else [_PRINT_DIGEST]),
        ]
    )


def chart_script(chart: str, version: str, repository: str, sha256: str, target: str) -> str:
    """Put a chart's archive at `target`.

    + sha256: of the archive; "": what the repository's index says; it is printed then
    """
    if sha256:
        digest_command = f"wanted={sha256}"
    else:
        arguments = f"-v chart={shlex.quote(chart)} -v wanted={shlex.quote(version)}"
        index = shlex.quote(f"{repository}/index.yaml")
        digest_command = (
            f'{_CURL} -o "$work/index" {index}\n'
            f'wanted=$(awk {arguments} {shlex.quote(INDEX_DIGEST)} "$work/index")'
        )
    pull = (
        f"helm pull {shlex.quote(chart)} --version {shlex.quote(version)}"
        f' --repo {shlex.quote(repository)} --destination "$work/chart"'
    )
    return "\n".join(
        [
            'work=$(mktemp -d); trap \'rm -rf "$work"\' EXIT; mkdir "$work/chart"',
            "PATH=/usr/local/bin:$PATH",
            pull,
            'mv "$work/chart"/*.tgz "$work/file"',
            digest_command,
            _verified(f"{chart} {version} of {repository}"),
            f'install -D -m 0644 "$work/file" {shlex.quote(target)}',
            *([] if sha256 else [_PRINT_DIGEST]),
        ]
    )


def _verified(description: str) -> str:
    message = shlex.quote(
        f"gpuboot: {description} is not the file that was asked for; nothing was installed; "
        "remedy: if its publisher replaced it and you trust it, correct its sha256 in "
        "settings.versions or in locks/; sha256 wanted and found:"
    )
    return (
        'found=$(sha256sum "$work/file" | cut -c 1-64)\n'
        f'[ -n "$wanted" ] && [ "$found" = "$wanted" ] ||'
        f' {{ echo {message} "${{wanted:-none}}" "$found" >&2; exit 1; }}'
    )
