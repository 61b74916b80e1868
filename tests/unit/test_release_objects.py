"""Where a release's objects live otherwise than Helm has rendered them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from gpuboot.cluster.helm_releases import Release
from gpuboot.cluster.managed_objects import ManagedObjects, ManagedSecret, Object
from gpuboot.cluster.release_objects import (
    Drift,
    confirmed,
    drifted,
    release_objects,
    unknown_kinds,
)

MANIFEST = """\
---
# Source: web/templates/secret.yaml
apiVersion: v1
kind: Secret
metadata:
  name: web
data:
  password: "aHVudGVyMg=="
stringData:
  since: 2026-11-22
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  labels:
    app.kubernetes.io/managed-by: chart
data:
  since: 2026-11-22
---
apiVersion: v1
kind: ConfigMapList
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: listed, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web}
spec: {resources: {requests: {storage: 10Gi}}}
---
# of another group, and of kinds that are not compared
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: web}
---
apiVersion: batch/v1
kind: Job
metadata: {name: web}
---
"""
RELEASE = Release("web", "1.0.0", "deployed", 1, manifest=MANIFEST)


def objects() -> dict[str, Object]:
    released = release_objects(RELEASE, "web", "w")
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in released}


def digest(base64: str) -> str:
    return hashlib.sha256(base64.encode()).hexdigest()


PASSWORD, SINCE = digest("aHVudGVyMg=="), digest("MjAyNi0xMS0yMg==")


def live(**changed: Any) -> ManagedObjects:
    """What lives when nobody has touched it. + changed: kind -> other parts, None: it is gone"""
    live_objects = []
    for item in objects().values():
        kind = item["kind"]
        if kind != "Secret" and changed.get(kind, {}) is not None:
            live_objects.append({**item, "status": {}, **changed.get(kind, {})})
    secret = ManagedSecret("w", "web", {"password": PASSWORD, "since": SINCE})
    return ManagedObjects(objects=tuple(live_objects), secrets=(secret,))


def test_objects_are_as_helm_applies_them() -> None:
    released = objects()
    assert list(released) == [
        "Secret/web",
        "ConfigMap/web",
        "ConfigMap/listed",
        "ClusterRole/web",
        "Deployment/web",
        "PersistentVolumeClaim/web",
    ]
    meta = released["ConfigMap/web"]["metadata"]
    assert meta["namespace"] == "w"
    assert meta["labels"] == {"app.kubernetes.io/managed-by": "Helm"}
    assert meta["annotations"]["meta.helm.sh/release-name"] == "web"
    assert released["ConfigMap/web"]["data"] == {"since": "2026-11-22"}
    assert released["ConfigMap/listed"]["metadata"]["namespace"] == "kube-system"
    assert "namespace" not in released["ClusterRole/web"]["metadata"]


def test_what_nobody_touched_has_no_drift() -> None:
    assert drifted(objects().values(), live()) == []


def drift(managed: ManagedObjects) -> list[tuple[str, tuple[Any, ...] | None]]:
    drifts = drifted(objects().values(), managed)
    return [(item.desired["kind"], item.fields if item.live else None) for item in drifts]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"ClusterRole": None}, ("ClusterRole", None)),
        ({"Deployment": {"spec": None}}, ("Deployment", (("spec", None, {"template": {}}),))),
        # a volume that somebody enlarged
        ({"PersistentVolumeClaim": {"spec": {}}}, None),
        ({"PersistentVolumeClaim": None}, ("PersistentVolumeClaim", None)),
        # a chart that does not say how many pods it wants
        ({"Deployment": {"spec": {"replicas": 3}}}, None),
        ({"Deployment": {"spec": {"replicas": 0}}}, ("Deployment", (("spec.replicas", 0, 1),))),
    ],
)
def test_what_was_deleted_or_changed(changed: dict[str, Any], expected: Any) -> None:
    assert drift(live(**changed)) == ([expected] if expected else [])


def test_what_an_autoscaler_has_set_is_its_own() -> None:
    [deployment] = [item for item in objects().values() if item["kind"] == "Deployment"]
    deployment = {**deployment, "spec": {"replicas": 1}}

    def scaled(manager: str) -> ManagedObjects:
        fields = [{"manager": manager, "operation": "Update", "subresource": "scale"}]
        meta = {**deployment["metadata"], "managedFields": fields}
        return ManagedObjects(objects=({**deployment, "metadata": meta, "spec": {"replicas": 4}},))

    assert drifted([deployment], scaled("kube-controller-manager")) == []
    assert len(drifted([deployment], scaled("kubectl"))) == 1


def test_secrets_are_compared_by_digests() -> None:
    managed = live()
    changed_secret = ManagedSecret("w", "web", {"password": digest("eA=="), "since": SINCE})
    [secret_drift] = drifted(objects().values(), replace(managed, secrets=(changed_secret,)))
    assert secret_drift.fields == (("data.password", "another", "of the release"),)
    [secret_drift] = drifted(objects().values(), replace(managed, secrets=()))
    assert secret_drift.live is None


def config_map(**metadata: Any) -> Object:
    meta = {"name": "web", "namespace": "w", "uid": "1", "resourceVersion": "5", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}


def test_only_what_the_server_confirms_is_drift() -> None:
    desired = objects()["ConfigMap/web"]
    difference = Drift(desired, config_map(), (("data.a", "1", "one"),))
    confirmed_object = config_map(
        resourceVersion="6", generation=2, managedFields=[{"manager": "helm"}]
    )
    assert confirmed([difference], [confirmed_object]) == []
    applied = {**config_map(), "data": {"a": "one"}}
    assert confirmed([difference], [applied]) == [replace(difference, applied=applied)]
    # it refused to tell: applying it will say why
    assert confirmed([difference], []) == [difference]


def test_an_object_that_lost_its_label_is_not_deleted() -> None:
    desired = objects()["ConfigMap/web"]
    new = config_map()
    del new["metadata"]["resourceVersion"]
    assert confirmed([Drift(desired)], [new]) == [Drift(desired)]
    [difference] = confirmed([Drift(desired)], [config_map()])
    assert difference.live
    assert difference.fields == (("metadata.labels.app.kubernetes.io/managed-by", None, "Helm"),)


def test_kinds_whose_definition_was_deleted() -> None:
    manifest = 'kind: ConfigMap\n---\nkind: "Prometheus"\n---\nkind: ClusterPolicy\n'
    managed = ManagedObjects(unknown=("Prometheus", "ClusterPolicy", "NVIDIADriver"))
    for chart, kinds in (
        ("kube-prometheus-stack", ["Prometheus"]),
        ("gpu-operator", ["ClusterPolicy"]),
        ("dcgm-exporter", []),
    ):
        release = replace(RELEASE, chart=chart, manifest=manifest)
        assert unknown_kinds(release, managed) == kinds
        assert unknown_kinds(release, ManagedObjects()) == []
