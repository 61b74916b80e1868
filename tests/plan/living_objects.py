"""Objects that kubeadm and manifests have made in the living site's cluster, as they were made."""

from __future__ import annotations

import base64
import gzip
import os
import re
from collections.abc import Sequence
from typing import Any

import yaml

from gpuboot.cluster import flannel, kubeadm, local_path, manifests, metrics_server
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from tests.cluster_answers import packed
from tests.plan import in_force_site
from tests.unit.recordings import kubeadm_objects

_COREDNS = "Deployment", "coredns"


def answers(
    settings: Settings, lock: Lock, nodes: Sequence[Node], config: str
) -> dict[str | re.Pattern[str], list[str]]:
    """What the facts about them print, by a part of their commands. + config: kubeadm's"""
    server = kubeadm.endpoint(settings.cluster, nodes)
    network = flannel.manifest(settings, lock, server, kubeadm.way_to_api(settings.cluster, nodes))
    recorded = kubeadm_objects()
    return {
        **in_force_site.answers(nodes, config),
        # both are asked for at once
        "/namespaces/kube-flannel/serviceaccounts/": _packed(
            [
                item
                for manifest in (network, *metrics_of(settings, lock, nodes).values())
                for item in _objects(manifest)
            ]
            + _objects(local_path.local_path(settings, lock))
        ),
        "--print-manifest": [
            f"config\t{_text(config)}",
            f"addons\t{_text(recorded['addons'])}",
            *_packed(_changed([_configured(item, config) for item in recorded["objects"]])),
        ],
    }


def metrics_of(settings: Settings, lock: Lock, nodes: Sequence[Node]) -> dict[str, str]:
    """The manifests of metrics-server and its approver, by their Deployment."""
    if not settings.cluster.metrics_server:
        return {}
    return {
        metrics_server.APPROVER: metrics_server.approver(settings, lock, nodes),
        metrics_server.SERVER: metrics_server.server(settings, lock),
    }


def _changed(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """$PLAN_BENT: CoreDNS is deleted; $PLAN_DECIDED: its Corefile is another one."""
    for item in items if os.environ.get("PLAN_DECIDED") else ():
        if "Corefile" in item.get("data", {}):
            item["data"]["Corefile"] += "corp.example:53 {}\n"
    bent = bool(os.environ.get("PLAN_BENT"))
    return [
        item for item in items if not bent or (item["kind"], item["metadata"]["name"]) != _COREDNS
    ]


def _configured(item: dict[str, Any], config: str) -> dict[str, Any]:
    """The object; the kubelets' configuration is that of this site."""
    if item["metadata"]["name"] != "kubelet-config":
        return item
    parts = yaml.safe_load_all(config)
    kubelet = next(part for part in parts if part["kind"] == "KubeletConfiguration")
    return {**item, "data": {"kubelet": yaml.safe_dump(kubelet)}}


def _objects(manifest: str) -> list[dict[str, Any]]:
    text, _ = manifests.with_digest(manifest)
    return [item for item in yaml.safe_load_all(text) if item]


def _packed(objects: Sequence[Any]) -> list[str]:
    return packed({str(number): item for number, item in enumerate(objects)})


def _text(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode())).decode()
