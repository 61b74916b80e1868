"""Steps of kubeadm on a host where somebody's data are, and steps that are killed.

kubeadm is a stand-in that refuses, makes and deletes what kubeadm 1.36.3 does: `kubeadm reset` was
tried beside an etcd's data without any cluster, and emptied /var/lib/etcd.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api.command import FunctionCommand, StringCommand

from deploys.engine import changes
from deploys.parts.cluster.fact import HOST_SCRIPT
from deploys.parts.kubeadm import kubeadm_steps
from deploys.parts.kubeadm import operations as kubeadm
from deploys.parts.kubeadm.kubeadm_steps import RESET
from gpuboot.cluster.cluster_state import KubeadmState, Stage, Step, parse_kubeadm, stage

KUBEADM = """\
#!/bin/sh
echo "$*" >>/log
case "$*" in
  "init phase preflight"*)
    [ "$KILLED" = preflight ] && kill -9 $PPID && exit
    for folder in /etc/kubernetes/pki /etc/kubernetes/manifests /var/lib/etcd; do
      if [ -n "$(ls -A $folder 2>/dev/null)" ]; then echo "$folder is not empty" >&2; exit 1; fi
    done ;;
  init*)
    mkdir -p /etc/kubernetes/pki /etc/kubernetes/manifests /var/lib/kubelet
    echo new >/etc/kubernetes/pki/ca.key
    [ "$KILLED" = keys ] && kill -9 $PPID && exit
    echo new >/etc/kubernetes/manifests/etcd.yaml
    echo new >/var/lib/kubelet/config.yaml
    mkdir -p /var/lib/etcd/member
    [ "$KILLED" = etcd ] && kill -9 $PPID && exit
    echo new >/etc/kubernetes/admin.conf
    echo new >/etc/kubernetes/kubelet.conf ;;
  reset*)
    case "$*" in *skip-phases=remove-etcd-member*) ;; *) rm -rf /var/lib/etcd/* ;; esac
    rm -rf /etc/kubernetes/*.conf /etc/kubernetes/manifests/* /etc/kubernetes/pki/*
    rm -rf /var/lib/kubelet/* ;;
esac
"""


class Machine:
    """A folder that looks like a host to commands and facts."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.program("kubeadm", KUBEADM)
        for name in ("kubectl", "systemctl", "ip", "nft"):
            self.program(name, "#!/bin/sh\n")
        monkeypatch.setattr(kubeadm, "read", lambda *_, **__: self.state())
        monkeypatch.setattr(changes, "record", lambda *_: None)
        monkeypatch.setattr(kubeadm_steps, "warn", lambda _: None)
        monkeypatch.setattr(kubeadm, "host", _SilentHost())

    def program(self, name: str, text: str) -> None:
        self.file(f"/bin/{name}", self.relocate(text)).chmod(0o755)

    def file(self, path: str, text: str = "theirs") -> Path:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def relocate(self, text: str) -> str:
        for folder in ("/etc/", "/var/", "/sys/", "/proc/", "/run/", "/log"):
            text = text.replace(folder, f"{self.root}{folder}")
        return text

    def shell(self, text: str, killed: str = "") -> subprocess.CompletedProcess[str]:
        env = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "KILLED": killed}
        return subprocess.run(
            ["sh", "-c", self.relocate(text)], env=env, capture_output=True, text=True, timeout=20
        )

    def state(self) -> KubeadmState:
        lines = self.shell(f"socket=/nothing\n{HOST_SCRIPT}").stdout
        return parse_kubeadm(lines.replace(f"{self.root}/", "/").splitlines())

    def initialize(self, killed: str = "") -> str:
        """One run of the operation. Returns "refused" by it, what failed, or ""."""
        for command in kubeadm.initialized._inner("d1", "d2"):
            if isinstance(command, FunctionCommand):
                return "refused"
            assert isinstance(command, StringCommand)
            result = self.shell(command.get_raw_value(), killed)
            if result.returncode:
                return result.stderr or "killed"
        return ""

    def log(self) -> str:
        log = self.root / "log"
        return log.read_text() if log.exists() else ""

    def marked(self, step: Step) -> bool:
        return (self.root / kubeadm_steps.marker(step).lstrip("/")).exists()


class _SilentHost:
    def noop(self, _: str) -> None:
        """What pyinfra is told where nothing is to do."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def at(machine: Machine) -> Stage:
    return stage(machine.state(), "init")


def test_a_bare_host_becomes_a_control_plane(machine: Machine) -> None:
    assert machine.initialize() == ""
    assert at(machine) == "done"
    assert "reset" not in machine.log()
    assert machine.initialize() == ""
    assert machine.log().count("init --") == 1


@pytest.mark.parametrize("folder", ["member", "default/member"])
def test_somebodys_etcd_stays_however_often_it_runs(machine: Machine, folder: str) -> None:
    data = machine.file(f"/var/lib/etcd/{folder}/snap/db")
    for _ in range(3):
        assert "/var/lib/etcd is not empty" in machine.initialize()
        assert not machine.marked("init")
    assert data.read_text() == "theirs"
    assert "reset" not in machine.log()


@pytest.mark.parametrize("mark", [None, "init", "join"])
@pytest.mark.parametrize(
    "path",
    [
        "/etc/kubernetes/pki/ca.key",
        "/etc/kubernetes/manifests/kube-vip.yaml",
        "/var/lib/kubelet/pods/0a1b/volumes/data",
        "/etc/kubernetes/admin.conf",
        "/etc/kubernetes/bootstrap-kubelet.conf",
    ],
)
def test_somebodys_cluster_stays_beside_an_empty_mark(
    machine: Machine, path: str, mark: Step | None
) -> None:
    data = machine.file(path)
    if mark:
        machine.file(kubeadm_steps.marker(mark), "")
    assert at(machine) == stage(machine.state(), "join") == "foreign"
    assert machine.initialize() == machine.initialize() == "refused"
    assert kubeadm.reset_commands(machine.state()) == []
    assert data.read_text() == "theirs"
    assert machine.log() == ""


@pytest.mark.parametrize("killed", ["keys", "etcd"])
def test_a_step_that_was_killed_begins_again(machine: Machine, killed: str) -> None:
    assert machine.initialize(killed) == "killed"
    assert at(machine) == "begun"
    assert machine.initialize(killed) == "killed"
    assert machine.initialize() == ""
    assert at(machine) == "done"
    assert machine.log().count("reset --force") == 2
    assert not machine.marked("init")


def test_one_that_was_killed_before_kubeadm_agreed_has_not_begun(machine: Machine) -> None:
    assert machine.initialize("preflight") == "killed"
    assert not machine.marked("init")
    machine.file("/etc/kubernetes/pki/ca.key")  # a person has gone on by hand
    assert machine.initialize() == "refused"


def test_one_that_kubeadm_refuses_after_a_reset_has_not_begun(machine: Machine) -> None:
    assert machine.initialize("keys") == "killed"
    data = machine.file("/var/lib/etcd/member/snap/db")  # no manifest: not kubeadm's
    assert "is not empty" in machine.initialize()
    assert not machine.marked("init")
    assert data.read_text() == "theirs"


def test_a_mark_of_an_earlier_version_where_nothing_is(machine: Machine) -> None:
    machine.file(kubeadm_steps.marker("init"), "")
    assert at(machine) == "begun"
    assert machine.initialize() == ""


@pytest.mark.parametrize(
    ("manifest", "keeps_data"),
    [
        ("/etc/kubernetes/manifests/etcd.yaml", False),
        ("/etc/kubernetes/gpuboot-restore/etcd.yaml", False),
        ("/etc/kubernetes/manifests/kube-vip.yaml", True),
        (None, True),
    ],
)
def test_a_reset_empties_kubeadms_own_etcd_only(
    machine: Machine, manifest: str | None, keeps_data: bool
) -> None:
    data = machine.file("/var/lib/etcd/member/snap/db")
    if manifest:
        machine.file(manifest)
    assert machine.shell(RESET).returncode == 0
    assert data.exists() == keeps_data


def test_a_reset_deletes_flannels_configuration_only(machine: Machine) -> None:
    files = {
        name: machine.file(f"/etc/cni/net.d/{name}")
        for name in ("10-flannel.conflist", "87-podman-bridge.conflist", "00-multus.conf")
    }
    assert machine.shell(RESET).returncode == 0
    assert [name for name, file in files.items() if file.exists()] == [
        "87-podman-bridge.conflist",
        "00-multus.conf",
    ]


def test_links_of_another_cluster_are_not_reset(machine: Machine) -> None:
    for link in ("cni0", "flannel.1"):
        (machine.root / "sys/class/net" / link).mkdir(parents=True)
    assert machine.state().left == ()
    machine.file("/etc/gpuboot/kubelet-config.sha256", "d1 d2\n")
    assert machine.state().left == ("cni0", "flannel.1")


def configurations(machine: Machine) -> list[Any]:
    return sorted(file.name for file in (machine.root / "etc/cni/net.d").iterdir())


def test_flannels_configuration_is_there_before_podmans_counts(machine: Machine) -> None:
    machine.file("/etc/cni/net.d/87-podman-bridge.conflist")
    assert machine.initialize("keys") == "killed"
    assert configurations(machine) == ["10-flannel.conflist", "87-podman-bridge.conflist"]
    assert machine.initialize() == ""  # a reset in between deletes it
    assert configurations(machine) == ["10-flannel.conflist", "87-podman-bridge.conflist"]
