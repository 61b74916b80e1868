"""What is in force in a site that nobody has touched, as the facts about it print it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from typing import Any

from gpuboot.cluster import kubelet_in_force, open_rights
from gpuboot.config.inventory import Node
from tests.cluster_answers import item_list, make_object, packed

_MANIFEST = json.dumps(
    {"metadata": {"name": "etcd"}, "spec": {"containers": [{"command": ["etcd", "--name=cp1"]}]}}
)


def answers(nodes: Sequence[Node], config: str) -> dict[str | re.Pattern[str], list[str]]:
    """What the facts print, by a part of their commands. + config: kubeadm's"""
    return {
        "/proxy/configz": _in_force(nodes, config),
        "KUBEADM_INIT_DRYRUN_DIR": _static_pods(),
    }


def _in_force(nodes: Sequence[Node], config: str) -> list[str]:
    fields = {
        path: value[0] if isinstance(value, tuple) else value
        for path, value in kubelet_in_force.expected(config).items()
    }
    running = {"kubeletconfig": fields}
    bindings = dict.fromkeys(open_rights.BINDING_PATHS, item_list())
    roles = {path: make_object(name) for path, (_, name) in open_rights.ROLES.items()}
    return [
        *(f"kubelet\t{node.name} 200 {_zipped(running)}" for node in nodes),
        f"silences\t- 200 {_zipped([])}",
        *packed({**bindings, **roles}),
    ]


def _static_pods() -> list[str]:
    text = base64.b64encode(_MANIFEST.encode()).decode()
    command = base64.b64encode(b"etcd\n--name=cp1").decode()
    return [
        f"expected\tetcd.yaml {text}",
        f"actual\tetcd.yaml {text}",
        f"running\t{command}",
        "end\tok",
    ]


def _zipped(value: Any) -> str:
    return base64.b64encode(gzip.compress(json.dumps(value).encode())).decode()
