"""Machines of the lab: root file systems, boot, power, SSH.

A machine is a systemd-nspawn container with an init, a network address and an SSH server of its
own. As in a data centre without internet, it is delivered with the site's CA certificate and the
site's mirror as its only apt source.
"""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import processes, publishers
from lab.build.base import USERS
from lab.build.progress import Progress
from lab.gpusim.pci_devices import install_pci_devices
from lab.host import NSPAWN_DIR, run
from lab.state import MIRROR_NAME, MIRROR_URL, Lab, LabError, Machine

SSH_WAIT_S = 90
# Modules without parameters are not in /sys/module when they are built in: the kernel's
# configuration names them. These are the ones that container hosts load.
_MODULE_OPTIONS = {
    "CONFIG_BRIDGE": "bridge",
    "CONFIG_BRIDGE_NETFILTER": "br_netfilter",
    "CONFIG_FUSE_FS": "fuse",
    "CONFIG_IP_VS": "ip_vs",
    "CONFIG_NF_CONNTRACK": "nf_conntrack",
    "CONFIG_NF_TABLES": "nf_tables",
    "CONFIG_OVERLAY_FS": "overlay",
    "CONFIG_TUN": "tun",
    "CONFIG_VETH": "veth",
    "CONFIG_VXLAN": "vxlan",
}
_DEBIAN_KEY = "etc/apt/keyrings/gpuboot-lab-debian.asc"


def ensure_ssh_key(lab: Lab) -> None:
    """Make the lab's SSH key pair when it has none."""
    lab.ssh_key.parent.mkdir(parents=True, exist_ok=True)
    if not lab.ssh_key.with_suffix(".pub").exists():  # it is written after the private key
        lab.ssh_key.unlink(missing_ok=True)
        comment = f"gpuboot-{lab.name}"
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment]
        run([*command, "-f", str(lab.ssh_key)])


def create(lab: Lab, machine: Machine, base: Path, debian_key: bytes) -> None:
    """Make the machine's root file system from `base`, unless it has one.

    `debian_key`: the public key that signs the mirror's Debian packages.
    """
    root = lab.root(machine)
    if root.exists():
        return
    part = root.with_name("root.part")
    if part.exists():
        shutil.rmtree(part)
    part.parent.mkdir(parents=True, exist_ok=True)
    run(["cp", "-a", "--reflink=auto", str(base), str(part)])
    identify(lab, machine, part)
    _ssh(lab, part)
    _trust(lab, part, debian_key)
    _kernel_modules(part)
    install_pci_devices(part, machine.gpus, lab.seed(machine))
    part.rename(root)


def _write(root: Path, name: str, content: str | bytes, mode: int = 0o644) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def identify(lab: Lab, machine: Machine, root: Path) -> None:
    """Give a root file system the machine's names and address."""
    hosts = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    hosts += [f"{lab.host_address} {MIRROR_NAME}"]
    hosts += [f"{neighbour.address} {neighbour.name}" for neighbour in lab.machines]
    network = (NSPAWN_DIR / "10-host0.network").read_text()
    network = network.format(address=machine.address, gateway=lab.host_address)
    _write(root, "etc/hostname", f"{machine.name}\n")
    _write(root, "etc/machine-id", f"{uuid.uuid4().hex}\n")
    _write(root, "etc/hosts", "\n".join(hosts) + "\n")
    _write(root, "etc/systemd/network/10-host0.network", network)
    # The lab's name server is on the host (lab/mirror/name_server.py): CoreDNS needs an upstream.
    servers = publishers.name_servers() if lab.upstream else [lab.host_address]
    _write(root, "etc/resolv.conf", "".join(f"nameserver {server}\n" for server in servers))


def _ssh(lab: Lab, root: Path) -> None:
    host_key = root / "etc/ssh/ssh_host_ed25519_key"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(host_key)])
    public = lab.ssh_key.with_suffix(".pub").read_text()
    for user in ("root", *USERS):
        home = "root" if user == "root" else f"home/{user}"
        _write(root, f"{home}/.ssh/authorized_keys", public, 0o600)
        owner = (root / home).stat()
        for path in (root / home / ".ssh", root / home / ".ssh/authorized_keys"):
            os.chown(path, owner.st_uid, owner.st_gid)
        (root / home / ".ssh").chmod(0o700)


def write_known_hosts(lab: Lab) -> None:
    """Write the host keys of the lab's machines to its known_hosts file."""
    lines = []
    for machine in lab.machines:
        public = lab.root(machine) / "etc/ssh/ssh_host_ed25519_key.pub"
        if public.exists():
            key = " ".join(public.read_text().split()[:2])
            lines.append(f"{machine.address},{machine.name} {key}\n")
    part = lab.known_hosts.with_suffix(".part")
    part.write_text("".join(lines))
    part.replace(lab.known_hosts)


def _trust(lab: Lab, root: Path, debian_key: bytes) -> None:
    _write(root, "usr/local/share/ca-certificates/gpuboot-lab.crt", lab.ca.read_bytes())
    run(["chroot", str(root), "update-ca-certificates"])
    if lab.upstream:
        source = publishers.debian_sources(lab.debian)
    else:
        _write(root, _DEBIAN_KEY, debian_key)
        source = f"""Types: deb
URIs: {MIRROR_URL}/apt/debian
Suites: {lab.debian.codename}
Components: main
Signed-By: /{_DEBIAN_KEY}
"""
        # apt asks for SRV records. The kernel says only so often that nobody answers at the host,
        # and who is not told waits for 5 s.
        _write(root, "etc/apt/apt.conf.d/99lab", 'Acquire::EnableSrvRecords "false";\n')
    _write(root, "etc/apt/sources.list.d/debian.sources", source)


def _kernel_modules(root: Path) -> None:
    """Describe the host's kernel in /lib/modules, as a kernel package would.

    The modules themselves stay the host's (bound read-only at boot where there are any); what the
    kernel has built in is listed, so that modprobe answers as it does on a server.
    """
    release = os.uname().release
    folder = root / "usr/lib/modules" / release
    folder.mkdir(parents=True, exist_ok=True)
    host = Path("/lib/modules") / release
    if host.is_dir():
        for path in host.glob("modules.*"):
            shutil.copyfile(path, folder / path.name)
        (folder / "kernel").mkdir(exist_ok=True)
        return
    names = "".join(f"kernel/{name}.ko\n" for name in sorted(built_in_modules()))
    for name, content in {"modules.order": "", "modules.builtin": names}.items():
        _write(folder, name, content)
    # its description of them is what depmod takes the index from
    info = "".join(
        f"{name}.license=GPL\0{name}.file=kernel/{name}\0" for name in sorted(built_in_modules())
    )
    _write(folder, "modules.builtin.modinfo", info)
    run(["chroot", str(root), "depmod", release])


def built_in_modules() -> set[str]:
    """Modules that the running kernel has built in, as far as /sys and /proc say."""
    modules = {path.name for path in Path("/sys/module").iterdir()}
    config = Path("/proc/config.gz")
    if config.exists():
        options = gzip.decompress(config.read_bytes()).decode().split("\n")
        modules |= {name for option, name in _MODULE_OPTIONS.items() if f"{option}=y" in options}
    return modules


def command(lab: Lab, machine: Machine) -> list[str]:
    """The systemd-nspawn command that boots the machine."""
    binds = ["--bind=/dev/kmsg"]
    if Path("/dev/fuse").exists():
        binds.append("--bind=/dev/fuse")
    modules = Path("/lib/modules") / os.uname().release / "kernel"
    if modules.is_dir():
        binds.append(f"--bind-ro={modules}")
    return [
        "systemd-nspawn",
        "--boot",
        "--quiet",
        f"--directory={lab.root(machine)}",
        f"--machine={lab.unit(machine.name)}",
        f"--hostname={machine.name}",
        "--settings=no",
        "--register=no",
        "--keep-unit",
        "--link-journal=no",
        "--resolv-conf=off",
        "--timezone=off",
        f"--network-bridge={lab.bridge}",
        "--private-users=no",
        "--capability=all",
        "--drop-capability=CAP_SYS_TIME",  # the clock is the host's, not the machine's to set
        "--system-call-filter=add_key keyctl bpf @keyring @module",
        *binds,
        # for its systemd: from 256 on it asks whether the host's cgroup v1 is really meant
        "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1",
    ]


def power_on(lab: Lab, machine: Machine) -> None:
    """Boot the machine, unless it runs."""
    unit, folder = lab.unit(machine.name), lab.machine_dir(machine)
    if processes.is_running(unit, folder):
        return
    processes.kill(unit, folder)  # what a supervisor that died left behind
    processes.start(unit, folder, command(lab, machine))


def power_off(lab: Lab, machine: Machine) -> None:
    """Cut the machine's power, and remove what it left on the host.

    First it is silent, as a machine without power is: while its processes end, its kernel would
    close their connections, and refuse new ones.
    """
    unit = lab.unit(machine.name)
    device = Path(f"/sys/class/net/vb-{unit}")
    if device.exists():
        run(["ip", "link", "set", device.name, "down"])
    processes.kill(unit, lab.machine_dir(machine))
    # The kernel takes the network device away soon after the last process, but not at once.
    for _ in range(50):
        if not device.exists():
            return
        time.sleep(0.1)
    run(["ip", "link", "delete", device.name])


def is_running(lab: Lab, machine: Machine) -> bool:
    return processes.is_running(lab.unit(machine.name), lab.machine_dir(machine))


def wait_for_ssh(lab: Lab, machine: Machine, progress: Progress) -> None:
    """Wait until the machine answers on SSH. Raises `LabError` with its last console lines."""
    started = time.monotonic()
    while time.monotonic() - started < SSH_WAIT_S:
        if not is_running(lab, machine):
            break
        if ssh_answers(machine.address):
            progress(f"{machine.name}: answers after {time.monotonic() - started:.1f} s")
            return
        time.sleep(0.2)
    console = lab.machine_dir(machine) / "console.log"
    tail = "\n".join(console.read_text(errors="replace").splitlines()[-12:])
    raise LabError(f"{machine.name} does not answer on SSH; end of {console}:\n{tail}")


def ssh_answers(address: str) -> bool:
    """Whether an SSH server answers at the address."""
    try:
        with socket.create_connection((address, 22), timeout=2) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def ssh_command(lab: Lab, machine: Machine, user: str = "root") -> list[str]:
    """The ssh command for the machine, without what to run there."""
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": "5",
        "IdentitiesOnly": "yes",
        "IdentityFile": str(lab.ssh_key),
        "UserKnownHostsFile": str(lab.known_hosts),
        "GlobalKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
    }
    flags = [flag for key, value in options.items() for flag in ("-o", f"{key}={value}")]
    return ["ssh", "-F", "/dev/null", *flags, f"{user}@{machine.address}"]


def ssh(lab: Lab, machine: Machine, script: str, check: bool = True) -> str:
    """Run a shell script on the machine as root; return what it printed.

    Raises `LabError` when it fails, unless `check` is false.
    """
    full = [*ssh_command(lab, machine), script]
    result = subprocess.run(full, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if check and result.returncode != 0:
        raise LabError(f"{machine.name}: {script[:80]}: {result.stderr.strip() or result.stdout}")
    return result.stdout


def for_each(lab: Lab, action: Callable[[Machine], None]) -> None:
    """Do `action` for all machines side by side; the first error, if any, is raised at the end."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(action, lab.machines))
