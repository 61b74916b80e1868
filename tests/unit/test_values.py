"""Chart values as nested maps."""

from __future__ import annotations

from gpuboot.cluster.values import keeping

PATH = ("devicePlugin", "config", "data")


def configs(**data: str) -> dict[str, object]:
    return {"devicePlugin": {"config": {"name": "map", "data": data}}, "nfd": {"enabled": True}}


def test_entries_of_a_live_release_stay_beside_those_that_are_asked_for() -> None:
    desired = configs(new="4")
    assert keeping(desired, configs(old="2", new="another"), PATH) == configs(old="2", new="4")
    assert keeping(desired, {"mig": {"strategy": "mixed"}}, PATH) == desired
    assert keeping({}, configs(old="2"), PATH) == {}, "nothing is asked for there"
    assert desired == configs(new="4")
