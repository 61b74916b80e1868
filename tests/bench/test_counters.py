"""Counters of the kernel and of SSH servers are read as they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import accounting, network, sessions
from bench.network import Pinged, Traffic
from lab.state import LabError

PING = """PING 10.77.1.9 (10.77.1.9) 56(84) bytes of data.

--- 10.77.1.9 ping statistics ---
200 packets transmitted, 191 received, 4.5% packet loss, time 10148ms
rtt min/avg/max/mdev = 19.995/20.116/22.466/0.181 ms
"""
LINK = """[{"ifname":"ctl0","mtu":1500,"stats64":{
"rx":{"bytes":125963,"packets":730,"errors":0},"tx":{"bytes":118066,"packets":644}}}]"""


def test_ping() -> None:
    assert network.parse_ping(PING) == Pinged(19.995, 20.116, 22.466, 4.5)


def test_a_link_that_does_not_answer_is_an_error() -> None:
    silent = PING.replace("191 received, 4.5%", "0 received, 100%").rpartition("rtt")[0]
    with pytest.raises(LabError, match="no answer"):
        network.parse_ping(silent)


def test_the_controller_sends_what_its_device_transmits() -> None:
    counted = network.parse_traffic(LINK)
    assert counted == Traffic(sent=118066, received=125963)
    assert counted.since(Traffic(66, 63)) == Traffic(118000, 125900)


def test_commands_and_file_transfers_are_counted_and_nothing_else() -> None:
    lines = [
        "Accepted publickey for root from 10.77.1.9 port 33676 ssh2: ED25519 SHA256:+0R",
        "Starting session: command for root from 10.77.1.9 port 33676 id 0",
        "Starting session: subsystem 'sftp' for root from 10.77.1.9 port 33676 id 1",
        "Disconnected from user root 10.77.1.9 port 33676",
        "Starting session: command for root from 10.77.1.9 port 33676 id 0",
    ]
    assert sessions.started(lines) == 3


def folder(path: Path, **files: str) -> Path:
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text)
    return path


def test_usage_of_a_unified_hierarchy(tmp_path: Path) -> None:
    group_dir = folder(
        tmp_path / "group", cpu__stat="usage_usec 1437071\nuser_usec 1\n", memory__peak="65011712\n"
    )
    usage = accounting.Group(group_dir, group_dir).usage()
    assert (usage.cpu_s, usage.peak_mib) == (1.437071, 62.0)


def test_usage_of_a_hierarchy_for_each_controller(tmp_path: Path) -> None:
    cpu = folder(tmp_path / "cpuacct", cpuacct__usage="1437071888\n")
    memory = folder(tmp_path / "memory", memory__max_usage_in_bytes="65011712\n")
    usage = accounting.Group(cpu, memory).usage()
    assert (usage.cpu_s, usage.peak_mib) == (1.437071888, 62.0)


def test_a_command_enters_every_hierarchy_before_it_starts(tmp_path: Path) -> None:
    group = accounting.Group(tmp_path / "cpuacct", tmp_path / "memory")
    script = group.enter()[2]
    assert f"{tmp_path}/cpuacct/cgroup.procs" in script
    assert f"{tmp_path}/memory/cgroup.procs" in script
    assert script.endswith('exec "$@"')
