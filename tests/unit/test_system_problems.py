"""What a kernel, dpkg or a full /boot refuses on used servers is told before a run begins."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from deploys.parts.node.fact import SCRIPT
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts import failures, kernels, platforms
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.folders import parse as parse_folders
from gpuboot.hosts.node_state import NodeState, parse
from gpuboot.preflight import system_problems
from tests.unit.test_node_state import ANSWER
from tests.unit.test_preflight import CLEAN, WORKER, causes

DOCKER = Node("d1", "d1", "10.0.0.5", "docker", 1, leader=False)
MEMBER = {"/etc/kubernetes/kubelet.conf": "https://10.0.0.1:6443"}


def problems(node: Node, state: NodeState) -> list[tuple[str, str]]:
    return list(system_problems.problems(node, state, parse_settings({})))


@pytest.mark.parametrize(
    ("controllers", "missing"),
    [
        ("cpuset cpu io pids rdma misc", "memory"),  # cgroup_disable=memory
        ("cpuset io memory pids", "cpu"),  # CONFIG_CGROUP_SCHED is not set
        ("cpuset cpu io memory hugetlb pids rdma misc", ""),
        ("", ""),  # not read
    ],
)
def test_control_groups_that_kubeadm_needs(controllers: str, missing: str) -> None:
    state = replace(CLEAN, cgroup_controllers=controllers)
    expected = [f"its kernel has no control groups for {missing}"] if missing else []
    actual = [cause.partition(",")[0] for cause, _ in problems(WORKER, state)]
    assert actual == expected
    assert not list(problems(DOCKER, state))
    own_decision = parse_settings({"cluster": {"ignore_preflight_errors": ["SystemVerification"]}})
    assert not list(system_problems.problems(WORKER, state, own_decision))


def test_a_kernel_that_loads_no_module() -> None:
    locked = {"kernel.modules_disabled": "1"}
    assert "loads no module any more" in causes(sysctls=locked)[0]
    assert not causes(sysctls={"kernel.modules_disabled": "0"})
    # a member has its modules, and goes on
    assert not list(problems(WORKER, replace(CLEAN, sysctls=locked, kubeconfigs=MEMBER)))


def test_a_user_of_dpkg_who_is_gone(tmp_path: Path) -> None:
    (tmp_path / "statoverride").write_text(
        "root root 755 /usr/bin/x\n#0 #0 755 /usr/bin/y\nnetdata-gone root 4750 /usr/lib/net data\n"
        "root crontab-gone 2755 /usr/bin/crontab\n"
    )
    begin = SCRIPT.index("has getent && [")
    part = SCRIPT[begin : SCRIPT.index("stat -c '%i'", begin)]
    functions = (
        'put() { printf \'%s\\t%s\\n\' "$1" "$2"; }\nhas() { command -v "$1" >/dev/null; }\n'
    )
    result = subprocess.run(
        ["sh", "-c", functions + part.replace("/var/lib/dpkg", str(tmp_path))],
        capture_output=True,
        text=True,
        check=True,
    )
    state = parse([*result.stdout.splitlines(), *ANSWER])
    assert state.statoverrides == (
        "user netdata-gone /usr/lib/net data",
        "group crontab-gone /usr/bin/crontab",
    )
    [(cause, remedy), _] = problems(WORKER, state)
    assert "names the user netdata-gone, which is gone" in cause
    assert remedy == "run `dpkg-statoverride --remove /usr/lib/net data` there"


@pytest.mark.parametrize(("free_mib", "is_full"), [(40, True), (400, False)])
def test_a_boot_without_room_for_another_initramfs(free_mib: int, is_full: bool) -> None:
    line = f"folder\t/boot 487000 {free_mib * 1024} 0 0 ext4 rw /boot"
    folders = parse_folders(Fields([line], last=None))
    actual = causes(folders=folders, initrd_kib=90 * 1024)
    assert [cause.partition(" (")[0] for cause in actual] == (
        ["/boot has 40 MiB free"] if is_full else []
    )
    assert not causes(
        folders=folders, initrd_kib=90 * 1024, settings={"driver": {"enabled": False}},
        driver_loaded="595.112.07",
    )  # fmt: skip


def test_a_kernel_whose_headers_the_archive_has_dropped() -> None:
    platform = platforms.of(CLEAN)
    state = replace(CLEAN, headers="missing", headers_package="linux-headers-6.1.0-18-amd64")
    offers = {"linux-headers-amd64": "available"}
    _, remedy = kernels.problem(platform, replace(state, kernel_headers=offers))
    assert remedy.startswith("run `apt-get install linux-image-amd64` there, reboot into")
    _, remedy = kernels.problem(platform, state)
    assert "make deb-pkg" in remedy


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("dpkg: unrecoverable fatal error, aborting:\n unknown system group 'ssl-cert' in "
         "statoverride file; the system group got removed", "dpkg-statoverride --remove"),
        ("Error 24 : Write error : cannot write compressed block\nE: mkinitramfs failure cpio 141\n"
         "dpkg: error processing package initramfs-tools (--configure):\n installed "
         "initramfs-tools package post-installation script subprocess returned error exit status 1",
         "df -h"),
        ("E: Repository 'http://ppa.example/x jammy InRelease' changed its 'Label' value from "
         "'a' to 'b'", "--allow-releaseinfo-change"),
        ("dpkg: error: parsing file '/var/lib/dpkg/status' near line 4 package 'x':", "status-old"),
        ("dpkg: unrecoverable fatal error, aborting:\n files list file for package 'libc6:amd64' "
         "is missing final newline", "--reinstall"),
        ("debconf: DbDriver \"config\": /var/cache/debconf/config.dat is locked by another process",
         "let it end"),
        ("Media change: please insert the disc labeled\n 'Debian GNU/Linux 12 _Bookworm_'",
         "cdrom:"),
    ],
)  # fmt: skip
def test_an_installation_that_ends_by_it(output: str, words: str) -> None:
    failure = failures.explain(output)
    assert failure
    assert words in failure.remedy
