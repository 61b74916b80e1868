"""metrics-server, the certificates that kubelets serve by, and who approves them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from gpuboot.cluster import kubeadm, metrics_server, serving_requests
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.serving_requests import ServingRequest
from gpuboot.cluster.workloads import Workload
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings, SettingsError, parse_settings
from gpuboot.config.versions import lock

ON = parse_settings({"cluster": {"metrics_server": True}})
NODES = (
    Node("cp1", "cp1", "10.0.0.1", "control_plane", 0, leader=True),
    Node("gpu1", "gpu1.site", "fd00::2", "worker", 2, leader=False),
)


def objects(manifest: str) -> dict[str, dict[str, Any]]:
    return {item["kind"]: item for item in yaml.safe_load_all(manifest)}


def kubelet(settings: Settings) -> dict[str, Any]:
    parts = yaml.safe_load_all(kubeadm.init_config(settings, lock(settings), NODES))
    return next(part for part in parts if part["kind"] == "KubeletConfiguration")


@pytest.mark.parametrize(
    ("cluster", "value"),
    [
        ({"metrics_server": True}, True),
        ({"metrics_server": False}, None),
        ({"metrics_server": False, "kubelet": {"serverTLSBootstrap": True}}, True),
        ({"metrics_server": True, "kubelet": {"serverTLSBootstrap": True}}, True),
    ],
)
def test_kubelets_ask_for_a_certificate_where_metrics_server_checks_it(
    cluster: dict[str, Any], value: bool | None
) -> None:
    assert kubelet(parse_settings({"cluster": cluster})).get("serverTLSBootstrap") is value


def test_kubelets_that_sign_for_themselves_and_metrics_server_exclude_each_other() -> None:
    kubelet = {"serverTLSBootstrap": False}
    with pytest.raises(SettingsError, match="forbids them"):
        parse_settings({"cluster": {"metrics_server": True, "kubelet": kubelet}})


def test_metrics_server_checks_the_certificates_of_kubelets() -> None:
    documents = objects(metrics_server.server(ON, lock(ON)))
    [container] = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert not [argument for argument in container["args"] if "insecure" in argument]
    assert container["image"].endswith(f"/metrics-server:{lock(ON).images.metrics_server}")
    assert documents["APIService"]["metadata"]["name"] == metrics_server.API_SERVICE


@pytest.mark.parametrize(
    ("name", "approved"),
    [("cp1", True), ("gpu1.site", True), ("gpu1xsite", False), ("cp10", False), ("xcp1", False)],
)
def test_only_nodes_of_the_site_get_certificates(name: str, approved: bool) -> None:
    [container] = objects(metrics_server.approver(ON, lock(ON), NODES))["Deployment"]["spec"][
        "template"
    ]["spec"]["containers"]
    variables = {item["name"]: item["value"] for item in container["env"]}
    assert bool(re.search(variables["PROVIDER_REGEX"], name)) is approved
    assert variables["PROVIDER_IP_PREFIXES"] == "10.0.0.1/32,fd00::2/128"


def csr(name: str, minute: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "creationTimestamp": f"2026-11-26T05:{minute}:00Z"},
        "spec": {"signerName": "kubernetes.io/kubelet-serving", "username": "system:node:gpu1"},
        "status": status,
    }


DENIED = {"conditions": [{"type": "Denied", "message": "not allowed"}]}
APPROVED = {"conditions": [{"type": "Approved"}]}


@pytest.mark.parametrize(
    ("items", "state", "message"),
    [
        ([csr("a", "01", **APPROVED, certificate="LS0t")], "signed", ""),
        ([csr("a", "01", **APPROVED)], "pending", ""),
        ([csr("a", "01", **DENIED)], "denied", "not allowed"),
        ([csr("b", "02"), csr("a", "01", **APPROVED, certificate="LS0t")], "pending", ""),
        ([csr("b", "02", certificate="LS0t"), csr("a", "01", **DENIED)], "signed", ""),
    ],
)
def test_the_latest_request_counts(items: list[dict[str, Any]], state: str, message: str) -> None:
    [request] = serving_requests.parse(items)
    assert (request.node, request.state, request.message) == ("gpu1", state, message)


def test_requests_of_others_are_none_of_a_kubelet() -> None:
    client = csr("a", "01")
    client["spec"]["signerName"] = "kubernetes.io/kube-apiserver-client-kubelet"
    person = csr("b", "01")
    person["spec"]["username"] = "jane"
    assert serving_requests.parse([client, person]) == ()


def test_a_run_waits_for_certificates_and_says_which_is_missing() -> None:
    request = ServingRequest("gpu1", "csr-x", "denied", "not allowed")
    state = ClusterState(serving_requests=(request, ServingRequest("cp1", "csr-y", "signed")))
    look = metrics_server.certificates_signed(state, ["cp1", "gpu1"])
    assert not look.complete
    assert "1 of 2 kubelets" in look.text
    assert "gpu1 (csr-x is denied: not allowed)" in look.text
    [reason] = look.stuck
    assert "kubectl certificate approve" in reason.remedy
    assert metrics_server.certificates_signed(state, ["cp1"]).complete, (
        "gpu1 is left out of this run"
    )


def deployment(name: str, digest: str) -> Workload:
    return Workload("Deployment", "kube-system", name, 1, 1, True, digest)


@pytest.mark.parametrize(
    ("service", "workloads", "foreign"),
    [
        ("", (), ""),
        ("kube-system/metrics-server", (deployment("metrics-server", "d"),), ""),
        ("kube-system/metrics-server", (), ""),
        (
            "kube-system/metrics-server",
            (deployment("metrics-server", ""),),
            "kube-system/metrics-server",
        ),
        ("monitoring/adapter", (), "monitoring/adapter"),
        ("", (deployment("metrics-server", ""),), "kube-system/metrics-server"),
    ],
)
def test_whose_metrics_server_there_is(
    service: str, workloads: tuple[Workload, ...], foreign: str
) -> None:
    state = ClusterState(metrics_service=service, workloads=workloads)
    assert metrics_server.foreign_server(state) == foreign


def test_somebody_elses_deployment_is_not_waited_for() -> None:
    state = ClusterState(workloads=(deployment("metrics-server", ""),))
    assert metrics_server.ready(state, metrics_server.SERVER).complete
    state = ClusterState(
        workloads=(Workload("Deployment", "kube-system", "metrics-server", 1, 0, True, "d"),)
    )
    assert not metrics_server.ready(state, metrics_server.SERVER).complete
