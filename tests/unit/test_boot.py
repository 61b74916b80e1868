"""What a host's files do at its next boot: read of folders that look like hosts.

cloud-init's order of files was tried with cloud-init 22.4.2: data of the instance wins over files
in /etc/cloud, and the template's own lines are in the file that it makes.
"""

from __future__ import annotations

import subprocess
from importlib import resources
from pathlib import Path

import pytest

from gpuboot.hosts.boot import BootState, parse
from gpuboot.hosts.fact_output import Fields

FUNCTION = resources.files("deploys.parts.node").joinpath("boot.sh").read_text()
SHELLS = (["dash"], ["busybox", "ash"])
FOLDERS = ("/etc/", "/run/", "/var/", "/usr/bin/un")
USER = "var/lib/cloud/instance/cloud-config.txt"
CATALOGUE = """\
# /usr/lib/sysctl.d/50-default.conf
# Comment of /etc/sysctl.conf
net.ipv4.ip_forward = 0

# /etc/sysctl.d/99 a.conf
-net/ipv4/conf/*/forwarding=0
; net.ipv4.ip_forward = 0
vm.swappiness = 1
"""


class Machine:
    """A folder that looks like a host to the functions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bin").mkdir()
        self.program("systemctl", "exit 3")
        self.program("systemd-analyze", "exit 1")
        self.file("etc/hosts", "127.0.0.1 localhost\n")

    def file(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def program(self, name: str, text: str) -> None:
        self.file(f"bin/{name}", f"#!/bin/sh\n{text}\n", 0o755)

    def cloud_init(self, family: str = "debian", **files: str) -> None:
        self.program("cloud-init", "")
        for name in ("debian", "redhat"):
            self.file(f"etc/cloud/templates/hosts.{name}.tmpl", "## template:jinja\n")
        if family == "debian":
            self.file("etc/debian_version", "13.2\n")

    def state(self, shell: list[str]) -> BootState:
        script = FUNCTION
        for folder in FOLDERS:
            script = script.replace(f" {folder}", f" {self.root}{folder}")
            script = script.replace(f"={folder}", f"={self.root}{folder}")
            script = script.replace(f"({folder}", f"({self.root}{folder}")
        result = subprocess.run(
            [*shell, "-uc", f"export LC_ALL=C\n{script}\nboot; printf 'end\\tok\\n'"],
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, "")
        return parse(Fields(result.stdout.replace(str(self.root), "").splitlines()))


@pytest.fixture(params=SHELLS, ids=" ".join)
def shell(request: pytest.FixtureRequest) -> list[str]:
    value: list[str] = request.param
    return value


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_bare_host(machine: Machine, shell: list[str]) -> None:
    assert machine.state(shell) == BootState()


@pytest.mark.parametrize(
    ("files", "rewritten"),
    [
        ({}, False),
        ({"etc/cloud/cloud.cfg": "manage_etc_hosts: true\n"}, True),
        ({USER: "#cloud-config\n\n---\nfqdn: gpu1\nmanage_etc_hosts: true\n"}, True),
        # data of the instance wins over files, so a file of ours would not help
        ({USER: "manage_etc_hosts: true\n",
          "etc/cloud/cloud.cfg.d/99-gpuboot.cfg": "manage_etc_hosts: false\n"}, True),
        ({USER: "manage_etc_hosts: false\n",
          "etc/cloud/cloud.cfg.d/99-maas.cfg": "manage_etc_hosts: true\n"}, False),
        ({"var/lib/cloud/instance/vendor-cloud-config.txt": "manage_etc_hosts: true\n"}, True),
        ({"etc/cloud/cloud.cfg": "manage_etc_hosts: false\n",
          "etc/cloud/cloud.cfg.d/90_dpkg_maas.cfg": "manage_etc_hosts: true\n"}, True),
        ({"etc/cloud/cloud.cfg.d/10-a.cfg": "manage_etc_hosts: true\n",
          "etc/cloud/cloud.cfg.d/20-b.cfg": "manage_etc_hosts: localhost\n"}, False),
        ({"etc/cloud/cloud.cfg": "manage_etc_hosts: template\n"}, True),
        ({"etc/cloud/cloud.cfg": "manage_etc_hosts: 'Yes'  # as ever\n"}, True),
        ({"etc/cloud/cloud.cfg": '{"ssh_pwauth": false, "manage_etc_hosts": true}\n'}, True),
        ({"etc/cloud/cloud.cfg": "# {manage_etc_hosts: true}\n#manage_etc_hosts: true\n"}, False),
        ({"etc/cloud/cloud.cfg": "x:\n  no_manage_etc_hosts: true\n"}, False),
        ({"etc/cloud/cloud.cfg": "manage_etc_hosts: true\n",
          "etc/cloud/cloud-init.disabled": ""}, False),
    ],
)  # fmt: skip
def test_cloud_init_makes_etc_hosts_of_its_template(
    machine: Machine, shell: list[str], files: dict[str, str], rewritten: bool
) -> None:
    machine.cloud_init()
    for path, text in files.items():
        machine.file(path, text)
    template = "/etc/cloud/templates/hosts.debian.tmpl"
    assert machine.state(shell).hosts_template == (template if rewritten else "")


def test_the_template_is_the_family_s_and_cloud_init_is_there(
    machine: Machine, shell: list[str]
) -> None:
    machine.file("etc/cloud/cloud.cfg", "manage_etc_hosts: true\n")
    assert machine.state(shell).hosts_template == ""  # its package is gone, its files are not
    machine.cloud_init("redhat")
    assert machine.state(shell).hosts_template == "/etc/cloud/templates/hosts.redhat.tmpl"
    (machine.root / "etc/cloud/templates/hosts.redhat.tmpl").unlink()
    assert machine.state(shell).hosts_template == ""  # cloud-init then writes nothing


@pytest.mark.parametrize(
    ("header", "is_named"),
    [
        ("# HEADER: This file was autogenerated by puppet.", True),
        ("# Ansible managed", True),
        ("# Managed by Chef, do not edit", True),
        ("# This file was automatically generated by WSL.", True),
        ("# Your system has configured 'manage_etc_hosts' as True.", False),  # cloud-init
        ("# The following lines are desirable for IPv6 capable hosts", False),
        ("10.0.0.9 puppet ansible", False),
    ],
)
def test_who_else_writes_etc_hosts(
    machine: Machine, shell: list[str], header: str, is_named: bool
) -> None:
    machine.file("etc/hosts", f"127.0.0.1 localhost\n{header}\n# gpuboot: end\n")
    assert machine.state(shell).hosts_owner == (header if is_named else "")


def test_sysctls_with_file_and_line(machine: Machine, shell: list[str]) -> None:
    machine.file("catalogue", CATALOGUE)
    machine.program(
        "systemd-analyze",
        f'[ "$*" = "--no-pager cat-config sysctl.d" ] && cat {machine.root}/catalogue',
    )
    machine.file("etc/ufw/ufw.conf", "ENABLED=yes\nLOGLEVEL=low\n")
    machine.file("etc/default/ufw", 'IPV6=yes\nIPT_SYSCTL="/etc/ufw/sysctl.conf"\n')
    text = "#net/ipv4/ip_forward=1\nnet/ipv4/conf/all/log_martians=0\nnet/ipv4/ip_forward=0\n"
    machine.file("etc/ufw/sysctl.conf", text)
    script_path = machine.root / "etc/default/ufw"
    script_path.write_text(f"IPT_SYSCTL={machine.root}/etc/ufw/sysctl.conf\n")
    rows = [(line.place, line.text) for line in machine.state(shell).sysctls]
    assert rows == [
        ("/usr/lib/sysctl.d/50-default.conf:2", "net.ipv4.ip_forward = 0"),
        ("/etc/sysctl.d/99 a.conf:1", "-net/ipv4/conf/*/forwarding=0"),
        ("/etc/ufw/sysctl.conf:3", "net/ipv4/ip_forward=0"),
    ]
    machine.file("etc/ufw/ufw.conf", "ENABLED=no\n")
    assert len(machine.state(shell).sysctls) == 2


@pytest.mark.parametrize(
    ("path", "text", "mode", "place"),
    [
        ("etc/rc.local", "#!/bin/sh\n# swapon\nswapon /swapfile\n", 0o755, "/etc/rc.local:3"),
        ("etc/rc.local", "swapon /swapfile\n", 0o644, ""),  # systemd runs it where it may be run
        ("etc/rc.local", "echo swaponly >/run/x\n", 0o755, ""),
        ("etc/crontab", "@reboot root /sbin/swapon -a\n", 0o644, "/etc/crontab:1"),
        ("etc/cron.d/my swap", "@reboot root swapon /s\n", 0o644, "/etc/cron.d/my swap:1"),
        ("var/spool/cron/crontabs/root", "@reboot swapon /s;true\n", 0o600,
         "/var/spool/cron/crontabs/root:1"),
        ("var/lib/cloud/scripts/per-boot/swap.sh", "mkswap /s && swapon /s\n", 0o755,
         "/var/lib/cloud/scripts/per-boot/swap.sh:1"),
        ("etc/waagent.conf", "ResourceDisk.Format=y\nResourceDisk.EnableSwap=y\n", 0o644,
         "/etc/waagent.conf:2"),
        ("etc/waagent.conf", "ResourceDisk.Format=n\nResourceDisk.EnableSwap=y\n", 0o644, ""),
    ],
)  # fmt: skip
def test_commands_that_turn_swap_on(
    machine: Machine, shell: list[str], path: str, text: str, mode: int, place: str
) -> None:
    machine.file(path, text, mode)
    assert [line.place for line in machine.state(shell).swap] == ([place] if place else [])


def test_a_service_of_somebody_s_own_that_turns_swap_on(machine: Machine, shell: list[str]) -> None:
    unit = "[Unit]\nDescription=swapon\n[Service]\nExecStart=/sbin/swapon \\\n  /swapfile\n"
    machine.file("etc/systemd/system/my-swap.service", unit)
    assert machine.state(shell).swap == ()  # not enabled
    machine.file("etc/systemd/system/multi-user.target.wants/my-swap.service", unit)
    [line] = machine.state(shell).swap
    assert line.place == "/etc/systemd/system/my-swap.service:4"


def test_lines_of_the_kubelet(machine: Machine, shell: list[str]) -> None:
    machine.file(
        "etc/default/kubelet",
        '# KUBELET_EXTRA_ARGS=--max-pods=1\nKUBELET_EXTRA_ARGS="--network-plugin=cni \\\n'
        '  --max-pods=250"\n',
    )
    machine.file(
        "etc/systemd/system/kubelet.service.d/20-cri-dockerd.conf",
        "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_EXTRA_ARGS\n",
    )
    assert [(line.place, line.text) for line in machine.state(shell).kubelet] == [
        ("/etc/default/kubelet:2", 'KUBELET_EXTRA_ARGS="--network-plugin=cni    --max-pods=250"'),
        ("/etc/systemd/system/kubelet.service.d/20-cri-dockerd.conf:2", "ExecStart="),
        ("/etc/systemd/system/kubelet.service.d/20-cri-dockerd.conf:3",
         "ExecStart=/usr/bin/kubelet $KUBELET_EXTRA_ARGS"),
    ]  # fmt: skip


def test_settings_of_containerd_s_drop_ins(machine: Machine, shell: list[str]) -> None:
    text = "version = 3\n[plugins.'io.x'.runc.options] # ours\n  SystemdCgroup = false # no\n#b=1\n"
    for name in ("50-a", "99-nvidia", "gpuboot-registries"):
        machine.file(f"etc/containerd/conf.d/{name}.toml", text)
    assert [(item.place, item.text) for item in machine.state(shell).containerd_settings] == [
        ("/etc/containerd/conf.d/50-a.toml:1", "version = 3"),
        ("/etc/containerd/conf.d/50-a.toml:3", "plugins.io.x.runc.options.SystemdCgroup = false"),
    ]


def test_name_servers_and_who_writes_them(machine: Machine, shell: list[str]) -> None:
    machine.file("etc/resolv.conf", "# nameserver 1.1.1.1\nsearch a\nnameserver 127.0.0.53\n")
    machine.file("run/systemd/resolve/resolv.conf", "nameserver 10.0.0.2\nnameserver fd00::2\n")
    machine.file("run/dnsmasq/resolv.conf", "")
    machine.program("systemctl", '[ "$*" = "-q is-active systemd-resolved" ]')
    state = machine.state(shell)
    assert state.resolvers == {
        "/etc/resolv.conf": ("127.0.0.53",),
        "/run/systemd/resolve/resolv.conf": ("10.0.0.2", "fd00::2"),
        "/run/dnsmasq/resolv.conf": (),
    }
    assert state.units == {"systemd-resolved"}


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_kubelet_whose_file_of_name_servers_is_gone(
    machine: Machine, shell: list[str], quote: str
) -> None:
    file = f"{machine.root}/run/systemd/resolve/resolv.conf"
    text = (
        f"kind: KubeletConfiguration\nresolvConf: {quote}{file}{quote}\nrotateCertificates: true\n"
    )
    machine.file("var/lib/kubelet/config.yaml", text)
    assert machine.state(shell).resolver_missing == "/run/systemd/resolve/resolv.conf"
    machine.file("run/systemd/resolve/resolv.conf", "nameserver 10.0.0.2\n")
    assert machine.state(shell).resolver_missing == ""


@pytest.mark.parametrize(
    ("config", "reboots"),
    [
        ('Unattended-Upgrade::Automatic-Reboot "true";\nAPT::Periodic::Unattended-Upgrade "1";', 1),
        ('Unattended-Upgrade::Automatic-Reboot "1";\nAPT::Periodic::Unattended-Upgrade "always";',
         1),
        ('Unattended-Upgrade::Automatic-Reboot "true";\nAPT::Periodic::Unattended-Upgrade "0";', 0),
        ('Unattended-Upgrade::Automatic-Reboot "true";', 0),
        ('Unattended-Upgrade::Automatic-Reboot "false";\nAPT::Periodic::Unattended-Upgrade "1";',
         0),
        ('Unattended-Upgrade::Automatic-Reboot-Time "02:00";\n'
         'APT::Periodic::Unattended-Upgrade "1";', 0),
    ],
)  # fmt: skip
def test_who_reboots_the_host(
    machine: Machine, shell: list[str], config: str, reboots: int
) -> None:
    machine.program("apt-config", f"[ \"$*\" = dump ] && cat <<'END'\n{config}\nEND")
    assert machine.state(shell).reboots_by == ()  # no unattended-upgrades
    machine.file("usr/bin/unattended-upgrade", "")
    assert machine.state(shell).reboots_by == ("unattended-upgrades",) * reboots


def test_dnf_reboots_the_host(machine: Machine, shell: list[str]) -> None:
    machine.program("systemctl", '[ "$*" = "-q is-enabled dnf-automatic.timer" ]')
    machine.file("etc/dnf/automatic.conf", "[commands]\nreboot = never\n")
    assert machine.state(shell).reboots_by == ()
    machine.file("etc/dnf/automatic.conf", "[commands]\nreboot = when-needed\n")
    assert machine.state(shell).reboots_by == ("dnf-automatic",)
