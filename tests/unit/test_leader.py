"""Who leads a run when a control plane was replaced: what the leader has stays where it is."""

from __future__ import annotations

import os
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any, cast

import pytest

from deploys.parts.cluster.kubectl import ADMIN_CONF
from deploys.run import context
from gpuboot.config.inventory import Entry, plan
from gpuboot.config.settings import Settings
from gpuboot.hosts.node_state import NodeState, parse
from tests.unit.test_node_state import ANSWER

NAMES = ("cp1", "cp2", "cp3")
MEMBER = f"kubeconfig\t{ADMIN_CONF} https://10.0.0.1:6443"


def state(*lines: str) -> NodeState:
    return parse([*ANSWER[:-1], *lines, ANSWER[-1]])


@pytest.mark.parametrize(
    ("lines", "leader"),
    [
        # cp1 made the cluster
        ({"cp1": [MEMBER, "led_at\t1700000000"], "cp2": [MEMBER], "cp3": [MEMBER]}, "cp1"),
        # it was replaced, and has joined again
        ({"cp1": [MEMBER], "cp2": [MEMBER, "led_at\t1700000500"], "cp3": [MEMBER]}, "cp2"),
        # it is bare, and about to join
        ({"cp1": [], "cp2": [MEMBER, "led_at\t1700000500"], "cp3": [MEMBER]}, "cp2"),
        # it was switched off while cp3 led
        (
            {
                "cp1": [MEMBER, "led_at\t1700000000"],
                "cp2": [MEMBER],
                "cp3": [MEMBER, "led_at\t1700000900"],
            },
            "cp3",
        ),
        # nobody has led yet
        ({"cp1": [], "cp2": [], "cp3": []}, "cp1"),
    ],
)
def test_the_control_plane_that_led_last_leads(lines: dict[str, list[str]], leader: str) -> None:
    entries = [
        Entry(name, ("control_plane",), {"address": f"10.0.0.{number}"})
        for number, name in enumerate(NAMES, 1)
    ]
    nodes, _ = plan(entries, "vip:6443")
    states = {name: state(*lines[name]) for name in NAMES}
    run = context.Run(cast(Any, None), Settings(), cast(Any, None), nodes, states=states)
    context._lead(run)
    assert context.cluster_leader(run.nodes).host == leader


def test_the_fact_tells_when_a_machine_led(tmp_path: Path) -> None:
    script = resources.files("deploys.parts.node").joinpath("fact.sh").read_text()
    [line] = [candidate for candidate in script.splitlines() if "put led_at" in candidate]
    file = tmp_path / "kubeadm.yaml"
    command = line.replace("/etc/gpuboot/kubeadm.yaml", str(file))

    def read_led_at() -> str:
        put = 'put() { printf \'%s\\t%s\\n\' "$1" "$2"; }'
        return subprocess.run(
            ["sh", "-c", f"{put}\n{command}"], capture_output=True, text=True
        ).stdout

    assert read_led_at() == ""
    file.write_text("")
    os.utime(file, (1700000000, 1700000000))
    assert state(read_led_at().strip()).led_at == 1700000000
