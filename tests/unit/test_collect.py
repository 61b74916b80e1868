"""Reading hosts: what counts as busy, and how far a clock is off."""

from dataclasses import replace

import pytest

from deploys.run.collect import busy, skew
from gpuboot.hosts.node_state import parse
from tests.unit.test_nodestate import ANSWER

STATE = replace(parse(ANSWER), apt_busy=(), cloud_init="done")


def test_busy() -> None:
    assert busy(STATE) == ""
    assert busy(replace(STATE, cloud_init="running")) == "cloud-init is running"
    assert "apt-get (pid 7)" in busy(replace(STATE, apt_busy=("apt-get (pid 7)",)))


@pytest.mark.parametrize(
    ("clock", "expected"), [(105.0, 0.0), (100.0, 0.0), (113.0, 3.0), (97.5, -2.5)]
)
def test_a_slow_answer_is_no_skew(clock: float, expected: float) -> None:
    assert skew(clock, before=100.0, after=110.0) == expected
