"""Every alert's way, told by Alertmanager's own tool from the configuration that gpuboot writes."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config import settings
from gpuboot.monitoring import alerting, rules
from gpuboot.monitoring.alerting import inhibitions
from tests.routing import programs

FILE = {"file": "/run/secrets/x"}
MAIL = {"to": ["a@example.com", "b@example.com"], "sender": "g@example.com", "smarthost": "mx:25"}
PARTS: dict[str, dict[str, Any]] = {
    "pagerduty": {"routing_key": FILE},
    "slack": {"webhook": FILE},
    "email": MAIL,
    "watchdog": {"url": FILE},
}
SITES = {
    "+".join(names) or "nothing": {name: PARTS[name] for name in names}
    for size in range(len(PARTS) + 1)
    for names in itertools.combinations(PARTS, size)
}
VARIANTS: dict[str, dict[str, Any]] = {
    "channel": {"slack": {"webhook": FILE, "channel": "#gpu"}},
    "login": {"email": {**MAIL, "username": "u", "password": FILE, "require_tls": False}},
    "authority": {**PARTS, "ca_file": "/run/ca.crt"},
    "waits": {
        **PARTS,
        "group_by": ["alertname"],
        "group_wait": "0s",
        "group_interval": "90s",
        "repeat_interval": "1w",
    },
    "each alert alone": {**PARTS, "group_by": ["..."]},
    "slow heartbeat": {"watchdog": {"url": FILE, "interval": "1d"}},
}
ALERTS = {
    alert.name: alert
    for group in rules.all_alerts(settings.parse_settings({})).values()
    for alert in group
}


@pytest.mark.parametrize("data", [*SITES.values(), *VARIANTS.values()], ids=[*SITES, *VARIANTS])
def test_alertmanager_takes_the_configuration(tmp_path: Path, data: dict[str, Any]) -> None:
    output = programs.amtool("check-config", programs.write(data, tmp_path))
    assert "SUCCESS" in output
    assert "1 templates" in output


# What the table in docs/alerting.md says: the own receiver, else the next one below.
def expected(severity: str, site: str) -> str:
    wants = {
        "critical": ("pagerduty", "slack", "email"),
        "warning": ("slack", "email"),
        "info": ("email",),
        "": ("slack", "email"),
        "unheard-of": ("slack", "email"),
        "none": (),
    }[severity]
    return next((name for name in wants if name in site.split("+")), "null")


def receiver(config: Path, **labels: str) -> str:
    words = [f"{name}={value}" for name, value in labels.items() if value]
    return programs.amtool("config", "routes", "test", f"--config.file={config}", *words)


@pytest.mark.parametrize("severity", ["critical", "warning", "info", "", "unheard-of", "none"])
def test_severities_go_to_their_receiver_or_the_next_below(tmp_path: Path, severity: str) -> None:
    for site, data in SITES.items():
        config = programs.write(data, tmp_path)
        actual = receiver(config, alertname="A", severity=severity, component="gpu")
        assert actual == expected(severity, site), site


@pytest.mark.parametrize("site", SITES)
def test_heartbeat_and_info_inhibitor_disturb_nobody(tmp_path: Path, site: str) -> None:
    config = programs.write(SITES[site], tmp_path)
    beat = receiver(config, alertname="Watchdog", severity="none")
    assert beat == ("watchdog" if "watchdog" in site else "null")
    assert receiver(config, alertname="InfoInhibitor", severity="none", namespace="ml") == "null"


@pytest.mark.parametrize("name", ALERTS)
def test_each_of_our_alerts_reaches_somebody(tmp_path: Path, name: str) -> None:
    alert = ALERTS[name]
    config = programs.write(PARTS, tmp_path)
    labels = {"alertname": name, "severity": alert.severity, "component": alert.component}
    assert (
        receiver(config, **labels)
        == {
            "critical": "pagerduty",
            "warning": "slack",
            "info": "email",
        }[alert.severity]
    )


def test_inhibitions_name_alerts_that_exist() -> None:
    """A renamed alert would silently stop to explain the others."""
    matchers = [
        matcher
        for rule in inhibitions.rules()
        for side in ("source_matchers", "target_matchers")
        for matcher in rule.get(side, [])
        if matcher.startswith("alertname")
    ]
    known_alerts = {*ALERTS, "InfoInhibitor", "KubeNodeNotReady", "KubeNodeUnreachable"}
    for matcher in matchers:
        for name in matcher.split('"')[1].split("|"):
            assert any(re.fullmatch(name, alert) for alert in known_alerts), f"{matcher}: {name}"


def test_inhibitions_compare_only_labels_that_they_ask_for() -> None:
    """Labels that are absent on both sides count as equal: then anything mutes anything."""
    for rule in inhibitions.rules():
        place = {"node", "UUID"} & set(rule.get("equal", []))
        if "alertname" in rule.get("equal", []):
            continue  # the same alert, which always has the same labels
        for label in place:
            assert f'{label} != ""' in rule["source_matchers"], rule


def test_alertmanager_parses_every_inhibition(tmp_path: Path) -> None:
    output = programs.amtool("check-config", programs.write({}, tmp_path))
    assert f"{len(inhibitions.rules())} inhibit rules" in output


@pytest.mark.parametrize(("interval", "half"), [("1m", "30s"), ("1s", "500ms"), ("1d", "43200s")])
def test_heartbeats_are_sent_at_each_look(interval: str, half: str) -> None:
    """A repeat interval as long as the group's would skip every second heartbeat."""
    data = {"watchdog": {"url": FILE, "interval": interval}}
    route = alerting.config(settings.parse_settings({"alertmanager": data}), "/s")["route"][
        "routes"
    ][0]
    assert (route["group_interval"], route["repeat_interval"]) == (interval, half)


def test_waits_come_from_the_settings() -> None:
    site_settings = settings.parse_settings({"alertmanager": VARIANTS["waits"]})
    route = alerting.config(site_settings, "/s")["route"]
    assert (route["group_wait"], route["group_interval"]) == ("0s", "90s")
    critical = next(
        subroute
        for subroute in route["routes"]
        if subroute["matchers"] == ['severity = "critical"']
    )
    assert (route["repeat_interval"], critical["repeat_interval"]) == ("1w", "201600s")
