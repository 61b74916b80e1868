"""Secrets of receivers: read from files, checked before anything else, and shown nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.cluster import secret_operations as operations
from gpuboot.config import settings
from gpuboot.config.settings import Settings, SettingsError
from gpuboot.monitoring import alerting
from gpuboot.site import local_files

CONTENTS = {
    "pagerduty-routing-key": "R0123456789",
    "slack-webhook": "https://hooks.slack.example/services/T/B/slack-token",
    "email-password": "hunter2 with blanks",
    "watchdog-url": "https://deadman.example/ping/watchdog-token",
    "ca.crt": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
}


def site(folder: Path, **changes: Any) -> Settings:
    """All receivers, with secrets in files below `folder`; `changes`: sections that differ."""

    def file(name: str) -> dict[str, str]:
        return {"file": str(folder / name)}

    email = {"to": ["ops@example.com"], "sender": "gpu@example.com", "smarthost": "mx:587"}
    all_receivers = {
        "pagerduty": {"routing_key": file("pagerduty-routing-key")},
        "slack": {"webhook": file("slack-webhook")},
        "email": {**email, "username": "gpu", "password": file("email-password")},
        "watchdog": {"url": file("watchdog-url")},
        "ca_file": str(folder / "ca.crt"),
    }
    return settings.parse_settings({"alertmanager": {**all_receivers, **changes}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in CONTENTS.items():
        (tmp_path / name).write_text(f"{text}\n")
        (tmp_path / name).chmod(0o600)
    return tmp_path


def test_contents_lose_the_newline_that_editors_add(folder: Path) -> None:
    contents = alerting.secrets(site(folder))
    assert {key: value.get_secret_value() for key, value in contents.items()} == CONTENTS


def test_no_content_is_in_the_values_or_their_text(folder: Path) -> None:
    site_settings = site(folder)
    text = json.dumps(alerting.alertmanager_values(site_settings)) + repr(
        alerting.secrets(site_settings)
    )
    assert not [content for content in CONTENTS.values() if content in text]
    assert "/etc/alertmanager/secrets/gpuboot-alertmanager/slack-webhook" in text


def test_every_mistake_is_told_at_once_and_no_content_is_quoted(folder: Path) -> None:
    (folder / "pagerduty-routing-key").unlink()
    (folder / "slack-webhook").write_text("my-slack-token")
    (folder / "email-password").write_text("\n")
    (folder / "watchdog-url").write_bytes(b"\xff\xfe")
    (folder / "ca.crt").write_text("-----BEGIN PRIVATE KEY-----")
    with pytest.raises(SettingsError) as error:
        alerting.secrets(site(folder))
    causes = [problem.cause for problem in error.value.problems]
    assert causes == [
        f"alertmanager.{setting}: {folder / key}: {content}"
        for setting, key, content in (
            ("pagerduty.routing_key.file", "pagerduty-routing-key", "No such file or directory"),
            ("slack.webhook.file", "slack-webhook", "it does not hold one URL (https://…)"),
            ("email.password.file", "email-password", "it is empty"),
            ("watchdog.url.file", "watchdog-url", "it is not text"),
            ("ca_file", "ca.crt", "it holds no PEM certificate"),
        )
    ]
    assert "my-slack-token" not in str(error.value)
    assert local_files.problems(site(folder)) == error.value.problems


def test_a_key_is_one_line(folder: Path) -> None:
    (folder / "email-password").write_text("one\ntwo")
    with pytest.raises(SettingsError, match="more than one line"):
        alerting.secrets(site(folder))


def test_files_that_others_can_read_are_told_of(folder: Path) -> None:
    assert local_files.warnings(site(folder)) == []
    (folder / "email-password").chmod(0o644)
    (folder / "ca.crt").chmod(0o644)  # a certificate is no secret
    [warning] = local_files.warnings(site(folder))
    assert warning.startswith("alertmanager.email.password.file: others can read")


def test_collectors_are_looked_at_before_the_run(tmp_path: Path) -> None:
    counters = tmp_path / "counters.csv"
    site_settings = settings.parse_settings({"exporter": {"collectors_file": str(counters)}})
    [missing] = local_files.problems(site_settings)
    assert "exporter.collectors_file" in missing.cause
    counters.write_text("DCGM_FI_DEV_GPU_TEMP, gauge\n")
    [problem] = local_files.problems(site_settings)
    assert "2 columns instead of 3" in problem.cause
    counters.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, help\n")
    assert local_files.problems(site_settings) == []


def test_secrets_of_the_cluster_are_mounted_as_they_are(folder: Path) -> None:
    email = {"to": ["a@example.com"], "sender": "b@example.com", "smarthost": "mx:587"}
    site_settings = site(
        folder,
        slack={"webhook": {"secret": "team/url"}},
        email={**email, "username": "u", "password": {"secret": "team/smtp"}},
    )
    assert alerting.site_secrets(site_settings) == {"team": ["url", "smtp"]}
    assert set(alerting.secrets(site_settings)) == {
        "pagerduty-routing-key",
        "watchdog-url",
        "ca.crt",
    }
    values = alerting.alertmanager_values(site_settings)
    assert values["alertmanagerSpec"]["secrets"] == ["gpuboot-alertmanager", "team"]
    assert "/etc/alertmanager/secrets/team/url" in json.dumps(values["config"])


def test_without_a_cluster_its_secrets_are_refused(folder: Path) -> None:
    site_settings = site(folder, slack={"webhook": {"secret": "team/url"}})
    with pytest.raises(SettingsError, match=r"slack\.webhook\.secret: .* without Kubernetes"):
        alerting.config(site_settings, "/run/secrets")
    assert "/run/secrets/slack-webhook" in json.dumps(alerting.config(site(folder), "/run/secrets"))


def test_nothing_is_mounted_for_no_receivers() -> None:
    values = alerting.alertmanager_values(settings.parse_settings({}))
    assert "alertmanagerSpec" not in values
    assert alerting.secrets(settings.parse_settings({})) == {}


def test_a_user_without_a_password_is_a_mistake() -> None:
    email = {"to": ["a@b.c"], "sender": "b@b.c", "smarthost": "mx:587", "username": "u"}
    with pytest.raises(SettingsError, match="username and password"):
        settings.parse_settings({"alertmanager": {"email": email}})


@pytest.mark.parametrize("present", [{"url": "ab"}, {}])
def test_a_missing_secret_of_the_site_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, present: dict[str, str]
) -> None:
    monkeypatch.setattr(operations, "read", lambda fact, **_: present)
    monkeypatch.setattr(operations, "executing", lambda: True)
    [command] = operations.required._inner("m", {"team": ["url", "smtp"]})
    missing = "team/smtp" if present else "team/url, team/smtp"
    assert f"not in namespace m: {missing}\n" in command.args[0]
