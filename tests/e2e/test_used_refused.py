"""Machines with something of others that a run would destroy: it stops and touches nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lab import state
from lab.lives import LIVES, Life
from lab.lives import dress as lives
from tests.e2e.conftest import Lab, assert_refused, fresh_lab

pytestmark = pytest.mark.lab

NAME, FIRST = "test-refused", "foreign-etcd"
# the others are for the long tests alone
EVERYDAY = {"foreign-etcd", "foreign-cni", "moby"}
# What belongs to the machine, with each file's size, owner, mode and the last time that anything of
# it changed; not what systemd and logins note all the time, nor apt's caches.
_NOTES = ("/run", "/tmp", "/var/cache/apt", "/var/lib/systemd", "/var/log", "/var/tmp")
FILES = f"""
find / -xdev \\( -path {" -o -path ".join(_NOTES)} \\) -prune \\
  -o -printf '%p %y %s %U:%G %m %C@\\n' | sort
dpkg -l
systemctl list-unit-files --no-legend --no-pager --type=service,socket,timer,mount
cat /proc/mounts | grep -v '/run/'
ip address show | grep inet
"""


@pytest.fixture(scope="module")
def used() -> Iterator[Lab]:
    """A bare machine that wears one life after the other."""
    with fresh_lab(NAME, "--single", "--used", "--life", FIRST, "--no-deploy") as lab:
        yield lab


@pytest.fixture(
    params=[
        pytest.param(life, id=life.name, marks=[] if life.name in EVERYDAY else pytest.mark.long)
        for life in LIVES
        if life.refusal
    ]
)
def life(used: Lab, request: pytest.FixtureRequest) -> Iterator[Life]:
    """A life that the machine wears, alone."""
    worn: Life = request.param
    lab = state.load(used.name)
    for life_name in LIVES:
        if life_name != worn:
            lives.undress(lab, life_name)
    lives.dress(lab, [worn], print)
    yield worn
    lives.undress(lab, worn)


def test_it_is_refused_and_nothing_is_touched(used: Lab, life: Life) -> None:
    before = used.ssh("node1", FILES).splitlines()
    assert life.refusal in _causes(used)
    for _ in range(2):  # what the first run leaves must not be the second one's excuse
        assert_refused(used.deploy(), life.refusal, "nothing was changed")
        changed = set(used.ssh("node1", FILES).splitlines()) ^ set(before)
        assert not changed, "\n".join(sorted(changed))
    lives.works(state.load(used.name), life)


def _causes(used: Lab) -> str:
    """The problems that `gpuboot check` names, each with a remedy."""
    result = used.command(["gpuboot", "check", "inventories/lab.py", "--json"])
    assert result.code == 1, result.details
    problems = json.loads(result.out)["problems"]
    assert all(problem["remedy"] for problem in problems)
    return "\n".join(problem["cause"] for problem in problems)
