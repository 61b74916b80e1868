"""The table itself: complete, each value with its source, and read by the product's own parsers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuboot.config import versions
from gpuboot.config.settings import Settings
from gpuboot.hosts import fabric, gpu_models, loaded_driver
from gpuboot.hosts.node_state import parse
from gpuboot.verify.checks.health_checks import METRICS
from gpuboot.verify.prometheus import parse_exposition
from tests.populations import document, opposites
from tests.populations.derivations import derivations
from tests.populations.faults import FAULTS
from tests.populations.machine import Machine
from tests.populations.model import REQUESTED_FIELDS, Population, name
from tests.populations.page import WATCHES, Page
from tests.populations.table import POPULATIONS, with_new_counters
from tests.populations.watch_faults import BROKEN, WATCH_FAULTS

KINDS = pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
HEALTH = "DCGM_EXP_GPU_HEALTH_STATUS"


@KINDS
def test_every_field_has_a_value_or_a_reason_to_have_none(population: Population) -> None:
    for card in population.cards:
        reported, absent = population.reported(card, busy=True), population.absent(card)
        missing = set(REQUESTED_FIELDS) - reported.keys() - absent.keys()
        assert not missing, (
            f"{population} has neither a value nor a reason to have none for {sorted(missing)}: "
            "add `values` or `lack` with its source to its `idle` and `busy`, or `lacks`, in "
            "tests/populations/; for all kinds alike to EVERY_KIND in tests/populations/common.py"
        )
        assert not reported.keys() & absent.keys(), population
        assert reported.keys() | absent.keys() <= set(REQUESTED_FIELDS), population


def test_a_counter_that_no_kind_shows_is_0_where_it_is_not_lacking() -> None:
    counter, gauge = name("NVLINK_RECOVERY_ERROR_COUNT_TOTAL"), name("GPU_TEMP")
    kinds = [
        replace(
            kind,
            idle=tuple(
                replace(group, of={k: v for k, v in group.of.items() if k not in (counter, gauge)})
                for group in kind.idle
            ),
        )
        for kind in (POPULATIONS["h100-sxm"], POPULATIONS["t4"])
    ]
    h100, t4 = (kind.metrics(kind.cards[0], None) for kind in with_new_counters(kinds))
    assert h100[counter] == 0
    assert counter not in t4
    assert gauge not in h100


@KINDS
def test_every_kind_has_a_recording_and_every_source_says_where_or_why(
    population: Population,
) -> None:
    assert any(source.recorded for source in population.references)
    assert all(len(source.origin) > 20 for source in population.sources)


@KINDS
def test_the_page_is_read_as_it_was_written(population: Population) -> None:
    page = Page(population)
    read = list(parse_exposition(page.text()))
    samples = [sample for sample in read if sample.name != HEALTH]
    assert len(read) - len(samples) == len(population.cards) * len(WATCHES)
    assert {sample.labels["UUID"] for sample in read} == {card.uuid for card in population.cards}
    slices = {(s.labels["UUID"], s.labels.get("GPU_I_ID", "")) for s in samples}
    assert slices == {
        (card.uuid, str(instance.gi) if instance else "") for card, instance in page.devices
    }
    for card, instance in page.devices:
        of = {"gpu": str(card.index), "GPU_I_ID": str(instance.gi) if instance else None}
        values = {
            s.name: s.value for s in samples if all(s.labels.get(k) == v for k, v in of.items())
        }
        expected = population.metrics(card, instance)
        del expected[HEALTH]
        assert values == pytest.approx(expected, rel=1e-5)


@KINDS
def test_the_machine_is_read(population: Population) -> None:
    machine = Machine(population)
    state = parse(machine.node_fact())
    assert [device.slot for device in state.gpus] == [card.slot for card in population.cards]
    is_open = "Open Kernel Module" in population.flavour
    assert loaded_driver.parse(machine.version) == (population.driver, is_open)
    host = machine.host()
    assert host.uuids == {card.uuid for card in population.cards}
    assert host.driver_loaded == host.driver_installed == population.driver
    assert host.smi_error == ""


@KINDS
def test_its_kernel_modules_are_known(population: Population) -> None:
    device = int(population.device, 16)
    assert gpu_models.generation(device).open_modules in {"may", "must"}
    lock = versions.lock(Settings()).driver
    assert gpu_models.flavour([device], "auto", lock) == "open"


@KINDS
def test_a_fabric_manager_is_installed_where_a_board_has_a_fabric(population: Population) -> None:
    """The H100 with MIG is a virtual machine that one GPU was passed through to."""
    expected = {
        "h100-sxm": "nvswitch",
        "h200": "nvswitch",
        "b200-hgx": "nvlink5",
        "mig-a100-mixed": "nvswitch",
    }
    state = parse(Machine(population).node_fact())
    assert fabric.managed(state, "auto") == expected.get(population.name, "")


def test_mig_devices_are_listed_as_the_recording_has_them() -> None:
    """The capture of the H100, lines 1186 to 1188, but for its masked UUIDs."""
    lines = list(Machine(POPULATIONS["mig-h100-mixed"]).listing())
    assert lines[0].startswith("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-")
    assert lines[1].startswith("  MIG 3g.40gb     Device  0: (UUID: MIG-")
    assert lines[2].startswith("  MIG 2g.20gb     Device  1: (UUID: MIG-")


def test_every_derived_value_that_a_verdict_stands_on_has_its_opposite() -> None:
    """What alerts or the link `health` read; its bare absence is another test."""
    readers = document.readers(next(iter(POPULATIONS.values())))
    sources_with_opposites = {opposite.source for opposite in opposites.WELL}
    faults = {fault.name for fault in (*FAULTS, *WATCH_FAULTS)}
    for source, names in derivations([*POPULATIONS.values(), *opposites.RELATED]):
        if names & METRICS or any(readers.get(name) for name in names):
            assert source in sources_with_opposites or BROKEN.get(source.origin), (source, names)
        assert set(BROKEN.get(source.origin, ())) <= faults
    populations = [*POPULATIONS.values(), *opposites.RELATED]
    assert all(any(map(opposite.of, populations)) for opposite in opposites.WELL), (
        "no kind can show it"
    )


def test_the_page_of_kinds_is_up_to_date() -> None:
    """Written by `python -m tests.populations`."""
    assert document.PAGE.read_text(encoding="utf-8") == document.text(), (
        "docs/hardware.md is not what the table says: run scripts/pages"
    )
