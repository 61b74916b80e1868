"""What follows from what is missing or refused: nothing that has another place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuboot.monitoring.components import Missing
from tests.unit import diagnose_cases_absent
from tests.unit.diagnose_site import findings


def test_refused_pods_explain_nothing_where_no_part_of_the_cluster_makes_them() -> None:
    down = {"pool": "x", "labels": {"job": "x"}, "health": "down", "error": "refused", "url": "x"}
    refused_facts = diagnose_cases_absent.refused_pods(diagnose_cases_absent.NO_CLASS)
    targets = refused_facts.cluster.targets or ()
    facts = replace(refused_facts, cluster=replace(refused_facts.cluster, targets=(*targets, down)))
    [follower] = [item for item in findings(facts) if item.cause.id == "prometheus-target-down"]
    assert follower.follows == ()


@pytest.mark.parametrize(("space", "follows"), [("stuck", ("namespace-terminating",)), ("x", ())])
def test_a_release_went_with_its_namespace(space: str, follows: tuple[str, ...]) -> None:
    missing = Missing(releases=(f"{space}/gpu-operator",))
    terminating = diagnose_cases_absent.going()
    facts = replace(terminating, cluster=replace(terminating.cluster, missing=missing))
    [release] = [item for item in findings(facts) if item.cause.id == "release-missing"]
    assert release.follows == follows
