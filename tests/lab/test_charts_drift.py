"""What the stand-in charts make is compared with the cluster, and equals itself."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import yaml

from gpuboot.cluster.helm_releases import Release
from gpuboot.cluster.managed_objects import KINDS, ManagedObjects, ManagedSecret
from gpuboot.cluster.release_objects import drifted, release_objects
from lab.charts import assemble as charts
from lab.charts.render import Object, helm_binary, render

if helm_binary() is None:
    pytest.skip("no helm (GPUBOOT_HELM, the mirror's, PATH)", allow_module_level=True)
if shutil.which("go") is None:
    pytest.skip("no go: charts are completed from Go modules", allow_module_level=True)

HOST_STACK = {"driver": {"enabled": False}, "toolkit": {"enabled": False}}


@pytest.fixture(scope="module", params=charts.CHARTS)
def objects(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Object]:
    """A chart's objects without those of hooks."""
    chart: Path = charts.assemble(request.param, tmp_path_factory.mktemp("charts"))
    values = HOST_STACK if chart.name == "gpu-operator" else None
    rendered = render(chart, chart.name, "lab", values, ["monitoring.coreos.com/v1/ServiceMonitor"])
    return [
        item
        for item in rendered
        if "helm.sh/hook" not in (item["metadata"].get("annotations") or {})
    ]


def test_every_kind_is_compared(objects: list[Object]) -> None:
    assert {item["kind"] for item in objects} <= {*KINDS, "Secret"}


def test_a_chart_has_no_drift_from_itself(objects: list[Object]) -> None:
    release = Release(manifest=yaml.safe_dump_all(objects, sort_keys=False))
    expected = release_objects(release, "web", "lab")
    assert len(expected) == len(objects)
    live: list[Object] = json.loads(json.dumps(expected))
    secrets = [
        ManagedSecret(
            item["metadata"]["namespace"],
            item["metadata"]["name"],
            {
                key: hashlib.sha256(text.encode()).hexdigest()
                for key, text in (item.get("data") or {}).items()
            },
        )
        for item in live
        if item["kind"] == "Secret" and "stringData" not in item
    ]
    plain = [item for item in expected if "stringData" not in item]
    assert drifted(plain, ManagedObjects(objects=tuple(live), secrets=tuple(secrets))) == []
    for item in plain:
        remaining = tuple(
            live_item
            for live_item in live
            if live_item["metadata"]["name"] != item["metadata"]["name"]
        )
        [*drifts] = drifted([item], ManagedObjects(objects=remaining))
        assert [drift.live for drift in drifts] == [None]
