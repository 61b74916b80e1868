"""Three bare Ubuntu servers that do not exist: one control plane, one of 8 GPUs, one without.

$PLAN_BREAKAGE, a JSON object of inventory name -> lines of the compound fact, spoils hosts.
Each of the other facts answers as on a bare host. The shell of gpu1 greets everybody.
"""

import json
import os
from typing import Any

from tests import batches  # noqa: F401
from tests.noise import framed_lines, noisy

# $PLAN_REHEARSED: what apt's rehearsal prints on each host that lacks packages
REHEARSED = {
    "Rehearses an installation by apt": json.loads(os.environ.get("PLAN_REHEARSED", '["end\\tok"]'))
}
_FACT = "Reads everything gpuboot wants to know about a host"
_OTHER_ANSWERS = {
    "How far kubeadm got on this host": ["kubeconfig\tabsent", "end\tok"],
    "What an API server answers to each path": ["error\tthere is no cluster yet", "end\tok"],
    "dockerd's configuration as it is": ["absent\tdocker-ce", "end\tok"],
    "A compose project on this host": ["absent\tdocker", "end\tok"],
    **REHEARSED,
}
_BREAKAGE = json.loads(os.environ.get("PLAN_BREAKAGE", "{}"))
_SETTINGS = json.loads(os.environ.get("PLAN_SETTINGS", "{}"))
# of charts that the lock has no digest of; else a run would write them into locks/ here
_DIGESTS = {
    "charts": {name: {"sha256": "a" * 64} for name in ("kube-prometheus-stack", "dcgm-exporter")}
}

_BARE = """\
uid 0
arch x86_64
kernel 6.8.0-90-generic
os_id ubuntu
os_version 24.04
os_codename noble
os_name Ubuntu 24.04.3 LTS
headers available
kernel_feature overlay
kernel_feature br_netfilter
cgroup 2
memory_kib 65536000
cpus 32
folder /var/lib/containerd 600000000 512000000 0 0 ext4 rw /
ntp yes
port 22 sshd""".splitlines()


def _host(number: int, name: str, gpus: int) -> tuple[str, dict[str, Any]]:
    address = f"192.0.2.{number}"
    breakage = _BREAKAGE.get(name, [])
    broken = {line.split()[0] for line in breakage}
    lines = [
        *(line for line in _BARE if line.split()[0] not in broken),
        f"hostname {name}",
        f"machine_id machine-{number}",
        f"boot_id boot-{number}",
        f"address eth0 {address}/24",
        f"default_source {address}",
        "route 192.0.2.0/24 eth0",
        *(f"pci 0000:{slot:02x}:00.0 0x2330 0x030200" for slot in range(16, 16 + gpus)),
        *breakage,
    ]
    answer = [*(line.replace(" ", "\t", 1) for line in lines), "clock\t0"]
    frame = noisy if name == "gpu1" else framed_lines
    return f"@fake/{name}", {
        "node_name": name,
        "address": address,
        "gpus": gpus,
        "fake_delay": 0,
        "fake_delay_jitter": 0,
        "fake_responses": {
            "uname -s": "Linux",
            **{
                part: frame(output_lines)
                for part, output_lines in {_FACT: answer, **_OTHER_ANSWERS}.items()
            },
        },
    }


_data = {
    "gpuboot": {
        "preflight": {"max_clock_skew_s": 1e12},
        **_SETTINGS,
        "versions": {**_DIGESTS, **_SETTINGS.get("versions", {})},
    }
}

control_plane = ([_host(11, "cp1", 0)], _data)
workers = ([_host(21, "gpu1", 8), _host(31, "cpu1", 0)], _data)
