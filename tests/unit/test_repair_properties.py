"""What holds of repairs whatever happens: rails, people's cordons, and runs that are killed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpuboot.cluster.objects import parse_node
from gpuboot.cluster.repair_keys import BREAKER, STATE_KEY
from gpuboot.config.settings.upgrade import batch_size
from gpuboot.repair.controller import Controller
from gpuboot.repair.decide import decide
from gpuboot.repair.observe import NODES, STALE_S, gpu_node, observe
from gpuboot.repair.repair_model import OUT
from tests.unit.repair_site import (
    GPU_LOST,
    HEALTH,
    HOT,
    RECOVERY_REBOOT,
    RECOVERY_RESET,
    REMAP,
    XID_79,
    XID_119,
    KilledError,
    Site,
    site,
    site_settings,
)

FAULTS = [[XID_79], [XID_119], [XID_119, HEALTH], [REMAP], [RECOVERY_RESET], [RECOVERY_REBOOT],
          [HOT], [GPU_LOST], [XID_79, GPU_LOST], [HEALTH, HOT]]  # fmt: skip
SEEDS = range(30)


@dataclass
class Watched(Site):
    """A site that fails a test as soon as a write breaks a rule.

    + persons: nodes that a person has cordoned
    """

    persons: set[str] = field(default_factory=set)

    def send(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        if path.startswith(NODES):
            self.check(path.rpartition("/")[2], body)
        return super().send(method, path, body, missing_ok)

    def check(self, name: str, body: dict[str, Any]) -> None:
        before, after = self.node(name), gpu_node(parse_node(body))
        if name in self.persons:
            assert after.cordoned, f"{name}: a person's cordon is lifted"
        if before.cordoned and not after.cordoned:
            assert before.repair
            assert before.repair.cordoned
        if before.control_plane or before.opted_out:
            assert STATE_KEY not in body["metadata"].get("annotations", {})
        if after.state in OUT and before.state not in OUT:
            self.check_begin(name)

    def check_begin(self, name: str) -> None:
        """What must hold when a node leaves service."""
        limits = self.settings.remediate
        assert BREAKER not in self.maps
        assert max(self.scrape_age, self.rules_age) <= STALE_S
        out = {node_name for node_name in self.nodes if self.node(node_name).out}
        assert len(out) < batch_size(limits.max_nodes, len(self.nodes))
        assert name not in self.persons
        total = sum(self.node(node_name).capacity for node_name in self.nodes)
        remaining_gpus = sum(
            self.node(node_name).allocatable
            for node_name in self.nodes
            if node_name not in out | {name} and not self.node(node_name).cordoned
        )
        assert remaining_gpus * 100 >= limits.min_healthy_percent * total
        recent = [past for past in self.node(name).past if past.at > self.clock - 7 * 86400]
        assert (
            len([node_name for node_name in recent if node_name.end == "released"])
            <= limits.max_repairs
        )


def random_site(seed: int) -> tuple[random.Random, Watched]:
    """A site of this seed: its size, its limits, and nodes that are not to be touched."""
    chance = random.Random(seed)
    limits = {
        "max_nodes": chance.choice([1, 2, "10%", "50%", "100%"]),
        "min_healthy_percent": chance.choice([0, 30, 50, 90]),
        "breaker_share": chance.choice([2, "30%", "50%", "100%"]),
        "cooldown_h": chance.choice([0, 1, 24]),
        "max_repairs": chance.choice([1, 2, 3]),
        "actions": chance.choice([["reset"], ["reset", "reboot"], ["reset", "reboot", "manual"]]),
    }
    watched = Watched(settings=site_settings(**limits))
    for index in range(chance.randint(1, 9)):
        watched.add(f"gpu{index}", gpus=chance.choice([1, 4, 8]))
        labels = watched.nodes[f"gpu{index}"]["metadata"]["labels"]
        if chance.random() < 0.1:
            labels["gpuboot.io/remediate"] = "off"
        if chance.random() < 0.1:
            labels["node-role.kubernetes.io/control-plane"] = ""
    return chance, watched


def happen(chance: random.Random, watched: Watched) -> None:
    """Something breaks, heals, is done by a person, or becomes silent."""
    name = chance.choice(list(watched.nodes))
    node = watched.node(name)
    event = chance.randrange(9)
    if event < 4:
        watched.fault(
            name, *chance.choice(FAULTS), cure=chance.choice(["reset", "reboot", "never"])
        )
        unhealthy = chance.randint(0, node.capacity)
        watched.nodes[name]["status"]["allocatable"]["nvidia.com/gpu"] = str(unhealthy)
    elif event == 4:
        watched.faults.pop(name, None)
    elif event == 5 and not node.cordoned and node.state not in OUT:
        watched.cordon(name)
        watched.persons.add(name)
    elif event == 6 and node.cordoned:
        watched.cordon(name, on=False)
        watched.persons.discard(name)
    elif event == 7 and node.tainted:
        watched.untaint(name)
        watched.persons.add(name)  # what is cordoned now stays so until a person ends it
    elif event == 8:
        watched.scrape_age = chance.choice([5.0, 5.0, 500.0])
        watched.blocked = {other_name for other_name in watched.nodes if chance.random() < 0.3}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_limit_is_passed_and_no_cordon_of_a_person_lifted(seed: int) -> None:
    chance, watched = random_site(seed)
    for _ in range(60):
        if chance.random() < 0.5:
            happen(chance, watched)
        watched.lives = chance.randint(0, 12) if chance.random() < 0.3 else None
        with contextlib.suppress(KilledError):
            watched.run()
        watched.clock += chance.choice([30, 300, 4000])


@pytest.mark.parametrize("seed", SEEDS)
def test_who_only_looks_writes_nothing(seed: int) -> None:
    chance, watched = random_site(seed)
    for _ in range(20):
        happen(chance, watched)
        decide(
            observe(watched, watched.settings, watched.clock),
            watched.clock,
            watched.settings.remediate,
        )
        watched.clock += 300
    assert watched.writes == []
    assert watched.did == []


SCENES = {
    "a reset": ([XID_119, HEALTH], "reset"),
    "a reboot": ([XID_79, GPU_LOST], "reboot"),
    "a reset, and then a reboot": ([RECOVERY_RESET], "reboot"),
    "nothing helps": ([RECOVERY_RESET], "never"),
    "a person has to": ([REMAP], "never"),
}


def run_scene(scene: str, lives: int | None) -> Site:
    """A scene to its end, by a controller that is killed once."""
    alerts, cure = SCENES[scene]
    fake_site = site().fault("gpu1", *alerts, cure=cure)
    fake_site.lives = lives
    for _ in range(12):
        with contextlib.suppress(KilledError):
            fake_site.run()
        if fake_site.lives is not None and fake_site.lives < 0:
            fake_site.lives = None
        fake_site.clock += 120
    return fake_site


def deaths(scene: str) -> Iterator[int]:
    """How often a controller may be killed in a scene: at each write, and after each job."""
    uninterrupted = run_scene(scene, None)
    yield from range(len(uninterrupted.writes) + len(uninterrupted.did))


def unique_reports(fake_site: Site) -> tuple[list[str], list[str]]:
    """What Events and lines tell; a line may come twice."""
    ways = [event["message"] for event in fake_site.events]
    lines = [
        f"{transition['from']} -> {transition['to']}: {transition['why']}"
        for transition in fake_site.log_entries
    ]
    return ways, list(dict.fromkeys(lines))


@pytest.mark.parametrize("scene", SCENES)
def test_a_run_that_is_killed_anywhere_is_continued_to_the_same_end(scene: str) -> None:
    uninterrupted = run_scene(scene, None)
    for lives in deaths(scene):
        interrupted = run_scene(scene, lives)
        assert interrupted.states() == uninterrupted.states(), lives
        assert interrupted.tainted() == uninterrupted.tainted(), lives
        assert interrupted.node("gpu1").cordoned == uninterrupted.node("gpu1").cordoned, lives
        assert len(interrupted.node("gpu1").past) == len(uninterrupted.node("gpu1").past), lives
        assert interrupted.did.count(("reboot", "gpu1")) == uninterrupted.did.count(
            ("reboot", "gpu1")
        ), lives
        assert unique_reports(interrupted) == unique_reports(uninterrupted), lives
        jobs = [job for job, _ in interrupted.did]
        assert list(dict.fromkeys(jobs)) == list(
            dict.fromkeys(job for job, _ in uninterrupted.did)
        ), lives


def test_a_controller_that_was_taken_over_writes_nothing() -> None:
    fake_site = site().fault("gpu1", XID_79)
    Controller(
        fake_site,
        fake_site.settings,
        fake_site,
        fake_site.log_entries.append,
        has_control=lambda: False,
    ).run()
    assert fake_site.writes == []


def test_what_a_person_does_meanwhile_goes_first() -> None:
    """Between the look and the write: a node that somebody cordons is not quarantined."""

    @dataclass
    class Late(Site):
        def json(self, path: str, query: Any = None) -> Any:
            answer = super().json(path, query)
            if path == NODES and self.node("gpu1").state == "confirmed":
                self.cordon("gpu1")
            return answer

    fake_site = Late()
    for index in range(1, 5):
        fake_site.add(f"gpu{index}")
    fake_site.fault("gpu1", XID_79).runs(3)
    assert fake_site.tainted() == set()
    assert fake_site.node("gpu1").cordoned
