"""remote_write: the same samples to a store that outlives one Prometheus."""

from __future__ import annotations

from pydantic import SecretStr

from gpuboot.cluster.values import Values
from gpuboot.config import secret_files
from gpuboot.config.secret_files import SecretFile
from gpuboot.config.settings import Settings, SettingsError
from gpuboot.config.settings.monitoring import RemoteWrite
from gpuboot.config.settings.secret import Secret
from gpuboot.monitoring import rules

SECRET = "gpuboot-remote-write"
EXPECTED = "node:gpu_expected:count"  # made from the inventory, which the values do not know
_GPU = ("DCGM_.*", "kube_.*", "gpu_operator_.*")


def remote_write(settings: Settings) -> list[Values]:
    """Values of `prometheusSpec.remoteWrite`. Secrets are named there, never held."""
    return [_remote_write_values(item, settings) for item in settings.monitoring.remote_write]


def user_names(settings: Settings) -> dict[str, str]:
    """Key in our Secret -> a user name, which the operator takes from a Secret only."""
    return {
        f"{item.name}-username": item.username
        for item in settings.monitoring.remote_write
        if item.username is not None
    }


def files(settings: Settings) -> dict[str, SecretFile]:
    """Key in our Secret -> the operator's file whose content it gets."""
    return {
        f"{item.name}-{kind}": SecretFile(
            f"monitoring.remote_write.{number}.{setting}.file", secret.file
        )
        for number, item in enumerate(settings.monitoring.remote_write)
        for kind, setting, secret in (
            ("password", "password", item.password),
            ("token", "bearer_token", item.bearer_token),
        )
        if secret is not None and secret.file is not None
    }


def contents(settings: Settings) -> dict[str, SecretStr]:
    """What our Secret holds; {} where nothing needs it.

    Raises `SettingsError` for files that cannot be used.
    """
    texts, problems = secret_files.read(files(settings))
    if problems:
        raise SettingsError(problems)
    names = {key: SecretStr(name) for key, name in user_names(settings).items()}
    return {**names, **texts}


def existing(settings: Settings) -> dict[str, list[str]]:
    """Secrets of the site that remote stores are reached with -> keys that must be in them."""
    keys: dict[str, list[str]] = {}
    for item in settings.monitoring.remote_write:
        for secret in (item.password, item.bearer_token):
            if secret is not None and secret.secret is not None:
                name, _, name_of_key = secret.secret.partition("/")
                keys.setdefault(name, []).append(name_of_key)
    return keys


def _remote_write_values(item: RemoteWrite, settings: Settings) -> Values:
    values: Values = {"name": item.name, "url": item.url}
    if item.headers:
        values["headers"] = dict(item.headers)
    if item.password is not None:
        values["basicAuth"] = {
            "username": {"name": SECRET, "key": f"{item.name}-username"},
            "password": _reference(item.password, f"{item.name}-password"),
        }
    if item.bearer_token is not None:
        values["authorization"] = {
            "type": "Bearer",
            "credentials": _reference(item.bearer_token, f"{item.name}-token"),
        }
    if item.only != "everything":
        regexes = (*(_GPU if item.only == "gpu" else ()), *recorded(settings))
        values["writeRelabelConfigs"] = [
            {"sourceLabels": ["__name__"], "regex": "|".join(regexes), "action": "keep"}
        ]
    return values


def recorded(settings: Settings) -> list[str]:
    """Names of the series that our recording rules make; the chart has rules of its own."""
    record_groups = rules.recordings(settings, ()).values()
    return sorted({record.name for records in record_groups for record in records} | {EXPECTED})


def _reference(secret: Secret, key: str) -> Values:
    if secret.secret is None:
        return {"name": SECRET, "key": key}
    name, _, key = secret.secret.partition("/")
    return {"name": name, "key": key}
