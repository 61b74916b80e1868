"""Backups of etcd: what is written on a control plane, and the script that takes them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from deploys.parts.etcd.operations import before
from deploys.parts.packages.fact import KEYS
from gpuboot.cluster import backup, backup_copy
from gpuboot.cluster.backup import Backup, Backups
from gpuboot.cluster.etcd_restore import FILES, VOLUMES
from gpuboot.cluster.local_volumes import FORMAT
from gpuboot.config.settings import SettingsError, parse_settings
from gpuboot.templates import render

MANIFEST = """\
spec:
  containers:
  - command:
    - etcd
    - --data-dir={data}
    - --listen-client-urls=https://127.0.0.1:2379,https://192.0.2.11:2379
    - --name=cp1
    image: registry.k8s.io/etcd:3.6.8-0
"""
API = "    image: registry.k8s.io/kube-apiserver:v1.36.3\n"
STATUS = '{"hash":1,"revision":7,"totalKey":3,"totalSize":64,"version":"3.6.0"}'
# etcdctl writes a snapshot that ends with its digest; etcdutl tells its status
CTR = """\
#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
  *"containers info"*) exit 1 ;;
  *"snapshot save"*)
    for file in "$@"; do :; done
    [ -z "$BROKEN_SAVE" ] || { echo "no leader" >&2; exit 1; }
    printf 0123456789 >"$file"
    cat "$DIGEST" >>"$file"
    [ -z "$FLIPPED" ] || printf x | dd of="$file" bs=1 seek=3 conv=notrunc 2>/dev/null ;;
  *"snapshot status"*) [ -z "$BROKEN_STATUS" ] || exit 1; echo '%s' ;;
esac
"""
FAULTS = ("BROKEN_SAVE", "FLIPPED", "BROKEN_STATUS", "SYSTEMCTL", "NO_API")


class Machine:
    """A folder that looks like a control-plane node to the script."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder, self.calls = root, root / "backup", root / "calls"
        for name in ("etc/kubernetes/manifests", "etc/kubernetes/pki/etcd", "etc/gpuboot", "bin"):
            (root / name).mkdir(parents=True)
        (root / "data").mkdir()
        kubernetes = root / "etc/kubernetes"
        (kubernetes / "manifests/etcd.yaml").write_text(MANIFEST.format(data=root / "data"))
        (kubernetes / "manifests/kube-apiserver.yaml").write_text(API)
        for name in ("ca.crt", "ca.key", "sa.pub", "sa.key", "etcd/ca.crt", "apiserver.key"):
            (kubernetes / "pki" / name).write_text(name)
        self.program("ctr", CTR % STATUS)
        self.program("kubectl", '#!/bin/sh\nprintf "%s\\n" "$*"\n[ -z "$NO_API" ]\n')
        (root / "digest").write_bytes(hashlib.sha256(b"0123456789").digest())
        self.metrics = root / "textfile"
        self.configure()

    def configure(self, **options: object) -> None:
        choices: dict[str, object] = {"keep": 2} | options
        settings = parse_settings({"backup": choices}).backup
        text = backup.files(settings, "node1")["/etc/gpuboot/etcd-backup.conf"]
        text = text.replace(backup.METRICS_FOLDER, str(self.metrics))
        text = text.replace(backup.FOLDER, str(self.folder))
        (self.root / "etc/gpuboot/etcd-backup.conf").write_text(text)

    def program(self, name: str, text: str) -> None:
        """A stand-in of a program, which is found first."""
        path = self.root / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, reason: str = "timer", **broken: str) -> subprocess.CompletedProcess[str]:
        script = backup.program(KEYS).replace("/etc/", f"{self.root}/etc/")
        script = script.replace("PATH=", f"PATH={self.root}/bin:")
        environment = {**os.environ, "CALLS": str(self.calls), "DIGEST": str(self.root / "digest")}
        environment |= dict.fromkeys(FAULTS, "") | broken
        return subprocess.run(
            ["sh", "-c", script, "gpuboot-etcd-backup", reason],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    @property
    def backups(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if path.name[0] != ".")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_backup_holds_what_a_restore_needs_and_only_root_reads_it(machine: Machine) -> None:
    result = machine.run("upgrade")
    assert result.returncode == 0, result.stderr
    (created,) = machine.backups
    assert created.name.endswith("Z-upgrade")
    assert sorted(path.name for path in created.iterdir()) == [*FILES, VOLUMES]
    assert (created / VOLUMES).read_text().endswith(f"get pv -o {FORMAT}\n")
    assert {path.stat().st_mode & 0o777 for path in created.iterdir()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (created, machine.folder)} == {0o700}
    listing = subprocess.run(
        ["tar", "-tf", created / "pki.tar"], capture_output=True, text=True, check=True
    )
    assert set(listing.stdout.split()) == {
        "pki/ca.crt", "pki/ca.key", "pki/sa.pub", "pki/sa.key", "pki/etcd/ca.crt"
    }  # fmt: skip
    metadata = json.loads((created / "about.json").read_text())
    origin = (metadata["reason"], metadata["node"], metadata["kubernetes"])
    assert origin == ("upgrade", "cp1", "v1.36.3")
    assert metadata["snapshot"]["revision"] == 7
    assert "--endpoints=https://127.0.0.1:2379 " in machine.calls.read_text()


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("BROKEN_SAVE", "snapshot save failed: no leader"),
        ("BROKEN_STATUS", "finds the snapshot broken"),
        ("FLIPPED", "does not have the digest"),
    ],
)
def test_a_snapshot_that_is_not_sound_is_no_backup(
    machine: Machine, broken: str, message: str
) -> None:
    result = machine.run(**{broken: "1"})
    assert result.returncode == 1
    assert message in result.stderr
    assert machine.backups == []
    assert machine.run().returncode == 0
    assert len(machine.backups) == 1
    assert not list(machine.folder.glob(".new-*"))  # what the one that failed has left


def test_the_newest_are_kept(machine: Machine) -> None:
    for stamp in ("20250101T000000Z-timer", "20250102T000000Z-timer", "mine"):
        (machine.folder / stamp).mkdir(parents=True)
    assert machine.run().returncode == 0
    names = [path.name for path in machine.backups]
    assert names[0] == "20250102T000000Z-timer"
    assert len(names) == 3
    assert names[-1] == "mine"


def test_a_machine_without_etcd_is_named(machine: Machine) -> None:
    (machine.root / "etc/kubernetes/manifests/etcd.yaml").unlink()
    result = machine.run()
    assert result.returncode == 1
    assert "no etcd runs here" in result.stderr


def test_prometheus_is_told_when_the_newest_was_taken(machine: Machine) -> None:
    assert machine.run().returncode == 0
    file = machine.metrics / f"{backup.METRIC}.prom"
    timestamp = json.loads((machine.backups[-1] / "about.json").read_text())["taken"]
    assert file.read_text().splitlines()[1:] == [
        f"# TYPE {backup.METRIC} gauge",
        f'{backup.METRIC}{{node="node1"}} {timestamp}',
    ]
    assert file.stat().st_mode & 0o777 == 0o644
    assert machine.metrics.stat().st_mode & 0o777 == 0o755
    assert machine.run(BROKEN_SAVE="1").returncode == 1
    assert str(timestamp) in file.read_text()


def test_a_backup_is_good_though_prometheus_cannot_be_told(machine: Machine) -> None:
    machine.metrics.write_text("in the way")
    result = machine.run()
    assert result.returncode == 0
    assert "Prometheus is not told" in result.stderr
    assert len(machine.backups) == 1


def test_files_follow_the_settings() -> None:
    settings = parse_settings({"backup": {"schedule": "hourly", "keep": 3}}).backup
    texts = backup.files(settings, "cp1")
    assert "folder=/var/lib/gpuboot/backup\nkeep=3\n" in texts["/etc/gpuboot/etcd-backup.conf"]
    assert "OnCalendar=hourly\n" in texts[f"/etc/systemd/system/{backup.TIMER}"]
    assert f"ExecStart={backup.PROGRAM} timer" in texts[f"/etc/systemd/system/{backup.SERVICE}"]


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("keep", 0, "backup.keep"),
        ("schedule", "daily\nExecStart=x", "backup.schedule: takes a time"),
        ("max_age_h", 0, "backup.max_age_h"),
    ],
)
def test_wrong_settings_are_named(setting: str, value: object, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_settings({"backup": {setting: value}})
    assert message in str(error.value)


def test_a_change_without_a_backup_does_not_begin() -> None:
    command = before("upgrade").get_raw_value()
    program = backup.PROGRAM
    assert command.startswith(f"test ! -x {program} || {program} upgrade || {{")
    altered = command.replace(program, "/bin/false")
    failed = subprocess.run(["sh", "-c", altered], capture_output=True, text=True)
    assert failed.returncode == 1
    assert "no backup of etcd could be taken before this: upgrade" in failed.stderr
    assert "remedy: " in failed.stderr
    absent = command.replace(program, "/nothing/there")
    assert subprocess.run(["sh", "-c", absent]).returncode == 0


def test_backups_of_an_earlier_cluster_are_told_apart() -> None:
    old, new = Backup("20250101T000000Z-timer", 0.0, ca="c1"), Backup("2", 0.0, ca="c2")
    assert backup.of_cluster(Backups((new, old), ca="c1")) == [old]


UNDER_WAY = """\
#!/bin/sh
case "$1" in show) echo "$STATE" ;; *) echo "$*" >>"$CALLS" ;; esac
"""


@pytest.mark.parametrize(
    ("state", "ends"),
    [
        ("failed", True),
        ("auto-restart", True),
        ("auto-restart-queued", True),
        ("start", False),
        ("dead", False),
    ],
)
def test_a_good_backup_ends_the_failure_of_an_earlier_one(
    machine: Machine, state: str, ends: bool
) -> None:
    machine.program("systemctl", UNDER_WAY)
    assert machine.run("upgrade", STATE=state).returncode == 0
    calls = machine.calls.read_text().splitlines()
    assert (
        (f"stop {backup.SERVICE}" in calls) == (f"reset-failed {backup.SERVICE}" in calls) == ends
    )


def test_a_backup_that_failed_ends_no_failure(machine: Machine) -> None:
    machine.program("systemctl", UNDER_WAY)
    assert machine.run("upgrade", STATE="failed", BROKEN_SAVE="1").returncode == 1
    assert "reset-failed" not in machine.calls.read_text()


@pytest.mark.parametrize(("result", "silent"), [("success", True), ("exit-code", False)])
def test_a_failure_that_does_not_end_is_told_and_the_backup_is_good(
    machine: Machine, result: str, silent: bool
) -> None:
    machine.program(
        "systemctl",
        f"""#!/bin/sh
case "$*" in *SubState*) echo failed ;; *Result*) echo {result} ;; *) exit 1 ;; esac
""",
    )
    completed = machine.run("upgrade")
    assert completed.returncode == 0
    assert (backup.SERVICE not in completed.stderr) == silent


def test_containerd_restarts_when_no_backup_is_under_way(machine: Machine) -> None:
    states = machine.root / "states"
    states.write_text("start\nstart\ndead\nstart\n")
    machine.program("systemctl", f"#!/bin/sh\nhead -n 1 {states}; sed -i 1d {states}\n")
    machine.program("sleep", "#!/bin/sh\n")
    path = f"{machine.root / 'bin'}:{os.environ['PATH']}"
    subprocess.run(["sh", "-ec", backup.ENDS], env={"PATH": path}, check=True, timeout=30)
    assert states.read_text() == "start\n"


@pytest.mark.parametrize("unit", [backup.SERVICE, backup_copy.SERVICE])
def test_systemd_accepts_the_units_and_tries_again(unit: str, tmp_path: Path) -> None:
    program = backup.PROGRAM
    text = render(f"kubernetes/{unit.removeprefix('gpuboot-')}.j2", program=program, proxy="/p")
    assert "Restart=on-failure\n" in text
    (tmp_path / unit).write_text(text.replace(backup.PROGRAM, "/bin/true"))
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / unit], capture_output=True, text=True
    )
    assert unit not in result.stderr
