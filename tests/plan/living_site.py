"""A site that a run with the default settings has made: a control plane, and a worker of two GPUs.

$PLAN_SETTINGS is what the settings are now. What hosts answer is worked out from the defaults, so
a run has nothing to do but what those settings change. $PLAN_FAILS: a part of a command that fails
on the leader. $PLAN_DRIVER: the driver that is loaded, where it is not the lock's. $PLAN_BENT:
somebody has changed and deleted objects of the cluster by hand. $PLAN_DECIDED: the Corefile is
another one. $PLAN_NEW: the inventory has
another worker, a bare machine. $PLAN_VIRTUAL: the virtual address that the site was made with.
$PLAN_BEGUN: an earlier run has begun the upgrade of gpu1, and did not end it. $PLAN_SECOND: there
is a second worker, gpu2, which is as the first. $PLAN_KUBERNETES: the release that it runs, where
that is not the lock's. $PLAN_BUDGET: how many healthy pods a budget has and needs, and how many it
counts; it is of a Deployment with a pod on each worker. $PLAN_SILENT: the API server does not
answer. $PLAN_FOREIGN: names of Deployments of metrics that gpuboot has not made.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from deploys.parts.api_endpoint.virtual_address_operations import CONFIG, UNIT_FILE
from deploys.parts.packages.fact import KEYS
from deploys.phases import base
from deploys.phases.drivers import NOUVEAU
from deploys.run.context import Context
from gpuboot.cluster import backup, endpoint, kubeadm
from gpuboot.cluster.virtual_address import unit_file
from gpuboot.config.inventory import API_NAME, Entry, Node, plan
from gpuboot.hosts import prerequisites, sysctls
from gpuboot.hosts.fact_output import answer
from gpuboot.hosts.platforms import PLATFORMS
from gpuboot.hosts.repositories import repository
from gpuboot.site.load_site import load
from gpuboot.templates import render
from tests.noise import framed_lines
from tests.plan import living_objects, silent_api, virtual_site
from tests.plan.living_cluster import LivingCluster
from tests.plan.living_pods import pods_of_nodes

_site = runpy.run_path(str(Path(__file__).parent / "inventories/site.py"))
_hosts = [_site["_host"](11, "cp1", 0), _site["_host"](21, "gpu1", 2)]
if os.environ.get("PLAN_SECOND"):
    _hosts.append(_site["_host"](22, "gpu2", 2))
_virtual = os.environ.get("PLAN_VIRTUAL", "")
_GPUBOOT = {
    "preflight": _site["_data"]["gpuboot"]["preflight"],
    "versions": _site["_DIGESTS"],
    **({"cluster": {"virtual_ip": _virtual}} if _virtual else {}),
}
_settings, _lock = load(_GPUBOOT)
_settings = _settings.model_copy(update={"cluster": endpoint.decided(_settings.cluster, "")})
_nodes, _ = plan(
    [
        Entry(name, ("control_plane" if name == "@fake/cp1" else "workers",), data)
        for name, data in _hosts
    ],
    None,
)
_config = kubeadm.configuration(_settings, _lock, _nodes)
_platform = next(item for item in PLATFORMS if item.codename == "noble")
_driver = _lock.driver.version
_CONTROL_PLANE = ("admin.conf", "manifests/kube-apiserver.yaml")
_now = os.environ.get("PLAN_DRIVER") or _driver
_kubernetes = {
    name: f"{pattern.rstrip('*-')}-1.1" for name, pattern in kubeadm.packages(_lock).items()
}
if _older := os.environ.get("PLAN_KUBERNETES"):
    _kubernetes |= dict.fromkeys(("kubelet", "kubeadm", "kubectl"), f"{_older}-1.1")
_installed = {
    **dict.fromkeys([*prerequisites.KUBERNETES, "chrony", "nvidia-persistenced"], "1"),
    "linux-headers-6.8.0-90-generic": "1",
    f"nvidia-driver-pinning-{_driver}": "1",
    "nvidia-open": f"{_now}-1",
    "containerd.io": f"{_lock.containerd.version}-1",
    **dict.fromkeys(
        [
            "libnvidia-container1",
            "libnvidia-container-tools",
            "nvidia-container-toolkit",
            "nvidia-container-toolkit-base",
        ],
        _lock.toolkit.version,
    ),
    **_kubernetes,
    **({"keepalived": "1:2.2.8-1"} if _virtual else {}),
}
_PODS = {
    "items": [
        {
            "metadata": {"namespace": "ml", "name": "train"},
            "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
            "status": {"phase": "Running"},
        }
    ]
}
_files = {
    "/etc/modules-load.d/gpuboot.conf": render("base/modules.conf.j2"),
    sysctls.FILE: render("base/sysctl.conf.j2", sysctls=sysctls.EXPECTED),
    base.APT_CONF: base.apt_conf(Context(_settings, _lock, _nodes, _nodes[0], {})),
    "/etc/modprobe.d/gpuboot-nouveau.conf": NOUVEAU,
    "/etc/gpuboot/kubeadm.yaml": _config.text,
    **backup.files(_settings.backup, _nodes[0].name),
    backup.PROGRAM: backup.program(KEYS),
}
if _virtual:
    _files |= {CONFIG: virtual_site.keepalived(_settings.cluster, _nodes), UNIT_FILE: unit_file()}
_modes = {"/etc/gpuboot/kubeadm.yaml": "600", backup.PROGRAM: "755"}
_backup = (
    '{"taken":1763800000,"reason":"timer","node":"cp1","kubernetes":"v1.36.3","etcd":"etcd:1",'
    '"ca":"c1","snapshot":{"hash":1,"revision":2,"totalKey":3,"totalSize":4}}'
)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _kubeadm(leads: bool, is_resumed: bool) -> list[str]:
    return [
        *(f"package\t{name} {version}" for name, version in _kubernetes.items()),
        *(f"file\t{name}" for name in ["kubelet.conf", *(_CONTROL_PLANE if leads else [])]),
        *([virtual_site.certificate(_virtual)] if leads and _virtual else []),
        *(["started\tnode-upgrade"] if is_resumed else []),
        f"kubelet_config\t{_config.kubelet}",
        "kubeconfig\tsame",
        "end\tok",
    ]


def _manifests(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    def packed(item: dict[str, Any]) -> str:
        return base64.b64encode(gzip.compress(yaml.safe_dump(item).encode())).decode()

    return [f"old {packed(old)}", f"new {packed(new)}"]


def _prometheus(retention: str) -> dict[str, Any]:
    meta = {"name": "kube-prometheus-stack-prometheus", "namespace": "monitoring"}
    return {"kind": "Prometheus", "metadata": meta, "spec": {"retention": retention}}


def _policy(stamp: str) -> dict[str, Any]:
    meta = {"name": "cluster-policy"}
    return {"kind": "ClusterPolicy", "metadata": meta, "spec": {"dcgmExporter": {"stamp": stamp}}}


def _reached(node: Node, member: bool) -> str:
    return endpoint.address(_settings.cluster, node, _nodes, member)


def _repositories() -> Iterator[tuple[str, list[str]]]:
    for name in ("cuda", "docker", "toolkit", "kubernetes"):
        source = repository(name, _platform, "x86_64", _lock.kubernetes.minor, _settings)
        lines = [f"text\t{line}" for line in source.text.splitlines()]
        lines += [f"key\t{source.fingerprint} 0", "end\tok"]
        yield f"path={source.path}\n", lines


def _answers(name: str) -> dict[str | re.Pattern[str], list[str]]:
    leads = name == "@fake/cp1"
    is_resumed = name == "@fake/gpu1" and bool(os.environ.get("PLAN_BEGUN"))
    return {
        "How far kubeadm got on this host": _kubeadm(leads, is_resumed),
        **_cluster_answers(),
        **pods_of_nodes(os.environ.get("PLAN_BUDGET", "")),
        **_host_answers(name),
    }


@cache
def _cluster_answers() -> dict[str | re.Pattern[str], list[str]]:
    return {
        **LivingCluster(
            _settings, _lock, _nodes, _config, _older or _lock.kubernetes.version
        ).answers(),
        **living_objects.answers(_settings, _lock, _nodes, _config.text),
        "/about.json": [f"backup\t1\t{_backup}", "ca\tc1", "result\tsuccess", "end\tok"],
        "--field-selector spec.nodeName=gpu1": [
            base64.b64encode(json.dumps(_PODS).encode()).decode()
        ],
        "get manifest kube-prometheus-stack": _manifests(_prometheus("15d"), _prometheus("20d")),
        "get manifest gpu-operator": _manifests(_policy("a"), _policy("b")),
        # what would come of applying objects again: it is not told, so all of it counts
        "--dry-run=server -o json": [base64.b64encode(gzip.compress(b"")).decode()],
        "version --template": [_lock.helm.version],
        **{
            f"sha256sum /var/cache/gpuboot/charts/{name}-{chart.version}.tgz": [chart.sha256 or "a"]
            for name, chart in _lock.charts.items()
        },
    }


def _units() -> list[str]:
    names = ["containerd.service", "nvidia-persistenced.service", "kubelet.service", backup.TIMER]
    if _virtual:
        names.append("keepalived.service")
    blocks = (
        f"Id={unit}\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled" for unit in names
    )
    return "\n\n".join(blocks).split("\n")


_ISOLATED = [
    f"accepts accept-nvidia-visible-devices-{form} false"
    for form in ("as-volume-mounts", "envvar-when-unprivileged")
]


def _host_lines(own_node: Node) -> list[str]:
    """Lines of /etc/hosts for the control planes and the host itself."""
    return [
        f"/etc/hosts\t{node.address} {node.name}"
        for node in _nodes
        if node.leader or node == own_node
    ]


def _host_answers(name: str) -> dict[str | re.Pattern[str], list[str]]:
    leads = name == "@fake/cp1"
    own_node = next((node for node in _nodes if node.host == name), _nodes[1])
    return {
        "stat -c": [
            line
            for path, text in _files.items()
            for line in (
                f"mode {_modes.get(path, '644')} {path}",
                f"sha256 {_digest(text)}  {path}",
            )
        ],
        "ls /var/lib/dpkg/updates": [],
        "dpkg-query -W -f": [
            f"hold installed {name} {version}" for name, version in _installed.items()
        ],
        **dict(_repositories()),
        "grep -qw overlay /proc/filesystems": [
            "feature overlay",
            "feature br_netfilter",
            *(f"sysctl {key.replace('.', '/')} {value}" for key, value in sysctls.EXPECTED.items()),
        ],
        "awk -v b='# gpuboot: the API server'": [
            f"/etc/hosts\t{_reached(own_node, leads)} {API_NAME}"
        ],
        "awk -v b=": _host_lines(own_node),
        "systemctl show -p Id": _units(),
        "grep -qs nvidia-uvm /proc/devices": [
            "loaded NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
            f"{_now}  Release Build",
            "uvm",
            "gpu GPU-1",
            "gpu GPU-2",
        ],
        "nvidia-ctk cdi generate": ["installed", "current"],
        "nvidia-ctk --quiet config": ["installed", *_ISOLATED],
    }


def _living_host(host: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    name, data = host
    noise = data["fake_responses"]
    fails = os.environ.get("PLAN_FAILS", "")
    failure = {
        "stdout": [],
        "stderr": ["gpuboot: it broke; remedy: put it right"],
        "success": False,
    }
    packages = [f"package\t{name} {version}" for name, version in _installed.items()]
    packages.append("kubeconfig\t/etc/kubernetes/kubelet.conf https://10.0.0.11:6443")
    if data.get("gpus"):
        packages.append(f"driver\tNVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {_now}")
    if _virtual and name == "@fake/cp1":
        packages += virtual_site.machine(_virtual)
    machine = answer(noise[_site["_FACT"]]).lines
    responses = {
        **({fails: failure} if fails and name == "@fake/cp1" else {}),
        **(silent_api.ANSWERS if os.environ.get("PLAN_SILENT") else {}),
        **{key: noise[key] for key in list(noise)[:2]},
        _site["_FACT"]: framed_lines([*machine, *packages]),
        **{k: framed_lines(v) for k, v in {**_site["REHEARSED"], **_answers(name)}.items()},
    }
    return name, {**data, "fake_responses": responses}


control_plane = ([_living_host(_hosts[0])], _site["_data"])
_new = [_site["_host"](22, "gpu2", 4)] if os.environ.get("PLAN_NEW") else []
workers = ([*map(_living_host, _hosts[1:]), *_new], _site["_data"])
