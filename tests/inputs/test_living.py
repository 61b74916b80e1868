"""What a cluster that lives cannot become is refused in preflight, with --dry as well.

The record is kubeadm's ClusterConfiguration (v1beta4), as `kubeadm init` keeps it in the ConfigMap
kubeadm-config; that kubeadm changes none of its networking is said in its documentation
("Reconfiguring a kubeadm cluster").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuboot.cluster import objects
from gpuboot.cluster.cluster_answers import parse_cluster
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.kubeadm import configuration
from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.preflight import existing_cluster as checks
from tests.cluster_answers import cluster, item_list, make_object, packed
from tests.inputs.command_line import ROOT, project, pyinfra
from tests.inputs.test_command_line import SITE, answer
from tests.inputs.wrong_inventories import INVENTORY

RECORD = """\
apiVersion: kubeadm.k8s.io/v1beta4
clusterName: gpuboot
controlPlaneEndpoint: ""
kind: ClusterConfiguration
kubernetesVersion: v1.36.6
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/12
"""
LOCAL_PATH = {"local-path": "true"}
LEADER = Node("cp1", "cp1", "192.0.2.11", "control_plane", gpus=0, leader=True)
WORKER = Node("gpu1.example.com", "gpu1", "192.0.2.21", "worker", gpus=8, leader=False)


def lines(version: str = "v1.36.6", classes: Mapping[str, str] = LOCAL_PATH) -> list[str]:
    """What the fact prints of the cluster of these two nodes.

    + classes: StorageClass -> whether it is the default one, as Kubernetes writes it
    """
    nodes = (("cp1", "192.0.2.11"), ("gpu1", "192.0.2.21"))
    default = "storageclass.kubernetes.io/is-default-class"
    return packed(
        cluster(
            RECORD,
            VERSION={"gitVersion": version},
            NODES=item_list(
                *(
                    make_object(
                        name, status={"addresses": [{"type": "InternalIP", "address": address}]}
                    )
                    for name, address in nodes
                )
            ),
            CLASSES=item_list(
                *(make_object(name, annotations={default: text}) for name, text in classes.items())
            ),
            POLICIES=item_list(make_object("cluster-policy", status={"state": "ready"})),
        )
    )


LIVE_CLUSTER = parse_cluster(lines())


def causes(
    settings: dict[str, Any] | None = None,
    cluster: ClusterState = LIVE_CLUSTER,
    worker: Node = WORKER,
) -> list[str]:
    parsed = parse_settings(settings or {})
    problems = checks.evaluate([LEADER, worker], parsed, versions.lock(parsed), cluster)
    return [str(problem) for problem in problems]


def test_a_cluster_as_the_settings_have_it_passes() -> None:
    assert causes() == []


@pytest.mark.parametrize(
    ("key", "value", "was"),
    [
        ("pod_cidr", "10.32.0.0/16", "10.244.0.0/16"),
        ("service_cidr", "10.112.0.0/12", "10.96.0.0/12"),
        ("dns_domain", "gpu.local", "cluster.local"),
        ("endpoint", "api.example.com:6443", "not set"),
    ],
)
def test_a_setting_that_is_immutable(key: str, value: str, was: str) -> None:
    [problem] = causes({"cluster": {key: value}})
    assert f"cluster.{key} is {was}, the settings ask for {value}" in problem
    assert "a living cluster cannot change this" in problem


def test_every_setting_that_kubeadm_fixes_is_compared() -> None:
    parsed = parse_settings({})
    immutable = configuration(parsed, versions.lock(parsed), [LEADER]).immutable
    assert set(immutable) == {
        "cluster.pod_cidr", "cluster.service_cidr", "cluster.dns_domain", "cluster.endpoint"
    }  # fmt: skip


def test_flannel_s_backend_stays() -> None:
    settings = {"cluster": {"flannel_backend": "host-gw"}}
    [problem] = causes(settings, replace(LIVE_CLUSTER, flannel_backend="vxlan"))
    assert "cluster.flannel_backend is vxlan, the settings ask for host-gw" in problem
    for backend in ("host-gw", ""):
        assert causes(settings, replace(LIVE_CLUSTER, flannel_backend=backend)) == []


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("v1.37.7", "a control plane cannot go back to an earlier release"),
        ("v1.38.0", "a control plane cannot go back to an earlier release"),
        ("v1.35.4", "an upgrade may not skip 1.36"),
    ],
)
def test_a_version_that_no_run_moves_to(server: str, expected: str) -> None:
    [problem] = causes(cluster=parse_cluster(lines(server)))
    assert f"the cluster runs Kubernetes {server[1:]}, the version lock asks for 1.37.2" in problem
    assert expected in problem
    assert "remedy: set versions.kubernetes to " in problem


@pytest.mark.parametrize("server", ["v1.37.1", "v1.36.10"])
def test_a_newer_release_passes(server: str) -> None:
    assert causes(cluster=parse_cluster(lines(server))) == []


def test_a_node_cannot_be_renamed() -> None:
    [problem] = causes(worker=replace(WORKER, name="gpu-a"))
    assert "[gpu1.example.com] the cluster knows the machine at 192.0.2.21 as node gpu1" in problem
    assert 'set node_name = "gpu1"' in problem
    assert "pyinfra INVENTORY deploys/remove.py --data gpuboot_remove=gpu1)" in problem


def test_a_node_s_name_is_taken() -> None:
    [problem] = causes(worker=replace(WORKER, address="192.0.2.99"))
    assert "the cluster has a node gpu1 already, at 192.0.2.21" in problem
    assert "that machine with another address" in problem
    assert "pyinfra INVENTORY deploys/remove.py --data gpuboot_remove=gpu1)" in problem


def test_names_that_changed_places_are_both_told() -> None:
    swapped = [replace(LEADER, name="gpu1"), replace(WORKER, name="cp1")]
    parsed = parse_settings({})
    problems = checks.evaluate(swapped, parsed, versions.lock(parsed), LIVE_CLUSTER)
    assert [problem.host for problem in problems] == ["cp1", "gpu1.example.com"]


def test_a_node_with_two_addresses_is_itself() -> None:
    dual_stack = objects.Node(
        name="gpu1",
        address="192.0.2.21 2001:db8::21",
        versions={"kubelet": "v1.36.6"},
        ready=True,
        message="",
        allocatable={},
        labels={},
        taints=(),
    )
    assert causes(cluster=replace(LIVE_CLUSTER, nodes=(LIVE_CLUSTER.nodes[0], dual_stack))) == []


@pytest.mark.parametrize(
    ("storage", "classes", "expected"),
    [
        (
            {"class_name": "fast"},
            LOCAL_PATH,
            "there is no StorageClass fast (there: l",
        ),
        ({"provisioner": "none"}, {}, "no StorageClass is the default one (there: none)"),
        ({"provisioner": "none", "class_name": "local-path"}, {}, "no StorageClass local-path"),
    ],
)
def test_a_storage_class_that_is_not_there(
    storage: dict[str, str], classes: dict[str, str], expected: str
) -> None:
    settings = {"monitoring": {"storage": storage}}
    [problem] = causes(settings, parse_cluster(lines(classes=classes)))
    assert expected in problem
    assert "remedy: " in problem
    settings["monitoring"]["enabled"] = False  # type: ignore[assignment]
    assert causes(settings, parse_cluster(lines(classes=classes))) == []


def test_a_node_port_that_another_service_has() -> None:
    settings = {"monitoring": {"node_ports": {"grafana": 30300, "prometheus": 30090}}}
    used_ports = {"30300": "shop/web", "30090": "monitoring/kube-prometheus-stack-prometheus"}
    [problem] = causes(settings, replace(LIVE_CLUSTER, node_ports=used_ports))
    assert "monitoring.node_ports.grafana: node port 30300 belongs to Service shop/web" in problem
    assert causes(settings) == []
    assert checks.node_ports(parse_settings({})) == {}


def test_our_own_class_is_still_to_be_made() -> None:
    assert causes(cluster=parse_cluster(lines(classes={}))) == []


def test_secrets_that_are_not_there() -> None:
    settings = parse_settings(
        {
            "alertmanager": {
                "slack": {"webhook": {"secret": "hooks/slack"}},
                "pagerduty": {"routing_key": {"secret": "hooks/pagerduty"}},
            },
        }
    )
    needed = checks.required_secrets(settings)
    assert needed == {("monitoring", "hooks"): ["pagerduty", "slack"]}
    assert checks.missing_secrets(needed, needed) == []
    partly = {("monitoring", "hooks"): ["slack"]}
    [problem] = map(str, checks.missing_secrets(needed, partly))
    assert "Secret hooks in namespace monitoring, which lacks pagerduty" in problem
    problem = str(checks.missing_secrets(needed, {})[0])
    assert "settings name Secret hooks, which is not in namespace monitoring" in problem
    assert "kubectl -n monitoring create secret generic hooks --from-file=" in problem


def test_a_first_run_is_told_where_it_would_stop() -> None:
    assert checks.before_the_first_run(parse_settings({})) == []
    settings = parse_settings(
        {
            "alertmanager": {"slack": {"webhook": {"secret": "hooks/slack"}}},
            "monitoring": {"storage": {"class_name": "fast"}},
        }
    )
    secret, storage = checks.before_the_first_run(settings)
    assert "Secret hooks cannot be in its namespace monitoring" in secret
    assert "it cannot have StorageClass fast" in storage


SITE_WITH_CLUSTER = """
import json, os, runpy
os.environ["PLAN_BREAKAGE"] = json.dumps({
    "cp1": ["kubeconfig /etc/kubernetes/admin.conf https://192.0.2.11:6443"],
})
os.environ["PLAN_SETTINGS"] = json.dumps(_SETTINGS)
import sys
sys.path.append(_ROOT)
from tests.noise import framed_lines
_site = runpy.run_path(_ROOT + "/tests/plan/inventories/site.py")
_others = {
    "How far kubeadm got on this host": [
        "file\\tadmin.conf", "file\\tkubelet.conf", "kubeconfig\\tsame", "end\\tok",
    ],
    "What an API server answers to each path": _LINES,
}
for _part, _said in _others.items():
    _site["control_plane"][0][0][1]["fake_responses"][_part] = framed_lines(_said)
control_plane, workers = _site["control_plane"], _site["workers"]
"""


@pytest.mark.parametrize("options", [["--dry"], ["-y"]])
def test_a_run_refuses_before_anything_is_written(options: list[str], tmp_path: Path) -> None:
    settings = {"cluster": {"pod_cidr": "10.32.0.0/16"}}
    header = f"_ROOT = {str(ROOT)!r}\n_LINES = {lines()!r}\n_SETTINGS = {json.dumps(settings)}\n"
    files = {INVENTORY: header + SITE_WITH_CLUSTER}
    output = answer(pyinfra(project(tmp_path, files), [INVENTORY, SITE, *options]))
    assert "1 problem; nothing was changed" in output
    assert "cluster.pod_cidr is 10.244.0.0/16, the settings ask for 10.32.0.0/16" in output


def test_a_minor_release_names_the_deprecated_apis_that_are_asked_for(tmp_path: Path) -> None:
    """Asked of the API server's metrics only then; a problem beside it ends the dry run."""
    metric = 'apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",'
    request_metric = f'{metric}removed_release="1.37",resource="flowschemas",version="v1beta9"}} 1'
    header = f"_ROOT = {str(ROOT)!r}\n_LINES = {lines('v1.36.4')!r}\n_SETTINGS = {{}}\n"
    metrics = ["metric\t" + request_metric, "status\t200", "end\tok"]
    extra = f"\n_others['Deprecated APIs that somebody has asked'] = {metrics!r}\n"
    site = SITE_WITH_CLUSTER.replace("}\nfor _part", "}" + extra + "for _part")
    result = pyinfra(project(tmp_path, {INVENTORY: header + site}), [INVENTORY, SITE, "--dry"])
    expected = (
        "flowschemas of flowcontrol.apiserver.k8s.io/v1beta9 has been asked for in this cluster"
    )
    assert expected in result.output
