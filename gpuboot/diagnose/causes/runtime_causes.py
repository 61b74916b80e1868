"""Why containers do not start: containerd, its configuration, and NVIDIA's runtime in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import Facts
from gpuboot.diagnose.log_lines import last_words

_CONFLICT = (
    "higher than root config version",
    "failed to load TOML",
    "unable to load",
    "cannot load TOML",
    "toml:",
)
_NO_RUNTIME = re.compile(r'no runtime for "?\\?"?([\w.-]+?)\\?"? is configured')
_CGROUP = ("for systemd cgroups, got", "cgroup-parent for systemd cgroup should be a valid slice")


def containerd_config(facts: Facts) -> Iterator[Sighting]:
    for host in facts.read:
        details = host.details
        lines = host.log("containerd", *_CONFLICT)
        if not details.containerd_error and (host.running("containerd") or not lines):
            continue
        versions = [
            f"{path}: version {number or 'not said'}" for path, number in details.toml.items()
        ]
        dump_errors = [f"containerd config dump: {line}" for line in details.containerd_error[:1]]
        unit = details.units.get("containerd")
        state = [f"containerd.service is {unit.active} ({unit.result})"] if unit else []
        # what it reads now may be corrected, and what it said be of before
        confidence = Confidence.CERTAIN if dump_errors else Confidence.LIKELY
        evidence = (*dump_errors, *state, *lines[-1:], *versions[:5])
        yield Sighting(node=host.node, evidence=evidence, confidence=confidence)


def containerd_stopped(facts: Facts) -> Iterator[Sighting]:
    for host in facts.read:
        unit = host.details.units.get("containerd")
        if not host.joined or unit is None or host.running("containerd"):
            continue
        state = f"containerd.service is {unit.active} ({unit.sub}), result {unit.result}"
        # one that was stopped gave up nothing: what it said is of before
        last = [] if unit.result == "success" else last_words(host.log("containerd"))
        yield Sighting(node=host.node, evidence=(state, *last))


def nvidia_runtime_missing(facts: Facts) -> Iterator[Sighting]:
    """Pods that asked for it and did not get it, and nodes whose running containerd lacks it."""
    required_handlers = set(facts.cluster.runtimes.values())
    pods: dict[str, list[str]] = {}
    for pod in facts.cluster.pods:
        for text in facts.cluster.messages_of(pod):
            if (match := _NO_RUNTIME.search(text)) and not pod.ready:
                required_handlers.add(match[1])
                pods.setdefault(pod.node, []).append(f"{pod.key}: {text[-160:]}")
    for host in facts.read:
        handlers = host.gpu.runtime_handlers if host.gpu else ()
        missing = "nvidia" in required_handlers and handlers and "nvidia" not in handlers
        evidence = pods.pop(host.node, [])
        if missing:
            evidence.append(f"containerd runs with the handlers {', '.join(handlers)}")
            if "nvidia" in host.details.runtimes:
                evidence.append("its files have nvidia: it was not restarted since")
        if evidence:
            confidence = Confidence.CERTAIN if missing else Confidence.LIKELY
            yield Sighting(node=host.node, evidence=tuple(evidence[-3:]), confidence=confidence)
    for node, evidence in pods.items():
        yield Sighting(node=node, evidence=tuple(evidence[-2:]), confidence=Confidence.LIKELY)


def cgroup_mismatch(facts: Facts) -> Iterator[Sighting]:
    """The kubelet asks containerd for its driver (Kubernetes 1.34), where it answers that."""
    for host in facts.read:
        kubelet, runc = host.details.kubelet_cgroup, host.details.runtime_cgroups.get("runc")
        lines = [*host.log("kubelet", *_CGROUP), *host.log("containerd", *_CGROUP)]
        if not kubelet or runc is None or (kubelet == "systemd") == runc:
            continue
        containerd_driver = "systemd" if runc else "cgroupfs"
        mismatch = (
            f"kubelet: cgroupDriver {kubelet}; containerd: {containerd_driver} (SystemdCgroup = "
            f"{str(runc).lower()})"
        )
        # what runs may have been started before its file was changed, or know the other's driver
        confidence = Confidence.CERTAIN if lines else Confidence.LIKELY
        yield Sighting(node=host.node, evidence=(mismatch, *lines[-1:]), confidence=confidence)


_STOPS = (
    "node-not-ready",
    "api-server-down",
    "kubelet-stopped",
    "coredns-not-ready",
    "prometheus-target-down",
    "prometheus-down",
    "device-plugin-missing",
    "nvidia-runtime-missing",
)

TABLE = (
    Cause(
        id="containerd-config",
        meaning="containerd cannot read its configuration: a drop-in conflicts with the root file",
        find=containerd_config,
        remedy="take the drop-in away or correct it; its version may not be higher than the root "
        "file's",
        command="sudo grep -rs '^version' /etc/containerd; "
        "sudo journalctl -u containerd -n 5 --no-pager",
        on="node",
        explains=("containerd-stopped", *_STOPS),
    ),
    Cause(
        id="containerd-stopped",
        meaning="containerd does not run, so no container starts or can be asked for",
        find=containerd_stopped,
        remedy="start it; if it ends again, its last lines say why",
        command="sudo systemctl start containerd; sudo journalctl -u containerd -n 30 --no-pager",
        on="node",
        explains=_STOPS,
    ),
    Cause(
        id="nvidia-runtime-missing",
        meaning='containerd has no runtime "nvidia", which pods ask for by their runtimeClassName',
        find=nvidia_runtime_missing,
        remedy="configure it and restart containerd; deploys/site.py does both",
        command="sudo nvidia-ctk runtime configure --runtime=containerd && "
        "sudo systemctl restart containerd",
        on="node",
        explains=(
            "pod-crash-loop",
            "device-plugin-missing",
            "pending-resource",
            "gpus-not-in-container",
            "prometheus-target-down",
        ),
    ),
    Cause(
        id="cgroup-mismatch",
        meaning="kubelet and containerd use different cgroup drivers",
        find=cgroup_mismatch,
        remedy="use systemd in both, and restart both",
        command="sudo grep -n SystemdCgroup -r /etc/containerd; "
        "sudo grep -n cgroupDriver /var/lib/kubelet/config.yaml",
        on="node",
        explains=("pod-crash-loop", "node-not-ready", "api-server-down"),
    ),
)
