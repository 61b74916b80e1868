"""Why a registry, mirror or proxy does not deliver: by what programs print, and what helps.

The texts are those of containerd v2 (core/metadata/content.go, core/images,
plugins/content/local), of Go's net, net/http and crypto/x509 (verify.go), and of curl 7.81 to 8.x
(lib/vtls, lib/curl_setup.h) with OpenSSL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DownloadFailure:
    """A cause that a program's output names, and its remedy."""

    pattern: re.Pattern[str]
    cause: str
    remedy: str


# by name; the first that fits counts
FAILURES: Mapping[str, DownloadFailure] = {
    "space": DownloadFailure(
        re.compile(r"no space left on device|disk quota exceeded"),
        "the host's disk for it is full",
        "make room there (images: below /var/lib/containerd), or give it a larger disk",
    ),
    "digest": DownloadFailure(
        re.compile(r"unexpected commit (digest|size)|failed size validation"),
        "registry, mirror or proxy served other bytes than its digest says",
        "correct the mirror's copy or the proxy's cache, then pull again",
    ),
    "platform": DownloadFailure(
        re.compile(r"no match for platform"),
        "the image has no variant for the host's architecture",
        "name an image that is built for it, or keep the pod on nodes of another architecture",
    ),
    "rate": DownloadFailure(
        re.compile(r"\b429\b|too ?many ?requests", re.IGNORECASE),
        "the registry refuses because of too many requests (429)",
        "log in to it (settings.registries), pull from a mirror (settings.mirrors.images), or try "
        "again later",
    ),
    "http": DownloadFailure(
        re.compile(r"server gave HTTP response to HTTPS client|wrong version number"),
        "the server speaks plain HTTP, and is asked by HTTPS",
        "write its address with http:// in settings.mirrors, or give the server a certificate",
    ),
    "clock": DownloadFailure(
        re.compile(
            r"x509: .*not yet valid: current time \S+ is before|certificate is not yet valid"
        ),
        "by the host's clock the server's certificate is not valid yet",
        "set the host's clock, which is behind",
    ),
    "expired": DownloadFailure(
        re.compile(
            r"x509: .*not yet valid: current time \S+ is after|problem: certificate has expired"
        ),
        "the server's certificate has expired",
        "renew the certificate; where it is still valid, set the host's clock, which is ahead",
    ),
    "name": DownloadFailure(
        re.compile(
            r"x509: (certificate is (not )?valid for|cannot validate certificate for)"
            r"|no alternative certificate subject name matches"
        ),
        "the server's certificate is for another name",
        "ask for the server by a name in its certificate, or give it one with this name",
    ),
    "ca": DownloadFailure(
        re.compile(
            r"x509: |certificate signed by unknown authority|certificate is not trusted"
            r"|unable to get local issuer certificate|self[- ]signed certificate"
        ),
        "the server's certificate is signed by an unknown authority",
        "trust the authority on the host, or name it (settings.mirrors.ca_bundle)",
    ),
    "proxy": DownloadFailure(
        re.compile(r"proxyconnect|Proxy Authentication Required|: 407 |error: 407"),
        "the HTTP proxy does not answer or refuses",
        "correct the proxy (settings.proxy), or leave the server out of it by no_proxy",
    ),
    "auth": DownloadFailure(
        re.compile(
            r"401 Unauthorized|403 Forbidden|authorization failed|pull access denied|"
            r"authentication required|error: 40[13]"
        ),
        "the server wants other credentials",
        "correct them (settings.registries; of pods: the pull secret of their namespace)",
    ),
    "missing": DownloadFailure(
        re.compile(r"not found|manifest unknown|NAME_UNKNOWN|InvalidImageName|error: 404"),
        "registry or mirror does not have it under this name",
        "correct the name, or put it into the mirror",
    ),
    "mirror": DownloadFailure(
        re.compile(
            r"no such host|connection refused|i/o timeout|no route to host|"
            r"server misbehaving|50[0-9] |unexpected status|TLS handshake|EOF"
        ),
        "registry or mirror is not reached, or fails",
        "look at the mirror; at its entry below /etc/containerd/certs.d for images",
    ),
}


def name_of(output: str) -> str:
    """Which of the failures a program's output tells; "" for none."""
    return next((name for name, item in FAILURES.items() if item.pattern.search(output)), "")
