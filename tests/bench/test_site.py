"""What sides are told of the machines arrives as it was written."""

from __future__ import annotations

from pathlib import Path

from bench import machines
from bench.matrix import MANY
from bench.site import Host, Site


def test_a_site_is_read_as_it_was_saved(tmp_path: Path) -> None:
    host = Host("node1", "10.77.3.11", "control_plane", 2)
    site = Site("bench", tmp_path / "1", tmp_path / "key", tmp_path / "known_hosts", (host,))
    site.save()
    assert Site.load(site.file) == site


def test_machines_of_the_benchmark_have_one_leader_and_addresses_of_their_own() -> None:
    lab = machines.plan(7)
    assert [machine.role for machine in lab.machines[:3]] == ["control_plane", "worker", "worker"]
    assert len({machine.address for machine in lab.machines}) == MANY
    assert all(machine.gpus for machine in lab.machines), "each phase has to have something to do"


def test_names_of_network_devices_are_short_enough_for_linux() -> None:
    lab = machines.plan(199)
    assert max(len(f"vb-{lab.unit(machine.name)}") for machine in lab.machines) <= 15
