"""What others add to objects, as a real API server has noted who has set what."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gpuboot.cluster.added_fields import added_fields, text, without
from gpuboot.cluster.managed_objects import ManagedObjects
from gpuboot.cluster.release_objects import Drift, confirmed, drifted
from gpuboot.cluster.set_fields import field_differences

RECORDED = json.loads(
    gzip.decompress(Path(__file__).with_name("recorded_added_fields.json.gz").read_bytes())
)
# change -> each field that has to be named, with what is in force
_PLUGIN = "spec.template.spec.containers[nvidia-device-plugin].env"
EXPECTED_FIELDS: dict[str, dict[str, Any]] = {
    "node selector": {"spec.template.spec.nodeSelector.kubernetes.io/hostname": "gpu1"},
    "device plugin env": {
        f"{_PLUGIN}[DEVICE_SPLIT]": "4",
        f"{_PLUGIN}[FAIL_ON_INIT_ERROR].value": "false",
        "spec.template.spec.initContainers[toolkit-validation].env[DEVICE_SPLIT]": "4",
        "spec.template.spec.initContainers[toolkit-validation].env[FAIL_ON_INIT_ERROR]": "false",
    },
    "flannel env": {
        "spec.template.spec.containers[kube-flannel].env[EVENT_QUEUE_DEPTH].value": "1",
        "spec.template.spec.containers[kube-flannel].env[FLANNELD_IFACE]": "eth9",
        **{
            f"spec.template.spec.initContainers[{name}].env[{variable}]": value
            for name in ("install-cni", "install-cni-plugin")
            for variable, value in (("EVENT_QUEUE_DEPTH", "1"), ("FLANNELD_IFACE", "eth9"))
        },
    },
    "paused": {"spec.paused": True},
    "coredns image": {
        "spec.template.spec.containers[coredns].image": "registry.k8s.io/coredns/coredns:v1.10.0"
    },
}


def drift_of(change: str, state: str) -> list[Drift]:
    recorded = RECORDED[change]
    return drifted([recorded["released"]], ManagedObjects(objects=(recorded[state],)))


def values(drift: Drift) -> dict[str, Any]:
    return {
        path: value["value"] if isinstance(value, dict) else value
        for path, value, _ in drift.fields
    }


@pytest.mark.parametrize("change", EXPECTED_FIELDS)
def test_each_change_is_named_with_its_value(change: str) -> None:
    [drift] = drift_of(change, "after")
    assert values(drift) == EXPECTED_FIELDS[change]


@pytest.mark.parametrize("change", EXPECTED_FIELDS)
def test_before_the_change_nothing_is_named(change: str) -> None:
    assert not drift_of(change, "before")


@pytest.mark.parametrize("change", EXPECTED_FIELDS)
def test_without_the_additions_only_what_is_set_is_left_to_apply(change: str) -> None:
    [drift] = drift_of(change, "after")
    put_back = drift.cleaned or drift.live
    assert put_back is not None
    applied_paths = {path for path, *_ in field_differences(drift.desired, put_back)}
    assert applied_paths == {path for path, _, expected in drift.fields if expected is not None}
    assert not added_fields(drift.desired, {**put_back, "metadata": drift.live["metadata"]})  # type: ignore[index]


def test_an_addition_is_drift_though_to_apply_would_change_nothing() -> None:
    [drift] = drift_of("paused", "after")
    assert confirmed([drift], [copy.deepcopy(RECORDED["paused"]["after"])])


def entry(manager: str, fields: dict[str, Any], **extra: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields, **extra}


SPEC: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
LIVE: dict[str, Any] = {
    "metadata": {"name": "web"},
    "spec": {"replicas": 3},
    "status": {"ready": True},
}


@pytest.mark.parametrize(
    ("manager", "fields", "extra"),
    [
        ("kube-controller-manager", SPEC, {"subresource": "scale"}),
        ("keda", SPEC, {"subresource": "scale"}),  # an autoscaler
        ("helm", SPEC, {}),
        ("PrometheusOperator", {"f:status": {"f:ready": {}}}, {"subresource": "status"}),
        ("kubectl-edit", {"f:metadata": {"f:labels": {"f:owner": {}}}}, {}),
        ("kubectl-rollout", {"f:spec": {"f:template": {"f:metadata": {}}}}, {}),
        ("kubectl-edit", {"f:spec": {"f:gone": {}}}, {}),  # noted, and not there any more
    ],
)
def test_what_controllers_and_makers_set_is_none(
    manager: str, fields: dict[str, Any], extra: dict[str, str]
) -> None:
    live = {**LIVE, "metadata": {"name": "web", "managedFields": [entry(manager, fields, **extra)]}}
    assert not added_fields({"spec": {}}, live)


@pytest.mark.parametrize("manager", ["kubectl-edit", "kubectl-patch", "kubectl", "curl", "Lens"])
def test_any_other_program_counts(manager: str) -> None:
    live = {**LIVE, "metadata": {"name": "web", "managedFields": [entry(manager, SPEC)]}}
    [(path, value)] = added_fields({"spec": {}}, live)
    assert (text(path), value) == ("spec.replicas", 3)
    assert without(live, [path]) == {"metadata": {"name": "web"}, "spec": {}}
