"""Changes that people make to a cluster, each with what drift names of it: rows of a table.

All start from recordings of a real cluster that nobody has touched.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from gpuboot.alerting.silences import alert_rules, lasting
from gpuboot.config.settings import Settings
from gpuboot.hosts import boot_overrides
from gpuboot.hosts.boot import BootState, ConfigLine
from gpuboot.hosts.module_loading import ModuleLoading
from gpuboot.kubernetes import in_force, kubelet_in_force, static_pods
from gpuboot.kubernetes.open_rights import (
    BINDINGS,
    CLUSTER_BINDINGS,
    PATHS,
    RBAC,
    open_rights,
)
from gpuboot.plan import Kept
from gpuboot.plan.differences import text_change
from gpuboot.verify.alert_path import Matcher, Silence
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
    running = copy.deepcopy(dict(in_force.parse(lines()["in_force"]).kubelets["gpu1"]))
    *outer, last = path.split(".")
    place = running
    for name in outer:
        place = place.setdefault(name, {})
    if last:
        place[last] = value
    asked = kubelet_in_force.expected(lines()["config"])
    sources = [ConfigLine(file, 1, line)] if line else []
    return _texts(kubelet_in_force.overrides(running, asked, sources, pending=False))


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


def another_manifest(name: str, of: str) -> list[str]:
    """What is named of a copy beside a manifest, which the kubelet reads as well."""
    state = static_pods.parse(lines()["static_pods"])
    return _manifests(replace(state, actual={**state.actual, name: state.actual[of]}))


def process(program: str, *more: str) -> list[str]:
    """What is named of a program that runs with other flags than its manifest has."""
    state = static_pods.parse(lines()["static_pods"])
    running = tuple((*it, *more) if it[0] == program else it for it in state.running)
    return _manifests(replace(state, running=running))


def _manifests(state: static_pods.StaticPods) -> list[str]:
    changes = [
        text_change(f"file {static_pods.FOLDER}/{name}", state.actual.get(name), text)
        for name, text in static_pods.changed(state).items()
    ]
    return [json.dumps(it.to_json()) for it in changes] + _texts(static_pods.overrides(state))


def boot(**state: Any) -> list[str]:
    """What is named of files of a host. + state: fields of `BootState`"""
    found = replace(CLEAN, boot=BootState(**state), kubeconfigs=JOINED)
    return _texts(boot_overrides.kept(found))


def sysctl(file: str, text: str) -> list[str]:
    return boot(sysctls=(ConfigLine(file, 1, text),))


def modules(**state: Any) -> list[str]:
    """What is named of modprobe's configuration. + state: fields of `ModuleLoading`"""
    found = replace(CLEAN, module_loading=ModuleLoading(**state), kubeconfigs=JOINED)
    return _texts(boot_overrides.kept(found))


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
    empty = {path: {"items": []} for path in PATHS[:2]}
    return [
        f"{item.label} gives {item.holders} {item.role}: {item.remedy}"
        for item in open_rights({**empty, **answers})
    ]


def silence(*matchers: Matcher, ends: str = "2031-01-01T00:00:00.000Z") -> list[str]:
    """What is named of a silence with these conditions."""
    found = Silence(id="44e7", author="bob", comment="known", ends=ends, matchers=matchers)
    rules = alert_rules(Settings(), [])
    return _texts(lasting([found], rules, "gpuboot", NOW))


def _texts(kept: Sequence[Kept]) -> list[str]:
    return [f"{item.what}: {item.why}" for item in kept]


ADMIN = "KUBELET_EXTRA_ARGS="
KUBELET_ROWS = (
    Row(
        "20 pods by /etc/default/kubelet",
        lambda: kubelet("maxPods", 20, f"{ADMIN}--max-pods=20"),
        ("maxPods is 20, expected 110", "/etc/default/kubelet:1", "--max-pods=20", "daemon-reload"),
    ),
    Row(
        "image pulls beside each other by a drop-in",
        lambda: kubelet(
            "serializeImagePulls", False, f"{START} --serialize-image-pulls=false", DROP_IN
        ),
        ("serializeImagePulls is False, expected True", DROP_IN),
    ),
    Row(
        "a kubelet that everybody may ask",
        lambda: kubelet("authentication.anonymous.enabled", True, f"{ADMIN}--anonymous-auth=true"),
        ("authentication.anonymous.enabled is True, expected False", "/etc/default/kubelet"),
    ),
    Row(
        "rights that the kubelet does not ask for",
        lambda: kubelet(
            "authorization.mode", "AlwaysAllow", f"{ADMIN}--authorization-mode=AlwaysAllow"
        ),
        ("authorization.mode is AlwaysAllow, expected Webhook",),
    ),
    Row(
        "a port without credentials",
        lambda: kubelet("readOnlyPort", 10255, f"{ADMIN}--read-only-port=10255"),
        ("readOnlyPort is 10255, expected no value",),
    ),
    Row(
        "certificates that nobody renews",
        lambda: kubelet("rotateCertificates", False, f"{ADMIN}--rotate-certificates=false"),
        ("rotateCertificates is False, expected True",),
    ),
    Row(
        "another cgroup driver",
        lambda: kubelet("cgroupDriver", "cgroupfs", f"{ADMIN}--cgroup-driver=cgroupfs"),
        ("cgroupDriver is cgroupfs, expected systemd",),
    ),
    Row(
        "memory kept for others by a folder of configuration",
        lambda: kubelet(
            "systemReserved", {"memory": "8Gi"}, f"{START} --config-dir=/etc/kubelet.d", DROP_IN
        ),
        ("systemReserved is {'memory': '8Gi'}, expected no value", "--config-dir=/etc/kubelet.d"),
    ),
    Row(
        "evictions later than the settings say",
        lambda: kubelet(
            "evictionHard",
            {"memory.available": "1Mi"},
            f"{ADMIN}--eviction-hard=memory.available<1Mi",
        ),
        ("evictionHard is {'memory.available': '1Mi'}", "--eviction-hard"),
    ),
    Row(
        "static pods of another folder",
        lambda: kubelet("staticPodPath", "/root/pods", f"{ADMIN}--pod-manifest-path=/root/pods"),
        ("staticPodPath is /root/pods, expected /etc/kubernetes/manifests",),
    ),
    Row(
        "a kubelet that began before its file was put back",
        lambda: kubelet("maxPods", 77),
        ("maxPods is 77", "systemctl restart kubelet"),
    ),
)
HOST_ROWS = (
    Row(
        "a sysctl file that sorts later",
        lambda: sysctl("/etc/sysctl.d/99-zzz.conf", "fs.inotify.max_user_instances = 128"),
        ("/etc/sysctl.d/99-zzz.conf:1", "expected fs.inotify.max_user_instances = 8192"),
    ),
    Row(
        "a sysctl file of /run",
        lambda: sysctl("/run/sysctl.d/99-zzz.conf", "net.ipv4.ip_forward = 0"),
        ("/run/sysctl.d/99-zzz.conf:1", "expected net.ipv4.ip_forward = 1"),
    ),
    Row(
        "forwarding switched off by its other name",
        lambda: sysctl("/usr/lib/sysctl.d/99-zzz.conf", "net.ipv4.conf.all.forwarding=0"),
        ("/usr/lib/sysctl.d/99-zzz.conf:1", "expected net.ipv4.ip_forward = 1"),
    ),
    Row(
        "ufw's own sysctls",
        lambda: sysctl("/etc/ufw/sysctl.conf", "net/ipv4/ip_forward=0"),
        ("/etc/ufw/sysctl.conf:1",),
    ),
    Row(
        "a module on the deny list",
        lambda: modules(lines=("/etc/modprobe.d/hardening.conf:3:blacklist br_netfilter",)),
        ("br_netfilter is not loaded at the next boot", "/etc/modprobe.d/hardening.conf:3"),
    ),
    Row(
        "a module that a command stands for",
        lambda: modules(lines=("/etc/modprobe.d/cis.conf:1:install overlay /bin/false",)),
        ("overlay is not loaded at the next boot", "/etc/modprobe.d/cis.conf:1"),
    ),
    Row(
        "a module that the kernel's command line refuses",
        lambda: modules(boot_options=("module_blacklist=floppy,br_netfilter",)),
        ("br_netfilter is not loaded", "/proc/cmdline"),
    ),
    Row(
        "containerd by another command",
        lambda: boot(
            containerd=(
                ConfigLine(
                    "/etc/systemd/system/containerd.service.d/a.conf",
                    3,
                    "ExecStart=/usr/bin/containerd --config /root/c.toml",
                ),
            )
        ),
        ("/etc/systemd/system/containerd.service.d/a.conf:3", "--config /root/c.toml"),
    ),
)
POD_ROWS = (
    Row(
        "a flag of the controller manager",
        lambda: manifest(
            "kube-controller-manager.yaml",
            "    - --leader-elect=true\n",
            "    - --leader-elect=true\n    - --node-monitor-grace-period=5m\n",
        ),
        ("kube-controller-manager.yaml", "-    - --node-monitor-grace-period=5m"),
    ),
    Row(
        "a flag of the API server",
        lambda: manifest("kube-apiserver.yaml", "=Node,RBAC", "=AlwaysAllow"),
        ("kube-apiserver.yaml", "-    - --authorization-mode=AlwaysAllow"),
    ),
    Row(
        "a flag of etcd",
        lambda: manifest("etcd.yaml", "snapshot-count=10000", "snapshot-count=5000"),
        ("etcd.yaml", "+    - --snapshot-count=10000"),
    ),
    Row(
        "an image of the scheduler",
        lambda: manifest("kube-scheduler.yaml", "kube-scheduler:v", "kube-scheduler-x:v"),
        ("kube-scheduler.yaml", "kube-scheduler-x"),
    ),
    Row(
        "a manifest that is gone",
        lambda: without_manifest("kube-scheduler.yaml"),
        ("kube-scheduler.yaml", '"old": null'),
    ),
    Row(
        "a copy of a manifest beside it",
        lambda: another_manifest("kube-apiserver.yaml.bak", "kube-apiserver.yaml"),
        ("kube-apiserver.yaml.bak is a second manifest of the pod kube-apiserver",),
    ),
    Row(
        "a process with another flag than its manifest",
        lambda: process("kube-controller-manager", "--concurrent-gc-syncs=1"),
        ("kube-controller-manager does not run as", "runs with --concurrent-gc-syncs=1"),
    ),
)
ACCESS_ROWS = (
    Row(
        "cluster-admin for who has no credentials",
        lambda: binding("everyone", "cluster-admin", "Group", "system:unauthenticated"),
        ("ClusterRoleBinding everyone", "system:unauthenticated", "ClusterRole cluster-admin"),
    ),
    Row(
        "rights of every pod",
        lambda: binding("permissive-binding", "view", "Group", "system:serviceaccounts"),
        ("ClusterRoleBinding permissive-binding", "every pod", "ClusterRole view"),
    ),
    Row(
        "rights of everybody with a login",
        lambda: binding("all", "edit", "Group", "system:authenticated"),
        ("ClusterRoleBinding all", "every pod included"),
    ),
    Row(
        "a namespace for anonymous",
        lambda: binding("lookers", "edit", "User", "system:anonymous", "monitoring"),
        ("RoleBinding monitoring/lookers", "delete rolebinding lookers -n monitoring"),
    ),
    Row(
        "Kubernetes' own binding to another role",
        lambda: binding("system:discovery", "cluster-admin", "Group", "system:authenticated"),
        ("ClusterRoleBinding system:discovery", "ClusterRole cluster-admin"),
    ),
    Row(
        "Secrets in a role that everybody has",
        lambda: widened(
            "system:discovery",
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]},
        ),
        ("ClusterRole system:discovery", "get, list secrets"),
    ),
    Row(
        "a silence over everything",
        lambda: silence(Matcher(name="alertname", value=".*", is_regex=True)),
        ("silence 44e7", "holds back every alert of gpuboot", "bob"),
    ),
    Row(
        "a silence over one alert for years",
        lambda: silence(Matcher(name="alertname", value="GPULost")),
        ("holds back GPULost",),
    ),
    Row(
        "a silence over a whole severity",
        lambda: silence(Matcher(name="severity", value="critical")),
        ("holds back ", "more"),
    ),
)
ROWS = (*KUBELET_ROWS, *HOST_ROWS, *POD_ROWS, *ACCESS_ROWS)
