"""The contract with the charts: what the deploys rely on, where upstream says it, and who uses it.

A version in the lock that differs from the one at which the contract was read fails here, so that
somebody reads the places again. The stand-in charts are held to the same facts.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gpuboot.cluster.values import Values
from gpuboot.config.settings import parse_settings
from gpuboot.config.versions import lock
from gpuboot.monitoring.charts.exporter import exporter_values
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.monitoring.charts.monitoring_values import monitoring_values
from lab.charts import assemble
from lab.charts.render import Object, find, helm_binary, render

ROOT = Path(__file__).parents[2]
CONTRACT = tomllib.loads((Path(__file__).parent / "contract.toml").read_text())
FACTS: list[dict[str, Any]] = CONTRACT["fact"]
SITE = {"gpu_operator": {"time_slices": 4}}
STEP = re.compile(r"([^.\[\]]+)|\[([^\]]+)\]")
NEEDS_CHARTS = pytest.mark.skipif(
    helm_binary() is None or shutil.which("go") is None,
    reason="no helm or no go: charts are completed from Go modules",
)


def chart_values(chart: str) -> Values:
    settings = parse_settings(SITE)
    if chart == "gpu-operator":
        return operator_values(settings, lock(settings))
    if chart == "dcgm-exporter":
        return exporter_values(settings, lock(settings))
    return monitoring_values(settings)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Object]]:
    out = tmp_path_factory.mktemp("charts")
    api = ["monitoring.coreos.com/v1/ServiceMonitor"]
    return {
        chart: render(assemble.assemble(chart, out), chart, "lab", chart_values(chart), api)
        for chart in CONTRACT["read"]
    }


def follow(value: Any, path: str) -> Any:
    """`a.b[c]`: keys of maps; a member of a list by its name."""
    for key, name in STEP.findall(path):
        if isinstance(value, list):
            [value] = [item for item in value if item["name"] == name]
        else:
            value = value[key or name]
    return value


@pytest.mark.parametrize("chart", CONTRACT["read"])
def test_the_contract_was_read_at_the_version_of_the_lock(chart: str) -> None:
    read, locked = CONTRACT["read"][chart], lock(parse_settings({})).charts[chart].version
    places = sorted({fact["source"] for fact in FACTS if fact["chart"] == chart})
    assert read["lock"] == locked, (
        f"{chart} is {locked} in gpuboot/config/versions.toml, and tests/unit/contract.toml "
        f"was read at {read['at']}: read again at {locked}\n  " + "\n  ".join(places)
    )


def test_the_lock_pins_no_chart_without_a_contract() -> None:
    # of Fluent Bit's chart the lab has no stand-in, which could differ from it
    assert set(lock(parse_settings({})).charts) == {*CONTRACT["read"], "fluent-bit"}
    assert {fact["chart"] for fact in FACTS} == set(CONTRACT["read"])


@NEEDS_CHARTS
@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact['object']} {fact['path']}")
def test_the_stand_in_keeps_the_contract(
    rendered: dict[str, list[Object]], fact: dict[str, Any]
) -> None:
    kind, _, name = fact["object"].partition("/")
    values = follow(find(rendered[fact["chart"]], kind, name), fact["path"])
    if "has" in fact:
        assert fact["has"] in values
    elif "lacks" in fact:
        assert fact["lacks"] not in values
    elif "last" in fact:
        assert values[-1]["name"] == fact["last"]
    elif "length" in fact:
        assert len(values) == fact["length"]
    elif isinstance(fact["value"], dict) and fact["value"]:
        assert {key: values.get(key) for key in fact["value"]} == fact["value"]
    elif isinstance(fact["value"], str) and fact["value"].startswith("$"):
        assert values == follow(chart_values(fact["chart"]), fact["value"][1:])
    else:
        assert values == fact["value"]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact['object']} {fact['path']}")
def test_what_relies_on_it_is_there(fact: dict[str, Any]) -> None:
    """A fact that nobody uses any more goes out of the contract."""
    assert re.search(r":\d+|\.yaml", fact["source"]), "no upstream file and line"
    path, _, text = fact["used"].partition(": ")
    assert text in (ROOT / path).read_text()
