"""Values of Fluent Bit's chart: one release for the nodes, one for Events; and their secrets.

Keys are those of fluent-bit 0.58.1 (its values.yaml and templates). Events are watched by one pod:
one on each node would send each Event as often as there are nodes.
"""

from __future__ import annotations

from pydantic import SecretStr

from gpuboot.cluster import node_gate
from gpuboot.cluster.values import Values, merge
from gpuboot.config import secret_files
from gpuboot.config.secret_files import SecretFile, certificates
from gpuboot.config.settings import Settings, SettingsError
from gpuboot.config.settings.secret import Secret
from gpuboot.monitoring.charts.fluent_bit import STATE, events_config, nodes_config

CHART = "fluent-bit"
NODES, EVENTS = "fluent-bit", "fluent-bit-events"
SECRET = "gpuboot-logs"
_CA_FOLDER = "/fluent-bit/gpuboot"
_RESOURCES: Values = {
    "requests": {"cpu": "50m", "memory": "64Mi"},
    "limits": {"memory": "256Mi"},
}


def releases(settings: Settings) -> dict[str, Values]:
    """Release -> the chart's values; {} where logs are not shipped."""
    logs = settings.logs
    if not logs.enabled:
        return {}
    values_by_release = {NODES: _nodes(settings), EVENTS: _events(settings)}
    return {
        name: merge(merge(_common(settings), values), logs.values)
        for name, values in values_by_release.items()
    }


def files(settings: Settings) -> dict[str, SecretFile]:
    """Key in our Secret -> the operator's file whose content it gets."""
    loki = settings.logs.loki
    if not (settings.logs.enabled and loki):
        return {}
    configured_secrets = (
        ("password", "logs.loki.password.file", loki.password),
        ("token", "logs.loki.bearer_token.file", loki.bearer_token),
    )
    secret_files = {
        key: SecretFile(setting, secret.file)
        for key, setting, secret in configured_secrets
        if secret is not None and secret.file is not None
    }
    if loki.ca:
        secret_files["ca.crt"] = SecretFile(
            "logs.loki.ca.file", loki.ca.file, certificates, public=True
        )
    return secret_files


def contents(settings: Settings) -> dict[str, SecretStr]:
    """What our Secret holds; {} where nothing needs it.

    Raises `SettingsError` for files that cannot be used.
    """
    texts, problems = secret_files.read(files(settings))
    if problems:
        raise SettingsError(problems)
    return texts


def existing(settings: Settings) -> dict[str, list[str]]:
    """The site's own Secrets that settings name -> keys that must be in them."""
    loki = settings.logs.loki
    keys: dict[str, list[str]] = {}
    for secret in (loki.password, loki.bearer_token) if settings.logs.enabled and loki else ():
        if secret is not None and secret.secret is not None:
            name, _, key = secret.secret.partition("/")
            keys.setdefault(name, []).append(key)
    return keys


def _common(settings: Settings) -> Values:
    loki = settings.logs.loki
    assert loki
    values: Values = {
        "testFramework": {"enabled": False},
        "resources": _RESOURCES,
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            *_secret_variable("LOKI_PASSWORD", "password", loki.password),
            *_secret_variable("LOKI_TOKEN", "token", loki.bearer_token),
        ],
        "extraVolumes": [],
        "extraVolumeMounts": [],
    }
    if loki.ca:
        items = [{"key": "ca.crt", "path": "ca.crt"}]
        secret = {"secretName": SECRET, "items": items}
        values["extraVolumes"] = [{"name": "ca", "secret": secret}]
        values["extraVolumeMounts"] = [{"name": "ca", "mountPath": _CA_FOLDER, "readOnly": True}]
    return values


def _secret_variable(name: str, key: str, secret: Secret | None) -> list[Values]:
    if secret is None:
        return []
    secret_name, _, own_key = (secret.secret or f"{SECRET}/{key}").partition("/")
    return [{"name": name, "valueFrom": {"secretKeyRef": {"name": secret_name, "key": own_key}}}]


def _nodes(settings: Settings) -> Values:
    """Values of the release with a pod on every node, sick ones too: their kernels tell most."""
    folders = {
        "varlog": ("/var/log", {"readOnly": True}),
        "runlog": ("/run/log", {"readOnly": True}),
        "state": (STATE, {}),
        "etcmachineid": ("/etc/machine-id", {"readOnly": True}),
    }
    return {
        "kind": "DaemonSet",
        "tolerations": [{"operator": "Exists"}],
        "rbac": {"create": False},
        "serviceAccount": {"automountServiceAccountToken": False},
        "config": nodes_config(settings, NODES),
        "daemonSetVolumes": [
            {
                "name": name,
                "hostPath": {
                    "path": path,
                    "type": "File" if path == "/etc/machine-id" else "DirectoryOrCreate",
                },
            }
            for name, (path, _) in folders.items()
        ],
        "daemonSetVolumeMounts": [
            {"name": name, "mountPath": path, **options}
            for name, (path, options) in folders.items()
        ],
    }


def _events(settings: Settings) -> Values:
    return {
        "kind": "Deployment",
        "replicaCount": 1,
        "updateStrategy": {"type": "Recreate"},
        "tolerations": [node_gate.TOLERATION] if settings.gate.enabled else [],
        "rbac": {"create": True, "eventsAccess": True},
        "config": events_config(settings),
    }
