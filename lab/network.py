"""The host's side of a lab: bridge, firewall table, kernel settings. `down` undoes all of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from lab.alert_receivers import endpoints
from lab.host import run, write_atomically
from lab.state import Lab, labs, state_dir

_SUBTREE_CONTROL = Path("/sys/fs/cgroup/cgroup.subtree_control")
# Settings that are not per namespace and that the kubelet, systemd-sysctl or the product change
# inside a machine. Their values are kept before the first lab and put back after the last.
_SYSCTLS = (
    "fs/aio-max-nr",
    "fs/file-max",
    "fs/inotify/max_queued_events",
    "fs/inotify/max_user_instances",
    "fs/inotify/max_user_watches",
    "fs/nr_open",
    "fs/protected_fifos",
    "fs/protected_hardlinks",
    "fs/protected_regular",
    "fs/protected_symlinks",
    "fs/suid_dumpable",
    "kernel/core_pattern",
    "kernel/core_uses_pid",
    "kernel/dmesg_restrict",
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/kptr_restrict",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/pid_max",
    "kernel/printk",
    "kernel/sysrq",
    "kernel/threads-max",
    "kernel/unprivileged_bpf_disabled",
    "vm/max_map_count",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "vm/swappiness",
)


def up(lab: Lab) -> None:
    """Make the lab's bridge and firewall table, and keep the host's kernel settings."""
    _keep_settings()
    if not is_up(lab):
        run(["ip", "link", "add", lab.bridge, "type", "bridge"])
    addresses = run(["ip", "-4", "-o", "address", "show", "dev", lab.bridge])
    if lab.host_address not in addresses:
        run(["ip", "address", "add", f"{lab.host_address}/24", "dev", lab.bridge])
    run(["ip", "link", "set", lab.bridge, "up"])
    run(["nft", "-f", "-"], stdin=_table(lab))
    if _docker_user("-C", lab) == 1:
        _docker_user("-I", lab)


def is_up(lab: Lab) -> bool:
    """Whether the lab's bridge exists."""
    return Path(f"/sys/class/net/{lab.bridge}").exists()


def down(lab: Lab) -> None:
    """Remove the lab's bridge and firewall table; with the last lab, restore kernel settings."""
    if _docker_user("-C", lab) == 0:
        _docker_user("-D", lab)
    # "add" first: deleting a table that is not there is an error
    run(["nft", "-f", "-"], stdin=f"add table inet {_name(lab)}\ndelete table inet {_name(lab)}\n")
    if is_up(lab):
        run(["ip", "link", "delete", lab.bridge])
    if not any(running_lab != lab and is_up(running_lab) for running_lab in labs()):
        restore_settings()


# the host's ports that the lab's machines may reach: the mirror, and the alert receivers
_SERVICES = (443, endpoints.HTTPS_PORT, endpoints.SMTP_PORT)
_NAMES = 53  # the mirror's name server


def _name(lab: Lab) -> str:
    return f"gpuboot_{lab.index}"


# the forward chain's first rule, and a chain for addresses
_CLOSED = ('iifname "{bridge}" oifname != "{bridge}" reject', "")
_OPEN = (
    'iifname != "{bridge}" oifname "{bridge}" ct state established,related accept',
    """
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {subnet} oifname != "{bridge}" masquerade
  }}""",
)


def _table(lab: Lab) -> str:
    """The firewall: no machine gets out through the host, nor to it but for services and ping.

    Rejected, not dropped, so that a name look-up or a wrong address fails at once. Those of an
    upstream lab do get out, by NAT; nothing outside reaches them.
    """
    name, bridge = _name(lab), lab.bridge
    ports = ", ".join(map(str, _SERVICES))
    forward, nat = _OPEN if lab.upstream else _CLOSED
    forward = forward.format(bridge=bridge)
    nat = nat.format(bridge=bridge, subnet=lab.subnet)
    return f"""
add table inet {name}
delete table inet {name}
table inet {name} {{
  chain forward {{
    type filter hook forward priority filter - 10; policy accept;
    {forward}
    iifname != "{bridge}" oifname "{bridge}" reject
  }}{nat}
  chain input {{
    type filter hook input priority filter - 10; policy accept;
    iifname != "{bridge}" accept
    ct state established,related accept
    ip daddr {lab.host_address} tcp dport {{ {ports} }} accept
    ip daddr {lab.host_address} udp dport {_NAMES} accept
    ip protocol icmp accept
    icmpv6 type {{ nd-neighbor-solicit, nd-neighbor-advert, mld-listener-query }} accept
    reject
  }}
}}
"""


def _docker_user(action: str, lab: Lab) -> int | None:
    """Add or delete rules in Docker's user chain, since Docker drops what our bridge forwards.

    Returns iptables' exit status; None where there is no such chain.
    """
    if shutil.which("iptables") is None:
        return None
    result = subprocess.run(["iptables", "-n", "-L", "DOCKER-USER"], capture_output=True)
    if result.returncode != 0:
        return None
    inside = [["-i", lab.bridge, "-o", lab.bridge]]
    rules = [["-i", lab.bridge], ["-o", lab.bridge]] if lab.upstream else inside
    codes = [
        subprocess.run(
            ["iptables", action, "DOCKER-USER", *rule, "-j", "ACCEPT"], capture_output=True
        ).returncode
        for rule in rules
    ]
    return max(codes)


def _settings_path() -> Path:
    return state_dir() / "host-settings.json"


def _keep_settings() -> None:
    if _settings_path().exists():
        return
    values = {}
    for key in _SYSCTLS:
        path = Path("/proc/sys") / key
        if path.exists():
            values[key] = path.read_text().strip()
    _settings_path().parent.mkdir(parents=True, exist_ok=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    settings = {"boot_id": boot, "values": values, "controllers": _controllers()}
    write_atomically(_settings_path(), (json.dumps(settings, indent=2) + "\n").encode())


def restore_settings() -> None:
    """Put back the kernel settings that machines changed, and forget them."""
    if not _settings_path().exists():
        return
    settings = json.loads(_settings_path().read_text())
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    if settings["boot_id"] == boot:  # after a reboot of the host there is nothing to put back
        for key, value in settings["values"].items():
            path = Path("/proc/sys") / key
            if path.read_text().strip() != value:
                path.write_text(value)
        # lab/nspawn/supervise.sh passes controllers on to the labs' cgroups
        for controller in set(_controllers()) - set(settings["controllers"]):
            _SUBTREE_CONTROL.write_text(f"-{controller}")
    _settings_path().unlink()


def _controllers() -> list[str]:
    """Controllers that the root of a cgroup v2 hierarchy passes on."""
    return _SUBTREE_CONTROL.read_text().split() if _SUBTREE_CONTROL.exists() else []
