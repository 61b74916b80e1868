"""A restore of etcd: which backup, whether it may be, what a person is asked, and its steps."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from pyinfra.api.command import FunctionCommand

from deploys.parts.restore.operations import LeaderBootstrap, restored
from deploys.parts.restore.volume_operations import BackupVolumes
from gpuboot.cluster import etcd_restore
from gpuboot.cluster.backup import Backup, Backups
from gpuboot.cluster.etcd_restore import LiveData, Source
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.hosts.fact_output import Fields
from gpuboot.templates import render

OLD = Backup("20261121T000000Z-timer", 1.0, "timer", "cp1", "v1.36.3", "etcd:1", "c1", 100, 90, 64)
NEW = replace(OLD, name="20261122T000000Z-upgrade", taken_at=86401.0, node="cp2", revision=200)
FOREIGN = replace(OLD, name="20261123T000000Z-timer", ca="c2")
STORED_BACKUPS = {"host1": Backups((FOREIGN, OLD), ca="c1"), "host2": Backups((NEW,), ca="c1")}
NODES = (
    Node("w1", "w1", "192.0.2.21", "worker", gpus=2, leader=False),
    Node("host2", "cp2", "2001:db8::12", "control_plane", gpus=0, leader=False),
    Node("host1", "cp1", "192.0.2.11", "control_plane", gpus=0, leader=True),
)


def select_source(requested: str = "", leader_ca: str = "c1") -> Source | Problem:
    backups = {**STORED_BACKUPS, "host1": replace(STORED_BACKUPS["host1"], ca=leader_ca)}
    return etcd_restore.choose(requested, backups, "/b", "host1")


def test_the_newest_of_this_cluster_is_taken() -> None:
    assert select_source() == Source(NEW, "host2", f"/b/{NEW.name}")


def test_an_older_one_is_taken_by_its_name() -> None:
    assert select_source(OLD.name) == Source(OLD, "host1", f"/b/{OLD.name}")


def test_an_empty_machine_takes_any_cluster_s() -> None:
    assert select_source(leader_ca="") == Source(FOREIGN, "host1", f"/b/{FOREIGN.name}")


def test_a_backup_that_is_not_there_is_named_with_those_that_are() -> None:
    problem = select_source("20200101T000000Z-timer")
    assert isinstance(problem, Problem)
    assert OLD.name in problem.remedy
    assert NEW.name in problem.remedy


def test_a_folder_of_the_control_machine_is_read(tmp_path: Path) -> None:
    problem = select_source(str(tmp_path))
    assert isinstance(problem, Problem)
    assert "about.json, etcd.db, pki.tar is missing" in problem.cause
    for name in etcd_restore.FILES:
        (tmp_path / name).touch()
    snapshot = {"revision": 7, "totalKey": 3, "totalSize": 64}
    metadata = {
        "taken": 5, "reason": "timer", "node": "cp1", "kubernetes": "v1.36.3", "etcd": "e",
        "ca": "c1", "snapshot": snapshot,
    }  # fmt: skip
    (tmp_path / "about.json").write_text(json.dumps(metadata))
    source = select_source(str(tmp_path))
    assert isinstance(source, Source)
    assert (source.host, source.folder, source.backup.revision) == ("", str(tmp_path), 7)


@pytest.mark.parametrize(
    ("backup", "ca", "lock", "ready", "expected"),
    [
        (OLD, "c1", "1.37.0", False, ""),  # the versions of a living cluster are its own
        (OLD, "c2", "1.36.3", True, "is of another cluster"),
        (OLD, "", "1.36.9", True, ""),
        (OLD, "", "1.36.3", False, "not prepared"),
        (OLD, "", "1.37.0", True, "is of Kubernetes 1.36.3, the version lock has 1.37.0"),
    ],
)
def test_what_may_not_be_restored_is_refused(
    backup: Backup, ca: str, lock: str, ready: bool, expected: str
) -> None:
    problem = etcd_restore.refusal(Source(backup, "host1", "/b"), ca, lock, ready, "host1")
    assert (expected in problem.cause and problem.remedy) if problem else not expected


@pytest.mark.parametrize(
    ("live_cluster", "empty", "expected"),
    [
        (LiveData(250, 95), False, "etcd is at revision 250 with 95 keys now"),
        (LiveData(), False, "etcd does not answer"),
        (LiveData(), True, "on a machine that is in no cluster"),
    ],
)
def test_a_person_is_told_what_is_replaced(
    live_cluster: LiveData, empty: bool, expected: str
) -> None:
    text = etcd_restore.question("prod", Source(OLD, "host1", "/b"), live_cluster, 7201.0, empty)
    assert expected in text
    assert "revision 100, 90 keys" in text
    assert "taken 2 h 0 min ago" in text
    assert text.endswith("--data gpuboot_restore=prod")


def test_all_control_planes_are_members_of_the_restored_etcd() -> None:
    member_list = etcd_restore.members(NODES)
    assert [item.host for item in member_list] == ["host1", "host2"]
    assert etcd_restore.initial_cluster(member_list) == (
        "cp1=https://192.0.2.11:2380,cp2=https://[2001:db8::12]:2380"
    )


@pytest.mark.parametrize(
    ("backups", "expected"),
    [
        (STORED_BACKUPS, ""),
        ({"host1": STORED_BACKUPS["host1"]}, "host2 cannot be reached, and would come back"),
        (
            {**STORED_BACKUPS, "host2": Backups((NEW,))},
            "host2: in group control_plane, and no part of",
        ),
        ({**STORED_BACKUPS, "host2": Backups((NEW,), ca="c9")}, "host2: in group control_plane"),
    ],
)
def test_all_members_are_restored_or_none(backups: dict[str, Backups], expected: str) -> None:
    problem = etcd_restore.members_missing(etcd_restore.members(NODES), backups, "c1")
    assert (expected in problem.cause and problem.remedy) if problem else not expected


def test_etcd_s_metrics_tell_what_it_has() -> None:
    lines = [
        "etcd_debugging_mvcc_current_revision\t2091",
        "etcd_debugging_mvcc_keys_total\t1.2e+03",
        "end\tok",
    ]
    assert etcd_restore.parse_living(Fields(lines)) == LiveData(2091, 1200)
    assert etcd_restore.parse_living(Fields(["end\tok"])) == LiveData()


CRICTL = '#!/bin/sh\ncase "$*" in *" pull "*) exit 1 ;; esac\n'
# etcdutl makes the data of a member
CTR = """\
#!/bin/sh
echo "$*" >>"$ROOT/calls"
case "$*" in
  *"containers info"*) exit 1 ;;
  *"snapshot restore"*) mkdir -p "$ROOT/var/lib/etcd.restored/member" && echo restored ;;
esac
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that looks like a control-plane node to the script, with a backup."""
    manifests = tmp_path / "etc/kubernetes/manifests"
    for folder in (manifests, tmp_path / "var/lib/etcd", tmp_path / "bin", tmp_path / "b"):
        folder.mkdir(parents=True)
    for part in ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"):
        (manifests / f"{part}.yaml").write_text(f"    image: registry/{part}:1\n")
    (tmp_path / "var/lib/etcd/mine").touch()
    (tmp_path / "b/etcd.db").write_text("snapshot")
    for name, text in (("crictl", CRICTL), ("ctr", CTR)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def step(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = render("kubernetes/etcd-restore.sh")
    for folder in ("/etc/", "/var/"):
        script = script.replace(folder, f"{root}{folder}")
    path = f"{root}/bin:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", script, "etcd-restore", *arguments],
        env={**os.environ, "PATH": path, "ROOT": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def manifests(root: Path) -> int:
    return len(list((root / "etc/kubernetes/manifests").iterdir()))


def unpacked(root: Path) -> subprocess.CompletedProcess[str]:
    return step(root, "unpack", "", f"{root}/b", "cp1", "https://cp1:2380", "cp1=https://cp1:2380")


def test_nothing_is_stopped_while_a_backup_is_unpacked(root: Path) -> None:
    result = unpacked(root)
    assert result.returncode == 0, result.stderr
    assert manifests(root) == 4
    assert (root / "var/lib/etcd/mine").exists()
    calls = (root / "calls").read_text()
    assert "registry/etcd:1 " in calls
    assert "--bump-revision 1000000000 --mark-compacted" in calls


def test_data_are_exchanged_and_those_of_before_kept(root: Path) -> None:
    for arguments in (("unpack",), ("stop",), ("swap",), ("swap",)):
        result = unpacked(root) if arguments == ("unpack",) else step(root, *arguments)
        assert result.returncode == 0, result.stderr
    assert manifests(root) == 0
    assert (root / "var/lib/etcd/member").exists()
    (before,) = (root / "var/lib").glob("etcd.before-2*")
    assert (before / "mine").exists()
    assert step(root, "start", "etcd").returncode == 0
    assert manifests(root) == 1
    assert step(root, "start", "kube-apiserver", "kube-scheduler").returncode == 0
    assert step(root, "start", "kube-controller-manager").returncode == 0
    assert manifests(root) == 4
    assert not (root / "etc/kubernetes/gpuboot-restore").exists()


def test_a_restore_that_was_killed_begins_anew(root: Path) -> None:
    assert unpacked(root).returncode == 0
    assert step(root, "stop").returncode == 0
    assert unpacked(root).returncode == 0  # the image's name is in the manifest that is away
    assert step(root, "stop").returncode == 0
    assert manifests(root) == 0


def test_a_broken_backup_leaves_all_as_it_is(root: Path) -> None:
    ctr = root / "bin/ctr"
    ctr.write_text(ctr.read_text().replace("mkdir -p", "false"))
    result = unpacked(root)
    assert result.returncode == 1
    assert "etcdutl made no data" in result.stderr
    assert manifests(root) == 4


VOLUMES = BackupVolumes(None, {}, 0)


def names(fresh_machine: LeaderBootstrap | None) -> list[str]:
    """What a restore does, one after the other: the functions' and the steps' names."""
    source = Source(OLD, "host1", "/b")
    step_names = []
    for command in restored._inner(
        source, etcd_restore.members(NODES), "/b", VOLUMES, fresh_machine
    ):
        if isinstance(command, FunctionCommand):
            step = [str(item).partition(" ")[0] for item in command.args if isinstance(item, str)]
            function_name = command.function.__name__.strip("_")
            step_names.append(
                " ".join([function_name, *(step[:1] if function_name == "on_each" else [])])
            )
        else:
            step_names.append(str(command).partition(" --")[0])
    return step_names


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploys.parts.restore.operations.changes.record", lambda *items: None)


@pytest.mark.usefixtures("recording")
def test_nothing_stops_before_every_member_has_the_backup_unpacked() -> None:
    assert names(None) == [
        "distributed",
        "unpacked",
        "on_each stop",
        "on_each swap",
        "returned",
        "on_each start",
        "wait_for_etcd",
        "on_each start",
    ]


@pytest.mark.usefixtures("recording")
def test_an_empty_machine_gets_keys_first_and_kubeadm_last() -> None:
    step_names = names(LeaderBootstrap("d", "k"))
    assert step_names[1] == "on_each keys"
    assert step_names[-1] == "kubeadm init"
    assert "returned" in step_names
    assert "wait_for_etcd" not in step_names
