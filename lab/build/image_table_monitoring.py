"""The images of monitoring: Prometheus and what belongs to it, local volumes, metrics-server."""

from __future__ import annotations

from lab.build import debian_programs as debian
from lab.build import software, software_metrics
from lab.build import software_monitoring as built
from lab.build.golang import module_version
from lab.build.image_parts import NOBODY_UID, Programs, built_from, links, shell
from lab.build.images import Image

KUBE_STATE_METRICS = "v2.20.0"  # what upstream's chart 88.5.3 runs
_RELOADER = "prometheus-config-reloader"


def images(programs: Programs) -> list[Image]:
    """The images of this file; `programs` is what `lab.build.programs.build_all` returned."""
    return [
        *_prometheus(programs),
        _kube_state_metrics(programs),
        *_volumes(programs),
        *_metrics(programs),
    ]


def _prometheus(programs: Programs) -> list[Image]:
    operator = built_from(built.OPERATOR)
    release = module_version(built.OPERATOR)
    exporter = debian.versions(programs)["prometheus-node-exporter"]
    server = (
        f"{built_from(built.PROMETHEUS)}; finds targets by Kubernetes, files, HTTP and lists only"
    )
    rows = [  # image below quay.io, its programs (the first is what it runs), origin
        (f"prometheus-operator:{release}", ("operator",), operator),
        (f"{_RELOADER}:{release}", (_RELOADER,), operator),
        (f"prometheus:v{built.PROMETHEUS_VERSION}", ("prometheus", "promtool"), server),
        (
            f"alertmanager:{module_version(built.ALERTMANAGER)}",
            ("alertmanager", "amtool"),
            f"{built_from(built.ALERTMANAGER)}, without its pages",
        ),
        (f"node-exporter:v{exporter}", ("node_exporter",), "real, Debian's package"),
    ]
    as_built = {"operator": "prometheus-operator"}  # where that is another name
    return [
        Image(
            f"quay.io/{'prometheus-operator' if origin is operator else 'prometheus'}/{image}",
            {f"/bin/{name}": programs[as_built.get(name, name)] for name in names},
            (f"/bin/{names[0]}",),
            origin,
            user=NOBODY_UID,
            libs=True,
        )
        for image, names, origin in rows
    ]


def _kube_state_metrics(programs: Programs) -> Image:
    return Image(
        f"registry.k8s.io/kube-state-metrics/kube-state-metrics:{KUBE_STATE_METRICS}",
        {
            "/usr/bin/sim-kube-state-metrics": programs["sim-kube-state-metrics"],
            "/kube-state-metrics": "-> usr/bin/sim-kube-state-metrics",
        },
        ("/kube-state-metrics",),
        "SIMULATED: the lab's own program with some of upstream's series, under their names",
        user=NOBODY_UID,
        libs=True,
    )


def _volumes(programs: Programs) -> list[Image]:
    release = module_version(software.LOCAL_PATH)
    busybox = debian.versions(programs)["busybox-static"]
    provisioner = {
        **shell(programs),
        "/usr/bin/local-path-provisioner": programs["local-path-provisioner"],
    }
    return [
        Image(
            f"docker.io/rancher/local-path-provisioner:{release}",
            provisioner,
            ("local-path-provisioner",),
            built_from(software.LOCAL_PATH),
        ),
        # of the provisioner's helper pods, which make and remove a volume's folder
        Image(
            f"docker.io/library/busybox:{busybox}",
            {**shell(programs), **links("base64", "date", "mv")},
            ("sh",),
            "real, Debian's package busybox-static, with links for some of its commands",
        ),
    ]


def _metrics(programs: Programs) -> list[Image]:
    module, version = software_metrics.METRICS_SERVER, software_metrics.METRICS_SERVER_VERSION
    approver = "kubelet-csr-approver"
    return [
        Image(
            f"registry.k8s.io/metrics-server/metrics-server:{version}",
            {"/metrics-server": programs["metrics-server"]},
            ("/metrics-server",),
            f"real, built from the Go module {module}@{version}",
            user=NOBODY_UID,
        ),
        Image(
            f"ghcr.io/postfinance/{approver}:{software_metrics.APPROVER_VERSION}",
            {f"/ko-app/{approver}": programs["sim-csr-approver"]},
            (f"/ko-app/{approver}",),
            "STAND-IN: the lab's own program; no module proxy has upstream's module",
            user="65532",
        ),
    ]
