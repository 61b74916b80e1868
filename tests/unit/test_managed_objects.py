"""Objects of Helm and of gpuboot, as a shell reads them beside an API server that answers."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from deploys.parts.cluster.objects_fact import Managed
from gpuboot.cluster.managed_objects import PATHS, SECRETS, ManagedSecret, key, undefined
from tests.cluster_answers import item_list, make_object, managed, served


def secret(name: str, data: dict[str, str]) -> dict[str, Any]:
    return make_object(name, "mon", labels={"a": "b"}, data=data)


def test_objects_of_helm_and_of_ours(tmp_path: Path) -> None:
    own_object = {
        **make_object("a", "mon", annotations={"gpuboot.io/sha256": "ab12"}),
        "kind": "ConfigMap",
    }
    answers = {**managed(own_object), PATHS["ServiceMonitor"]: None, PATHS["ClusterPolicy"]: None}
    value = base64.b64encode(b"hunter2").decode()
    secrets = item_list(secret("bare", {}), secret("full", {"tls.key": value, "name": value}))
    with served(tmp_path, {**answers, SECRETS: secrets}) as host:
        output = host.run(Managed().command(str(host.kubeconfig))).stdout
        managed_state = host.read(Managed(), kubeconfig=str(host.kubeconfig))
    assert value not in output
    assert not managed_state.error
    [item] = managed_state.objects
    assert (*key(item), item["apiVersion"]) == ("ConfigMap", "mon", "a", "v1")
    assert managed_state.unknown == ("ServiceMonitor", "ClusterPolicy")
    assert undefined(managed_state) == {
        "servicemonitors.monitoring.coreos.com",
        "clusterpolicies.nvidia.com",
    }
    digest = hashlib.sha256(value.encode()).hexdigest()
    assert managed_state.secrets == (
        ManagedSecret("mon", "bare", {}),
        ManagedSecret("mon", "full", {"name": digest, "tls.key": digest}),
    )


def test_kinds_that_every_cluster_has_must_be_answered(tmp_path: Path) -> None:
    with served(tmp_path, {**managed(), PATHS["ConfigMap"]: None, SECRETS: item_list()}) as host:
        assert host.read(Managed(), kubeconfig=str(host.kubeconfig)).error
    with served(tmp_path, {**managed(), SECRETS: {"code": 403}}) as host:
        managed_state = host.read(Managed(), kubeconfig=str(host.kubeconfig))
    assert managed_state.error.endswith("the API server answers 403")
