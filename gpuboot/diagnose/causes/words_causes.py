"""Causes that programs name in words of their own: the table is `words.toml`.

The words are the symptom; the state behind them was not seen, so none of these is certain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from gpuboot.config.tables import read_table
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.causes.absent_causes import OF_PODS, of_refused
from gpuboot.diagnose.causes.control_plane_causes import part_last_words
from gpuboot.diagnose.facts import Facts
from gpuboot.diagnose.log_lines import last_words

_ROWS = read_table("diagnose/causes/words.toml")
_PATTERNS = {name: re.compile(row.pop("pattern")) for name, row in _ROWS.items()}
# of containers that wait for an image: containerd's words about that are a table of their own
_IMAGES = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "RegistryUnavailable")
_MAX_LENGTH = 300
# what a pod's words explain wherever it belongs, and what those of a host or node do
_OF_POD = ("control-plane-part-failing", "operator-crash-loop", "prometheus-down")
_OF_NODE = ("api-server-down", "kubelet-stopped", "node-not-ready", "driver-not-loaded")
_EXPLAINED = tuple(dict.fromkeys((*_OF_POD, *_OF_NODE, "pending-taint", *OF_PODS)))


@cache
def name_of(text: str) -> str:
    """The name of the table's row that fits a text; "" for none."""
    return next((name for name, pattern in _PATTERNS.items() if pattern.search(text)), "")


def _pod_texts(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Node, pod and each text about a pod that is not ready."""
    for pod in facts.cluster.pods:
        waits = {container.reason for container in pod.containers}
        if pod.ready or pod.going or pod.finished or waits & {*_IMAGES}:
            continue
        ends = (item.termination.message for item in pod.containers if item.termination)
        for text in (*facts.cluster.messages_of(pod), *ends, *facts.cluster.log(pod, "")):
            yield pod.node, pod.key, text


def _node_texts(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Likewise of nodes that are not well: why kubelets ended, and what the kernel says."""
    for node in facts.cluster.nodes:
        if not node.ready:
            yield node.name, "", node.message
    for host in facts.read:
        # read only where the API server does not answer: what etcd and it gave up with
        for part in ("kube-apiserver", "etcd"):
            yield from ((host.node, "", line) for line in part_last_words(host, part))
        if host.joined and not host.running("kubelet"):
            yield from ((host.node, "", line) for line in last_words(host.log("kubelet")))
        if host.state and host.state.gpus and not host.state.driver_loaded:
            yield from ((host.node, "", line) for line in host.kernel("NVRM", "BAR"))


def _of(row: str, of_pods_alone: bool) -> Callable[[Facts], Iterator[Sighting]]:
    def find(facts: Facts) -> Iterator[Sighting]:
        texts = [*_pod_texts(facts), *(() if of_pods_alone else _node_texts(facts))]
        # the last of a place counts: it is the newest
        places = {(node, pod): text for node, pod, text in texts if name_of(text) == row}
        for (node, pod), text in places.items():
            yield Sighting(
                node=node,
                pod=pod,
                evidence=(" ".join(text.split())[-_MAX_LENGTH:],),
                confidence=Confidence.LIKELY,
                explains=(*_OF_POD, *of_refused(pod)) if pod else None,
            )

    return find


TABLE = tuple(
    Cause(
        id=name,
        **row,
        on="leader" if row["command"].startswith("kubectl") else "node",
        find=_of(name, of_pods_alone="{name" in row["command"]),
        explains=tuple(item for item in _EXPLAINED if item != name),
    )
    for name, row in _ROWS.items()
)
