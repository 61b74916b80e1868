"""Settings of the lab: a site without internet whose downloads come from one mirror.

Only what differs from a real site stands here: where things come from, the versions the mirror
serves, and what a machine inside systemd-nspawn cannot do.
"""

import json
import os
from pathlib import Path

_name = os.environ.get("GPUBOOT_LAB", "lab")
_home = Path(os.environ.get("GPUBOOT_STATE", "/var/lib/gpuboot")) / "labs" / _name
_lab = json.loads((_home / "lab.json").read_text())
_url = _lab["mirror"]["url"]
_lock = json.loads((_home / "mirror" / "lab.lock.json").read_text())
_cgroup_v1 = not Path("/sys/fs/cgroup/cgroup.controllers").exists()

_sudo = False  # the lab's machines are reached as root

gpuboot = {
    "cluster": {
        "name": f"gpuboot-{_name}",
        "fail_cgroup_v1": not _cgroup_v1,
        "fail_swap_on": False,  # the host's swap is not the machine's to turn off
        "conntrack_max_per_core": 0,
        "ignore_preflight_errors": ["SystemVerification"] if _cgroup_v1 else [],
    },
    "runtime": {"restrict_oom_score_adj": True},
    "monitoring": {"scrape_interval": "10s", "grafana": False},
    "exporter": {"interval_ms": 2000, "scrape_interval": "5s", "scrape_timeout": "4s"},
    "verify": {"max_sample_age_s": 60},
    "preflight": {"min_disk_mib": 5000},
    "versions": _lock["versions"],
    "mirrors": {
        "apt": {
            "docker": {"url": f"{_url}/apt/docker/linux", "key_sha256": _lock["keys"]["docker"]},
            "kubernetes": {
                "url": f"{_url}/apt/kubernetes",
                "key_sha256": _lock["keys"]["kubernetes"],
            },
            "cuda": {"url": f"{_url}/apt/cuda", "key_sha256": _lock["keys"]["cuda"]},
            "toolkit": {
                "url": f"{_url}/apt/libnvidia-container",
                "key_sha256": _lock["keys"]["toolkit"],
            },
        },
        "images": {registry: f"{_url}/v2/{registry}" for registry in _lock["registries"]},
        "charts": {
            repository: f"{_url}/charts/{repository}"
            for repository in ("nvidia", "prometheus-community", "dcgm-exporter")
        },
        "helm": f"{_url}/helm",
        "ca_bundle": "/usr/local/share/ca-certificates/gpuboot-lab.crt",
    },
}
# What a caller lays over it, as JSON: the fault tests change one setting at a time this way.
for _section, _values in json.loads(os.environ.get("GPUBOOT_LAB_SETTINGS", "{}")).items():
    gpuboot[_section] = {**gpuboot.get(_section, {}), **_values}
