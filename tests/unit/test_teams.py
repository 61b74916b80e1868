"""Teams: quotas and priorities, what goes with a team, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.cluster import manifests, team_objects
from gpuboot.config.settings import SettingsError, parse_settings
from gpuboot.site.load_site import load

MIXED = {"gpu_operator": {"mig_strategy": "mixed"}}
VISION = {"gpus": 8, "mig": {"1g.10gb": 14, "1g.10gb+me": 1}, "priority": 100}


def objects(**definitions: Any) -> list[manifests.Object]:
    return team_objects.objects(parse_settings({**MIXED, "teams": definitions}).teams)


def test_a_team_has_a_quota_and_a_priority() -> None:
    """Names: https://kubernetes.io/docs/concepts/policy/resource-quotas (extended resources)."""
    [priority, quota] = objects(vision=VISION)
    assert priority["metadata"] == {"name": "team-vision"}
    assert (priority["value"], priority["preemptionPolicy"]) == (100, "Never")
    assert quota["metadata"] == {"name": "gpus", "namespace": "vision"}
    assert quota["spec"]["hard"] == {
        "requests.nvidia.com/gpu": "8",
        "requests.nvidia.com/mig-1g.10gb": "14",
        "requests.nvidia.com/mig-1g.10gb.me": "1",
    }


def test_a_team_without_bounds_has_no_quota_and_may_preempt() -> None:
    [priority] = objects(speech={"preempt": True})
    assert priority["preemptionPolicy"] == "PreemptLowerPriority"


def test_no_gpu_at_all_is_a_bound() -> None:
    [_, quota] = objects(guests={"gpus": 0})
    assert quota["spec"]["hard"] == {"requests.nvidia.com/gpu": "0"}


def difference(desired: list[manifests.Object], live: list[manifests.Object]) -> Any:
    return manifests.difference(desired, live, None, team_objects.KINDS)


def test_what_is_as_it_should_be_is_left_alone() -> None:
    desired = objects(vision=VISION)
    assert difference(desired, [manifests.as_owned(item) for item in desired]).is_empty


def test_another_value_makes_a_priority_class_anew() -> None:
    """The API server: value: Forbidden: may not be changed in an update."""
    live = [manifests.as_owned(item) for item in objects(vision=VISION)]
    change = difference(objects(vision={**VISION, "priority": 7, "gpus": 9}), live)
    assert [item["kind"] for item in change.remake] == ["PriorityClass"]
    assert [item["kind"] for item in change.apply] == ["ResourceQuota"]


def test_quota_and_priority_go_with_the_team_and_nothing_else_does() -> None:
    live = [manifests.as_owned(item) for item in objects(vision=VISION)]
    rules = {"kind": "ConfigMap", "metadata": {"name": "rules", "namespace": "monitoring"}}
    foreign_quota = {"kind": "ResourceQuota", "metadata": {"name": "mine", "namespace": "vision"}}
    change = difference([], [*live, manifests.as_owned(rules), foreign_quota])
    assert [item["kind"] for item in change.delete] == ["PriorityClass", "ResourceQuota"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"kube-system": {}}, "is the cluster's own"),
        ({"monitoring": {}}, "is the cluster's own"),
        ({"a": {"mig": {"1g.10gb": 1}}}, "instances have no names of their own"),
        ({"a": {"mig": {"1g": 1}}}, "takes a MIG profile"),
        ({"a": {"gpus": -1}}, "greater than or equal to 0"),
        ({"A": {}}, "takes a name of lower-case letters"),
    ],
)
def test_what_is_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError) as error_info:
        load({"teams": data})
    assert words in str(error_info.value)
