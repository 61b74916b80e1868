"""Values of Fluent Bit's chart: its keys, its options, and what they must not hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.settings import Settings, SettingsError, parse_settings
from gpuboot.monitoring.charts import fluent_bit, log_values
from gpuboot.monitoring.charts.chart_repositories import used
from gpuboot.site import local_files
from lab.charts.render import render
from lab.charts.schema import json_schema

LOKI = {
    "url": "https://logs.example.org:8443/loki",
    "tenant": "team-a",
    "username": "gpu",
    "password": {"file": "loki.password"},
    "ca": {"file": "ca.pem"},
}
# Options of each plugin, and of every input, filter, output and network connection, in lower case:
# Fluent Bit 5.1.1's manual and the `config_map` of each plugin's source.
OPTIONS = {
    "tail": {"tag", "path", "exclude_path", "refresh_interval", "multiline.parser", "db",
             "db.locking", "mem_buf_limit", "skip_long_lines"},
    "systemd": {"tag", "systemd_filter", "db", "read_from_tail"},
    "kubernetes_events": {"tag"},
    "kubernetes": {"match", "use_tag_for_meta", "labels", "annotations"},
    "grep": {"match", "regex"},
    "parser": {"match", "key_name", "parser", "preserve_key", "reserve_data"},
    "record_modifier": {"match", "allowlist_key"},
    "modify": {"match", "rename", "set"},
    "loki": {"match", "workers", "host", "port", "uri", "tls", "tls.verify", "tls.ca_file",
             "retry_limit", "tenant_id", "http_user", "http_passwd", "bearer_token", "labels",
             "remove_keys", "line_format", "drop_single_key"},
}  # fmt: skip


def site(loki: dict[str, Any] = LOKI, **extra: Any) -> Settings:
    return parse_settings({"logs": {"enabled": True, "loki": loki, **extra}})


def sections(text: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """What Fluent Bit's classic format holds: kind of each section, and its entries."""
    result: list[tuple[str, list[tuple[str, str]]]] = []
    for line in text.splitlines():
        if head := re.fullmatch(r"\[(\w+)\]", line):
            result.append((head[1], []))
        elif line.strip():
            key, _, value = line.strip().partition(" ")
            result[-1][1].append((key, value))
    return result


def configuration(settings: Settings, release: str) -> list[tuple[str, dict[str, str]]]:
    """Kind and entries of each section of a release; of keys that repeat the last."""
    config = log_values.releases(settings)[release]["config"]
    text = "\n".join(config[part] for part in ("inputs", "filters", "outputs"))
    return [(kind, dict(entries)) for kind, entries in sections(text)]


def test_nothing_is_shipped_unless_it_is_asked_for() -> None:
    assert log_values.releases(parse_settings({})) == {}
    assert log_values.releases(parse_settings({"logs": {"loki": LOKI}})) == {}
    assert log_values.files(parse_settings({"logs": {"loki": LOKI}})) == {}
    assert log_values.CHART not in used(parse_settings({}))
    assert log_values.CHART in used(site())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"enabled": True}, "needs logs.loki"),
        ({"loki": {**LOKI, "password": None}}, "go together"),
        ({"loki": {**LOKI, "bearer_token": {"file": "t"}}}, "either"),
        ({"loki": {"url": "http://loki:3100", "ca": {"file": "c"}}}, "https://"),
        ({"loki": {**LOKI, "tenant": "a\n    Host evil"}}, "one word"),
        ({"loki": {**LOKI, "username": "${HOME}"}}, "one word"),
    ],
)
def test_settings_that_cannot_work_are_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_settings({"logs": data})


@pytest.mark.parametrize("release", [log_values.NODES, log_values.EVENTS])
def test_upstreams_chart_has_every_key(release: str, tmp_path: Path) -> None:
    lock = versions.lock(site()).charts[log_values.CHART]
    (tmp_path / "Chart.yaml").write_text(
        f"apiVersion: v2\nname: {log_values.CHART}\nversion: {lock.version}\n"
    )
    schema = json_schema(log_values.CHART)
    (tmp_path / "values.schema.json").write_text(json.dumps(schema))
    (tmp_path / "templates").mkdir()
    assert render(tmp_path, release, "monitoring", log_values.releases(site())[release], []) == []
    with pytest.raises(Exception, match="demonset"):
        render(tmp_path, release, "monitoring", {"demonset": 1}, [])
    assert lock.sha256


@pytest.mark.parametrize("release", [log_values.NODES, log_values.EVENTS])
@pytest.mark.parametrize(
    "loki", [LOKI, {"url": "http://loki:3100"}, {"url": "https://l", "bearer_token": {"file": "t"}}]
)
def test_every_option_is_one_of_its_plugin(release: str, loki: dict[str, Any]) -> None:
    for kind, entries in configuration(site(loki), release):
        name = entries.pop("Name")
        assert kind in ("INPUT", "FILTER", "OUTPUT")
        assert {key.lower() for key in entries} <= OPTIONS[name], name


def test_everything_that_is_read_is_sent_once() -> None:
    for release in (log_values.NODES, log_values.EVENTS):
        config_sections = configuration(site(), release)
        tags = [entries["Tag"] for kind, entries in config_sections if kind == "INPUT"]
        matches = [entries["Match"] for kind, entries in config_sections if kind == "OUTPUT"]
        assert sorted(tags) == sorted(matches)
        # in one thread two outputs would take the same keys out of their records
        assert all(
            entries["Workers"] == "1" for kind, entries in config_sections if kind == "OUTPUT"
        )
        assert {entries["Match"] for kind, entries in config_sections if kind == "FILTER"} <= set(
            tags
        )


def test_the_logs_of_pods_can_be_left_out() -> None:
    only_xids = configuration(site(pods=False), log_values.NODES)
    assert {entries["Name"] for _, entries in only_xids} == {
        "systemd", "grep", "parser", "record_modifier", "modify", "loki"
    }  # fmt: skip


def test_events_are_watched_by_one_pod_that_may_read_them() -> None:
    values = log_values.releases(site())[log_values.EVENTS]
    assert (values["kind"], values["replicaCount"]) == ("Deployment", 1)
    assert values["rbac"] == {"create": True, "eventsAccess": True}
    nodes = log_values.releases(site())[log_values.NODES]
    assert nodes["rbac"]["create"] is False
    assert nodes["serviceAccount"]["automountServiceAccountToken"] is False
    assert nodes["tolerations"] == [{"operator": "Exists"}]


def test_own_logs_and_namespaces_that_settings_name_stay_on_the_node() -> None:
    [first, *_] = configuration(site(exclude_namespaces=["noisy"]), log_values.NODES)
    assert first[1]["Exclude_Path"].split(",") == [
        "/var/log/containers/fluent-bit-*_monitoring_*.log",
        "/var/log/containers/*_noisy_*.log",
    ]


def test_labels_are_few_and_no_gpu_is_among_them() -> None:
    label_names: set[str] = set()
    for release in (log_values.NODES, log_values.EVENTS):
        for kind, entries in configuration(site(), release):
            if kind == "OUTPUT":
                label_names |= {
                    part.partition("=")[0].strip() for part in entries["Labels"].split(",")
                }
    assert label_names == {"job", "node", "namespace", "pod", "container"}


def test_where_loki_is() -> None:
    [(_, first), *_] = [
        item for item in configuration(site(), log_values.NODES) if item[0] == "OUTPUT"
    ]  # fmt: skip
    assert first | {
        "Host": "logs.example.org", "Port": "8443", "Uri": "/loki/loki/api/v1/push", "Tls": "On",
        "Tls.verify": "On", "Tls.ca_file": fluent_bit.CA, "Tenant_ID": "team-a",
    } == first  # fmt: skip
    plain = parse_settings({"logs": {"loki": {"url": "http://loki:3100"}}}).logs.loki
    assert plain
    assert fluent_bit.destination(plain) == {
        "Host": "loki", "Port": "3100", "Uri": "/loki/api/v1/push", "Tls": "Off",
        "Retry_Limit": "no_limits",
    }  # fmt: skip


def test_secrets_are_in_a_secret_alone(tmp_path: Path) -> None:
    password, ca = tmp_path / "password", tmp_path / "ca.pem"
    password.write_text("hunter2\n")
    ca.write_text("-----BEGIN CERTIFICATE-----\n")
    password.chmod(0o600)
    site_settings = site({**LOKI, "password": {"file": str(password)}, "ca": {"file": str(ca)}})
    assert "hunter2" not in json.dumps(log_values.releases(site_settings))
    contents = log_values.contents(site_settings)
    assert contents["password"].get_secret_value() == "hunter2"
    assert "hunter2" not in repr(contents)
    assert local_files.problems(site_settings) == []
    for values in log_values.releases(site_settings).values():
        [variable] = [item for item in values["env"] if item["name"] == "LOKI_PASSWORD"]
        assert variable["valueFrom"]["secretKeyRef"] == {
            "name": log_values.SECRET,
            "key": "password",
        }


def test_a_secret_of_the_site_is_named_and_looked_for() -> None:
    site_settings = site({"url": "https://l", "bearer_token": {"secret": "loki/token"}})
    assert log_values.existing(site_settings) == {"loki": ["token"]}
    assert log_values.files(site_settings) == {}
    [_, variable] = log_values.releases(site_settings)[log_values.NODES]["env"]
    assert variable == {
        "name": "LOKI_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "loki", "key": "token"}},
    }


def test_a_missing_file_is_told_before_anything_is_touched() -> None:
    messages = [str(problem) for problem in local_files.problems(site())]
    assert any("logs.loki.password.file" in message for message in messages)
    assert any("logs.loki.ca.file" in message for message in messages)


def test_fluent_bit_takes_kernel_lines_apart() -> None:
    line = "NVRM: Xid (PCI:0000:b3:00 GPU-I:05 GPU-CI:01): 31, pid=1, Ch 00000008"
    xid, sxid = (text.replace("(?<", "(?P<") for text in fluent_bit.PARSERS.values())
    match = re.search(xid, line)
    assert match
    assert match.groupdict() == {
        "pci_bus_id": "0000:b3:00", "gpu_instance": "05", "compute_instance": "01", "xid": "31",
        "detail": "pid=1, Ch 00000008", "severity": None,
    }  # fmt: skip
    config = log_values.releases(site())[log_values.NODES]["config"]
    assert config["filters"].count("Allowlist_key severity") == 1
    line = "nvidia-nvswitch0: SXid (PCI:0000:c2:00.0): 20034, Fatal, Link 28 LTSSM Fault Up"
    assert not re.search(xid, line)
    match = re.search(sxid, line)
    assert match
    assert match.groupdict() == {
        "switch": "nvswitch0", "pci_bus_id": "0000:c2:00.0", "sxid": "20034", "severity": "Fatal",
        "detail": "Fatal, Link 28 LTSSM Fault Up",
    }  # fmt: skip
    [pattern] = re.findall(r"Regex MESSAGE (.*)", config["filters"])
    assert re.search(pattern, line)
    assert not re.search(pattern, "nvidia-nvswitch0: open (major=510)")


def test_helm_does_not_evaluate_what_stands_in_the_configuration() -> None:
    for release in (log_values.NODES, log_values.EVENTS):
        config = log_values.releases(site())[release]["config"]
        assert not any("{{" in text for text in config.values())
