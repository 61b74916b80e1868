"""Objects made again, and those who wait for them told at once."""

from __future__ import annotations

from typing import Any

import pytest

from deploys.parts.cluster.release_drift import put_back
from gpuboot.cluster.release_objects import Drift


def commands(kind: str, name: str, namespace: str = "", **fields: Any) -> list[str]:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    drift = Drift({"apiVersion": "v1", "kind": kind, "metadata": meta}, **fields)
    return [str(item) for item in put_back([drift], "helm", "gpu-operator")]


@pytest.mark.parametrize(
    ("kind", "name", "namespace", "place"),
    [
        ("ServiceAccount", "web", "shop", "shop"),
        ("Namespace", "shop", "", "shop"),
        ("RuntimeClass", "nvidia", "", "gpu-operator"),
        ("PriorityClass", "high", "", "gpu-operator"),
    ],
)
def test_who_was_refused_pods_tries_again_at_once(
    kind: str, name: str, namespace: str, place: str
) -> None:
    apply, retry = commands(kind, name, namespace)
    assert "apply --server-side" in apply
    assert f" -n {place} annotate --overwrite daemonsets,replicasets,statefulsets --all" in retry


@pytest.mark.parametrize("kind", ["Deployment", "ConfigMap", "ClusterRoleBinding"])
def test_what_refuses_no_pod_is_made_again_and_no_more(kind: str) -> None:
    assert len(commands(kind, "web")) == 1


def test_whose_rights_a_binding_gives_is_changed_by_making_it_anew() -> None:
    fields = (("roleRef.name", "view", "edit"),)
    [command] = commands("ClusterRoleBinding", "web", live={"metadata": {}}, fields=fields)
    assert "replace --force" in command
