"""What the stand-in charts refuse, and what those of NVIDIA's charts render."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.charts import assemble as charts
from lab.charts.render import HelmError, Object, find, helm_binary, lint, names, render

if helm_binary() is None:
    pytest.skip("no helm (GPUBOOT_HELM, the mirror's, PATH)", allow_module_level=True)
if shutil.which("go") is None:
    pytest.skip("no go: charts are completed from Go modules", allow_module_level=True)

HOST_STACK = {"driver": {"enabled": False}, "toolkit": {"enabled": False}}
MONITOR = "monitoring.coreos.com/v1/ServiceMonitor"
NAMESPACES = {"gpu-operator": "gpu-operator", "kube-prometheus-stack": "monitoring"}

Render = Callable[..., list[Object]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("charts")
    return {name: charts.assemble(name, out) for name in charts.CHARTS}


@pytest.fixture
def rendered(folders: dict[str, Path]) -> Render:
    def make(chart: str, values: dict[str, Any] | None = None, release: str = "") -> list[Object]:
        base = HOST_STACK if chart == "gpu-operator" else {}
        namespace = NAMESPACES.get(chart, "monitoring")
        return render(
            folders[chart], release or chart, namespace, {**base, **(values or {})}, [MONITOR]
        )

    return make


def container(workload: Object, index: int = 0) -> Object:
    container_object: Object = workload["spec"]["template"]["spec"]["containers"][index]
    return container_object


def environment(workload: Object) -> dict[str, str]:
    return {e["name"]: e.get("value", "<from>") for e in container(workload)["env"]}


@pytest.mark.parametrize("chart", charts.CHARTS)
def test_lint(folders: dict[str, Path], chart: str) -> None:
    assert "0 chart(s) failed" in lint(
        folders[chart], HOST_STACK if chart == "gpu-operator" else None
    )


@pytest.mark.parametrize(
    ("chart", "values"),
    [
        ("gpu-operator", {"operator": {"defaultRuntime": "containerd"}}),
        ("gpu-operator", {"node-feature-discovery": {"wrker": {}}}),
        ("dcgm-exporter", {"livenessProbe": {"timeoutSeconds": 5}}),
        ("kube-prometheus-stack", {"prometheusSpec": {}}),
        ("kube-prometheus-stack", {"grafana": {"sidecar": {"dashboard": {}}}}),
    ],
)
def test_unknown_key_fails(rendered: Render, chart: str, values: dict[str, Any]) -> None:
    with pytest.raises(HelmError, match=r"(?i)additional propert"):
        rendered(chart, values)


def test_wrong_type_fails(rendered: Render) -> None:
    with pytest.raises(HelmError, match="cdi"):
        rendered("gpu-operator", {"cdi": {"enabled": "yes"}})


@pytest.mark.parametrize(
    ("chart", "values", "message"),
    [
        ("gpu-operator", {"driver": {"enabled": True}}, "no driver container"),
        ("gpu-operator", {"toolkit": {"enabled": True}}, "no toolkit container"),
        ("gpu-operator", {"dcgm": {"enabled": True}}, "dcgm.enabled=false"),
        ("dcgm-exporter", {"tlsServerConfig": {"enabled": True}}, "existingSecret"),
        ("kube-prometheus-stack", {"thanosRuler": {"enabled": True}}, "no Thanos ruler"),
        (
            "kube-prometheus-stack",
            {"kube-state-metrics": {"metricDenylist": ["kube_pod_info"]}},
            "no list of metrics",
        ),
        (
            "kube-prometheus-stack",
            {"kube-state-metrics": {"rbac": {"useClusterRole": False}}},
            "no roles per namespace",
        ),
        (
            "kube-prometheus-stack",
            {"prometheus": {"networkPolicy": {"flavor": "cilium"}}},
            "no policies but Kubernetes' own",
        ),
    ],
)
def test_what_the_lab_lacks_fails_clearly(
    rendered: Render, chart: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(HelmError, match=message):
        rendered(chart, values)


@pytest.mark.parametrize("chart", charts.CHARTS)
def test_images_are_those_listed(rendered: Render, chart: str) -> None:
    images: set[str] = set()
    for o in rendered(chart):
        if o["kind"] in ("Prometheus", "Alertmanager"):
            images.add(o["spec"]["image"])
        if o["kind"] not in ("Deployment", "DaemonSet", "Job"):
            continue
        pod = o["spec"]["template"]["spec"]
        for c in [*pod.get("initContainers", []), *pod["containers"]]:
            images.add(c["image"])
            flag = "--prometheus-config-reloader="
            images |= {a.removeprefix(flag) for a in c.get("args", []) if a.startswith(flag)}
    assert images == set(charts.images(chart))


def test_gpu_operator_objects(rendered: Render) -> None:
    objects = rendered("gpu-operator")
    nfd = "gpu-operator-node-feature-discovery"
    assert names(objects, "DaemonSet") == {
        "nvidia-device-plugin-daemonset", "gpu-feature-discovery", "nvidia-dcgm-exporter",
        "nvidia-mig-manager", "nvidia-operator-validator", f"{nfd}-worker",
    }  # fmt: skip
    assert names(objects, "Deployment") == {"gpu-operator", f"{nfd}-master", f"{nfd}-gc"}
    assert names(objects, "RuntimeClass") == {"nvidia", "nvidia-cdi", "nvidia-legacy"}
    assert names(objects, "ClusterPolicy") == {"cluster-policy"}
    service = find(objects, "Service", "nvidia-dcgm-exporter")
    assert [(p["name"], p["port"]) for p in service["spec"]["ports"]] == [("gpu-metrics", 9400)]


@pytest.mark.parametrize(
    ("name", "operand"),
    [
        ("nvidia-device-plugin-daemonset", "device-plugin"),
        ("gpu-feature-discovery", "gpu-feature-discovery"),
        ("nvidia-dcgm-exporter", "dcgm-exporter"),
        ("nvidia-mig-manager", "mig-manager"),
        ("nvidia-operator-validator", "operator-validator"),
    ],
)
def test_operand_is_scheduled_by_its_deploy_label(
    rendered: Render, name: str, operand: str
) -> None:
    workload = find(rendered("gpu-operator"), "DaemonSet", name)
    pod = workload["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {f"nvidia.com/gpu.deploy.{operand}": "true"}
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["initContainers"][0]["image"].startswith("nvcr.io/nvidia/gpu-operator:")
    for labels in (
        workload["metadata"]["labels"],
        workload["spec"]["template"]["metadata"]["labels"],
    ):
        assert labels["app"] == name
        assert labels["app.kubernetes.io/managed-by"] == "gpu-operator"


def test_operands_can_be_switched_off(rendered: Render) -> None:
    operands = ("devicePlugin", "gfd", "dcgmExporter", "migManager", "nfd")
    off = {key: {"enabled": False} for key in operands}
    objects = rendered("gpu-operator", off)
    assert names(objects, "DaemonSet") == {"nvidia-operator-validator"}
    assert names(objects, "Deployment") == {"gpu-operator"}


def test_exporter_values(rendered: Render) -> None:
    objects = rendered("gpu-operator", {"dcgmExporter": {
        "env": [{"name": "DCGM_EXPORTER_LISTEN", "value": ":9401"}, {"name": "A", "value": "b"}],
        "config": {"name": "counters", "create": True, "data": "DCGM_FI_DEV_GPU_TEMP, gauge, t"},
        "serviceMonitor": {"interval": "30s", "honorLabels": True,
                           "additionalLabels": {"release": "k"},
                           "relabelings": [{"action": "labeldrop", "regex": "pod"}]},
    }})  # fmt: skip
    counters = find(objects, "ConfigMap", "counters")["data"]["dcgm-metrics.csv"]
    assert counters.strip() == "DCGM_FI_DEV_GPU_TEMP, gauge, t"
    exporter = find(objects, "DaemonSet", "nvidia-dcgm-exporter")
    env = environment(exporter)
    assert env["DCGM_EXPORTER_LISTEN"] == ":9401"
    assert env["A"] == "b"
    assert len(env) == len(container(exporter)["env"]), "a name set twice"
    mount = next(m for m in container(exporter)["volumeMounts"] if m["name"] == "metrics-config")
    assert env["DCGM_EXPORTER_COLLECTORS"] == mount["mountPath"]
    monitor = find(objects, "ServiceMonitor", "nvidia-dcgm-exporter")
    assert monitor["metadata"]["labels"]["release"] == "k"
    assert monitor["spec"]["jobLabel"] == "app"
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint == {
        "port": "gpu-metrics", "path": "/metrics", "interval": "30s", "scrapeTimeout": "10s",
        "honorLabels": True, "relabelings": [{"action": "labeldrop", "regex": "pod"}],
    }  # fmt: skip


def test_exporter_servicemonitor_needs_the_crd_and_the_value(
    rendered: Render, folders: dict[str, Path]
) -> None:
    off = rendered("gpu-operator", {"dcgmExporter": {"serviceMonitor": {"enabled": False}}})
    assert "nvidia-dcgm-exporter" not in names(off, "ServiceMonitor")
    bare = render(folders["gpu-operator"], "gpu-operator", "gpu-operator", HOST_STACK)
    assert names(bare, "ServiceMonitor") == set()


def test_device_plugin_strategy_follows_cdi(rendered: Render) -> None:
    for cdi, strategy in ((True, "cdi-annotations,cdi-cri"), (False, "envvar")):
        objects = rendered("gpu-operator", {"cdi": {"enabled": cdi}})
        env = environment(find(objects, "DaemonSet", "nvidia-device-plugin-daemonset"))
        assert env["DEVICE_LIST_STRATEGY"] == strategy
        assert "DP_DISABLE_HEALTHCHECKS" not in env


@pytest.mark.parametrize(
    ("name", "process"),
    [
        ("nvidia-device-plugin-daemonset", "nvidia-device-plugin"),
        ("gpu-feature-discovery", "gpu-feature-discovery"),
    ],
)
def test_config_manager_chooses_the_plugins_configuration(
    rendered: Render, name: str, process: str
) -> None:
    """gpu-operator v26.7.0, controllers/object_controls.go:2818 and assets/state-device-plugin."""
    config = {"name": "plugin", "create": True, "default": "few", "data": {"few": "version: v1"}}
    pod = find(rendered("gpu-operator", {"devicePlugin": {"config": config}}), "DaemonSet", name)
    spec = pod["spec"]["template"]["spec"]
    assert spec["shareProcessNamespace"] is True
    assert environment(pod)["CONFIG_FILE"] == "/config/config.yaml"
    first = next(c for c in spec["initContainers"] if c["name"] == "config-manager-init")
    sidecar = next(c for c in spec["containers"] if c["name"] == "config-manager")
    for container, once, signal_process in ((first, "true", ""), (sidecar, "false", process)):
        env = {item["name"]: item.get("value") for item in container["env"]}
        assert (env["ONESHOT"], env["PROCESS_TO_SIGNAL"]) == (once, signal_process)
        assert (env["DEFAULT_CONFIG"], env["CONFIG_FILE_DST"]) == ("few", "/config/config.yaml")
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {
            "/config",
            "/available-configs",
        }
    bare = find(rendered("gpu-operator"), "DaemonSet", name)["spec"]["template"]["spec"]
    assert len(bare["containers"]) == 1


def test_the_exporters_environment_opens_no_host_network(rendered: Render) -> None:
    """gpu-operator v26.7.0, controllers/object_controls.go:1833: it is added too late for that."""
    engine = {"name": "DCGM_REMOTE_HOSTENGINE_INFO", "value": "localhost:5555"}
    exporter = find(
        rendered("gpu-operator", {"dcgmExporter": {"env": [engine]}}),
        "DaemonSet",
        "nvidia-dcgm-exporter",
    )
    assert "hostNetwork" not in exporter["spec"]["template"]["spec"]


def test_nfd_sees_pci_vendors_of_gpus(rendered: Render) -> None:
    conf = find(
        rendered("gpu-operator"), "ConfigMap", "gpu-operator-node-feature-discovery-worker-conf"
    )
    pci = yaml.safe_load(conf["data"]["nfd-worker.conf"])["sources"]["pci"]
    assert pci == {
        "deviceClassWhitelist": ["02", "0200", "0207", "0300", "0302"],
        "deviceLabelFields": ["vendor"],
    }


def test_dcgm_exporter_chart(rendered: Render) -> None:
    objects = rendered("dcgm-exporter", {"extraEnv": [{"name": "A", "value": "b"}]}, release="gpu")
    exporter = find(objects, "DaemonSet", "gpu-dcgm-exporter")
    assert "args" not in container(exporter)  # 4.8.3 emptied `arguments`
    assert environment(exporter)["A"] == "b"
    service = find(objects, "Service", "gpu-dcgm-exporter")
    assert [(p["name"], p["port"]) for p in service["spec"]["ports"]] == [("metrics", 9400)]
    [endpoint] = find(objects, "ServiceMonitor", "gpu-dcgm-exporter")["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["interval"], endpoint["scrapeTimeout"]) == (
        "metrics",
        "30s",
        "25s",
    )
    counters = find(objects, "ConfigMap", "exporter-metrics-config-map")["data"]["metrics"]
    rows = [line.split(",") for line in counters.splitlines() if line and not line.startswith("#")]
    assert len(rows) > 20
    assert {len(row) for row in rows} == {3}
