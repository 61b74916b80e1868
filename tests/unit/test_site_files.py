"""The files that `gpuboot init` writes: what a person would have written, and what a run takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config.problems import Problem
from gpuboot.config.ssh_targets import Target, parse
from gpuboot.hosts.reading import HostReading, Reading, from_json
from gpuboot.site import site_check, site_screen
from gpuboot.site.draft import Choices, Site, inventory_names, name_problems, site
from gpuboot.site.site_files import group_data_text, inventory_text, reading_inventory
from tests.unit.site_hosts import V100, reading

HOSTS = {
    "cp1.example.com": reading(11, "cp1.example.com"),
    "gpu1.example.com": reading(21, "gpu1.example.com", 8),
    "cpu1.example.com": reading(31, "cpu1.example.com"),
}
INVENTORY = '''\
"""The site prod, first written by `gpuboot init` from what its hosts said; edit it as you like.

    gpuboot check inventories/prod.py                    # every problem of its hosts
    pyinfra inventories/prod.py deploys/site.py --dry    # the plan; changes nothing
    pyinfra inventories/prod.py deploys/site.py

How to log in and the settings stand in group_data/prod.py; all settings are in docs/settings.md.
"""

# The control plane: one node, or an odd number of them.
# `address` is the node's IP address in the cluster.
control_plane = [
    # no GPU; Ubuntu 24.04.3 LTS, x86_64, 32 CPUs, 64 GiB
    ("cp1.example.com", {"node_name": "cp1", "address": "192.0.2.11"}),
]

# Every other node. `gpus` is a promise: a node that shows fewer fails before anything is changed,
# and the verification proves exactly this number, GPU by GPU. Nodes without GPUs have none.
workers = [
    # 8 x H100 SXM5 80GB; Ubuntu 24.04.3 LTS, x86_64, 32 CPUs, 64 GiB
    ("gpu1.example.com", {"node_name": "gpu1", "address": "192.0.2.21", "gpus": 8}),
    # no GPU; Ubuntu 24.04.3 LTS, x86_64, 32 CPUs, 64 GiB
    ("cpu1.example.com", {"node_name": "cpu1", "address": "192.0.2.31"}),
]
'''
GROUP_DATA = '''\
"""Settings of the site prod: how to log in, and what differs from the defaults."""

ssh_user = "ubuntu"  # a user that may sudo without a password
ssh_strict_host_key_checking = "yes"  # host keys come from your known_hosts, not from the wire

gpuboot = {
    "cluster": {"name": "prod"},
}
'''


def build_site(
    hosts: Mapping[str, HostReading] = HOSTS, user: str = "ubuntu", **choices: Any
) -> Site:
    """The site that these hosts make; their names are how they were given."""
    targets = [parse(text, user) for text in hosts]
    by_name = dict(zip(inventory_names(targets), hosts.values(), strict=True))
    return site(targets, by_name, Choices(**{"name": "prod", **choices}))


def findings(built_site: Site) -> tuple[list[Problem], list[Problem]]:
    return site_check.problems(built_site, inventory_text(built_site), group_data_text(built_site))


def groups(built_site: Site) -> dict[str, Any]:
    return site_check.parse_assignments("inventory", inventory_text(built_site))


def test_the_files_of_a_cluster() -> None:
    built_site = build_site()
    assert inventory_text(built_site) == INVENTORY
    assert group_data_text(built_site) == GROUP_DATA
    assert findings(built_site) == ([], [])


LONG = "a-rather-long-host-name-for-a-gpu-server-in-some-data-centre.eu-central-7.example.com"
SITES = {
    "cluster": build_site(),
    "root everywhere": build_site({"cp1": reading(1, "cp1", root_login=True)}, user="root"),
    "one key for all": build_site(ssh_key="~/.ssh/gpu site", ssh_config="~/gpu/ssh_config"),
    "users of their own": build_site({"root@cp1": reading(1, "cp1", root_login=True),
                                "admin@gpu1": reading(2, "gpu1", 2)}),
    "ports of their own": build_site({"me@192.0.2.9:2201": reading(1, "cp1"),
                                "me@192.0.2.9:2202": reading(2, "gpu1", 2)}),
    "several in control": build_site({name: reading(i, name) for i, name in enumerate("abc")},
                               first=("a", "b", "c"), endpoint="lb.example.com:6443"),
    "long names": build_site({f"somebody-else@{LONG}:2222": reading(1, LONG, 8),
                        "cp1": reading(2, "cp1")}, first=("cp1",)),
    "IPv6": build_site({"[2001:db8::1]:22": reading(1, "cp1", default_address="2001:db8::1",
                                              addresses=("2001:db8::1",))}),
    "a system with a name": build_site({"cp1": reading(1, "cp1",
                        os_name='"' * 40 + "\x0c\u2028 #" * 9)}),
    "docker": build_site(docker=True),
    "docker, alone": build_site({"gpu1": reading(1, "gpu1", 2)}, docker=True),
    "fakes": build_site({"@fake/cp1": reading(1, "cp1")}),
}  # fmt: skip


@pytest.mark.parametrize("name", SITES)
def test_the_files_are_formatted_as_ruff_does(name: str, tmp_path: Path) -> None:
    files = {"inventory.py": inventory_text, "group_data.py": group_data_text}
    for file, text in files.items():
        (tmp_path / file).write_text(text(SITES[name]))
    ruff = str(Path(sys.executable).with_name("ruff"))
    options = ["--isolated", "--config", "line-length=100"]
    result = subprocess.run(
        [ruff, "format", "--diff", *options, *files], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", sorted(set(SITES) - {"docker"}))
def test_a_run_takes_the_files(name: str) -> None:
    assert findings(SITES[name])[0] == []


def test_login_that_differs_stands_with_the_host() -> None:
    built_site = SITES["users of their own"]
    assert groups(built_site)["control_plane"] == [
        ("cp1", {"node_name": "cp1", "address": "192.0.2.1", "ssh_user": "root", "_sudo": False})
    ]
    assert groups(built_site)["workers"][0][1]["ssh_user"] == "admin"
    assert "ssh_user" not in group_data_text(built_site)
    assert "_sudo = False  # root needs no sudo" in group_data_text(SITES["root everywhere"])


def test_hosts_behind_one_address_have_names_of_their_own() -> None:
    (name, data), *_ = groups(SITES["ports of their own"])["workers"]
    assert name == "192.0.2.9-2202"
    assert data == {
        "node_name": "gpu1", "address": "192.0.2.2", "gpus": 2,
        "ssh_hostname": "192.0.2.9", "ssh_port": 2202,
    }  # fmt: skip


def test_docker_hosts_and_their_monitor() -> None:
    with_gpus = {"gpu1": reading(1, "gpu1", 2), "mon1": reading(2, "mon1")}
    built_site = build_site(with_gpus, docker=True)
    assert [name for name, _ in groups(built_site)["gpu_hosts"]] == ["gpu1"]
    assert [name for name, _ in groups(built_site)["monitor"]] == ["mon1"]
    assert "deploys/standalone.py --dry" in inventory_text(built_site)
    standalone_site = SITES["docker, alone"]
    assert groups(standalone_site)["monitor"] == ["gpu1"]
    assert findings(standalone_site) == ([], [])


def test_a_docker_host_without_gpus_is_one_too_many() -> None:
    mistakes, _ = findings(SITES["docker"])
    assert [(item.host, item.cause) for item in mistakes] == [
        ("cpu1.example.com", "is in group gpu_hosts and promises no GPU")
    ]


def test_what_a_run_would_refuse_is_told_before_it() -> None:
    hosts = {
        "cp1": reading(1, "cp1"),
        "gpu1": reading(2, "gpu1", 2, V100, os_id="fedora", os_name="Fedora 43"),
    }
    mistakes, problems = findings(build_site(hosts))
    assert mistakes == []
    causes = {item.cause for item in problems}
    assert "runs Fedora 43" in causes
    assert any("has dropped Volta" in cause for cause in causes)
    screen = "\n".join(site_screen.lines(build_site(hosts), problems, (Path("i"), Path("g"))))
    assert "2 problems to solve before the first run\n[gpu1] " in screen
    assert "2 x V100 SXM2 16GB" in screen


def test_settings_are_checked_as_a_run_does() -> None:
    name = "a" * 41
    assert name_problems(name) == []
    mistakes, _ = findings(
        build_site({"cp1": reading(1, "cp1")}, name=name, endpoint="no host:port:x")
    )
    assert mistakes


def test_machines_behind_nat_are_told_apart_by_where_ssh_leads() -> None:
    nat = ("10.0.2.15", "192.168.56.11"), ("10.0.2.15", "192.168.56.21")
    built_site = build_site(
        {
            f"vm{i}": reading(
                i,
                f"vm{i}",
                default_address=address_pair[0],
                addresses=address_pair,
                peer=address_pair[1],
            )
            for i, address_pair in enumerate(nat)
        }
    )
    assert [host.address for host in built_site.hosts] == ["192.168.56.11", "192.168.56.21"]
    assert built_site.hosts[0].more_addresses == ("10.0.2.15",)
    assert findings(built_site) == ([], [])


def test_other_addresses_are_told_unless_they_lead_nowhere() -> None:
    host = reading(
        21, "gpu1", 1,
        addresses=("192.0.2.21", "10.9.0.21", "172.17.0.1", "2001:db8::1"),
        routes=(("192.0.2.0/24", "eth0"), ("10.9.0.0/16", "ib0"), ("172.17.0.0/16", "docker0")),
    )  # fmt: skip
    built_site = build_site({"gpu1": host})
    assert built_site.hosts[0].more_addresses == ("10.9.0.21",)
    assert "# its other addresses: 10.9.0.21" in inventory_text(built_site)
    screen = "\n".join(site_screen.lines(built_site, [], (Path("i"), Path("g"))))
    assert "gpu1 has several addresses: 192.0.2.21 is written" in screen


@pytest.mark.parametrize(
    ("hostnames", "names"),
    [
        (("cp1.example.com", "GPU1"), ["cp1", "gpu1"]),
        (("ubuntu", "ubuntu"), ["h0", "h1"]),
        (("localhost", "gpu_1"), ["h0", "h1"]),
    ],
)
def test_node_names(hostnames: tuple[str, ...], names: list[str]) -> None:
    built_site = build_site({f"h{i}": reading(i + 1, name) for i, name in enumerate(hostnames)})
    assert [host.node_name for host in built_site.hosts] == names


def test_no_gpu_at_all_is_told() -> None:
    screen = "\n".join(
        site_screen.lines(build_site({"a": reading(1, "a")}), [], (Path("i"), Path("g")))
    )
    assert "no host has an NVIDIA GPU" in screen


@pytest.mark.parametrize("name", ["all", "workers", "Prod", "my_site", "1st", "", "a/b", "-x"])
def test_a_name_that_is_none(name: str) -> None:
    assert name_problems(name)


def test_a_reading_survives_its_document() -> None:
    problem = Problem("gpu2", "cause", "remedy")
    original = Reading(hosts=HOSTS, unreachable={"x": "no"}, problems=(problem,), warnings=("w",))
    assert from_json(original.to_json()) == original
    with pytest.raises(ValueError, match="validation error"):
        from_json("{1}")


def test_an_inventory_to_read_with_names_nothing_but_the_way_in() -> None:
    text = reading_inventory([Target("gpu1", "me", 2222), Target("cp1")], "key", "config")
    (gpu1, cp1) = site_check.parse_assignments("reading.py", text)["hosts"]
    common = {"ssh_connect_retries": 1, "ssh_key": "key", "ssh_config_file": "config"}
    assert gpu1 == ("gpu1", {"ssh_user": "me", "ssh_port": 2222, **common})
    assert cp1 == ("cp1", common)
