"""Alertmanager: who is notified of what, how and in which words, made from the settings.

critical goes to PagerDuty, warning to Slack, info by e-mail; a severity without its receiver goes
to the next one below that is set. Read docs/alerting.md for what people do with it.
"""

from __future__ import annotations

from typing import Any

from gpuboot.cluster.values import Values
from gpuboot.config.settings import Settings, SettingsError
from gpuboot.monitoring.alerting import inhibitions
from gpuboot.monitoring.alerting.receivers import NONE, receiver_of, receivers
from gpuboot.monitoring.alerting.routes import route
from gpuboot.monitoring.alerting.secrets import (
    CA,
    SECRET,
    files,
    kubernetes_secret_problems,
    receiver_secrets,
    secrets,
    site_secrets,
)
from gpuboot.templates import TEMPLATES

__all__ = [
    "NONE",
    "SECRET",
    "alertmanager_values",
    "config",
    "files",
    "receiver_of",
    "secrets",
    "site_secrets",
    "templates",
]

_MOUNTS = "/etc/alertmanager/secrets"  # where prometheus-operator mounts alertmanagerSpec.secrets


def config(settings: Settings, folder: str) -> dict[str, Any]:
    """alertmanager.yml for an Alertmanager without Kubernetes.

    `templates()` are to stand beside it.

    + folder: where Alertmanager sees the files of `secrets`, each under its key

    Raises `SettingsError` when a secret is to come from a Kubernetes Secret.
    """
    problems = kubernetes_secret_problems(receiver_secrets(settings.alertmanager))
    if problems:
        raise SettingsError(problems)
    return _config(settings, folder, "*.tmpl")


def alertmanager_values(settings: Settings) -> Values:
    """The chart's values below `alertmanager`: its configuration and the Secrets it mounts.

    Lists replace the chart's own, so they are complete. There is nothing secret in it: secrets are
    files of Secrets that are mounted.
    """
    own_secret = [SECRET] if files(settings) else []
    mounted = [*own_secret, *site_secrets(settings)]
    configuration = _config(settings, f"{_MOUNTS}/{SECRET}", "/etc/alertmanager/config/*.tmpl")
    return {
        "config": configuration,
        "templateFiles": templates(),
        **({"alertmanagerSpec": {"secrets": mounted}} if mounted else {}),
    }


def templates() -> dict[str, str]:
    """The files that the messages' texts come from: name -> Go template."""
    return {path.name: path.read_text() for path in sorted(_TEMPLATES.glob("*.tmpl"))}


_TEMPLATES = TEMPLATES / "alertmanager"


def _config(settings: Settings, folder: str, texts: str) -> dict[str, Any]:
    alertmanager = settings.alertmanager
    return {
        "global": _global(settings, folder),
        "route": route(alertmanager),
        "receivers": receivers(alertmanager, folder),
        "inhibit_rules": inhibitions.rules(),
        "templates": [texts],
    }


def _global(settings: Settings, folder: str) -> dict[str, Any]:
    """What all receivers share. A proxy can be added to `http_config` by `monitoring.values`."""
    defaults: dict[str, Any] = {"resolve_timeout": "5m"}
    if settings.alertmanager.pagerduty:
        defaults["pagerduty_url"] = settings.alertmanager.pagerduty.url
    if settings.alertmanager.ca_file:
        defaults["http_config"] = {"tls_config": {"ca_file": f"{folder}/{CA}"}}
    return defaults
