"""Every rule over every kind of GPU: silent while it is well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.populations.course import Course, Time, fired
from tests.populations.model import Population
from tests.populations.opposites import RELATED, all_of, rising, without_derived
from tests.populations.page import Page
from tests.populations.table import POPULATIONS, SHARED

Fired = dict[str, set[str]]


KINDS = (*POPULATIONS.values(), *RELATED, *SHARED)


def _soaked(population: Population, idle: int) -> Course:
    """Counters of NVLink grow slowly, DCGM fails what is well, and no IMEX daemon runs."""
    return Course(
        population.small(), idle=idle, since=12, changed=all_of, rising=rising(population)
    )


def _without() -> Iterator[Population]:
    """Each kind under another name, with other UUIDs."""
    for population in POPULATIONS.values():
        cards = tuple(replace(c, uuid=c.uuid.replace("GPU-", "GPU-f")) for c in population.cards)
        yield replace(population, name=f"{population.name}-recorded", cards=cards)


def _recorded(page: Page) -> Page:
    return replace(page, change=without_derived(page.of))


@pytest.fixture(scope="module")
def hours(tmp_path_factory: pytest.TempPathFactory) -> Fired:
    """Idle, and then under load; and what is derived of them is otherwise from a moment on."""
    courses = [_soaked(population, idle=35) for population in KINDS]
    return fired(tmp_path_factory.mktemp("hours"), courses, Time(minutes=100, step=60))


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Fired:
    """More than a day, for what is counted by the day: GPUs idle, then in use, shared ones too."""
    courses = [_soaked(population, idle=600) for population in KINDS]
    return fired(tmp_path_factory.mktemp("day"), courses, Time(minutes=26 * 60, step=900))


@pytest.fixture(scope="module")
def blanks(tmp_path_factory: pytest.TempPathFactory) -> Fired:
    """DCGM's number for `not supported`, which exporters up to 4.0 print."""
    courses = [
        Course(population.small(), idle=10, blanks=True) for population in POPULATIONS.values()
    ]
    courses += [Course(population.small(), idle=10, changed=_recorded) for population in _without()]
    return fired(tmp_path_factory.mktemp("blanks"), courses, Time(minutes=35, step=60))


@pytest.mark.parametrize("population", KINDS, ids=str)
def test_rules_are_silent_on_idle_and_busy_gpus(population: Population, hours: Fired) -> None:
    assert hours.get(population.node, set()) == set()


@pytest.mark.parametrize("population", KINDS, ids=str)
def test_rules_are_silent_for_more_than_a_day(population: Population, day: Fired) -> None:
    assert day.get(population.node, set()) == set()


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_blank_values_are_no_values(population: Population, blanks: Fired) -> None:
    assert blanks.get(population.node, set()) == set()


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_rules_are_silent_without_any_derived_value(population: Population, blanks: Fired) -> None:
    assert blanks.get(f"{population.name}-recorded-1", set()) == set()


def test_nothing_fires_that_names_no_node(hours: Fired, day: Fired, blanks: Fired) -> None:
    assert [fired_by_node.get("", set()) for fired_by_node in (hours, day, blanks)] == [
        set(),
        set(),
        set(),
    ]
