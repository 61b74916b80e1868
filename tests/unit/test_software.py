"""Programs beside the packages, snaps, and containers that are to be nodes."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.node import fact as node
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.node_state import Unit
from gpuboot.hosts.software import Software, parse
from gpuboot.preflight import software_problems
from tests.unit.test_preflight import CLEAN, WORKER

DOCKER = Node("d1", "d1", "10.0.0.5", "docker", 1, leader=False)
PACKAGED = "/usr/lib/systemd/system/containerd.service"


def causes(state: Software, node: Node = WORKER, **changes: Any) -> list[str]:
    settings = parse_settings(changes.pop("settings", {}))
    reported = list(
        software_problems.problems(node, replace(CLEAN, software=state, **changes), settings)
    )
    assert all(remedy for _, remedy in reported)
    return [cause for cause, _ in reported]


def read(*lines: str) -> Software:
    return parse(Fields(lines, last=None))


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "containerd /usr/local/bin/containerd /usr/local/lib/systemd/system/containerd.service",
            "containerd.service starts /usr/local/bin/containerd "
            "(/usr/local/lib/systemd/system/containerd.service), not the program of its package",
        ),
        (
            "kubelet /usr/local/bin/kubelet /etc/systemd/system/kubelet.service",
            "kubelet.service starts /usr/local/bin/kubelet "
            "(/etc/systemd/system/kubelet.service), not the program of its package",
        ),
        (
            "containerd /opt/bin/containerd /etc/systemd/system/containerd.service",
            "containerd.service starts /opt/bin/containerd "
            "(/etc/systemd/system/containerd.service), not the program of its package",
        ),
    ],
)
def test_a_unit_that_starts_another_program_than_the_package_s(line: str, cause: str) -> None:
    assert causes(read(f"unit_program\t{line}")) == [cause]


def test_a_unit_of_the_site_s_own_that_starts_the_package_s_program() -> None:
    for file in (PACKAGED, "/etc/systemd/system/containerd.service"):
        assert causes(read(f"unit_program\tcontainerd /usr/bin/containerd {file}")) == []
    dockerd = "unit_program\tdocker /usr/local/bin/dockerd /etc/systemd/system/docker.service"
    assert causes(read(dockerd)) == []
    assert causes(read(dockerd), DOCKER) != []


def test_units_that_are_masked() -> None:
    masked = {"containerd": Unit("inactive", "masked"), "kubelet": Unit("inactive", "masked")}
    assert causes(Software(), units=masked) == [
        "containerd.service is masked",
        "kubelet.service is masked",
    ]
    assert causes(Software(), DOCKER, units=masked) == ["containerd.service is masked"]


def test_programs_that_are_found_before_the_packages_own() -> None:
    state = read(
        "shadow\tkubeadm /usr/local/bin/kubeadm",
        "shadow\trunc /usr/local/sbin/runc",
        "shadow\tkubelet /usr/local/bin/kubelet",  # its unit names the package's
        "shadow\tdocker /usr/local/bin/docker",
        "shadow\tnvidia-ctk /usr/local/bin/nvidia-ctk",
    )
    assert causes(state) == [
        "/usr/local/bin/kubeadm, /usr/local/sbin/runc, /usr/local/bin/nvidia-ctk would be used "
        "instead of the packages' programs"
    ]
    assert "nvidia-ctk" not in causes(state, replace(WORKER, gpus=0))[0]
    assert "/usr/local/bin/docker" in causes(state, DOCKER)[0]


def test_snaps() -> None:
    assert causes(read("snap\tkubelet")) == [
        "parts of another Kubernetes are there: the snap kubelet"
    ]
    assert causes(read("snap\tk8s")) != []
    docker = read("snap\tdocker", "snap\tdocker")
    assert causes(docker) == [], "it stays beside a cluster, as docker-ce does"
    [line] = software_problems.warnings([WORKER], {WORKER.host: replace(CLEAN, software=docker)})
    assert line.startswith("gpu1: Docker runs there as a snap")
    assert software_problems.warnings([WORKER], {WORKER.host: CLEAN}) == []
    [cause] = causes(docker, DOCKER)
    assert "Docker is there as a snap" in cause


def test_a_container_that_cannot_be_a_node() -> None:
    lxd = read("container_lacks\troot", "container_lacks\tkmsg", "container_lacks\tsysctl")
    assert causes(lxd, container="lxc") == [
        "it is a container (lxc): its root is not the machine's (user namespace); /dev/kmsg is "
        "missing, which the kubelet reads; /proc/sys is read-only"
    ]
    assert causes(read("container_lacks\tkmsg"), DOCKER, container="lxc") == []
    modules = read("container_lacks\tmodules")
    assert "may not load kernel modules" in causes(modules, container="podman")[0]
    assert causes(modules, replace(WORKER, gpus=0), container="podman") == []
    data = {"driver": {"enabled": False}}
    assert causes(modules, container="podman", settings=data) == []


def test_a_container_with_all_that_a_node_needs() -> None:
    """As the lab's machines are: systemd-nspawn with every capability."""
    assert causes(Software(), container="systemd-nspawn") == []


SYSTEMCTL = """\
#!/bin/sh
cat <<'X'
ExecStart={ path=/usr/local/bin/containerd ; argv[]=/usr/local/bin/containerd ; ignore_errors=no ; \
start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }
Id=containerd.service
FragmentPath=/usr/local/lib/systemd/system/containerd.service

Id=kubelet.service
FragmentPath=

ExecStart={ path=/usr/bin/dockerd ; argv[]=/usr/bin/dockerd -H fd:// ; ignore_errors=no }
Id=docker.service
FragmentPath=/usr/lib/systemd/system/docker.service
X
"""


def run(folder: Path, command: str) -> list[str]:
    script = Path(node.__file__).with_name("software.sh")
    result = subprocess.run(
        ["sh", "-uc", f". {script}\n{command}"],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return result.stdout.splitlines()


def test_what_units_start_is_read(tmp_path: Path) -> None:
    for name, text in (
        ("systemctl", SYSTEMCTL),
        ("systemd-detect-virt", "#!/bin/sh\nexit 1\n"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    state = read(*run(tmp_path, "software"))
    assert state.units == {
        "containerd": (
            "/usr/local/bin/containerd",
            "/usr/local/lib/systemd/system/containerd.service",
        ),
        "docker": ("/usr/bin/dockerd", "/usr/lib/systemd/system/docker.service"),
    }
    assert state.lacks == frozenset()


def test_root_of_a_user_namespace_is_told_from_the_machine_s(tmp_path: Path) -> None:
    probe = subprocess.run(["unshare", "-r", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("this machine makes no user namespaces")
    script = Path(node.__file__).with_name("software.sh")
    result = subprocess.run(
        ["unshare", "-r", "sh", "-uc", f". {script}\ncontainer_lacks"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert "container_lacks\troot" in result.stdout.splitlines()
