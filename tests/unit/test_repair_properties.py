"""What holds of repairs whatever happens: rails, people's cordons, and runs that are killed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpuboot.config.settings.upgrade import batch_size
from gpuboot.kubernetes.repair.controller import Controller
from gpuboot.kubernetes.repair.decide import decide
from gpuboot.kubernetes.repair.model import BREAKER, OUT, STATE_KEY
from gpuboot.kubernetes.repair.observe import NODES, observe, parse_node
from tests.unit.repair_site import (
    HEALTH,
    HOT,
    LOST,
    REBOOT_ASKED,
    REMAP,
    RESET_ASKED,
    XID_79,
    XID_119,
    KilledError,
    Site,
    site,
    site_settings,
)

FAULTS = [[XID_79], [XID_119], [XID_119, HEALTH], [REMAP], [RESET_ASKED], [REBOOT_ASKED], [HOT],
          [LOST], [XID_79, LOST], [HEALTH, HOT]]  # fmt: skip
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
        before, after = self.node(name), parse_node(body)
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
        assert max(self.scrape_age, self.rules_age) <= limits.stale_s
        out = {one for one in self.nodes if self.node(one).out}
        assert len(out) < batch_size(limits.max_nodes, len(self.nodes))
        assert name not in self.persons
        total = sum(self.node(one).capacity for one in self.nodes)
        left = sum(
            self.node(one).allocatable
            for one in self.nodes
            if one not in out | {name} and not self.node(one).cordoned
        )
        assert left * 100 >= limits.min_healthy_percent * total
        recent = [past for past in self.node(name).past if past.at > self.clock - 7 * 86400]
        assert len([one for one in recent if one.end == "released"]) <= limits.max_repairs


def made(seed: int) -> tuple[random.Random, Watched]:
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
    found = Watched(settings=site_settings(**limits))
    for index in range(chance.randint(1, 9)):
        found.add(f"gpu{index}", gpus=chance.choice([1, 4, 8]))
        labels = found.nodes[f"gpu{index}"]["metadata"]["labels"]
        if chance.random() < 0.1:
            labels["gpuboot.io/remediate"] = "off"
        if chance.random() < 0.1:
            labels["node-role.kubernetes.io/control-plane"] = ""
    return chance, found


def happen(chance: random.Random, it: Watched) -> None:
    """Something breaks, heals, is done by a person, or becomes silent."""
    name = chance.choice(list(it.nodes))
    node = it.node(name)
    what = chance.randrange(9)
    if what < 4:
        it.fault(name, *chance.choice(FAULTS), cure=chance.choice(["reset", "reboot", "never"]))
        unhealthy = chance.randint(0, node.capacity)
        it.nodes[name]["status"]["allocatable"]["nvidia.com/gpu"] = str(unhealthy)
    elif what == 4:
        it.faults.pop(name, None)
    elif what == 5 and not node.cordoned and node.state not in OUT:
        it.cordon(name)
        it.persons.add(name)
    elif what == 6 and node.cordoned:
        it.cordon(name, on=False)
        it.persons.discard(name)
    elif what == 7 and node.tainted:
        it.untaint(name)
        it.persons.add(name)  # what is cordoned now stays so until a person ends it
    elif what == 8:
        it.scrape_age = chance.choice([5.0, 5.0, 500.0])
        it.blocked = {one for one in it.nodes if chance.random() < 0.3}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_limit_is_passed_and_no_cordon_of_a_person_lifted(seed: int) -> None:
    chance, it = made(seed)
    for _ in range(60):
        if chance.random() < 0.5:
            happen(chance, it)
        it.lives = chance.randint(0, 12) if chance.random() < 0.3 else None
        with contextlib.suppress(KilledError):
            it.run()
        it.clock += chance.choice([30, 300, 4000])


@pytest.mark.parametrize("seed", SEEDS)
def test_who_only_looks_writes_nothing(seed: int) -> None:
    chance, it = made(seed)
    for _ in range(20):
        happen(chance, it)
        decide(observe(it, it.settings, it.clock), it.clock, it.settings.remediate)
        it.clock += 300
    assert it.writes == []
    assert it.did == []


SCENES = {
    "a reset": ([XID_119, HEALTH], "reset"),
    "a reboot": ([XID_79, LOST], "reboot"),
    "a reset, and then a reboot": ([RESET_ASKED], "reboot"),
    "nothing helps": ([RESET_ASKED], "never"),
    "a person has to": ([REMAP], "never"),
}


def ended(scene: str, lives: int | None) -> Site:
    """A scene to its end, by a controller that is killed once."""
    alerts, cure = SCENES[scene]
    it = site().fault("gpu1", *alerts, cure=cure)
    it.lives = lives
    for _ in range(12):
        with contextlib.suppress(KilledError):
            it.run()
        if it.lives is not None and it.lives < 0:
            it.lives = None
        it.clock += 120
    return it


def deaths(scene: str) -> Iterator[int]:
    """How often a controller may be killed in a scene: at each write, and after each job."""
    whole = ended(scene, None)
    yield from range(len(whole.writes) + len(whole.did))


def told(it: Site) -> tuple[list[str], list[str]]:
    """What Events and lines tell; a line may come twice."""
    ways = [event["message"] for event in it.events]
    lines = [f"{one['from']} -> {one['to']}: {one['why']}" for one in it.told]
    return ways, list(dict.fromkeys(lines))


@pytest.mark.parametrize("scene", SCENES)
def test_a_run_that_is_killed_anywhere_is_continued_to_the_same_end(scene: str) -> None:
    whole = ended(scene, None)
    for lives in deaths(scene):
        it = ended(scene, lives)
        assert it.states() == whole.states(), lives
        assert it.tainted() == whole.tainted(), lives
        assert it.node("gpu1").cordoned == whole.node("gpu1").cordoned, lives
        assert len(it.node("gpu1").past) == len(whole.node("gpu1").past), lives
        assert it.did.count(("reboot", "gpu1")) == whole.did.count(("reboot", "gpu1")), lives
        assert told(it) == told(whole), lives
        again = [job for job, _ in it.did]
        assert list(dict.fromkeys(again)) == list(dict.fromkeys(job for job, _ in whole.did)), lives


def test_a_controller_that_was_taken_over_writes_nothing() -> None:
    it = site().fault("gpu1", XID_79)
    Controller(it, it.settings, it, it.told.append, mine=lambda: False).run()
    assert it.writes == []


def test_what_a_person_does_meanwhile_goes_first() -> None:
    """Between the look and the write: a node that somebody cordons is not quarantined."""

    @dataclass
    class Late(Site):
        def json(self, path: str, query: Any = None) -> Any:
            answer = super().json(path, query)
            if path == NODES and self.node("gpu1").state == "confirmed":
                self.cordon("gpu1")
            return answer

    it = Late()
    for index in range(1, 5):
        it.add(f"gpu{index}")
    it.fault("gpu1", XID_79).runs(3)
    assert it.tainted() == set()
    assert it.node("gpu1").cordoned
