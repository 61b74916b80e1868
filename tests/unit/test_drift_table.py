"""Each change of the table is named; a cluster that nobody has touched names nothing."""

from __future__ import annotations

import pytest

from gpuboot.kubernetes import in_force, static_pods
from gpuboot.kubernetes.open_rights import MEANT
from gpuboot.verify.alert_path import Matcher
from tests.unit import drift_rows
from tests.unit.drift_rows import ROWS, Row


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_change_is_named(row: Row) -> None:
    named = row.planted()
    assert len(named) == 1, named
    missing = [part for part in row.names if part not in named[0]]
    assert not missing, named


def test_what_nobody_has_touched_is_not_named() -> None:
    assert drift_rows.kubelet() == []
    found = in_force.parse(drift_rows.lines()["in_force"])
    assert sorted(found.kubelets) == ["cp1", "gpu1", "gpu2"]
    assert (found.rights, found.silences, found.unanswered) == ((), (), {})
    pods = static_pods.parse(drift_rows.lines()["static_pods"])
    assert (pods.error, static_pods.changed(pods), static_pods.overrides(pods)) == ("", {}, [])
    assert static_pods.is_running(pods)


@pytest.mark.parametrize(
    "row",
    [
        Row("for maintenance", lambda: drift_rows.silence(
            Matcher(name="alertname", value="GPULost"), ends="2026-09-28T00:00:00.000Z"), ()),
        Row("of one GPU that is known", lambda: drift_rows.silence(
            Matcher(name="UUID", value="GPU-1")), ()),
        Row("a larger sysctl", lambda: drift_rows.sysctl(
            "/etc/sysctl.d/99-zzz.conf", "fs.inotify.max_user_instances = 16384"), ()),
        Row("a proxy's drop-in", lambda: drift_rows.boot(), ()),
        Row("a team's own rights", lambda: drift_rows.binding(
            "ml", "edit", "Group", "ml-team", "ml"), ()),
        Row("another module on the deny list", lambda: drift_rows.modules(
            lines=("/etc/modprobe.d/a.conf:1:blacklist floppy",)), ()),
        Row("a comment in a manifest", lambda: drift_rows.manifest(
            "etcd.yaml", "apiVersion: v1", "# by hand\napiVersion: v1"), ()),
        Row("other members of etcd", lambda: drift_rows.manifest(
            "etcd.yaml", "--initial-cluster=cp1", "--initial-cluster=cp0=https://10.0.0.9:2380,cp1"
        ), ()),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_right_is_not_named(row: Row) -> None:
    assert row.planted() == []


def test_rights_that_a_site_means_are_not_named() -> None:
    item = {
        "metadata": {"name": "viewers", "annotations": {MEANT: "true"}},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": "system:authenticated"}],
    }
    assert drift_rows.rights({drift_rows.CLUSTER_BINDINGS: {"items": [item]}}) == []
