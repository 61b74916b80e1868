"""Every alert fires when it should, keeps quiet when it nearly should, resolves, and survives."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuboot.monitoring import rules
from tests.rules import (
    cases_cluster,
    cases_dcgm,
    cases_exporter,
    cases_gpu,
    cases_links,
    cases_lost,
    cases_memory,
    cases_recovery,
    cases_repaired,
    cases_scrapes,
    cases_support,
    cases_unheld,
    cases_use,
    cases_watches,
    cases_xid,
    cases_xid_fatal,
)
from tests.rules.model import Case
from tests.rules.suite import SETTINGS, Rule, all_rules, closure, run, write_cases, write_rules

CASES = [
    case
    for module in (
        cases_xid,
        cases_xid_fatal,
        cases_gpu,
        cases_links,
        cases_lost,
        cases_memory,
        cases_exporter,
        cases_scrapes,
        cases_use,
        cases_unheld,
        cases_cluster,
        cases_support,
        cases_dcgm,
        cases_recovery,
        cases_repaired,
        cases_watches,
    )
    for case in module.CASES
]
FIRST = {case.alert: case for case in reversed(CASES) if case.fires}
ALERTS = {a.name: a for group in rules.loaded_alerts(SETTINGS).values() for a in group}
ADD = "add it in tests/rules/cases_*.py; `level` and `counter` write the usual ones"
# What a restart of the exporter can trip up: looking back, and asking for what is not there.
_FRAGILE = re.compile(r"increase\(|rate\(|_over_time\(|absent\(|unless")
_WELL = re.compile(r"^(Unit Testing:.*|  SUCCESS|)\n", re.MULTILINE)
_FAILED = re.compile(r"alertname: (\w+), time")
_TEMPLATE_ERROR = re.compile(r"error expanding|<no value>|%!|<nil>")


def of(name: str) -> list[Case]:
    return [case for case in CASES if case.alert == name]


def test_promtool_accepts_every_rule(tmp_path: Path) -> None:
    write_rules(
        tmp_path / "rules.yml", [rule for group in all_rules().values() for rule in group], True
    )
    result = run("check", "rules", "--lint-fatal", tmp_path / "rules.yml")
    assert result.returncode == 0, result.stdout


def test_every_case_goes_as_it_says(tmp_path: Path) -> None:
    result = run("test", "rules", *write_cases(tmp_path, CASES))
    assert result.returncode == 0, _WELL.sub("", result.stdout)


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_has_the_cases_it_needs(name: str) -> None:
    cases = of(name)
    assert any(case.fires for case in cases), f"{name} has no case in which it fires; {ADD}"
    assert any(not case.fires and case.silent for case in cases), f"{name} has no near miss; {ADD}"
    resolves = (max(case.silent, default=0) > max(case.fires) for case in cases if case.fires)
    assert any(resolves), f"{name} has no case in which it resolves; {ADD}"


@pytest.mark.parametrize("name", ALERTS)
def test_what_a_restart_could_trip_up_is_tried_with_one(name: str) -> None:
    rules_by_alert = all_rules()
    expr = rules_by_alert[name][0]["expr"]
    read = [expr, *(record["expr"] for record in closure(expr, rules_by_alert[""]))]
    exported = any("DCGM_" in text or "dcgm-exporter" in text for text in read)
    if exported and any(map(_FRAGILE.search, read)):
        assert any(case.restart for case in of(name)), (
            f"{name} looks back or asks for what is absent, and no case has restart=True; {ADD}"
        )


def test_no_case_is_about_an_alert_that_does_not_exist() -> None:
    unknown = {case.alert for case in CASES} - ALERTS.keys()
    assert not unknown, f"cases of {unknown}, which no alert is named: rename or remove them"
    assert len({(case.alert, case.description) for case in CASES}) == len(CASES)


def _never(rule: Rule) -> Rule:
    return {**rule, "expr": f"({rule['expr']}) and on () vector(1) > 2"}


def _at_once(rule: Rule) -> Rule:
    return {key: value for key, value in rule.items() if key != "for"}


@pytest.mark.parametrize("change", [_never, _at_once])
def test_the_cases_notice_a_rule_that_is_wrong(
    tmp_path: Path, change: Callable[[Rule], Rule]
) -> None:
    """Without this, cases that ask nothing would pass as well as cases that ask much."""
    changed = {name for name, rule in all_rules().items() if name and change(rule[0]) != rule[0]}
    cases = [case for name, case in FIRST.items() if name in changed]
    result = run("test", "rules", *write_cases(tmp_path, cases, change=change))
    assert set(_FAILED.findall(result.stdout)) == changed


def test_every_annotation_can_be_filled_in(tmp_path: Path) -> None:
    """promtool compares annotations as well; expecting none makes it print what they became."""
    result = run("test", "rules", *write_cases(tmp_path, FIRST.values(), annotations=True))
    assert not _TEMPLATE_ERROR.search(result.stdout), result.stdout
    for name in ALERTS:
        assert f'runbook_url="docs/runbooks/{name}.md"' in result.stdout
