"""References inside the stand-in charts: what names something names something that is there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.charts import assemble as charts
from lab.charts.render import Object, helm_binary, names, render

if helm_binary() is None:
    pytest.skip("no helm (GPUBOOT_HELM, the mirror's, PATH)", allow_module_level=True)
if shutil.which("go") is None:
    pytest.skip("no go: charts are completed from Go modules", allow_module_level=True)

HOST_STACK = {"driver": {"enabled": False}, "toolkit": {"enabled": False}}
#: Services whose pods another program makes (the Prometheus operator, kubeadm).
FOREIGN_PODS = ("-prometheus", "-alertmanager")
#: ServiceMonitors whose Service another program makes.
FOREIGN_SERVICES = ("-apiserver", "-kubelet")


@pytest.fixture(scope="module", params=charts.CHARTS)
def chart(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return charts.assemble(request.param, tmp_path_factory.mktemp("charts"))


@pytest.fixture(scope="module")
def objects(chart: Path) -> list[Object]:
    values = HOST_STACK if chart.name == "gpu-operator" else None
    return render(chart, chart.name, "lab", values, ["monitoring.coreos.com/v1/ServiceMonitor"])


def workloads(objects: list[Object]) -> list[Object]:
    return [o for o in objects if o["kind"] in ("Deployment", "DaemonSet")]


def within(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def pod_labels(workload: Object) -> dict[str, str]:
    labels: dict[str, str] = workload["spec"]["template"]["metadata"]["labels"]
    return labels


def test_names_are_unique(objects: list[Object]) -> None:
    keys = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects]
    assert len(keys) == len(set(keys))


def test_workloads_select_their_own_pods_only(objects: list[Object]) -> None:
    for workload in workloads(objects):
        selector = workload["spec"]["selector"]["matchLabels"]
        selected = [
            w["metadata"]["name"] for w in workloads(objects) if within(selector, pod_labels(w))
        ]
        assert selected == [workload["metadata"]["name"]]


def test_services_select_pods_that_have_the_port(objects: list[Object]) -> None:
    for service in (o for o in objects if o["kind"] == "Service"):
        name, namespace = service["metadata"]["name"], service["metadata"].get("namespace")
        if namespace == "kube-system" or name.endswith(FOREIGN_PODS):
            continue
        selected = [
            w for w in workloads(objects) if within(service["spec"]["selector"], pod_labels(w))
        ]
        assert len(selected) == 1, name
        ports = [
            value
            for container in selected[0]["spec"]["template"]["spec"]["containers"]
            for port in container.get("ports", [])
            for value in (port["name"], port["containerPort"])
        ]
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= set(ports), name


def test_service_monitors_find_a_service_with_the_port(objects: list[Object]) -> None:
    services = [o for o in objects if o["kind"] == "Service"]
    for monitor in (o for o in objects if o["kind"] == "ServiceMonitor"):
        name, spec = monitor["metadata"]["name"], monitor["spec"]
        if name.endswith(FOREIGN_SERVICES):
            continue
        monitor_namespaces = [monitor["metadata"]["namespace"]]
        namespaces = spec.get("namespaceSelector", {}).get("matchNames", monitor_namespaces)
        selected = [
            s
            for s in services
            if within(spec["selector"]["matchLabels"], s["metadata"]["labels"])
            and s["metadata"].get("namespace", "lab") in namespaces
        ]
        assert len(selected) == 1, name
        ports = {port["name"] for port in selected[0]["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in spec["endpoints"]} <= ports, name


def test_rights_are_bound_to_accounts_that_exist(objects: list[Object]) -> None:
    accounts = names(objects, "ServiceAccount")
    for binding in (o for o in objects if o["kind"].endswith("RoleBinding")):
        assert binding["roleRef"]["name"] in names(objects, binding["roleRef"]["kind"])
        assert {subject["name"] for subject in binding["subjects"]} <= accounts
    for workload in workloads(objects):
        assert workload["spec"]["template"]["spec"]["serviceAccountName"] in accounts


def test_volumes_exist(objects: list[Object]) -> None:
    for workload in workloads(objects):
        pod = workload["spec"]["template"]["spec"]
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
            assert mounted <= volumes.keys(), (workload["metadata"]["name"], container["name"])
        for volume in volumes.values():
            if "configMap" in volume:
                assert volume["configMap"]["name"] in names(objects, "ConfigMap")
            if "secret" in volume:
                assert volume["secret"]["secretName"] in names(objects, "Secret")


class _Loader(yaml.CSafeLoader):
    """PyYAML refuses the plain scalar `=`, which stands in an enum of the operator's CRDs."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: node.value)


def unknown_fields(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    """Fields of an object that its CRD does not have, and values of another basic type."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get(
        "x-kubernetes-int-or-string"
    ):
        return
    python = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
    if not isinstance(value, python[schema["type"]]):
        yield f"{path}: not {schema['type']}"
    elif isinstance(value, dict) and "properties" in schema:
        for key, child in value.items():
            if key not in schema["properties"]:
                yield f"{path}.{key}: unknown"
            else:
                yield from unknown_fields(child, schema["properties"][key], f"{path}.{key}")
    elif isinstance(value, list):
        for child in value:
            yield from unknown_fields(child, schema["items"], f"{path}[]")


def test_custom_resources_fit_their_crds(
    chart: Path, objects: list[Object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """dcgm-exporter has no CRDs of its own; its ServiceMonitor is held against the stack's."""
    stack = charts.assemble("kube-prometheus-stack", tmp_path_factory.mktemp("stack"))
    groups = ("monitoring.coreos.com/", "nvidia.com/")
    custom = [o for o in objects if o["apiVersion"].startswith(groups)]
    assert custom
    plurals = {f"{o['kind'].lower()}s".replace("policys", "policies").replace("uss", "uses")
               for o in custom}  # fmt: skip
    schemas = {}
    for folder in (chart, stack):
        for file in folder.glob("**/crds/*_*.yaml"):
            if file.stem.partition("_")[2] in plurals:
                spec = yaml.load(file.read_text(), Loader=_Loader)["spec"]
                schemas[spec["names"]["kind"]] = spec["versions"][0]["schema"]["openAPIV3Schema"]
    for o in custom:
        root = schemas[o["kind"]]["properties"]["spec"]
        assert list(unknown_fields(o["spec"], root, o["kind"])) == []
