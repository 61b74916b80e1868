"""What Alertmanager must know and nobody may read: where it comes from, and where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import SecretStr

from gpuboot.config import secret_files
from gpuboot.config.problems import Problem
from gpuboot.config.secret_files import Check, SecretFile
from gpuboot.config.settings import Alertmanager, Settings, SettingsError
from gpuboot.config.settings.secret import Secret

SECRET = "gpuboot-alertmanager"  # the Secret in the monitoring namespace
# its keys, which are file names where it is mounted
PAGERDUTY = "pagerduty-routing-key"
SLACK = "slack-webhook"
EMAIL = "email-password"
WATCHDOG = "watchdog-url"
CA = "ca.crt"


@dataclass(frozen=True)
class ReceiverSecret:
    """A secret of a receiver. key: its name in our Secret, and its file's in `config`'s folder.

    + setting: the setting that says where it comes from
    + source: that setting's value
    """

    key: str
    setting: str
    source: Secret
    check: Check

    def at(self, folder: str) -> str:
        """The path at which Alertmanager reads it; `folder` is where our own Secret is mounted."""
        if self.source.secret is None:
            return f"{folder}/{self.key}"
        return str(PurePosixPath(folder).parent / self.source.secret)


def receiver_secrets(alertmanager: Alertmanager) -> dict[str, ReceiverSecret]:
    """What the receivers that are set need, by key."""
    pagerduty, slack = alertmanager.pagerduty, alertmanager.slack
    email, watchdog = alertmanager.email, alertmanager.watchdog
    line, url = secret_files.one_line, secret_files.url
    rows = (
        (PAGERDUTY, "pagerduty.routing_key", pagerduty and pagerduty.routing_key, line),
        (SLACK, "slack.webhook", slack and slack.webhook, url),
        (EMAIL, "email.password", email and email.password, line),
        (WATCHDOG, "watchdog.url", watchdog and watchdog.url, url),
    )
    return {
        key: ReceiverSecret(key, f"alertmanager.{setting}", source, check)
        for key, setting, source, check in rows
        if source
    }


def files(settings: Settings) -> dict[str, SecretFile]:
    """The operator's files that go into our Secret, by key: the secrets and the authority."""
    by_key = {
        key: SecretFile(f"{item.setting}.file", item.source.file, item.check)
        for key, item in receiver_secrets(settings.alertmanager).items()
        if item.source.file is not None
    }
    if settings.alertmanager.ca_file:
        by_key[CA] = SecretFile(
            "alertmanager.ca_file", settings.alertmanager.ca_file, secret_files.certificates, True
        )
    return by_key


def secrets(settings: Settings) -> dict[str, SecretStr]:
    """The content of our Secret, read from the operator's files, without trailing newlines.

    Raises `SettingsError` that names every file that is missing, unreadable, empty or of the wrong
    kind, and quotes none.
    """
    contents, problems = secret_files.read(files(settings))
    if problems:
        raise SettingsError(problems)
    return contents


def site_secrets(settings: Settings) -> dict[str, list[str]]:
    """The site's own Secrets that receivers read: name -> keys that must be in it."""
    keys_by_secret: dict[str, list[str]] = {}
    for item in receiver_secrets(settings.alertmanager).values():
        if item.source.secret is not None:
            name, key = item.source.secret.split("/")
            keys_by_secret.setdefault(name, []).append(key)
    return keys_by_secret


def kubernetes_secret_problems(items: Mapping[str, ReceiverSecret]) -> list[Problem]:
    """A problem for each secret that only a cluster could give."""
    return [
        Problem(
            "",
            f"{item.setting}.secret: there are no Secrets without Kubernetes",
            f"use gpuboot['{item.setting}.file']",
        )
        for item in items.values()
        if item.source.secret is not None
    ]
