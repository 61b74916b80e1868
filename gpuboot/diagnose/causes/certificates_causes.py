"""Certificates that have expired, and kubelets whose credentials are gone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts, Host

_KUBELET = ("kubelet.conf", "kubelet-client-current.pem")
# of a kubelet that asks for a certificate by a token, since it has no other credentials
_WORDS = ("unable to load bootstrap kubeconfig", "existing bootstrap client certificate")


def _expired(host: Host, of_kubelet: bool) -> tuple[list[str], bool]:
    """A line for each certificate that has expired, and whether that is certain.

    By its own clock, which others do not share where it is off: by one that is right it may not.
    """
    clock = host.kubeadm.clock
    certificates = [
        item
        for item in host.kubeadm.certificates
        if clock and item.expires < clock and item.name.endswith(_KUBELET) == of_kubelet
    ]
    is_certain = any(item.expires < clock - host.skew_s for item in certificates)
    return [f"{item.name} expired on {_day(item.expires)}" for item in certificates], is_certain


def certificates_expired(facts: Facts) -> Iterator[Sighting]:
    for host in facts.read:
        evidence, is_certain = _expired(host, of_kubelet=False)
        if not evidence:
            continue
        lines = [
            *host.log("kubelet", "certificate has expired"),
            *host.log("kube-apiserver", "certificate has expired"),
        ]
        yield Sighting(
            node=host.node,
            evidence=(*evidence[:4], *lines[-1:]),
            confidence=Confidence.CERTAIN if is_certain else Confidence.POSSIBLE,
        )


def kubelet_credentials(facts: Facts) -> Iterator[Sighting]:
    for host in facts.read:
        evidence, is_certain = _expired(host, of_kubelet=True)
        lines = [] if host.running("kubelet") else host.log("kubelet", *_WORDS)
        if host.joined and (evidence or lines):
            likely = Confidence.LIKELY if lines else Confidence.POSSIBLE
            yield Sighting(
                node=host.node,
                evidence=(*evidence, *lines[-1:]),
                confidence=Confidence.CERTAIN if is_certain else likely,
            )


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


TABLE = (
    Cause(
        id="certificates-expired",
        meaning="certificates of the control plane have expired",
        find=certificates_expired,
        remedy="renew them and restart what uses them, as deploys/site.py does in time "
        "(docs/lifecycle.md)",
        command="sudo kubeadm certs renew all && sudo crictl pods -q --namespace kube-system "
        "--label tier=control-plane | xargs -r sudo crictl stopp",
        on="node",
        explains=("api-server-down", "node-not-ready", "kubelet-stopped"),
    ),
    Cause(
        id="kubelet-credentials",
        meaning="a kubelet's credentials have expired or are gone: it renews them only while it "
        "runs and reaches the API server, and the token to ask for others is used up",
        find=kubelet_credentials,
        remedy="the command prints new ones: put them on the node as /etc/kubernetes/kubelet.conf "
        "(mode 600), and restart its kubelet",
        command="sudo kubeadm kubeconfig user --org=system:nodes --client-name=system:node:{node} "
        "--config=/etc/gpuboot/kubeadm.yaml",
        explains=("node-not-ready", "kubelet-stopped", "node-missing", "pod-terminating"),
    ),
)
