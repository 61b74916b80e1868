"""The lab as a site: its settings, and its hosts for pyinfra.

A site without internet whose downloads come from one mirror; an upstream lab has from its mirror
what is simulated, and all else from the publishers. Only what differs from a real site stands
here: where things come from, the versions the mirror serves, and what a machine inside
systemd-nspawn cannot do.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from lab.alert_receivers import endpoints as alerts
from lab.mirror.name_server import in_dns
from lab.state import MIRROR_NAME, state_dir

CA_ON_MACHINES = "/usr/local/share/ca-certificates/gpuboot-lab.crt"
REPOSITORIES = {
    "docker": "docker/linux",
    "kubernetes": "kubernetes",
    "cuda": "cuda",
    "toolkit": "libnvidia-container",
}
SETTINGS_VARIABLE = "GPUBOOT_LAB_SETTINGS"

Hosts = list[tuple[str, dict[str, Any]]]


def home(name: str) -> Path:
    """The folder of the lab called `name`."""
    return state_dir() / "labs" / name


def hosts(name: str, role: str) -> Hosts:
    """The lab's machines of one role (`control_plane` or `worker`), as pyinfra takes hosts."""
    lab = json.loads((home(name) / "lab.json").read_text())
    return [
        (
            machine["name"],
            {
                "ssh_hostname": machine["address"],
                "ssh_user": "root",
                "ssh_key": lab["ssh_key"],
                "ssh_known_hosts_file": str(home(name) / "ssh" / "known_hosts"),
                "address": machine["address"],
                "gpus": machine["gpus"],
                "_sudo": False,  # the lab's machines are reached as root
            },
        )
        for machine in lab["machines"]
        if machine["role"] == role
    ]


def settings(name: str) -> dict[str, Any]:
    """gpuboot's settings for the lab called `name`.

    $GPUBOOT_LAB_SETTINGS, a JSON object of sections, overrides them: tests change one setting at a
    time this way, and a previous release is deployed.
    """
    lab = json.loads((home(name) / "lab.json").read_text())
    lock = _lock(name)
    return _with_overrides(
        {
            "cluster": _cluster(name),
            "runtime": {"restrict_oom_score_adj": True},
            "monitoring": {
                "scrape_interval": "10s",
                # no registry that the lab builds from has its image
                "grafana": lab.get("upstream", False),
                # folders on the machines: sizes are not enforced there, they set what is kept
                "storage": {"prometheus_size": "2Gi", "alertmanager_size": "128Mi"},
            },
            "alertmanager": alerts.settings(home(name), lab["mirror"]["address"]),
            "exporter": {"scrape_interval": "4s"},
            "cost": {"gpu_hour": {"*": 2.5}},  # made up; it brings the dashboards' costs
            "verify": {
                # it stands in /etc/hosts as well, where by default DNS is not asked for it
                **({"outside_name": MIRROR_NAME} if in_dns(home(name)) else {}),
            },
            "preflight": {"min_disk_mib": 5000},
            "versions": lock["versions"],
            "mirrors": _mirrors(lab["mirror"]["url"], lock),
        }
    )


def _cluster(name: str) -> dict[str, Any]:
    cgroup_v1 = not Path("/sys/fs/cgroup/cgroup.controllers").exists()
    return {
        "name": f"gpuboot-{name}",
        "fail_swap_on": False,  # the host's swap is not the machine's to turn off
        "conntrack_max_per_core": 0,
        # Percentages, the kubelet's default, are of the host's disk, which is not the lab's.
        "kubelet": {
            "failCgroupV1": not cgroup_v1,
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1Gi",
                "imagefs.available": "1Gi",
            },
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
        },
        "ignore_preflight_errors": ["SystemVerification"] if cgroup_v1 else [],
    }


def _lock(name: str) -> dict[str, Any]:
    """Versions and digests of what the lab's mirror has, from `lab.mirror.lock`."""
    lock: dict[str, Any] = json.loads((home(name) / "mirror" / "lab.lock.json").read_text())
    return lock


def previous_release(name: str, which: str = "previous") -> str:
    """$GPUBOOT_LAB_SETTINGS for a run that deploys the releases before to the lab `name`.

    + which: `previous`, or `previous_patch` for Kubernetes' patch release before alone
    """
    return json.dumps(_with_overrides(_lock(name)[which]))


def _with_overrides(base: dict[str, Any]) -> dict[str, Any]:
    overrides = json.loads(os.environ.get(SETTINGS_VARIABLE, "{}"))
    sections = {name: value for name, value in overrides.items() if isinstance(value, dict)}
    merged = {name: {**base.get(name, {}), **value} for name, value in sections.items()}
    return {**base, **overrides, **merged}  # a setting of its own, such as dcgm, is no section


def _mirrors(url: str, lock: dict[str, Any]) -> dict[str, Any]:
    """Where what the mirror has comes from; all else comes from its publishers."""
    repositories = {chart["repository"] for chart in lock["versions"]["charts"].values()}
    helm = {"helm": f"{url}/helm"} if "helm" in lock["versions"] else {}
    return {
        "apt": {
            name: {"url": f"{url}/apt/{path}", "key_sha256": lock["keys"][name]}
            for name, path in REPOSITORIES.items()
            if name in lock["keys"]
        },
        "images": {registry: f"{url}/v2/{registry}" for registry in lock["registries"]},
        "charts": {name: f"{url}/charts/{name}" for name in sorted(repositories)},
        **helm,
        "ca_bundle": CA_ON_MACHINES,
    }
