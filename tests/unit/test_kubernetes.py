"""kubeadm's configuration, flannel's manifest and the credentials of joins."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from gpuboot.cluster import flannel, kubeadm, manifests, tokens
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.config.versions import lock

CP = Node("host1", "cp1", "10.0.0.1", "control_plane", 0, True)
CP2 = Node("host2", "cp2", "10.0.0.2", "control_plane", 0, False)
GPU = Node("host3", "gpu1", "10.0.0.3", "worker", 2, False)


def documents(settings: Settings, *nodes: Node) -> dict[str, Any]:
    text = kubeadm.init_config(settings, lock(settings), nodes)
    return {item["kind"]: item for item in yaml.safe_load_all(text)}


def test_init_config() -> None:
    settings = parse_settings(
        {"cluster": {"name": "site", "ignore_preflight_errors": ["SystemVerification"]}}
    )
    rendered = documents(settings, CP, GPU)
    init, cluster = rendered["InitConfiguration"], rendered["ClusterConfiguration"]
    assert init["nodeRegistration"]["name"] == "cp1"
    assert init["nodeRegistration"]["kubeletExtraArgs"] == [
        {"name": "node-ip", "value": "10.0.0.1"}
    ]
    assert init["nodeRegistration"]["ignorePreflightErrors"] == ["SystemVerification"]
    assert "taints" not in init["nodeRegistration"]
    assert cluster["kubernetesVersion"] == f"v{lock(settings).kubernetes.version}"
    assert cluster["networking"]["podSubnet"] == "10.244.0.0/16"
    assert "controlPlaneEndpoint" not in cluster
    assert {"127.0.0.1", "cp1", "10.0.0.1"} <= set(cluster["apiServer"]["certSANs"])
    kubelet = rendered["KubeletConfiguration"]
    assert (kubelet["cgroupDriver"], kubelet["failCgroupV1"]) == ("systemd", True)


def test_metrics_are_reachable_from_prometheus() -> None:
    rendered = documents(Settings(), CP)
    cluster = rendered["ClusterConfiguration"]
    bind = [{"name": "bind-address", "value": "0.0.0.0"}]
    assert cluster["controllerManager"]["extraArgs"] == bind
    assert cluster["scheduler"]["extraArgs"] == bind
    etcd = cluster["etcd"]["local"]["extraArgs"]
    assert etcd == [{"name": "listen-metrics-urls", "value": "http://0.0.0.0:2381"}]
    assert rendered["KubeProxyConfiguration"]["metricsBindAddress"] == "0.0.0.0:10249"


def test_conntrack_is_only_set_when_asked() -> None:
    assert "conntrack" not in documents(Settings(), CP)["KubeProxyConfiguration"]
    configured = parse_settings({"cluster": {"conntrack_max_per_core": 0}})
    assert documents(configured, CP)["KubeProxyConfiguration"]["conntrack"] == {"maxPerCore": 0}


def test_one_node_takes_workloads() -> None:
    assert documents(Settings(), CP)["InitConfiguration"]["nodeRegistration"]["taints"] == []
    assert kubeadm.untainted(Settings().cluster, (CP, GPU)) is False
    configured = parse_settings({"cluster": {"schedule_on_control_plane": True}}).cluster
    assert kubeadm.untainted(configured, (CP, GPU)) is True


def test_several_control_planes() -> None:
    settings = parse_settings({"cluster": {"endpoint": "api.example.com:6443"}})
    cluster = documents(settings, CP, CP2)["ClusterConfiguration"]
    assert cluster["controlPlaneEndpoint"] == "api.example.com:6443"
    assert {"api.example.com", "cp2", "10.0.0.2"} <= set(cluster["apiServer"]["certSANs"])
    text = kubeadm.join_config(settings, (CP, CP2), CP2, "sha256:aa", "abcdef.x", "key")
    join = yaml.safe_load(text)
    assert join["controlPlane"]["certificateKey"] == "key"
    assert join["controlPlane"]["localAPIEndpoint"]["advertiseAddress"] == "10.0.0.2"
    assert join["discovery"]["bootstrapToken"]["apiServerEndpoint"] == "api.example.com:6443"


def test_join_config_of_a_worker() -> None:
    join = yaml.safe_load(
        kubeadm.join_config(Settings(), (CP, GPU), GPU, "sha256:aa", "abcdef.0123456789abcdef")
    )
    token = join["discovery"]["bootstrapToken"]
    assert token["apiServerEndpoint"] == "10.0.0.1:6443"
    assert token["caCertHashes"] == ["sha256:aa"]
    assert join["nodeRegistration"]["name"] == "gpu1"
    assert "controlPlane" not in join


def test_tokens_are_kubernetes_and_do_not_show() -> None:
    token = tokens.new_token()
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", token.value)
    assert token.secret not in repr(token)
    assert token != tokens.new_token()
    manifest = json.loads(
        tokens.token_manifest(token, "gpu1", datetime(2026, 1, 1, tzinfo=UTC), minutes=30)
    )
    assert manifest["metadata"]["name"] == f"bootstrap-token-{token.id}"
    assert manifest["stringData"]["expiration"] == "2026-01-01T00:30:00+00:00"


API = "10.0.0.1:6443"


@pytest.mark.parametrize(
    ("api", "host"),
    [(API, "10.0.0.1"), ("api.example:6443", "api.example"), ("[fd00::1]:6443", "fd00::1")],
)
def test_flannel_reaches_the_api_server_without_kube_proxy(api: str, host: str) -> None:
    objects = list(yaml.safe_load_all(flannel.manifest(Settings(), lock(Settings()), api)))
    daemon_set = next(item for item in objects if item["kind"] == "DaemonSet")
    [container] = daemon_set["spec"]["template"]["spec"]["containers"]
    values = {item["name"]: item.get("value") for item in container["env"]}
    assert values["KUBERNETES_SERVICE_HOST"] == host
    assert values["KUBERNETES_SERVICE_PORT"] == "6443"


def test_flannel_follows_the_settings() -> None:
    settings = parse_settings({"cluster": {"pod_cidr": "10.9.0.0/16", "proxy_mode": "iptables"}})
    objects = list(yaml.safe_load_all(flannel.manifest(settings, lock(settings), API)))
    config = next(item for item in objects if item["kind"] == "ConfigMap")
    assert json.loads(config["data"]["net-conf.json"]) == {
        "EnableNFTables": False,
        "Network": "10.9.0.0/16",
        "Backend": {"Type": "vxlan"},
    }
    assert json.loads(config["data"]["cni-conf.json"])["plugins"][0]["type"] == "flannel"


def test_a_stamp_changes_with_the_manifest_and_reaches_the_pods() -> None:
    first = flannel.manifest(Settings(), lock(Settings()), API)
    changed_settings = parse_settings({"cluster": {"pod_cidr": "10.9.0.0/16"}})
    text, digest = manifests.with_digest(first)
    assert manifests.with_digest(first)[1] == digest
    assert (
        manifests.with_digest(flannel.manifest(changed_settings, lock(changed_settings), API))[1]
        != digest
    )
    daemon_set = next(item for item in yaml.safe_load_all(text) if item["kind"] == "DaemonSet")
    template = daemon_set["spec"]["template"]["metadata"]
    assert template["annotations"] == {manifests.DIGEST: digest}


def test_packages_take_any_build() -> None:
    packages = kubeadm.packages(lock(Settings()))
    assert set(packages) == {"kubelet", "kubeadm", "kubectl", "kubernetes-cni", "cri-tools"}
    assert all(version.endswith("-*") for version in packages.values())


def test_the_digest_follows_what_a_living_cluster_can_change() -> None:
    def configuration(data: dict[str, Any]) -> kubeadm.Configuration:
        settings = parse_settings(data)
        return kubeadm.configuration(settings, lock(settings), (CP, GPU))

    base = configuration({})
    proxy = configuration({"cluster": {"proxy_mode": "iptables"}})
    kubelet = configuration({"cluster": {"fail_swap_on": False}})
    newer = configuration({"versions": {"kubernetes": {"version": "1.36.9"}}})
    assert proxy.digest != base.digest
    assert proxy.kubelet == base.kubelet
    assert kubelet.kubelet != base.kubelet
    assert newer.digest == base.digest  # the upgrade's affair
    assert base.immutable["cluster.pod_cidr"] == "10.244.0.0/16"
    assert configuration({"cluster": {"pod_cidr": "10.9.0.0/16"}}).immutable != base.immutable


def test_what_nodes_run_first() -> None:
    release = lock(parse_settings({}))
    worker = kubeadm.first_images(release, GPU)
    assert worker == kubeadm.worker_images(release)
    leader = kubeadm.first_images(release, CP)
    assert set(worker) < set(leader)
    assert f"registry.k8s.io/kube-apiserver:v{release.kubernetes.version}" in leader
