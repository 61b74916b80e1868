"""What follows from what is missing or refused: nothing that has another place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuboot.kubernetes.components import Missing
from tests.unit import diagnose_cases_absent
from tests.unit.diagnose_site import findings


def test_refused_pods_explain_nothing_where_no_part_of_the_cluster_makes_them() -> None:
    down = {"pool": "x", "labels": {"job": "x"}, "health": "down", "error": "refused", "url": "x"}
    told = diagnose_cases_absent.refused(diagnose_cases_absent.NO_CLASS)
    targets = told.cluster.targets or ()
    facts = replace(told, cluster=replace(told.cluster, targets=(*targets, down)))
    [follower] = [one for one in findings(facts) if one.cause.id == "prometheus-target-down"]
    assert follower.follows == ()


@pytest.mark.parametrize(("space", "follows"), [("stuck", ("namespace-terminating",)), ("x", ())])
def test_a_release_went_with_its_namespace(space: str, follows: tuple[str, ...]) -> None:
    gone = Missing(releases=(f"{space}/gpu-operator",))
    told = diagnose_cases_absent.going()
    facts = replace(told, cluster=replace(told.cluster, missing=gone))
    [release] = [one for one in findings(facts) if one.cause.id == "release-missing"]
    assert release.follows == follows
