"""What gpuboot adds to the monitoring stack: all of it there and in force, or a finding that says
what is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from gpuboot.cluster.objects import Claim
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.monitoring import rules
from gpuboot.monitoring.stack_objects import ExpectedObjects, ObservedObjects
from gpuboot.verify.checks import monitoring_objects
from gpuboot.verify.evidence import Evidence, Rule, Target
from gpuboot.verify.findings import Finding
from tests.unit.evidence import evidence, metrics, of, only

NODES = (
    Node("cp1", "cp1", "10.0.0.1", "control_plane", 0, True),
    Node("gpu1", "gpu1", "10.0.0.2", "worker", 2, False),
)
CONFIG: dict[str, Any] = {
    "route": {
        "receiver": "slack",
        "routes": [{"receiver": "oncall", "matchers": ['severity = "critical"']}],
    },
    "receivers": [{"name": "slack", "slack_configs": [{}]}, {"name": "oncall"}],
    "inhibit_rules": [
        {"source_matchers": ['a = "b"', 'c =~ "d|e"'], "target_matchers": [], "equal": ["node"]}
    ],
}
# as Alertmanager writes it: no blanks, matchers sorted, and routes of others around ours
RUNNING: dict[str, Any] = {
    "global": {"resolve_timeout": "5m"},
    "route": {
        "receiver": "slack",
        "routes": [
            {"receiver": "team", "matchers": ['namespace="team-a"'], "continue": True},
            {"receiver": "oncall", "matchers": ['severity="critical"'], "continue": False},
        ],
    },
    "receivers": [*CONFIG["receivers"], {"name": "team", "webhook_configs": [{}]}],
    "inhibit_rules": [
        {"source_matchers": ['c=~"d|e"', 'a="b"'], "target_matchers": [], "equal": ["node"]}
    ],
}
RULE = ("PrometheusRule", "monitoring", "gpuboot")
BOARD = ("ConfigMap", "monitoring", "gpu-cluster")
VOLUME = "prometheus-kube-prometheus-stack-prometheus-db-"
EXPECTED = ExpectedObjects(
    objects={RULE: "1", BOARD: "2"},
    groups={"gpuboot-gpu": ("GPULost", "GPUXidFatal"), "gpuboot-info": (rules.RULES_INFO_METRIC,)},
    alertmanager=CONFIG,
    claims={VOLUME: "50Gi"},
    rules_digest="new",
)


def claim(phase: str, size: str = "") -> Claim:
    return Claim("monitoring", f"{VOLUME}0", size, phase=phase)


OBSERVED = ObservedObjects({RULE: "1", BOARD: "2"}, (claim("Bound", "50Gi"),))
RULES_INFO = Rule(
    name=rules.RULES_INFO_METRIC,
    health="ok",
    error="",
    group="gpuboot-info",
    labels={"digest": "new"},
)
OWN_RULES = (
    Rule(name="GPULost", health="ok", error="", group="gpuboot-gpu"),
    Rule(name="GPUXidFatal", health="ok", error="", group="gpuboot-gpu"),
    RULES_INFO,
)


def observed_evidence(**fields: Any) -> Evidence:
    """Evidence in which all is as it should be, but for what is given."""
    observed_metrics = metrics(
        rules=fields.pop(
            "rules",
            (*OWN_RULES, Rule(name="Watchdog", health="ok", error="", group="general.rules")),
        ),
        targets=fields.pop("targets", (Target(job="kube-state-metrics", node="", health="up"),)),
        alertmanager_config=fields.pop("config", yaml.safe_dump(RUNNING)),
        errors=fields.pop("errors", {}),
        alertmanager_ready=fields.pop("ready", True),
    )
    plain = evidence(metrics=observed_metrics, expected_objects=EXPECTED, observed_objects=OBSERVED)
    return replace(plain, **fields)


def evaluate_objects(**fields: Any) -> list[Finding]:
    return monitoring_objects.evaluate(observed_evidence(**fields))


def test_all_is_well() -> None:
    findings = evaluate_objects()
    assert {item.status for item in findings} == {"pass"}
    assert {item.link for item in findings} == {
        "rules", "targets", "alertmanager", "dashboards", "storage",
    }  # fmt: skip


def test_nobody_looks_where_nobody_asked() -> None:
    assert evaluate_objects(expected_objects=None) == []


@pytest.mark.parametrize(
    ("rules_", "message"),
    [
        ((OWN_RULES[0], RULES_INFO), "gpuboot-gpu: 1 of 2 rules"),
        (OWN_RULES[:2], "gpuboot-info: 0 of 1 rules"),
        (
            (*OWN_RULES[:2], replace(RULES_INFO, labels={"digest": "old"})),
            "other versions of these rules",
        ),
        ((), "gpuboot-gpu: 0 of 2 rules"),
        ((*OWN_RULES, OWN_RULES[0]), "gpuboot-gpu: 3 of 2 rules"),
        (
            (OWN_RULES[0], replace(OWN_RULES[1], name="GPUOther"), RULES_INFO),
            "gpuboot-gpu: 2 of 2 rules",
        ),
        (
            (OWN_RULES[0], replace(OWN_RULES[1], group="other"), RULES_INFO),
            "gpuboot-gpu: 1 of 2 rules",
        ),
    ],
)
def test_rules_that_are_not_ours(rules_: tuple[Rule, ...], message: str) -> None:
    finding = only(evaluate_objects(rules=rules_), "fail")
    assert finding.link == "rules"
    assert message in finding.detail


def test_rules_that_nobody_wants_any_more() -> None:
    finding = only(evaluate_objects(expected_objects=replace(EXPECTED, groups={})), "fail")
    assert finding.detail.endswith("gpuboot-gpu: still loaded; gpuboot-info: still loaded")
    findings = evaluate_objects(
        expected_objects=replace(EXPECTED, groups={}),
        rules=(Rule(name="Watchdog", health="ok", error="", group="g"),),
    )
    assert not [item for item in findings if item.check == "our rules loaded"]


def test_our_groups_are_known_by_their_name() -> None:
    names = [group["name"] for group in rules.groups(Settings(), NODES)]
    assert all(name.startswith(monitoring_objects.RULE_GROUP_PREFIX) for name in names)


def test_rules_that_were_not_evaluated_yet_are_not_healthy() -> None:
    finding = only(
        evaluate_objects(rules=(OWN_RULES[0], replace(OWN_RULES[1], health="unknown"), RULES_INFO)),
        "unknown",
    )
    assert "1 of 3 not evaluated yet: GPUXidFatal" in finding.detail


def test_kube_state_metrics() -> None:
    assert (
        only(evaluate_objects(targets=()), "fail").detail
        == "Prometheus has no target kube-state-metrics"
    )
    down = evaluate_objects(targets=(Target(job="kube-state-metrics", node="", health="down"),))
    assert not of(down, "fail")  # `all targets up` tells it
    assert not of(down, "pass", "targets")
    assert not of(
        evaluate_objects(targets=(), expected_objects=replace(EXPECTED, state_metrics=False)),
        "fail",
    )


def without(path: str) -> str:
    """What Alertmanager runs with, less one of ours."""
    config = json.loads(json.dumps(RUNNING))
    if path == "receivers":
        config["receivers"] = config["receivers"][1:]
    elif path == "routes":
        config["route"]["routes"].pop()
    elif path == "matchers":
        config["route"]["routes"][-1]["matchers"] = ['severity="warning"']
    else:
        config["inhibit_rules"][0]["equal"] = ["cluster"]
    return yaml.safe_dump(config)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("receivers", "receivers: slack (slack)"),
        ("routes", 'routes: {severity="critical} to oncall'),
        ("matchers", "routes: "),
        ("inhibitions", "inhibitions: "),
    ],
)
def test_what_alertmanager_does_not_run_with(path: str, message: str) -> None:
    finding = only(evaluate_objects(config=without(path)), "fail")
    assert finding.link == "alertmanager"
    assert message.replace('"', "") in finding.detail


def test_a_configuration_nobody_could_read() -> None:
    findings = evaluate_objects(config=None, errors={"alertmanager config": "503"})
    assert only(findings, "unknown").detail == "503"
    assert not of(evaluate_objects(config=None, ready=False), "unknown")  # told by its own finding


@pytest.mark.parametrize(
    ("objects", "link", "message"),
    [
        ({BOARD: "2"}, "rules", "gpuboot is missing"),
        ({RULE: "1", BOARD: "9"}, "dashboards", "gpu-cluster is not as the settings say"),
        (
            {**OBSERVED.objects, ("NetworkPolicy", "monitoring", "old"): "3"},
            "policies",
            "old is left over: the settings no longer have it",
        ),
    ],
)
def test_objects_that_are_not_as_wanted(
    objects: Mapping[tuple[str, str, str], str], link: str, message: str
) -> None:
    finding = only(evaluate_objects(observed_objects=replace(OBSERVED, objects=objects)), "fail")
    assert (finding.link, finding.detail) == (link, message)
    assert finding.remedy


def test_policies_that_nothing_enforces_are_said_to_be_so() -> None:
    policy = ("NetworkPolicy", "monitoring", "gpuboot-grafana")
    objects = {**OBSERVED.objects, policy: "3"}
    [finding] = [
        item
        for item in evaluate_objects(
            expected_objects=replace(EXPECTED, objects=objects),
            observed_objects=replace(OBSERVED, objects=objects, enforcement="not enforced: …"),
        )
        if item.link == "policies"
    ]
    assert finding.status == "pass"
    assert finding.detail.endswith("gpuboot-grafana; not enforced: …")


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ((), "no PersistentVolumeClaim asks for it"),
        ((claim("Pending"),), f"{VOLUME}0 is Pending"),
        ((claim("Bound", "10Gi"),), f"{VOLUME}0 has 10Gi, expected 50Gi"),
        ((claim("Bound", "49G"),), "has 49G, expected 50Gi"),
    ],
)
def test_volumes(claims: tuple[Claim, ...], message: str) -> None:
    finding = only(evaluate_objects(observed_objects=replace(OBSERVED, claims=claims)), "fail")
    assert finding.link == "storage"
    assert message in finding.detail


@pytest.mark.parametrize("size", ["51200Mi", "53687091200", "0.05Ti", "1e12"])
def test_a_size_in_other_words(size: str) -> None:
    observed = replace(OBSERVED, claims=(claim("Bound", size),))
    assert not of(evaluate_objects(observed_objects=observed), "fail")


def test_a_cluster_that_does_not_tell() -> None:
    findings = evaluate_objects(observed_objects=None, objects_error="403 forbidden")
    unread = of(findings, "unknown")
    assert {item.link for item in unread} == {"rules", "dashboards", "storage"}
    assert {item.detail for item in unread} == {"403 forbidden"}


def test_without_grafana_nobody_says_that_it_answers() -> None:
    for grafana in (True, False):
        findings = of(
            monitoring_objects.evaluate(observed_evidence(), grafana), "pass", "dashboards"
        )
        assert ["no Grafana was asked" in item.detail for item in findings] == [not grafana]
