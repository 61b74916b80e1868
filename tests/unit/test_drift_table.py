"""Each change of the table is named; a cluster that nobody has touched names nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuboot.cluster import kubelet_in_force, settings_in_force, static_pods
from gpuboot.cluster.open_rights import CLUSTER_BINDINGS, INTENT_ANNOTATION
from gpuboot.config.settings import Settings
from gpuboot.hosts import boot, boot_overrides, module_loading
from gpuboot.hosts.boot import ConfigLine
from gpuboot.hosts.fact_output import Fields
from gpuboot.verify.alert_path import Matcher, parse_silences
from gpuboot.verify.silences import alert_rules, lasting
from tests.unit import drift_plants
from tests.unit.drift_plants import Row
from tests.unit.drift_rows import ROWS, RUNC
from tests.unit.drift_rows_objects import OBJECT_ROWS, measured
from tests.unit.test_preflight import CLEAN

TRUST = "system:cluster-trust-bundle-discovery"


@pytest.mark.parametrize("row", [*ROWS, *OBJECT_ROWS], ids=str)
def test_a_change_is_named(row: Row) -> None:
    names = row.planted()
    assert len(names) == 1, names
    missing = [part for part in row.names if part not in names[0]]
    assert not missing, names


def test_the_table_has_each_change_once() -> None:
    names = [str(row) for row in (*ROWS, *OBJECT_ROWS)]
    assert len(set(names)) == len(names) >= 48


def test_what_nobody_has_touched_is_not_named() -> None:
    assert drift_plants.kubelet() == []
    assert measured("cp1", "gpu1", "gpu2") == []
    state = settings_in_force.parse(drift_plants.lines()["in_force"])
    assert sorted(state.kubelets) == ["cp1", "gpu1", "gpu2"]
    assert (state.rights, state.silences, state.unanswered) == ((), (), {})
    pods = static_pods.parse(drift_plants.lines()["static_pods"])
    assert (pods.error, static_pods.changed(pods), static_pods.overrides(pods)) == ("", {}, [])
    assert static_pods.is_running(pods)


@pytest.mark.parametrize(
    "row",
    [
        Row("systemd's resolv.conf, as kubeadm chooses it", lambda: drift_plants.kubelet(
            "resolvConf", "/run/systemd/resolve/resolv.conf"), ()),
        Row("a kubelet that asks for its certificate", lambda: drift_plants.kubelet(
            "tlsCertFile", ""), ()),
        Row("a field that a release does not tell", lambda: drift_plants.kubelet(
            "eventBurst", None), ()),
        Row("a flag that says what the settings say, and kubeadm's variables",
            lambda: drift_plants.kubelet(line=f"{drift_plants.START} --max-pods=110 --config=/x",
                                         file=drift_plants.DROP_IN), ()),
        Row("for maintenance", lambda: drift_plants.silence(
            Matcher(name="alertname", value="GPULost"), ends="2026-09-28T00:00:00.000Z"), ()),
        Row("of one GPU that is known", lambda: drift_plants.silence(
            Matcher(name="UUID", value="GPU-1")), ()),
        Row("of a GPU of a node", lambda: drift_plants.silence(
            Matcher(name="node", value="gpu1"), Matcher(name="gpu", value="3")), ()),
        Row("over a node, for maintenance", lambda: drift_plants.silence(
            Matcher(name="node", value="gpu1"), ends="2026-09-28T00:00:00.000Z"), ()),
        Row("a setting of containerd with a like name", lambda: drift_plants.boot(
            containerd_settings=(ConfigLine(
                "/etc/containerd/conf.d/a.toml", 2, "proxy_plugins.x.root = '/srv'"),)), ()),
        Row("a larger sysctl", lambda: drift_plants.sysctl(
            "/etc/sysctl.d/99-zzz.conf", "fs.inotify.max_user_instances = 16384"), ()),
        Row("a proxy's drop-in", lambda: drift_plants.boot(), ()),
        Row("a runtime of the site's own", lambda: drift_plants.boot(containerd_settings=(
            ConfigLine("/etc/containerd/conf.d/a.toml", 3, "plugins.io.containerd.cri.v1.runtime."
                       "containerd.runtimes.runsc.options.SystemdCgroup = false"),
            ConfigLine("/etc/containerd/conf.d/a.toml", 9, f"{RUNC}.SystemdCgroup = true"))), ()),
        Row("a team's own rights", lambda: drift_plants.binding(
            "ml", "edit", "Group", "ml-team", "ml"), ()),
        Row("kubeadm's administrators", lambda: drift_plants.binding(
            "kubeadm:cluster-admins", "cluster-admin", "Group", "kubeadm:cluster-admins"), ()),
        Row("rights of one pod", lambda: drift_plants.binding(
            "x", "cluster-admin", "ServiceAccount", "argocd"), ()),
        Row("rights that 1.37 gives every pod", lambda: drift_plants.binding(
            TRUST, TRUST, "Group", "system:serviceaccounts"), ()),
        Row("the role of these", lambda: drift_plants.widened(
            TRUST, {"resources": ["clustertrustbundles"], "verbs": ["get", "list", "watch"]}), ()),
        Row("another module on the deny list", lambda: drift_plants.modules(
            lines=("/etc/modprobe.d/a.conf:1:blacklist floppy",)), ()),
        Row("a comment in a manifest", lambda: drift_plants.manifest(
            "etcd.yaml", "apiVersion: v1", "# by hand\napiVersion: v1"), ()),
        Row("other members of etcd", lambda: drift_plants.manifest(
            "etcd.yaml", "--initial-cluster=cp1", "--initial-cluster=cp0=https://10.0.0.9:2380,cp1"
        ), ()),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_right_is_not_named(row: Row) -> None:
    assert row.planted() == []


def test_rights_that_a_site_means_are_not_named() -> None:
    item = {
        "metadata": {"name": "viewers", "annotations": {INTENT_ANNOTATION: "true"}},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": "system:authenticated"}],
    }
    assert drift_plants.rights({CLUSTER_BINDINGS: {"items": [item]}}) == []


def test_what_files_of_real_hosts_set_is_named() -> None:
    """By /etc/default/kubelet, kubeadm's flags, a drop-in, files of sysctl.d and modprobe.d."""
    planted = drift_plants.lines()["planted"]
    state_in_force = settings_in_force.parse(planted["in_force"])
    expected = kubelet_in_force.expected(planted["config"])
    names = []
    for host, lines in planted["hosts"].items():
        fields = Fields(lines)
        state = replace(
            CLEAN,
            boot=boot.parse(fields),
            module_loading=module_loading.parse(fields),
            kubeconfigs=drift_plants.JOINED,
        )
        names += boot_overrides.decisions(state)
        running = state_in_force.kubelets[host]
        names += kubelet_in_force.overrides(running, expected, state.boot.kubelet, pending=True)
    text = "\n".join(item.what for item in names)
    for part in (
        "maxPods is 20, expected 110 (by /etc/default/kubelet:1",
        "serializeImagePulls is False, expected True (by /etc/systemd/system/kubelet.service.d/20-",
        "authentication.anonymous.enabled is True",
        "/etc/sysctl.d/99-zzz-admin.conf:1",
        "/run/sysctl.d/99-zzz.conf:1",
        "br_netfilter is not loaded",
        "overlay is not loaded",
    ):
        assert part in text
    assert len(names) == 7, text  # what kubeadm's own files say, a run writes again


def test_rights_manifests_and_silences_of_a_real_cluster_are_named() -> None:
    planted = drift_plants.lines()["planted"]
    state = settings_in_force.parse(planted["in_force"])
    assert [item.label for item in state.rights] == [
        "ClusterRoleBinding everyone",
        "ClusterRoleBinding permissive-binding",
        "RoleBinding monitoring/lookers",
        "ClusterRole system:discovery",
    ]
    pods = static_pods.parse(planted["static_pods"])
    changed = [name.removesuffix(".yaml") for name in static_pods.changed(pods)]
    assert changed == ["etcd", "kube-apiserver", "kube-controller-manager"]
    silences = parse_silences(state.silences)
    rules = alert_rules(Settings(), [])
    assert len(lasting(silences, rules, "gpuboot", state.clock)) == 2
