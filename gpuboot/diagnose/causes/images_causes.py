"""Why an image is not pulled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts
from gpuboot.hosts.failures import FAILURES, name_of

_WAITS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable")
_TRIES_S = 330.0
_IMAGE = re.compile(r'image "([^"]+)"')
_HOST = re.compile(r"(?:https?://|lookup )([\w.:-]+)")


def _of(cause: str) -> Callable[[Facts], Iterator[Sighting]]:
    def find(facts: Facts) -> Iterator[Sighting]:
        for pod in facts.cluster.pods:
            waits = [item for item in pod.containers if item.reason in _WAITS]
            if pod.going or not waits:
                continue
            # the state of a back-off does not say why; the event before it does
            messages = [
                item.message
                for item in facts.cluster.events_of(pod.key, "Failed", "FailedPull")
                if "pull" in item.message
            ] + [item.message for item in waits]
            text = next(
                (item for item in reversed(messages) if name_of(item)),
                messages[-1] if messages else "",
            )
            if name_of(text) == cause:
                image, registry = _IMAGE.search(text), _HOST.search(text)
                values = {
                    "image": image[1] if image else "IMAGE",
                    "registry": registry[1] if registry else "REGISTRY",
                }
                # the kubelet tries again after at most five minutes
                now = any(name_of(item.message) == cause for item in waits) or any(
                    event.message == text and facts.cluster.now - event.at < _TRIES_S
                    for event in facts.cluster.events_of(pod.key)
                )
                confidence = Confidence.CERTAIN if now else Confidence.LIKELY
                confidence = confidence if cause else Confidence.POSSIBLE
                yield Sighting(
                    node=pod.node,
                    pod=pod.key,
                    confidence=confidence,
                    values=values,
                    evidence=(f"{waits[0].name}: {text[:400]}",),
                )

    return find


_PULL = "sudo crictl pull {image}"
_CERTIFICATE = (
    "openssl s_client -connect {registry}:443 </dev/null 2>/dev/null | openssl x509 -noout "
)
_COMMANDS = {
    "space": "df -h /var/lib/containerd; df -i /var/lib/containerd; sudo crictl rmi --prune",
    "digest": _PULL,
    "media": _PULL,
    "unpack": "sudo crictl rmi {image}; stat -fc %T /var/lib/containerd; " + _PULL,
    "platform": "uname -m; " + _PULL,
    "rate": _PULL,
    "http": "curl -s http://{registry}/v2/ -o /dev/null -w '%{{http_code}}\\n'; " + _PULL,
    "clock": "sudo timedatectl set-ntp true; timedatectl",
    "expired": "date; " + _CERTIFICATE + "-dates",
    "name": _CERTIFICATE + "-ext subjectAltName",
    "ca": "openssl s_client -connect {registry}:443 -showcerts </dev/null | head -20; " + _PULL,
    "proxy": "sudo systemctl show containerd -p Environment -p EnvironmentFiles; " + _PULL,
    "auth": "kubectl -n {namespace} get secrets "
    "--field-selector type=kubernetes.io/dockerconfigjson",
    "missing": _PULL,
    "mirror": "ls -R /etc/containerd/certs.d; curl -sv https://{registry}/v2/ -o /dev/null; "
    + _PULL,
}

TABLE = (
    *(
        Cause(
            id=f"image-{name}",
            meaning=f"an image is not pulled: {failure.cause}",
            find=_of(name),
            remedy=failure.remedy,
            command=_COMMANDS[name],
            on="leader" if name == "auth" else "node",
            explains=(
                *("pod-crash-loop", "prometheus-target-down", "coredns-not-ready"),
                "api-extension-unavailable",
            ),
        )
        for name, failure in FAILURES.items()
    ),
    Cause(
        id="image-pull",
        meaning="an image is not pulled, and why is not known",
        find=_of(""),
        remedy="read what containerd says",
        command=_PULL,
        on="node",
        fallback=True,
    ),
)
