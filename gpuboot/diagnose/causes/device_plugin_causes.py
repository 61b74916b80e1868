"""Why a node offers fewer GPUs than it has."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.cluster.objects import Node, count
from gpuboot.cluster.pods import Pod
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts

_MIG = "nvidia.com/mig-"
_MIG_STATE = "nvidia.com/mig.config.state"
_PLUGIN = "nvidia-device-plugin"
# how it says so: k8s-device-plugin, internal/rm/health.go and internal/plugin/server.go
_UNHEALTHY = ("marking device as unhealthy", "device marked unhealthy")
# and that it found none: cmd/nvidia-device-plugin/main.go, internal/rm (nvml_manager.go)
_NOT_FOUND = ("No devices found", "Incompatible strategy detected", "invalid MIG configuration")
_SETTLES_S = 60.0  # from its start until the kubelet has counted what it offers


def _short(node: Node) -> list[str]:
    """The kinds of GPUs of which a node offers fewer than it has."""
    return [
        f"{name}: {free_count} of {text} allocatable"
        for name, text in node.capacity.items()
        if name.startswith(("nvidia.com/gpu", _MIG)) and name != "nvidia.com/gpu.shared"
        if (free_count := node.allocatable.get(name, "0")).isdigit() and text.isdigit()
        if node.ready and int(free_count) < int(text)
    ]


def gpu_unhealthy(facts: Facts) -> Iterator[Sighting]:
    """The device plugin says that a GPU is not well, or runs long enough to have offered it."""
    cluster = facts.cluster
    for node in cluster.nodes:
        settled = _settled(facts, node.name)
        evidence = _short(node)
        if not evidence or not settled:
            continue
        lines = [
            line for plugin in settled for line in cluster.log_since_start(plugin, *_UNHEALTHY)
        ]
        yield Sighting(
            node=node.name,
            evidence=(*evidence, *(f"device plugin: {line}" for line in lines[-1:])),
            confidence=Confidence.CERTAIN if lines else Confidence.LIKELY,
        )


def device_plugin_missing(facts: Facts) -> Iterator[Sighting]:
    """Nobody offers a node's GPUs: the plugin's pod is not there, not ready, or just started."""
    cluster = facts.cluster
    sets = [item for item in cluster.workloads if item.kind == "DaemonSet" and _PLUGIN in item.name]
    for node in cluster.nodes:
        evidence = _short(node) or _none(facts, node)
        plugins = _plugins(facts, node.name)
        if not evidence or _settled(facts, node.name):
            continue
        pods = [
            f"{item.key} was started {cluster.now - item.started:.0f} s ago"
            if item.ready
            else f"{item.key} is not ready"
            for item in plugins
        ]
        is_missing = not any(item.ready for item in plugins)
        rolling = [f"DaemonSet {item.key} is being rolled out" for item in sets if item.rolling]
        yield Sighting(
            node=node.name,
            evidence=(*evidence, *(pods or ["no pod of the device plugin is on it"]), *rolling[:1]),
            # one that has just been started has not told the kubelet of all GPUs yet
            confidence=Confidence.CERTAIN if is_missing else Confidence.LIKELY,
        )


def _none(facts: Facts, node: Node) -> list[str]:
    """What a node has that offers no GPU any more: the kubelet forgets them after five minutes."""
    host = next((item for item in facts.read if item.node == node.name), None)
    loaded = host is not None and host.state is not None and host.state.driver_loaded
    offers = any(
        name.startswith("nvidia.com/") and count != "0" for name, count in node.capacity.items()
    )
    if host is None or not loaded or not host.gpus or not node.ready or offers:
        return []
    return [f"it offers no GPU, and the inventory promises {host.gpus}"]


def gpus_not_found(facts: Facts) -> Iterator[Sighting]:
    """The device plugin has run for a while, and offers fewer GPUs than the inventory promises."""
    cluster = facts.cluster
    for host in facts.read:
        node = cluster.node(host.node)
        settled = _settled(facts, host.node)
        if node is None or not node.ready or not settled or not _is_whole(node):
            continue
        number = count(node.capacity.get("nvidia.com/gpu", 0))
        if number >= host.gpus or not (host.state and host.state.driver_loaded):
            continue
        gpus = host.gpu.gpus if host.gpu else ()
        lines = [line for item in settled for line in cluster.log_since_start(item, *_NOT_FOUND)]
        evidence = [
            f"it offers {number} GPUs, and the inventory promises {host.gpus}",
            f"{len(host.state.gpus)} are on its bus, and nvidia-smi lists {len(gpus)}",
            *(f"GPU {gpu.index} has MIG switched on" for gpu in gpus if gpu.mig),
            *(f"{_MIG_STATE}={value}" for value in [node.labels.get(_MIG_STATE)] if value),
        ]
        yield Sighting(
            node=host.node,
            evidence=(*evidence, *(f"device plugin: {line}" for line in lines[-1:])),
            # without GPUs on the bus there is nothing that the plugin could find
            confidence=Confidence.CERTAIN
            if lines or len(host.state.gpus) < host.gpus
            else Confidence.LIKELY,
        )


def _is_whole(node: Node) -> bool:
    """Whether a node offers GPUs as such: no devices of MIG, and none that pods share."""
    return node.replicas == 1 and not any(
        count(number)
        for name, number in node.capacity.items()
        if name.startswith(_MIG) or name == "nvidia.com/gpu.shared"
    )


def _settled(facts: Facts, node: str) -> list[Pod]:
    """The device plugin's pods of a node that have run long enough to have offered its GPUs."""
    now = facts.cluster.now
    return [pod for pod in _plugins(facts, node) if pod.ready and now - pod.started > _SETTLES_S]


def _plugins(facts: Facts, node: str) -> list[Pod]:
    """The device plugin's pods of a node that are there to stay."""
    return [
        pod
        for pod in facts.cluster.pods
        if pod.node == node and _PLUGIN in pod.name and not pod.going
    ]


TABLE = (
    Cause(
        id="gpu-unhealthy",
        meaning="the device plugin offers fewer GPUs than the node has",
        find=gpu_unhealthy,
        remedy="its log names the GPU and the XID; once that is well, start the plugin's pod anew",
        command="kubectl -n gpu-operator delete pod -l app=nvidia-device-plugin-daemonset "
        "--field-selector spec.nodeName={node}",
        explains=("pending-resource",),
    ),
    Cause(
        id="gpus-not-found",
        meaning="the device plugin runs, and finds fewer GPUs than the inventory promises",
        find=gpus_not_found,
        remedy="fewer on the bus: a card is gone: power the machine off and on, reseat or replace "
        "it, or correct `gpus` of the inventory. MIG switched on: run deploys/site.py, which "
        "divides GPUs as `sharing` says. `No devices found` with all of them in nvidia-smi: the "
        "plugin's container has no driver: its DaemonSet needs runtimeClassName nvidia; "
        "deploys/site.py puts it back",
        command="kubectl -n gpu-operator logs -l app=nvidia-device-plugin-daemonset --tail=20; "
        "ssh {node} nvidia-smi -L; ssh {node} lspci -d 10de:",
        explains=("pending-resource", "pod-rejected"),
    ),
    Cause(
        id="device-plugin-missing",
        meaning="nobody offers a node's GPUs: the device plugin does not run there, or only now",
        find=device_plugin_missing,
        remedy="see why it does not run; one that has just been started offers them within seconds",
        command="kubectl get pods -A -o wide --field-selector spec.nodeName={node} "
        "-l app=nvidia-device-plugin-daemonset; "
        "kubectl get daemonsets -A -l app=nvidia-device-plugin-daemonset",
        explains=("pending-resource",),
    ),
)
