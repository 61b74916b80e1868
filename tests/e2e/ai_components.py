"""What AI conformance asks for and a site may lack: Kueue, and Traefik as a Gateway.

Both are upstream's, with upstream's objects. No registry that the lab reaches serves their images:
they run from a node's disk, in a pod of an image that the lab has.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from lab.build.components import (
    KUEUE,
    KUEUE_VERSION,
    TRAEFIK,
    TRAEFIK_VERSION,
    gateway_api_manifests,
    kueue,
    traefik,
)
from lab.build.golang import module_dir
from lab.build.recipe import make
from lab.settings import home
from tests.e2e.conftest import Lab

CONTROL_PLANE = "cp1"
PROGRAMS = "/opt/tests"
_MANIFESTS = "/opt/kueue"
_USER = 65532
_RBAC = "docs/content/reference/dynamic-configuration/kubernetes-gateway-rbac.yml"
_TRAEFIK_NAME = "traefik-controller"  # of upstream's ServiceAccount
_LABELS = {"app": "traefik"}


def install_kueue(site: Lab, node: str) -> None:
    """Kueue on a node, and wait until its webhooks answer."""
    program = make(kueue(), {}) / "bin/kueue"
    _copy(program, machine_path(site, node) / PROGRAMS.lstrip("/"))
    folder = machine_path(site, CONTROL_PLANE) / _MANIFESTS.lstrip("/")
    shutil.copytree(module_dir(KUEUE, KUEUE_VERSION) / "config", folder, dirs_exist_ok=True)
    objects = list(yaml.safe_load_all(site.kubectl("kustomize", f"{_MANIFESTS}/default")))
    for item in objects:
        if item["kind"] == "Deployment":
            _run_from_disk(site, item, node, "kueue")
    apply(site, *objects)
    rollout = ("rollout", "status", "deployment/kueue-controller-manager", "--timeout=300s")
    site.kubectl("-n", "kueue-system", *rollout)


def install_traefik(site: Lab, node: str, address: str) -> None:
    """The Gateway API with a GatewayClass of Traefik, which listens at port 80 of a node."""
    _copy(make(traefik(), {}) / "bin/traefik", machine_path(site, node) / PROGRAMS.lstrip("/"))
    definitions = [
        yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in sorted(gateway_api_manifests().glob("*.yaml"))
        if "vap" not in path.name
    ]
    apply(site, *definitions)
    rbac = (module_dir(TRAEFIK, TRAEFIK_VERSION) / _RBAC).read_text(encoding="utf-8")
    account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": _metadata(_TRAEFIK_NAME)}
    deployment = _traefik_deployment(address)
    _run_from_disk(site, deployment, node, "traefik")
    gateway_class = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": "traefik"},
        "spec": {"controllerName": "traefik.io/gateway-controller"},
    }
    apply(site, account, *yaml.safe_load_all(rbac), deployment, gateway_class)
    site.kubectl("rollout", "status", f"deployment/{_TRAEFIK_NAME}", "--timeout=300s")
    accepted = ("wait", "--for=condition=Accepted", "gatewayclass/traefik", "--timeout=120s")
    site.kubectl(*accepted)


def apply(site: Lab, *objects: Any) -> None:
    """Apply the objects by the server: some are too large for an annotation."""
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    site.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=document)


def machine_path(site: Lab, machine: str) -> Path:
    """The root folder of a machine."""
    return home(site.name) / "machines" / machine / "root"


def image(site: Lab, name: str) -> str:
    """An image that the lab's mirror has, with its tag."""
    lock = json.loads((home(site.name) / "mirror/lab.lock.json").read_text(encoding="utf-8"))
    return f"docker.io/library/{name}:{lock['versions']['images'][name]}"


def _metadata(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": "default", "labels": _LABELS}


def _traefik_deployment(address: str) -> dict[str, Any]:
    container = {
        "name": "traefik",
        "args": [
            "--entrypoints.web.address=:80",
            "--providers.kubernetesgateway=true",
            f"--providers.kubernetesgateway.statusaddress.ip={address}",
        ],
        "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}},
    }
    pod = {
        "serviceAccountName": _TRAEFIK_NAME,
        "hostNetwork": True,
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(_TRAEFIK_NAME),
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "strategy": {"type": "Recreate"},
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        },
    }


def _copy(program: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, folder)


def _run_from_disk(site: Lab, deployment: Any, node: str, program: str) -> None:
    """Let the Deployment's container run a program of the node's disk."""
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    pod["nodeSelector"] = {"kubernetes.io/hostname": node}
    pod.setdefault("volumes", []).append({"name": "program", "hostPath": {"path": PROGRAMS}})
    mount = {"name": "program", "mountPath": PROGRAMS, "readOnly": True}
    container.setdefault("volumeMounts", []).append(mount)
    container.update(image=image(site, "busybox"), command=[f"{PROGRAMS}/{program}"])
    container["imagePullPolicy"] = "IfNotPresent"
    if pod.get("securityContext", {}).get("runAsNonRoot"):
        pod["securityContext"]["runAsUser"] = _USER
