"""Why a node offers fewer GPUs than it has."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Pod
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts

_MIG = "nvidia.com/mig-"
_PLUGIN = "nvidia-device-plugin"
# how it says so: k8s-device-plugin, internal/rm/health.go and internal/plugin/server.go
_UNHEALTHY = ("marking device as unhealthy", "device marked unhealthy")
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
        plugins = _plugins(facts, node.name)
        settled = [
            plugin
            for plugin in plugins
            if plugin.ready and cluster.now - plugin.started > _SETTLES_S
        ]
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
        if not evidence or any(
            item.ready and cluster.now - item.started > _SETTLES_S for item in plugins
        ):
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
