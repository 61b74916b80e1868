"""Why an image is not pulled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gpuboot.diagnose.facts import Facts
from gpuboot.diagnose.model import Cause, Confidence, Sighting

_WAITS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable")
# the first that fits names the cause; texts of containerd v2 and Go's net and crypto/x509
_KINDS = {
    "ca": re.compile(r"x509: |certificate signed by unknown authority|certificate is not trusted"),
    "proxy": re.compile(r"proxyconnect|Proxy Authentication Required|: 407 "),
    "auth": re.compile(
        r"401 Unauthorized|403 Forbidden|authorization failed|pull access denied|"
        r"authentication required"
    ),
    "missing": re.compile(r"not found|manifest unknown|NAME_UNKNOWN|InvalidImageName"),
    "mirror": re.compile(
        r"no such host|connection refused|i/o timeout|no route to host|"
        r"server misbehaving|50[0-9] |unexpected status|TLS handshake|EOF"
    ),
}
_IMAGE = re.compile(r'image "([^"]+)"')
_HOST = re.compile(r"(?:https?://|lookup )([\w.:-]+)")


def kind(message: str) -> str:
    """Which of the kinds a message tells; "" for none."""
    return next((name for name, words in _KINDS.items() if words.search(message)), "")


def _of(wanted: str) -> Callable[[Facts], Iterator[Sighting]]:
    def find(facts: Facts) -> Iterator[Sighting]:
        for pod in facts.cluster.pods:
            waits = [one for one in pod.containers if one.reason in _WAITS]
            if pod.going or not waits:
                continue
            # the state of a back-off does not say why; the event before it does
            said = [
                one.message
                for one in facts.cluster.told(pod.key, "Failed", "FailedPull")
                if "pull" in one.message
            ] + [one.message for one in waits]
            text = next((one for one in reversed(said) if kind(one)), said[-1] if said else "")
            if kind(text) == wanted:
                image, registry = _IMAGE.search(text), _HOST.search(text)
                values = {
                    "image": image[1] if image else "IMAGE",
                    "registry": registry[1] if registry else "REGISTRY",
                }
                sure = Confidence.CERTAIN if wanted else Confidence.POSSIBLE
                yield Sighting(
                    node=pod.node,
                    pod=pod.key,
                    confidence=sure,
                    values=values,
                    evidence=(f"{waits[0].name}: {text[:400]}",),
                )

    return find


_PULL = "sudo crictl pull {image}"
# kind: meaning, remedy, command
_TEXTS = {
    "ca": (
        "an image is not pulled: the registry's certificate is signed by an unknown authority",
        "trust the authority on the node, or name it for the mirror in containerd's hosts.toml",
        "openssl s_client -connect {registry}:443 -showcerts </dev/null | head -20; " + _PULL,
    ),
    "proxy": (
        "an image is not pulled: the HTTP proxy does not answer or refuses",
        "correct the proxy in containerd's unit, or leave the registry out of it by NO_PROXY",
        "sudo systemctl show containerd -p Environment -p EnvironmentFiles; " + _PULL,
    ),
    "auth": (
        "an image is not pulled: the registry wants other credentials",
        "correct the pull secret of the pod's namespace",
        "kubectl -n {namespace} get secrets --field-selector type=kubernetes.io/dockerconfigjson",
    ),
    "missing": (
        "an image is not pulled: the registry or mirror does not have it under this name",
        "correct the name, or put the image into the mirror",
        _PULL,
    ),
    "mirror": (
        "an image is not pulled: registry or mirror is not reached, or fails",
        "look at the mirror, and at its entry below /etc/containerd/certs.d",
        "ls -R /etc/containerd/certs.d; curl -sv https://{registry}/v2/ -o /dev/null; " + _PULL,
    ),
}

TABLE = (
    *(
        Cause(
            id=f"image-{name}",
            meaning=meaning,
            find=_of(name),
            remedy=remedy,
            command=command,
            on="leader" if name == "auth" else "node",
            explains=("pod-crash-loop", "prometheus-target-down", "coredns-not-ready"),
        )
        for name, (meaning, remedy, command) in _TEXTS.items()
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
