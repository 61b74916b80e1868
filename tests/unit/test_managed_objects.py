"""Objects of Helm and of gpuboot, as a shell reads them beside an API server that answers."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from deploys.facts.objects import Managed
from gpuboot.kubernetes.managed_objects import (
    PATHS,
    SECRETS,
    ManagedSecret,
    key,
    undefined,
)
from tests.cluster_answers import listed, managed, named, served


def secret(name: str, data: dict[str, str]) -> dict[str, Any]:
    return named(name, "mon", labels={"a": "b"}, data=data)


def test_objects_of_helm_and_of_ours(tmp_path: Path) -> None:
    ours = {**named("a", "mon", annotations={"gpuboot.io/sha256": "ab12"}), "kind": "ConfigMap"}
    answers = {**managed(ours), PATHS["ServiceMonitor"]: None, PATHS["ClusterPolicy"]: None}
    value = base64.b64encode(b"hunter2").decode()
    secrets = listed(secret("bare", {}), secret("full", {"tls.key": value, "name": value}))
    with served(tmp_path, {**answers, SECRETS: secrets}) as host:
        said = host.run(Managed().command(str(host.kubeconfig))).stdout
        found = host.read(Managed(), kubeconfig=str(host.kubeconfig))
    assert value not in said
    assert not found.error
    [item] = found.objects
    assert (*key(item), item["apiVersion"]) == ("ConfigMap", "mon", "a", "v1")
    assert found.unknown == ("ServiceMonitor", "ClusterPolicy")
    assert undefined(found) == {
        "servicemonitors.monitoring.coreos.com",
        "clusterpolicies.nvidia.com",
    }
    digest = hashlib.sha256(value.encode()).hexdigest()
    assert found.secrets == (
        ManagedSecret("mon", "bare", {}),
        ManagedSecret("mon", "full", {"name": digest, "tls.key": digest}),
    )


def test_kinds_that_every_cluster_has_must_be_answered(tmp_path: Path) -> None:
    with served(tmp_path, {**managed(), PATHS["ConfigMap"]: None, SECRETS: listed()}) as host:
        assert host.read(Managed(), kubeconfig=str(host.kubeconfig)).error
    with served(tmp_path, {**managed(), SECRETS: {"code": 403}}) as host:
        found = host.read(Managed(), kubeconfig=str(host.kubeconfig))
    assert found.error.endswith("the API server answers 403")
