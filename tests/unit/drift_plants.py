"""What is named of changes that people make to a cluster, by recordings of a real one.

All start from a cluster that nobody has touched.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from gpuboot.cluster import kubelet_in_force, settings_in_force, static_pods
from gpuboot.cluster.open_rights import BINDINGS, CLUSTER_BINDINGS, PATHS, RBAC, open_rights
from gpuboot.config.settings import Settings
from gpuboot.hosts import boot_overrides
from gpuboot.hosts.boot import BootState, ConfigLine
from gpuboot.hosts.module_loading import ModuleLoading
from gpuboot.plan import Decision
from gpuboot.plan.differences import text_change
from gpuboot.verify.alert_path import Matcher, Silence
from gpuboot.verify.silences import alert_rules, lasting
from tests.unit.recordings import in_force as recorded
from tests.unit.test_preflight import CLEAN

FLAGS = "KUBELET_KUBEADM_ARGS"
DROP_IN = "/etc/systemd/system/kubelet.service.d/20-admin.conf"
START = "ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS"
NOW = 1_790_000_000.0
JOINED = {"/etc/kubernetes/kubelet.conf": "https://10.0.0.1:6443"}


@dataclass(frozen=True)
class Row:
    """A change. + planted: gives the lines that drift names; names: parts that they must have"""

    id: str
    planted: Callable[[], Sequence[str]]
    names: tuple[str, ...]

    def __str__(self) -> str:
        return self.id


@cache
def lines() -> dict[str, Any]:
    return recorded()


def kubelet(
    path: str = "", value: Any = None, line: str = "", file: str = "/etc/default/kubelet"
) -> list[str]:
    """What is named of a kubelet that runs with this value, which a line of a file has set."""
    running = copy.deepcopy(dict(settings_in_force.parse(lines()["in_force"]).kubelets["gpu1"]))
    *outer, last = path.split(".")
    place = running
    for name in outer:
        place = place.setdefault(name, {})
    if last:
        place[last] = value
    expected = kubelet_in_force.expected(lines()["config"])
    sources = [ConfigLine(file, 1, line)] if line else []
    return _texts(kubelet_in_force.overrides(running, expected, sources, pending=False))


def manifest(file: str, old: str, new: str) -> list[str]:
    """What is named of a manifest in which somebody has changed a text."""
    state = static_pods.parse(lines()["static_pods"])
    assert old in state.actual[file]
    actual = {**state.actual, file: state.actual[file].replace(old, new)}
    running = tuple(tuple(static_pods.command_of(text)) for text in actual.values())
    return _manifests(replace(state, actual=actual, running=running))


def without_manifest(file: str) -> list[str]:
    state = static_pods.parse(lines()["static_pods"])
    actual = {name: text for name, text in state.actual.items() if name != file}
    return _manifests(replace(state, actual=actual))


def another_manifest(name: str, of: str, old: str = "", new: str = "") -> list[str]:
    """What is named of a copy beside a manifest, which the kubelet reads as well.

    + old, new: what is another in it
    """
    state = static_pods.parse(lines()["static_pods"])
    return _manifests(
        replace(state, actual={**state.actual, name: state.actual[of].replace(old, new)})
    )


def process(program: str, *arguments: str) -> list[str]:
    """What is named of a program that runs with other flags than its manifest has."""
    state = static_pods.parse(lines()["static_pods"])
    running = tuple(
        (*command, *arguments) if command[0] == program else command for command in state.running
    )
    return _manifests(replace(state, running=running))


def _manifests(state: static_pods.StaticPods) -> list[str]:
    changes = [
        text_change(f"file {static_pods.FOLDER}/{name}", state.actual.get(name), text)
        for name, text in static_pods.changed(state).items()
    ]
    return [json.dumps(change.to_json()) for change in changes] + _texts(
        static_pods.overrides(state)
    )


def boot(**state: Any) -> list[str]:
    """What is named of files of a host. + state: fields of `BootState`"""
    host_state = replace(CLEAN, boot=BootState(**state), kubeconfigs=JOINED)
    return _texts(boot_overrides.decisions(host_state))


def sysctl(file: str, text: str) -> list[str]:
    return boot(sysctls=(ConfigLine(file, 1, text),))


def modules(**state: Any) -> list[str]:
    """What is named of modprobe's configuration. + state: fields of `ModuleLoading`"""
    host_state = replace(CLEAN, module_loading=ModuleLoading(**state), kubeconfigs=JOINED)
    return _texts(boot_overrides.decisions(host_state))


def binding(name: str, role: str, kind: str, subject: str, namespace: str = "") -> list[str]:
    """What is named of a binding that gives somebody a role."""
    item = {
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": kind, "name": subject}],
    }
    return rights({BINDINGS if namespace else CLUSTER_BINDINGS: {"items": [item]}})


def widened(name: str, rule: dict[str, Any]) -> list[str]:
    """What is named of a role of Kubernetes' own to which somebody has added a rule."""
    path = f"{RBAC}/clusterroles/{name}"
    return rights({path: {"metadata": {"name": name}, "rules": [rule]}})


def rights(answers: dict[str, Any]) -> list[str]:
    empty: dict[str, Any] = {path: {"items": []} for path in PATHS[:2]}
    return [
        f"{item.label} gives {item.holders} {item.role}: {item.remedy}"
        for item in open_rights({**empty, **answers})
    ]


def silence(*matchers: Matcher, ends: str = "2031-01-01T00:00:00.000Z") -> list[str]:
    """What is named of a silence with these conditions."""
    entry = Silence(id="44e7", author="bob", comment="known", ends=ends, matchers=matchers)
    rules = alert_rules(Settings(), [])
    return _texts(lasting([entry], rules, "gpuboot", NOW))


def _texts(decisions: Sequence[Decision]) -> list[str]:
    return [f"{item.what}: {item.why}" for item in decisions]
