"""What goes and what stays when a part of the cluster is switched off."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpuboot.cluster import volumes
from gpuboot.cluster.helm_releases import Release
from gpuboot.cluster.objects import Claim
from gpuboot.cluster.switched_off_parts import (
    Contents,
    contents_paths,
    leaving,
    lost_claims,
    parse_contents,
    shown_objects,
    stale_labels,
)
from gpuboot.cluster.volumes import Volume, Volumes, parse_volumes
from gpuboot.config.settings import parse_settings
from gpuboot.monitoring.charts.monitoring_values import claim_names, monitoring_values
from tests.cluster_answers import item_list, make_object, packed

Object = dict[str, Any]


def owned(kind: str, name: str, by: tuple[str, str] | None = None, **fields: Any) -> Object:
    item = {"kind": kind, **make_object(name, "ns", **fields)}
    item["metadata"]["uid"] = f"uid of {kind} {name}"
    if by:
        item["metadata"]["ownerReferences"] = [{"kind": by[0], "name": by[1]}]
    return item


HELM = {"meta.helm.sh/release-name": "gpu-operator"}
OPERATOR = [
    owned("Deployment", "gpu-operator", annotations=HELM),
    owned("ReplicaSet", "gpu-operator-1", ("Deployment", "gpu-operator")),
    owned("DaemonSet", "nvidia-device-plugin", ("ClusterPolicy", "cluster-policy")),
]
PEOPLE = [owned("Deployment", "mine"), owned("ReplicaSet", "mine-1", ("Deployment", "mine"))]
PODS = (
    owned("Pod", "gpu-operator-1-a", ("ReplicaSet", "gpu-operator-1")),
    owned("Pod", "nvidia-device-plugin-a", ("DaemonSet", "nvidia-device-plugin")),
    owned("Pod", "mine-1-a", ("ReplicaSet", "mine-1")),
    owned("Pod", "alone"),
    owned("Pod", "job-a", ("Job", "job")),
)


def leaving_names(*workloads: Object, pods: tuple[Object, ...] = PODS) -> list[str]:
    return leaving(Contents("", workloads, pods), "gpu-operator", ["ClusterPolicy"])


def test_what_a_release_and_its_operator_made_is_waited_for_and_nothing_else() -> None:
    assert leaving_names(*OPERATOR, *PEOPLE) == [
        "Deployment gpu-operator",
        "DaemonSet nvidia-device-plugin",
        "Pod gpu-operator-1-a",
        "Pod nvidia-device-plugin-a",
    ]


def test_pods_whose_workload_has_gone_are_waited_for() -> None:
    assert leaving_names(*PEOPLE) == ["Pod gpu-operator-1-a", "Pod nvidia-device-plugin-a"]
    assert leaving_names(*PEOPLE, pods=PODS[2:]) == []


def test_contents_are_those_of_the_namespace_and_all_daemonsets() -> None:
    lists = [item_list(make_object(name, "ns")) for name in ("ds", "deploy", "sts", "rs", "pod")]
    paths = contents_paths("ns")
    contents = parse_contents(
        packed(dict(zip(paths, [*lists, item_list(make_object("other", "x"))], strict=True)))
    )
    assert [(item["kind"], item["metadata"]["name"]) for item in contents.workloads] == [
        ("DaemonSet", "ds"),
        ("Deployment", "deploy"),
        ("StatefulSet", "sts"),
        ("ReplicaSet", "rs"),
    ]
    assert [item["metadata"]["name"] for item in (*contents.pods, *contents.daemonsets)] == [
        "pod",
        "other",
    ]
    assert paths[0] == "/apis/apps/v1/namespaces/ns/daemonsets"


LABELS = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.deploy.device-plugin": "true",
    "nvidia.com/mig.config.state": "success",
    "nvidia.com/cuda.driver.major": "595",
    "feature.node.kubernetes.io/cpu-model.id": "1",
}
PEOPLES_LABELS = {
    "nvidia.com/mig.config": "all-1g.10gb",
    "nvidia.com/gpu.deploy.operands": "false",
    "nvidia.com/gpu.workload.config": "container",
    "nvidia.com/device-plugin.config": "mine",
    "gpuboot.io/gpus": "8",
    "kubernetes.io/hostname": "gpu1",
    "team": "a",
}


def stale(*daemonsets: Object, discovery: bool = True) -> list[str]:
    contents = Contents("", tuple(OPERATOR), (), (*OPERATOR[2:], *daemonsets))
    nodes = {"gpu1": {**LABELS, **PEOPLES_LABELS}, "cp1": {"team": "b"}}
    labels = stale_labels(nodes, contents, "gpu-operator", discovery)
    assert labels.keys() == {"gpu1"}
    return labels["gpu1"]


def daemonset(**spec: Any) -> Object:
    return owned("DaemonSet", "trainer", spec={"template": {"spec": spec}})


OPERATOR[2]["spec"] = {
    "template": {"spec": {"nodeSelector": {"nvidia.com/gpu.deploy.device-plugin": "true"}}}
}


def test_labels_of_the_operator_go_and_those_of_people_stay() -> None:
    assert stale() == sorted(LABELS)
    assert stale(discovery=False) == sorted(LABELS)[1:]


def test_a_label_stays_that_somebodys_daemonset_chooses_nodes_by() -> None:
    expression = {"key": "nvidia.com/gpu.product", "operator": "Exists"}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            }
        }
    }
    labels = stale(
        daemonset(nodeSelector={"nvidia.com/gpu.present": "true"}), daemonset(affinity=affinity)
    )
    assert {*LABELS} - {*labels} == {"nvidia.com/gpu.present", "nvidia.com/gpu.product"}


def released(*objects: Object) -> Release:
    return Release("c", "1", "deployed", 1, manifest=yaml.safe_dump_all(objects))


def test_a_plan_names_workloads_and_not_each_role() -> None:
    released_plan = released(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "b"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "c"}},
    )
    names = [item["metadata"]["name"] for item in shown_objects(released_plan, "r", "ns")]
    assert names == ["c", "b"]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [({}, ["grafana"]), ({"helm.sh/resource-policy": "keep"}, [])],
)
def test_claims_that_helm_would_delete(annotations: dict[str, str], expected: list[str]) -> None:
    meta = {"name": "grafana", "annotations": annotations}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
    assert lost_claims(released(claim), "r", "ns") == expected


def test_grafanas_claim_outlives_its_release() -> None:
    values = monitoring_values(parse_settings({}))
    annotations = values["grafana"]["persistence"]["annotations"]
    assert annotations == {"helm.sh/resource-policy": "keep"}


CLAIMS = Volumes(
    claims=(
        Claim("monitoring", "prometheus-kps-db", "1Gi", ""),
        Claim("monitoring", "kube-prometheus-stack-grafana", "5Gi", "local-path", "pvc-1"),
        Claim(
            "monitoring",
            "prometheus-kube-prometheus-stack-prometheus-db-"
            "prometheus-kube-prometheus-stack-prometheus-0",
            "50Gi",
            "local-path",
            "pvc-2",
        ),
        Claim("ml", "kube-prometheus-stack-grafana", "1Gi", "fast", "pvc-3"),
    ),
    volumes=(
        Volume("pvc-1", "local-path", "rancher.io/local-path", "monitoring/grafana"),
        Volume("pvc-3", "fast", "fast.example", "ml/kube-prometheus-stack-grafana"),
        Volume("pvc-4", "", "rancher.io/local-path", ""),
    ),
)


def test_the_claims_of_monitoring_are_told_from_others() -> None:
    claims = volumes.matching_claims(CLAIMS, "monitoring", claim_names())
    assert [claim.size for claim in claims] == ["5Gi", "50Gi"]


def test_who_needs_the_provisioner() -> None:
    assert volumes.users(CLAIMS, "local-path", "rancher.io/local-path") == [
        "monitoring/grafana",
        "monitoring/kube-prometheus-stack-grafana",
        str(CLAIMS.claims[2]),
        "volume pvc-4",
    ]
    assert volumes.users(Volumes(), "local-path", "rancher.io/local-path") == []


def test_volumes_as_the_api_server_lists_them() -> None:
    claim = make_object("db", "ml", spec={"storageClassName": "fast", "volumeName": "pvc-3"})
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    volume = make_object(
        "pvc-3",
        annotations={"pv.kubernetes.io/provisioned-by": "fast.example"},
        spec={
            "storageClassName": "fast",
            "claimRef": {"namespace": "ml", "name": "db"},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    )
    parsed_volumes = parse_volumes(
        packed(dict(zip(volumes.PATHS, [item_list(claim), item_list(volume)], strict=True)))
    )
    assert parsed_volumes.claims == (Claim("ml", "db", "1Gi", "fast", "pvc-3"),)
    assert parsed_volumes.volumes == (Volume("pvc-3", "fast", "fast.example", "ml/db", "Retain"),)
    assert parse_volumes([]) == Volumes()


def test_a_configuration_that_gpuboot_chose_goes_with_the_operator() -> None:
    contents = Contents("", tuple(OPERATOR), (), tuple(OPERATOR[2:]))
    nodes = {"gpu1": {"nvidia.com/device-plugin.config": "time-slices-4-0a1b2c3d"}}
    labels = stale_labels(nodes, contents, "gpu-operator", discovery=True)
    assert labels == {"gpu1": ["nvidia.com/device-plugin.config"]}
