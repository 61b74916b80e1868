"""What starts Kubernetes' conformance suite in a cluster: hydrophone's objects, with our names.

Read in hydrophone v0.8.0 (pkg/conformance/deploy.go) and in Kubernetes v1.36.3
(test/conformance/image): one pod with upstream's image, which runs the suite, and a container
beside it that hands out what was written. All else belongs to the namespace: with it it goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

NAMESPACE = "gpuboot-conformance"
POD = "e2e-conformance-test"
SUITE, OUTPUT = "conformance-container", "output-container"
ACCOUNT = "conformance-serviceaccount"
LABELS = {"app.kubernetes.io/managed-by": "gpuboot", "app.kubernetes.io/component": "conformance"}
SELECTED = r"\[Conformance\]"
LONGEST_S = 8 * 3600  # one process takes two to three hours
_RESULTS = "/tmp/results"
# upstream's runner packs its results, and then writes the file `done`
_HAND_OUT = f"until [ -e {_RESULTS}/done ]; do sleep 2; done; base64 {_RESULTS}/e2e.tar.gz"


@dataclass(frozen=True)
class Request:
    """What somebody asks for.

    + version: of Kubernetes, without its v
    + helper_image: with a shell and base64
    + focus: a regular expression of Go: only conformance specs that it matches; "" all
    + processes: that run specs at the same time; those marked Serial run alone all the same
    """

    version: str
    helper_image: str
    focus: str = ""
    processes: int = 1

    @property
    def image(self) -> str:
        """Upstream's image."""
        return f"registry.k8s.io/conformance:v{self.version}"


def namespace() -> Object:
    """The namespace that everything is in, or belongs to."""
    return {"metadata": {"name": NAMESPACE, "labels": dict(LABELS)}}


def service_account() -> Object:
    """The account whose rights the suite has."""
    return {"metadata": {"name": ACCOUNT, "labels": dict(LABELS)}}


def role_binding(namespace_uid: str) -> Object:
    """An administrator's rights for the suite, which the namespace's deletion takes away.

    + namespace_uid: of the namespace, its owner
    """
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE, "uid": namespace_uid}
    return {
        "metadata": {"name": NAMESPACE, "labels": dict(LABELS), "ownerReferences": [owner]},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }


def pod(request: Request) -> Object:
    """The pod that runs the suite. It ends itself, whatever becomes of who made it."""
    mounts = [{"name": "output", "mountPath": _RESULTS}]
    suite = {
        "name": SUITE,
        "image": request.image,
        "env": [{"name": name, "value": text} for name, text in _environment(request).items()],
        "volumeMounts": mounts,
        "securityContext": restricted(),
    }
    output = {
        "name": OUTPUT,
        "image": request.helper_image,
        "command": ["sh", "-c", _HAND_OUT],
        "volumeMounts": mounts,
        "securityContext": restricted(),
    }
    return {
        "metadata": {"name": POD, "labels": dict(LABELS)},
        "spec": {
            "containers": [suite, output],
            "volumes": [{"name": "output", "emptyDir": {}}],
            "restartPolicy": "Never",
            "serviceAccountName": ACCOUNT,
            "tolerations": [{"operator": "Exists"}],
            "activeDeadlineSeconds": LONGEST_S,
        },
    }


def _environment(request: Request) -> dict[str, str]:
    """Variables of upstream's runner (test/conformance/image/go-runner/const.go)."""
    arguments = ["--label-filter=Conformance"] if request.focus else []
    arguments += [f"--procs={request.processes}"] if request.processes > 1 else []
    return {
        "E2E_FOCUS": request.focus or SELECTED,
        "E2E_SKIP": "",
        "E2E_PROVIDER": "skeleton",
        "E2E_VERBOSITY": "4",
        "E2E_USE_GO_RUNNER": "true",
        "E2E_EXTRA_GINKGO_ARGS": " ".join(arguments),
    }


def restricted() -> Object:
    """The security context that PodSecurity's level `restricted` asks for."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65534,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
