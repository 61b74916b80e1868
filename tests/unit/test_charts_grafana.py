"""Grafana as its chart sets it up: the folder of our dashboards, and the names of its objects."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.settings import parse_settings
from gpuboot.monitoring import dashboards
from gpuboot.monitoring.charts.monitoring_values import GRAFANA_NAME, monitoring_values
from gpuboot.verify.collector import MetricsCollector
from lab.charts import assemble as charts
from lab.charts.render import Object, find, helm_binary, render

STACK = "kube-prometheus-stack"
NEEDS_HELM = pytest.mark.skipif(helm_binary() is None, reason="no helm")


def folder_of(dashboard: Object, values: dict[str, Any], provider: dict[str, Any]) -> str:
    """Title of the folder in which Grafana shows a dashboard; "" for none.

    The sidecar writes the file below the provider's path, at what the annotation says
    (grafana 12.11.1, templates/_pod.tpl:514); Grafana takes folders from there only where the
    provider says so, and else the provider's one folder (templates/_config.tpl:159-169).
    """
    options = provider["options"]
    annotation = values["grafana"]["sidecar"]["dashboards"].get("folderAnnotation")
    place = dashboard["metadata"]["annotations"].get(annotation, "")
    if not options["foldersFromFilesStructure"]:
        return str(provider["folder"])
    return posixpath.basename(posixpath.relpath(posixpath.join("/d", place), "/d")).strip(".")


@NEEDS_HELM
@pytest.mark.parametrize(("options", "folder"), [({}, dashboards.FOLDER), ({"ours": False}, "")])
def test_our_dashboards_are_in_their_folder(
    tmp_path: Path, options: dict[str, bool], folder: str
) -> None:
    """docs/dashboards.md: "folder *GPU*"; without the provider's part the annotation is in vain."""
    settings = parse_settings({})
    values = monitoring_values(settings)
    if options:
        del values["grafana"]["sidecar"]["dashboards"]["provider"]
    objects = render(charts.assemble(STACK, tmp_path), STACK, "monitoring", values)
    text = find(objects, "ConfigMap", f"{STACK}-grafana-config-dashboards")["data"]["provider.yaml"]
    [provider] = yaml.safe_load(text)["providers"]
    folders = {folder_of(item, values, provider) for item in dashboards.config_maps(settings)}
    assert folders == {folder}


class Proxy:
    """Behind the API server's proxy: what is asked for, and no answer to anything."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def service(self, namespace: str, name: str, port: int) -> str:
        return f"{namespace}/{name}:{port}"

    def pod(self, namespace: str, name: str, port: int) -> str:
        return f"{namespace}/{name}:{port}"

    def get(self, path: str, _query: object = None) -> bytes:
        self.requests.append(path)
        raise ClusterError("no answer")

    def json(self, path: str, query: object = None) -> object:
        return self.get(path, query)


def test_verification_asks_grafana_by_its_name() -> None:
    """grafana 12.11.1, templates/_helpers.tpl:14-25 and templates/service.yaml:6."""
    proxy = Proxy()
    MetricsCollector(cast(Cluster, proxy), parse_settings({})).metrics()
    assert f"{STACK}-grafana" == GRAFANA_NAME
    assert f"monitoring/{GRAFANA_NAME}:80/api/health" in proxy.requests
