"""Why images are not pulled, each beside what looks like it. Texts are what containerd and
registries really print: from their sources and public issues, shortened.
"""

from __future__ import annotations

from tests.unit.diagnose_site import Case, cluster, event, pod, site, stuck

PULL = 'failed to pull and unpack image "nvcr.io/nvidia/k8s-device-plugin:v1": failed to resolve '
HEAD = 'reference: failed to do request: Head "https://mirror.lab/v2/nvidia/manifests/v1": '


def pulling(reason: str) -> tuple[object, ...]:
    return (pod("train-0", **stuck("ErrImagePull", PULL + HEAD + reason)),)


CERTIFICATE = (
    "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: "
    "current time"
)
CASES = (
    Case(
        "image-ca",
        site(
            at=cluster(
                pods=pulling(
                    "tls: failed to verify certificate: x509: certificate "
                    "signed by unknown authority"
                )
            )
        ),
        site(at=cluster(pods=(pod("train-0"),))),
        "unknown authority",
    ),
    Case(
        "image-proxy",
        site(at=cluster(pods=pulling("proxyconnect tcp: dial tcp 10.9.9.9:3128: i/o timeout"))),
        site(at=cluster(pods=pulling("dial tcp 10.9.9.9:443: i/o timeout"))),
        "proxyconnect",
    ),
    Case(
        "image-auth",
        site(at=cluster(pods=pulling("unexpected status: 401 Unauthorized"))),
        site(at=cluster(pods=pulling("unexpected status: 503 Service Unavailable"))),
        "401 Unauthorized",
    ),
    Case(
        "image-missing",
        site(at=cluster(pods=pulling("mirror.lab/nvidia/k8s-device-plugin:v1: not found"))),
        site(at=cluster(pods=pulling("dial tcp: lookup mirror.lab: no such host"))),
        "not found",
    ),
    Case(
        "image-mirror",
        site(
            at=cluster(
                pods=(pod("train-0", **stuck("ImagePullBackOff", "Back-off pulling image")),),
                events=(
                    event("train-0", "Failed", PULL + HEAD + "lookup mirror.lab: no such host"),
                ),
            )
        ),
        site(at=cluster(pods=pulling("x: not found"))),
        "no such host",
    ),
    *(
        Case(
            f"image-{kind}",
            site(at=cluster(pods=pulling(message))),
            site(at=cluster(pods=pulling(near_miss))),
            evidence,
        )
        for kind, message, near_miss, evidence in (
            (
                "rate",
                "unexpected status from HEAD request to https://registry-1.docker.io/v2/x/manifests/1"
                ": 429 Too Many Requests",
                "unexpected status: 503 Service Unavailable",
                "429 Too Many Requests",
            ),
            (
                "rate",
                "toomanyrequests: You have reached your unauthenticated pull rate limit.",
                "x: not found",
                "pull rate limit",
            ),
            (
                "clock",
                f"{CERTIFICATE} 2019-01-01T00:00:00Z is before 2026-01-01T00:00:00Z",
                f"{CERTIFICATE} 2026-11-25T00:00:00Z is after 2026-01-01T00:00:00Z",
                "is before",
            ),
            (
                "expired",
                f"{CERTIFICATE} 2026-11-25T00:00:00Z is after 2026-01-01T00:00:00Z",
                "tls: failed to verify certificate: x509: certificate signed by unknown authority",
                "is after",
            ),
            (
                "name",
                "x509: certificate is valid for mirror.example, not mirror.lab",
                "tls: failed to verify certificate: x509: certificate signed by unknown authority",
                "not mirror.lab",
            ),
            (
                "name",
                "x509: cannot validate certificate for 10.0.0.1 because it doesn't contain any IP "
                "SANs",
                "dial tcp 10.0.0.1:443: i/o timeout",
                "IP SANs",
            ),
            (
                "http",
                "http: server gave HTTP response to HTTPS client",
                "dial tcp 10.0.0.1:5000: connection refused",
                "HTTP response to HTTPS",
            ),
            (
                "space",
                "write /var/lib/containerd/io.containerd.content.v1.content/ingest/1/data: no "
                "space left on device",
                "unexpected EOF",
                "no space left",
            ),
            (
                "media",
                "failed to extract layer sha256:5d: failed to get stream processor for "
                "application/vnd.in-toto+json: no processor for media-type: unknown",
                "failed to extract layer sha256:5d: unlinkat /data/x: directory not empty",
                "no processor for media-type",
            ),
            (
                "unpack",
                "failed to stat snapshot sha256:f9: snapshotter not loaded: overlayfs: invalid "
                "argument",
                "failed to extract layer sha256:5d: unexpected EOF",
                "snapshotter not loaded",
            ),
            (
                "digest",
                'failed commit on ref "layer-sha256:12": unexpected commit digest sha256:34, '
                "expected sha256:12: failed precondition",
                "x: not found",
                "unexpected commit digest",
            ),
            (
                "digest",
                'failed commit on ref "layer-sha256:12": "layer-sha256:12" failed size validation: '
                "1 != 2: failed precondition",
                "x: not found",
                "failed size validation",
            ),
            (
                "platform",
                "no match for platform in manifest: not found",
                "mirror.lab/x:1: not found",
                "no match for platform",
            ),
        )
    ),
    Case(
        "image-pull",
        site(at=cluster(pods=pulling("something that nobody has seen before"))),
        site(at=cluster(pods=pulling("x: not found"))),
        "nobody has seen",
    ),
)
