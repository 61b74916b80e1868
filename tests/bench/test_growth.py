"""The growth curve: what simulated hosts say, what their server counted, and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.growth import curve, recording
from bench.growth.curve import Curve, Line
from bench.growth.recording import NOW, Host, Recording
from bench.growth.servers import Counted, count
from gpuboot.hosts.fact_output import answer

LEADER = Host("node47", "10.77.1.57", "127.77.0.1")
WORKER = Host("node48", "10.77.1.58", "127.77.0.2")


def framed(*lines: str) -> str:
    size = sum(len(line) for line in lines)
    return "\n".join(
        [*(f"##gpuboot##={line}" for line in lines), f"##gpuboot##.{len(lines)} {size}"]
    )


OUTPUT = framed(
    "hostname\tnode48", "machine_id\t" + "a" * 32, "address\thost0 10.77.1.58/24",
    "default_source\t10.77.1.58", "other\t10.77.1.581 anode48", "clock\t1795357579.812655140",
) + "\n" + framed("10.77.1.57 node47", "10.77.1.58 node48")  # fmt: skip
RECORDED = Recording(LEADER, WORKER, {"node47": {}, "node48": {"digest": ("0\n", OUTPUT + "\n")}})


def test_a_host_answers_with_its_own_name_and_address() -> None:
    second = recording.hosts(RECORDED, 3)[2]
    output = recording.spoken(OUTPUT, WORKER, second)
    node, hosts = output.split("\n##gpuboot##.6 ")
    lines = answer(f"{node}\n##gpuboot##.6 {hosts.partition(chr(10))[0]}".split("\n")).lines
    assert lines[0] == "hostname\tworker2"
    assert lines[1] not in (OUTPUT, "machine_id\t" + "a" * 32)
    assert lines[2:] == [
        "address\thost0 10.78.0.2/24", "default_source\t10.78.0.2", "other\t10.77.1.581 anode48",
        f"clock\t{NOW}",
    ]  # fmt: skip
    assert answer(hosts.split("\n")[1:]).lines == ["10.77.1.57 node47", "10.78.0.2 worker2"]


def test_hosts_are_told_apart() -> None:
    hosts = recording.hosts(RECORDED, 1000)
    assert hosts[0] == LEADER
    for key in ("name", "address", "server"):
        assert len({getattr(host, key) for host in hosts}) == 1000
    assert hosts[256].server == "127.78.1.0"


def test_a_recording_is_told_for_each_host(tmp_path: Path) -> None:
    hosts = recording.hosts(RECORDED, 2)
    recording.write(RECORDED, hosts, tmp_path)
    assert (tmp_path / "127.78.0.1" / "digest.code").read_text() == "0\n"
    assert "hostname\tworker1\n" in (tmp_path / "127.78.0.1" / "digest.stdout").read_text()
    reread = recording.read(tmp_path, LEADER, hosts[1])
    assert set(reread.answers["worker1"]) == {"digest"}


def test_the_log_tells_connections_and_commands() -> None:
    opened = "Accepted publickey for root from 127.0.0.1 port 1 ssh2: ED25519 SHA256:x\n"
    command = "Starting session: forced-command (config) 'sh' for root from 127.0.0.1 port 1 id 0\n"
    closed = "Disconnected from user root 127.0.0.1 port 1\n"
    lines = [opened, command, opened, command, closed, opened, "Server listening\n", closed, closed]
    assert count(lines) == Counted(connections=3, most=2, commands=2)


def test_a_line_through_points() -> None:
    assert curve.fit([(1, 3), (2, 5), (3, 7)]) == Line(1, 2)
    assert curve.fit([(0, 0), (1, 2), (2, 1)]).slope == pytest.approx(0.5)
    with pytest.raises(ValueError, match="two numbers"):
        curve.fit([(1, 3)])


def runs(code: str, *sizes: int) -> list[dict[str, object]]:
    return [
        {
            "kind": "growth", "code": code, "hosts": hosts, "seconds": 2.0 + hosts,
            "cpu_s": 1 + hosts / 10, "peak_mib": 50 + hosts, "servers_cpu_s": hosts / 100,
            "connections": hosts, "connections_at_once": hosts, "commands": hosts * 2,
        }
        for hosts in sizes
    ]  # fmt: skip


def test_the_newest_code_is_shown_and_what_was_not_run() -> None:
    growth_curve = curve.newest(
        [*runs("old", 250), {"kind": "host", "code": "now"}, *runs("now", 2, 10)]
    )
    table = curve.measured(growth_curve).splitlines()
    assert table[2].startswith("| 2 | 4.00 (4.00–4.00, of 1) | 1.20")
    assert table[6] == "| 250 |" + " not run |" * 6
    assert "| 2.00 (2.00–2.00, of 1) |" in table[2]  # commands of each host


def test_calculated_from_small_sites_and_compared_with_large_ones() -> None:
    growth_curve = curve.newest(runs("now", 2, 10, 48, 1000))
    rows = curve.calculated(growth_curve).splitlines()
    assert rows[3].startswith("| CPU of the controller, s: 1.00 + 0.100 × hosts | 11.0 (not run) |")
    assert rows[3].endswith("| 101 (101) |")
    series = {
        plot_series["name"]: plot_series["values"]
        for plot_series in curve.plots(growth_curve)[0]["series"]
    }
    assert series["calculated from up to 48 hosts"][-1] == pytest.approx([101] * 3)
    assert series["seconds"][3] is None


def test_large_sites_do_not_bend_the_calculated_line() -> None:
    slow = [{**run, "cpu_s": 1000} for run in runs("now", 1000)]
    assert Curve({}).runs == {}
    growth_curve = curve.newest([*runs("now", 2, 48), *slow])
    assert growth_curve.line("cpu_s").slope == pytest.approx(0.1)
