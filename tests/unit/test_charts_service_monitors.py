"""How the exporter is scraped: labels, pod labels, https and passwords, one ServiceMonitor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gpuboot.config.settings import Settings, SettingsError, parse_settings
from gpuboot.config.versions import lock
from gpuboot.monitoring import objects as monitoring
from gpuboot.monitoring.charts.exporter import exporter_values
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.monitoring.charts.service_monitors import exporter_objects, secrets_needed
from lab.build.golang import module_dir
from lab.charts import assemble
from lab.charts.schema import json_schema
from lab.state import LabError
from tests.unit.test_charts import unknown

TLS = {"kind": "chart", "tls_secret": "dcgm-tls"}
PASSWORD = {"kind": "chart", "basic_auth": "dcgm-web"}
TLS_AND_PASSWORD = {**TLS, **PASSWORD}
LABELS = {"pod_labels": ["team", r"app\.kubernetes\.io/name"]}
SITES: list[dict[str, Any]] = [{}, {"kind": "chart"}, TLS, PASSWORD, TLS_AND_PASSWORD]


def exporter_with(exporter: dict[str, Any]) -> dict[str, Any]:
    settings = parse_settings({"exporter": exporter})
    return exporter_values(settings, lock(settings))


def operated(exporter: dict[str, Any]) -> dict[str, Any]:
    settings = parse_settings({"exporter": exporter})
    values: dict[str, Any] = operator_values(settings, lock(settings))["dcgmExporter"]
    return values


def endpoint(exporter: dict[str, Any]) -> dict[str, Any]:
    [item] = exporter_objects(parse_settings({"exporter": exporter}))
    [result] = item["spec"]["endpoints"]
    return dict(result)


def chart_monitors(settings: Settings) -> list[bool]:
    version_lock = lock(settings)
    all_values = [operator_values(settings, version_lock)["dcgmExporter"]]
    if settings.exporter.kind == "chart":
        all_values.append(exporter_values(settings, version_lock))
    return [values["serviceMonitor"]["enabled"] for values in all_values]


@pytest.mark.parametrize("exporter", SITES)
@pytest.mark.parametrize("watched", [True, False])
def test_exactly_one_service_monitor_or_none(exporter: dict[str, Any], watched: bool) -> None:
    settings = parse_settings({"exporter": exporter, "monitoring": {"enabled": watched}})
    own_objects = exporter_objects(settings)
    assert sum(chart_monitors(settings)) + len(own_objects) == (1 if watched else 0)


@pytest.mark.parametrize("exporter", [*SITES, {**LABELS}, {**LABELS, "kind": "chart"}])
def test_every_key_is_one_the_chart_has(exporter: dict[str, Any]) -> None:
    settings = parse_settings({"exporter": exporter})
    values = {
        "dcgm-exporter": exporter_values(settings, lock(settings)),
        "gpu-operator": operator_values(settings, lock(settings)),
    }
    for name, chart_values in values.items():
        assert list(unknown(chart_values, json_schema(name))) == []


@pytest.mark.parametrize("exporter", SITES)
def test_nothing_drops_a_label_that_names_a_gpu(exporter: dict[str, Any]) -> None:
    settings = parse_settings({"exporter": exporter})
    monitors = exporter_objects(settings)
    rules = (
        monitors[0]["spec"]["endpoints"][0]["relabelings"]
        if monitors
        else operated({})["serviceMonitor"]["relabelings"]
    )
    dropped = [rule["regex"] for rule in rules if rule["action"] == "labeldrop"]
    assert dropped
    for label in ("UUID", "gpu", "device", "modelName", "GPU_I_ID", "GPU_I_PROFILE", "vgpu"):
        assert not any(re.fullmatch(regex, label) for regex in dropped)
    assert all(re.fullmatch(dropped[0], label) for label in ("pod", "namespace", "container"))


def test_https() -> None:
    values = exporter_with(TLS)
    assert values["tlsServerConfig"] == {"enabled": True, "existingSecret": "dcgm-tls"}
    assert "basicAuth" not in values
    assert "--web-config-file" not in values["arguments"], "the chart's own file does"
    tls_endpoint = endpoint(TLS)
    assert tls_endpoint["scheme"] == "https"
    assert tls_endpoint["tlsConfig"] == {
        "ca": {"secret": {"name": "dcgm-tls", "key": "ca.crt"}},
        "serverName": "dcgm-exporter.dcgm-exporter.svc",
    }
    assert "basicAuth" not in tls_endpoint


def test_password_is_named_and_never_held() -> None:
    values = exporter_with(PASSWORD)
    file = values["arguments"][values["arguments"].index("--web-config-file") + 1]
    [mount] = [m for m in values["extraVolumeMounts"] if file.startswith(m["mountPath"] + "/")]
    [volume] = [v for v in values["extraConfigMapVolumes"] if v["name"] == mount["name"]]
    assert volume["secret"]["secretName"] == "dcgm-web"
    assert volume["secret"]["items"][0]["path"] == file.rpartition("/")[2]
    assert values["basicAuth"]["users"], "else the chart's probes ask without the password"
    assert endpoint(PASSWORD)["basicAuth"] == {
        "username": {"name": "dcgm-web", "key": "username"},
        "password": {"name": "dcgm-web", "key": "password"},
    }


def test_collectors_stay_mounted_beside_the_password() -> None:
    values = exporter_with(PASSWORD)
    file = values["arguments"][values["arguments"].index("-f") + 1]
    [mount] = [m for m in values["extraVolumeMounts"] if m["mountPath"] == file]
    [volume] = [v for v in values["extraConfigMapVolumes"] if v["name"] == mount["name"]]
    assert volume["configMap"]["name"] == "exporter-metrics-config-map"


def test_our_monitor_selects_the_charts_service_and_keeps_the_shape() -> None:
    [item] = exporter_objects(parse_settings({"exporter": TLS_AND_PASSWORD}))
    assert item["spec"]["selector"] == {"matchLabels": {"app.kubernetes.io/name": "dcgm-exporter"}}
    assert item["metadata"]["namespace"] == "dcgm-exporter"
    shape = operated({})["serviceMonitor"]
    [endpoint_spec] = item["spec"]["endpoints"]
    for key in ("interval", "scrapeTimeout", "honorLabels", "relabelings"):
        assert endpoint_spec[key] == shape[key]


def misfits(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """What a definition's schema does not have, or not of that kind."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    if not isinstance(value, kinds[schema["type"]]):
        yield f"{path} is no {schema['type']}"
    elif value not in schema.get("enum", [value]):
        yield f"{path} is none of {schema['enum']}"
    elif isinstance(value, list):
        for item in value:
            yield from misfits(item, schema["items"], f"{path}[]")
    elif isinstance(value, dict) and "properties" in schema:
        yield from (f"{path}.{key}" for key in value.keys() - schema["properties"].keys())
        yield from (f"{path}.{key} lacks" for key in set(schema.get("required", ())) - value.keys())
        for key in value.keys() & schema["properties"].keys():
            yield from misfits(value[key], schema["properties"][key], f"{path}.{key}")


@pytest.mark.parametrize("exporter", [TLS, PASSWORD, TLS_AND_PASSWORD])
def test_our_monitor_fits_the_prometheus_operators_definition(exporter: dict[str, Any]) -> None:
    try:
        module = module_dir(assemble.PROMETHEUS_OPERATOR)
    except LabError as error:
        pytest.skip(f"the definition is in a Go module: {error}")
    folder = module / "example" / "prometheus-operator-crd"
    text = (folder / "monitoring.coreos.com_servicemonitors.yaml").read_text(encoding="utf-8")
    [version] = yaml.safe_load(text)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    [item] = exporter_objects(parse_settings({"exporter": exporter}))
    assert list(misfits(item, schema)) == []
    [endpoint] = item["spec"]["endpoints"]
    endpoint["schema"], endpoint["scheme"], endpoint["interval"] = "https", "ftp", 15
    assert len(list(misfits(item, schema))) == 3


def test_our_monitor_is_among_the_objects_that_are_applied() -> None:
    kinds = [item["kind"] for item in monitoring.objects(parse_settings({"exporter": TLS}), ())]
    assert kinds.count("ServiceMonitor") == 1
    assert "ServiceMonitor" not in [i["kind"] for i in monitoring.objects(parse_settings({}), ())]


def test_secrets_that_must_be_there() -> None:
    with_both = parse_settings({"exporter": TLS_AND_PASSWORD}).exporter
    assert secrets_needed(with_both) == {
        "dcgm-tls": ["tls.crt", "tls.key", "ca.crt"],
        "dcgm-web": ["username", "password", "web.yml"],
    }
    shared_secret = parse_settings(
        {"exporter": {**TLS_AND_PASSWORD, "basic_auth": "dcgm-tls"}}
    ).exporter
    assert len(secrets_needed(shared_secret)["dcgm-tls"]) == 6
    assert secrets_needed(parse_settings({}).exporter) == {}


def test_pod_labels_are_anchored_and_bring_their_rights() -> None:
    expected = ["^(?:team)$", r"^(?:app\.kubernetes\.io/name)$"]
    standalone = exporter_with({**LABELS, "kind": "chart"})["kubernetes"]
    assert standalone["podLabelAllowlistRegex"] == expected
    assert standalone["enablePodLabels"] is True
    assert standalone["rbac"] == {"create": True}
    under = operated(LABELS)
    assert under["enablePodLabels"] is True
    assert under["podLabelAllowlistRegex"] == expected


def test_without_pod_labels_the_exporter_may_not_read_pods() -> None:
    assert "kubernetes" not in exporter_with({"kind": "chart"})
    assert "enablePodLabels" not in operated({})


def test_privileges_of_the_stand_alone_exporter() -> None:
    values = exporter_with({"kind": "chart"})
    assert values["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert values["securityContext"]["allowPrivilegeEscalation"] is False
    assert (values["hostNetwork"], values["hostPID"]) == (False, False)


def test_memory_is_limited_on_either_path() -> None:
    for values in (exporter_with({"kind": "chart"}), operated({})):
        assert values["resources"]["limits"]["memory"] == "1Gi"


@pytest.mark.parametrize(
    ("exporter", "cause"),
    [
        ({"tls_secret": "a"}, 'need kind "chart"'),
        ({"basic_auth": "a"}, 'need kind "chart"'),
        ({"kind": "chart", "tls_secret": "Not A Name"}, "tls_secret"),
        ({"pod_labels": ["a,b"]}, "it is for the whole name"),  # the exporter splits at commas
        ({"pod_labels": ["(?!secret).*"]}, "it is for the whole name"),  # Go has no look-ahead
        ({"pod_labels": ["a{2}"]}, "it is for the whole name"),
        ({"pod_labels": ["team("]}, "no regular expression"),
        ({"counters": ["DCGM_FI_DEV_FAN_SPEED"], "collectors_file": "own.csv"}, "replaces it"),
    ],
)
def test_what_cannot_work_is_refused(exporter: dict[str, Any], cause: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_settings({"exporter": exporter})
    assert cause in str(error.value)
