"""Time services: one keeps the clock, two fight for it, and chrony removes none that works."""

from dataclasses import replace

import pytest

from deploys.phases import base
from deploys.run.context import Context
from gpuboot.config import versions
from gpuboot.config.settings import parse_settings
from gpuboot.hosts import time_services
from gpuboot.hosts.node_state import NodeState, Unit, parse
from tests.unit.test_node_state import ANSWER
from tests.unit.test_preflight import CLEAN, WORKER


def host(*services: str, synchronised: bool = True, container: str = "") -> NodeState:
    units = {name: Unit("active", "enabled") for name in services}
    return replace(CLEAN, units=units, ntp_synchronised=synchronised, container=container)


def warnings(state: NodeState) -> list[str]:
    return time_services.warnings([WORKER], {WORKER.host: state})


def installs_chrony(state: NodeState) -> bool:
    settings = parse_settings({})
    context = Context(settings, versions.lock(settings), (WORKER,), WORKER, {WORKER.host: state})
    return "chrony" in base.package_names(context)


@pytest.mark.parametrize(
    "service",
    ["chrony", "ntpsec", "openntpd", "ntpd-rs", "systemd-timesyncd", "phc2sys@eth0", "timemaster"],
)
def test_who_keeps_the_time_already_is_left_alone(service: str) -> None:
    """Debian's chrony conflicts with time-daemon: apt would remove openntpd for it."""
    assert not installs_chrony(host(service))
    assert warnings(host(service)) == []


def test_chrony_where_nothing_keeps_the_time() -> None:
    assert installs_chrony(host())
    assert installs_chrony(replace(host(), units={"openntpd": Unit("inactive", "enabled")}))
    assert not installs_chrony(host(container="lxc")), "its clock is its machine's"


@pytest.mark.parametrize(
    ("services", "text"),
    [
        (("chrony", "openntpd"), "chrony and openntpd set its clock at the same time"),
        (("chrony", "systemd-timesyncd"), "chrony and systemd-timesyncd set its clock"),
        (("chronyd", "phc2sys@ens1f0"), "or let phc2sys tell the other (its option `-E ntpshm`)"),
    ],
)
def test_two_of_them(services: tuple[str, ...], text: str) -> None:
    [line] = warnings(host(*services))
    assert text in line
    assert f"`systemctl disable --now {services[-1]}`" in line
    assert warnings(host(*services, container="systemd-nspawn")) == []


def test_those_that_timemaster_started_are_its_own() -> None:
    assert warnings(host("chrony", "phc2sys@eth0", "timemaster")) == []
    assert len(warnings(host("chrony", "phc2sys@eth0", "phc2sys@eth1"))) == 1


def test_one_that_reaches_no_server() -> None:
    [line] = warnings(host("openntpd", synchronised=False))
    assert line.startswith("gpu1: openntpd runs, and its clock is not synchronised")
    assert warnings(host(synchronised=False)) == [], "chrony is about to be installed"
    assert warnings(host("phc2sys@eth0", synchronised=False)) == [], "it follows a network card"


def test_units_of_devices_are_read() -> None:
    state = parse([*ANSWER, "unit\tphc2sys@eth0 active enabled", "unit\tntpd-rs active enabled"])
    assert time_services.running(state) == ("phc2sys@eth0", "ntpd-rs")
