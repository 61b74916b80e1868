"""Reading what the compound fact printed."""

import pytest

from gpuboot.hosts import loaded_driver
from gpuboot.hosts.fact_output import FactOutputError
from gpuboot.hosts.node_state import Unit, parse, upstream_version
from gpuboot.hosts.pci import PciDevice
from tests.unit import recordings

ANSWER = """\
uid\t0
hostname\tgpu1
machine_id\tm1
boot_id\tb1
arch\tx86_64
kernel\t6.8.0-90-generic
os_id\tubuntu
os_version\t24.04
os_codename\tnoble
os_name\tUbuntu 24.04.3 LTS
headers\tavailable
kernel_feature\toverlay
kernel_feature\tbr_netfilter
module\tnouveau
sysctl\tnet.ipv4.ip_forward 0
cgroup\t2
secure_boot\tSecure Boot
pci\t0000:10:00.0 0x2330 0x030200
pci\t0000:07:00.0 0x22a3 0x068000
pci\t0000:11:00.1 0x22ba 0x040300
driver\tNVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.91.07  Release Build  (x)
package\tnvidia-open 595.91.07-1ubuntu1
package\tdocker-ce 5:29.8.1-1
hold\tkubelet
package_lock\tapt-get (pid 7)
package_lock\tapt-get (pid 7)
cloud_init\trunning
memory_kib\t4194304
cpus\t4
folder\t/var/lib/containerd 60000000 51200000 9 8 ext4 rw,relatime /
swap\t/swapfile
ntp\tyes
address\teth0 10.0.0.5/24
address\teth0 fd00::5/64
default_source\t10.0.0.5
route\t10.0.0.0/24 eth0
port\t22 sshd
port\t6443 kube-apiserver
hexport\t0016
unit\tcontainerd active enabled
unit\tchrony inactive disabled
kubeconfig\t/etc/kubernetes/kubelet.conf https://10.0.0.1:6443
clock\t1795270540.5
""".splitlines()


def test_every_field() -> None:
    state = parse(ANSWER)
    assert (state.os_id, state.os_version, state.cgroup, state.cpus) == ("ubuntu", "24.04", 2, 4)
    assert state.memory_mib == 4096
    assert state.folders.folders["/var/lib/containerd"].free_kib == 51200000
    assert state.secure_boot.enforced
    assert state.ntp_synchronised
    assert state.gpus == (PciDevice("0000:10:00.0", 0x2330, "0x030200"),)
    assert [item.slot for item in state.nvswitches] == ["0000:07:00.0"]
    assert (state.driver_loaded, state.driver_open) == ("595.91.07", True)
    assert state.packages["docker-ce"] == "5:29.8.1-1"
    assert state.driver_package == state.driver_installed == "595.91.07"
    assert state.package_lock_holders == ("apt-get (pid 7)",)
    assert state.addresses == ("10.0.0.5", "fd00::5")
    assert state.default_address == "10.0.0.5"
    assert state.routes == (("10.0.0.0/24", "eth0"),)
    assert state.ports == {22: "sshd", 6443: "kube-apiserver"}
    assert state.units["chrony"] == Unit("inactive", "disabled")
    assert state.is_active("containerd")
    assert not state.is_active("chrony")
    assert state.kubeconfigs == {"/etc/kubernetes/kubelet.conf": "https://10.0.0.1:6443"}
    assert state.modules == {"nouveau"}


def test_no_default_route_takes_the_first_address() -> None:
    answer = [line for line in ANSWER if not line.startswith("default_source")]
    assert parse(answer).default_address == "10.0.0.5"


def test_a_module_on_disk_counts_before_its_package() -> None:
    assert parse([*ANSWER, "driver_module\t595.71.05"]).driver_installed == "595.71.05"


def test_an_answer_that_was_cut_off() -> None:
    with pytest.raises(FactOutputError, match="ends early"):
        parse(ANSWER[:-1])


def test_an_answer_that_is_none() -> None:
    with pytest.raises(FactOutputError, match="cannot be read"):
        parse(["uid\troot", "clock\t1"])


@pytest.mark.parametrize(
    ("line", "version", "is_open"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep", "580.95.05", False),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  610.57  Rel", "610.57", True),
        ("", "", False),
    ],
)
def test_driver_versions(line: str, version: str, is_open: bool) -> None:
    assert loaded_driver.parse(line) == (version, is_open)


@pytest.mark.parametrize(("line", "version", "is_open"), recordings.DRIVERS)
def test_driver_versions_of_real_machines(line: str, version: str, is_open: bool) -> None:
    assert loaded_driver.parse(line) == (version, is_open)


def test_versions_lose_epoch_and_revision() -> None:
    assert upstream_version("1:595.91.07-1ubuntu1") == "595.91.07"
    assert upstream_version("595.91.07") == "595.91.07"
