"""The links of the proof chain, from the PCI bus to the pod that a series names, in their order.

Those of `one_file_checks` come from files of their own, and stand behind the link that they name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuboot.verify.checks.one_file import ClusterCheck, HostCheck, Link, Subject
from gpuboot.verify.checks.one_file_checks import CLUSTER_CHECKS, HOST_CHECKS

_CHAIN: tuple[Link, ...] = (
    Link(
        name="pci",
        passes="the PCI bus shows the device",
        facts="`/sys/bus/pci/devices` of the host; `gpus` of the inventory",
        fails="fewer NVIDIA GPUs than the inventory promises, or more",
        remedy="look at the machine",
        subject="card",
        docker=True,
    ),
    Link(
        name="driver",
        passes="driver loaded = installed = requested",
        facts="`/proc/driver/nvidia/version`, `modinfo nvidia`, the installed packages; the "
        "version lock",
        fails="no NVIDIA module is loaded; the loaded version is not the installed one, or not "
        "that of the lock",
        remedy="`modprobe nvidia` on the node",
        subject="card",
        docker=True,
    ),
    Link(
        name="nvidia-smi",
        passes="the driver answers for it, with a UUID",
        facts="`nvidia-smi --query-gpu`, `/proc/driver/nvidia/gpus`; the PCI bus",
        fails="nvidia-smi does not list the device, or lists it as lost or in need of a reset; two "
        "devices have one UUID; its NVLink fabric has not admitted it",
        remedy="drain the node",
        subject="card",
        docker=True,
    ),
    Link(
        name="runtime",
        passes="containerd can hand it to a container",
        facts="`crictl info` and `nvidia-ctk cdi list` (Docker: `docker info`)",
        fails="the runtime `nvidia` is missing, or not the default where it has to be; CDI does "
        "not name the device",
        remedy="run deploys/site.py",
        subject="device",
        docker=True,
    ),
    Link(
        name="allocatable",
        passes="Kubernetes offers it",
        facts="Node and Lease objects of the Kubernetes API",
        fails="the node is missing or not Ready, or its kubelet is silent; it offers another "
        "number of `nvidia.com/gpu` or MIG devices; MIG's layout is one that the device plugin "
        "refuses",
        remedy="read the device plugin's log on this node",
        subject="device",
        docker=False,
    ),
    Link(
        name="workload",
        passes="a pod computed on it",
        facts="log and status of a pod with vectorAdd on the free GPUs, by UUID (Docker: a "
        "container on each)",
        fails="the pod failed, or did not print `Test PASSED`; a container saw more or fewer GPUs "
        "than it asked for, or another one; two got the same one",
        remedy="drain the node",
        subject="device",
        docker=True,
    ),
    Link(
        name="exporter",
        passes="dcgm-exporter reports it, with sane values",
        facts="`/metrics` of dcgm-exporter, read twice; nvidia-smi",
        fails="no exporter answers for the host, or two do; it lacks a GPU or a value that "
        "nvidia-smi has; a value cannot be, or stands still; it runs with another list of fields",
        remedy="look at the dcgm-exporter pod of this node",
        subject="device",
        docker=True,
    ),
    Link(
        name="health",
        passes="neither DCGM nor the driver wants it reset, repaired or cooled",
        facts="`/metrics` of dcgm-exporter: uncorrected errors, row remaps, recovery action, "
        "health watches, reasons for low clocks; critical alerts that fire for it; with `dcgm = "
        '"host"` what the host engine said last (`dcgmi health`, `dcgmi diag -r 1`)',
        fails="uncorrected memory errors; a row remap that failed or waits; memory that cannot "
        "be repaired; the driver asks for a reset; a health watch fails; it is slowed down for "
        "heat or by the power brake; a critical alert asks for its reset or replacement; the host "
        "engine fails it",
        remedy="drain the node",
        subject="card",
        docker=True,
    ),
    Link(
        name="prometheus",
        passes="Prometheus holds its fresh series, with the right node",
        facts="Prometheus' API: targets and series",
        fails="the exporter's target is missing or down, or there are two; no series, several, an "
        "old one, or one with another `node`",
        remedy="compare the exporter's /metrics",
        subject="device",
        docker=True,
    ),
    Link(
        name="attribution",
        passes="its series name the pod that holds it, and no other; where pods share it, each of "
        "them with its share",
        facts="labels of the series and of the exporter's answer; the pods that hold GPUs",
        fails="the series name no pod, or another one, or one of several that share it; an idle "
        "GPU's name one",
        remedy="the exporter needs DCGM_EXPORTER_KUBERNETES=true",
        subject="device",
        docker=False,
    ),
    Link(
        name="diag",
        passes="DCGM's diagnostics find nothing",
        facts="`dcgmi diag -j` in a pod that holds all GPUs of the node",
        fails="DCGM fails a test of its memory, links or computation, or hangs",
        remedy="drain the node and reset the GPU",
        subject="deep",
        docker=False,
    ),
    Link(
        name="bandwidth",
        passes="copies are right, and as fast as is published for its model",
        facts="nvbandwidth in such a pod; `gpuboot/verify/deep/thresholds.py`",
        fails="a copy between host and GPU, or between GPUs, is wrong, too slow, or hangs",
        remedy="compare `nvidia-smi -q -d PCIE` with the slot",
        subject="deep",
        docker=False,
    ),
    Link(
        name="collective",
        passes="NCCL's sum over the node's GPUs is right, and as fast as is published",
        facts="all_reduce_perf of nccl-tests in such a pod; the same table",
        fails="a value is wrong, a GPU does not take part, it is too slow, or hangs",
        remedy="see `nvidia-smi nvlink --status`",
        subject="deep",
        docker=False,
    ),
    Link(
        name="internode",
        passes="NCCL's sum over two nodes is right, and as fast as is published or set",
        facts="all_reduce_perf by mpirun in pods on pairs of nodes; NCCL's log of the network that "
        "it takes; `verify.deep.internode`",
        fails="a value is wrong, GPUs or a node are missing, it is too slow, or hangs; of a node "
        "that is tried with two others and one of them is to blame, that one fails",
        remedy="see the state and error counters of the adapters",
        subject="deep",
        docker=False,
    ),
    Link(
        name="load",
        passes="its PCIe link and clocks hold under load",
        facts="nvidia-smi on the host, while the tests run",
        fails="the PCIe link stays below its width or generation; it is slowed down for heat or "
        "power; clock or power limit fall behind GPUs of its model beside it",
        remedy="reseat the card",
        subject="deep",
        docker=False,
    ),
    Link(
        name="isolation",
        passes="on every GPU node a container that was given no GPU sees none",
        facts="a pod on each GPU node whose containers ask by `NVIDIA_VISIBLE_DEVICES` (`all`, "
        "`none`, an index, a CDI name, a UUID), `NVIDIA_DRIVER_CAPABILITIES`, a CDI annotation and "
        "a mounted `/dev/null`; with runtimeClassName nvidia where that is not the default",
        fails="one of them sees a device of a GPU",
        remedy="run deploys/site.py",
        subject="cluster",
        docker=False,
    ),
    Link(
        name="services",
        passes="pods of every GPU node resolve names and reach Services",
        facts="a pod on each GPU node; `verify.outside_name`, which the node resolves as well",
        fails="`kubernetes.default.svc` is not resolved, or its address does not answer; a name "
        "beyond the cluster is not resolved by a pod or by the node itself",
        remedy="see CoreDNS",
        subject="cluster",
        docker=False,
    ),
    Link(
        name="targets",
        passes="no scrape target is red",
        facts="Prometheus' API: targets",
        fails="a target is down; there is none; kube-state-metrics is none of them",
        remedy="see the pod behind it",
        subject="cluster",
        docker=True,
    ),
    Link(
        name="rules",
        passes="alert rules are loaded without errors",
        facts="Prometheus' API: rules; the PrometheusRule objects",
        fails="a rule of gpuboot's is missing, of another version, or has an error",
        remedy="correct the expression in the PrometheusRule",
        subject="cluster",
        docker=True,
    ),
    Link(
        name="alertmanager",
        passes="Prometheus reaches Alertmanager",
        facts="the APIs of Prometheus and Alertmanager",
        fails="Prometheus knows no Alertmanager; it is not ready; it runs without the receivers, "
        "routes or inhibitions of the settings",
        remedy="see the pods of the monitoring namespace",
        subject="cluster",
        docker=True,
    ),
    Link(
        name="alerting",
        passes="alerts reach their receivers",
        facts="the APIs of Prometheus and Alertmanager; the Prometheus and Alertmanager objects; "
        "with `gpuboot verify --test-alert` a test alert",
        fails="the alert Watchdog, which always fires, does not reach Alertmanager or is "
        "suppressed there; silences leave no critical alert; Prometheus or Alertmanager is paused "
        "or has no replicas; a receiver refused every message of the last 15 minutes, or the test "
        "alert",
        remedy="see Prometheus' page Status > Rules",
        subject="cluster",
        docker=False,
    ),
    Link(
        name="dashboards",
        passes="the GPU dashboards are there, and Grafana, where there is one, answers",
        facts="Grafana's API, where `monitoring.grafana` has it; the dashboards' ConfigMaps",
        fails="Grafana does not answer, or has no GPU dashboard; a ConfigMap is missing or changed",
        remedy="see the pods of the monitoring namespace",
        subject="cluster",
        docker=True,
    ),
    Link(
        name="storage",
        passes="what is to be kept is on volumes",
        facts="PersistentVolumeClaims",
        fails="a volume that the settings want was not requested, is not bound, or is too small",
        remedy="see `kubectl describe pvc`",
        subject="cluster",
        docker=False,
    ),
    Link(
        name="certificates",
        passes="the control plane's certificates are valid",
        facts="kubeadm's certificates and kubeconfigs, and the kubelet's, on each control plane",
        fails="one has expired",
        remedy="run deploys/site.py",
        subject="cluster",
        docker=False,
    ),
    Link(
        name="backup",
        passes="there is a fresh backup of etcd",
        facts="`/var/lib/gpuboot/backup` of each control plane, and the units of timer and copy",
        fails="there is none of this cluster, the newest is older than `backup.max_age_h`, or the "
        "timer's last one failed; likewise its copy off the node, where one is set",
        remedy="see `journalctl -u gpuboot-etcd-backup`",
        subject="cluster",
        docker=False,
    ),
    Link(
        name="policies",
        passes="NetworkPolicies are in the cluster; its text says what enforces them, if anything",
        facts="NetworkPolicy objects, and the names of DaemonSets",
        fails="one is missing, changed, or left over",
        remedy="run deploys/site.py",
        subject="cluster",
        docker=False,
    ),
)


def _with(chain: Iterable[Link], checks: Iterable[HostCheck | ClusterCheck]) -> Iterator[Link]:
    behind = list(checks)
    for link in chain:
        yield link
        yield from (check.link for check in behind if check.behind == link.name)


TABLE = tuple(_with(_CHAIN, [*HOST_CHECKS, *CLUSTER_CHECKS]))


def of(*subjects: Subject) -> dict[str, str]:
    """Name -> what is true when it passes, of the links about these subjects."""
    return {link.name: link.passes for link in TABLE if link.subject in subjects}
