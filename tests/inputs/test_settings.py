"""Wrong settings: each gives one problem that names the field and what it takes, and no secret.

What upstream takes: KubeletConfiguration's fields from k8s.io/kubelet v0.36.3
config/v1beta1/types.go; networks from kubeadm v1.36.3 apis/kubeadm/validation/validation.go;
node ports from Kubernetes' default --service-node-port-range.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.config import settings
from gpuboot.site.load_site import load

WORD = "hunter2"  # a secret that must be in no message
HOOK = f"https://hooks.slack.com/services/T0/B0/{WORD}"
PROXY = f"http://user:{WORD}@proxy.example:3128"
NOT_ITSELF = '{"file": "PATH"}'


def kubelet(**fields: Any) -> dict[str, Any]:
    return {"cluster": {"kubelet": fields}}


def virtual_ip(**fields: Any) -> dict[str, Any]:
    return {"cluster": {"virtual_ip": "10.0.0.10", **fields}}


def alertmanager(**parts: Any) -> dict[str, Any]:
    return {"alertmanager": parts}


def monitoring(**parts: Any) -> dict[str, Any]:
    return {"monitoring": parts}


MAIL = {"to": ["a@example.com"], "sender": "b@example.com"}

# what a person wrote -> what the one problem says, in its cause or remedy
WRONG_SETTINGS: list[tuple[dict[Any, Any], str]] = [
    # names
    ({"clutser": {}}, "did you mean cluster?"),
    ({"pod_cidr": "10.0.0.0/16"}, "did you mean cluster.pod_cidr?"),
    ({"cluster": {"pod_cdir": "10.0.0.0/16"}}, "did you mean cluster.pod_cidr?"),
    ({"exporter": {"interval": "15s"}}, "did you mean exporter.scrape_interval?"),
    (monitoring(storage={"prom_size": "50Gi"}), "did you mean monitoring.storage.prometheus_size?"),
    ({"frobnicate": 1}, "see docs/settings.md"),
    ({1: 2}, "takes names, which are text"),
    # kinds
    ({"cluster": "prod"}, "cluster: takes a dict of settings (given: 'prod')"),
    ({"cluster": None}, "cluster: takes a dict of settings"),
    ({"driver": {"version": 595}}, "driver.version: takes text (given: 595)"),
    ({"driver": {"version": "latest"}}, "takes a driver version, e.g. 595.91.07"),
    ({"driver": {"enabled": "maybe"}}, "driver.enabled"),
    ({"driver": {"modules": "closed"}}, "'auto', 'open' or 'proprietary'"),
    ({"exporter": {"counters": "DCGM_FI_DEV_FAN_SPEED"}}, "exporter.counters: takes a list"),
    ({"remediate": {"confirm_s": "2m"}}, "remediate.confirm_s"),
    ({"proxy": {"no_proxy": "localhost"}}, "proxy.no_proxy: takes a list"),
    ({"proxy": {"no_proxy": ["localhost", ""]}}, "proxy.no_proxy.1: takes a name, an address or"),
    ({"proxy": {"no_proxy": ["a, b"]}}, "proxy.no_proxy.0: takes a name, an address or a network"),
    ({"proxy": {"no_proxy": ["it's"]}}, "e.g. .example.com"),
    ({"verify": {"timeout_s": -1}}, "verify.timeout_s"),
    # forms
    ({"cluster": {"name": "My Cluster"}}, "e.g. gpu-cluster (given: 'My Cluster')"),
    ({"cluster": {"name": "x" * 64}}, "at most 63 characters"),
    ({"cluster": {"pod_cidr": "10.0.0.0/33"}}, "e.g. 10.244.0.0/16 (given: '10.0.0.0/33')"),
    ({"cluster": {"pod_cidr": "10.0.0.1/16"}}, "cluster.pod_cidr: takes a network"),
    ({"cluster": {"dns_domain": "cluster_local"}}, "cluster.dns_domain: takes a domain name"),
    ({"cluster": {"dns_domain": "Cluster.Local"}}, "in lower case"),
    ({"cluster": {"endpoint": "api.example.com"}}, "cluster.endpoint: takes host:port"),
    ({"cluster": {"endpoint": "api.example.com:70000"}}, "from 1 to 65535"),
    ({"cluster": {"endpoint": "https://api.example.com:6443"}}, "e.g. api.example.com:6443"),
    ({"cluster": {"virtual_ip": "api"}}, "cluster.virtual_ip: takes an IP address"),
    ({"cluster": {"virtual_ip": "10.0.0.10/24"}}, "cluster.virtual_ip: takes an IP address"),
    ({"cluster": {"virtual_ip": "127.0.0.1"}}, "takes an address that other machines reach"),
    ({"cluster": {"virtual_ip": "ff02::12"}}, "takes an address that other machines reach"),
    (virtual_ip(virtual_router_id=256), "cluster.virtual_router_id"),
    (virtual_ip(virtual_ip_interface="eth0 eth1"), "takes a network device, e.g. eth0"),
    ({"dcgm": "standalone"}, "dcgm"),
    (
        {"dcgm": "host", "gpu_operator": {"values": {"dcgm": {"enabled": True}}}},
        "both engines would listen on port 5555",
    ),
    (
        {"dcgm": "host", "versions": {"dcgm": {"version": "4.9.0"}}},
        "versions.dcgm.version is 4.9.0, newer than the DCGM 4.6.1 in the exporter",
    ),
    ({"exporter": {"scrape_interval": "15"}}, "takes a duration, e.g. 15s"),
    ({"exporter": {"scrape_interval": "0s"}}, "longer than 0"),
    ({"exporter": {"scrape_interval": "50ms"}}, "takes 100ms or more"),
    (monitoring(retention="2 weeks"), "monitoring.retention: takes a duration"),
    (monitoring(retention="0d"), "monitoring.retention: takes a duration longer than 0"),
    (monitoring(storage={"prometheus_size": "50GB"}), "takes a size, e.g. 50Gi"),
    (monitoring(node_ports={"grafana": 80}), "monitoring.node_ports.grafana"),
    (monitoring(node_ports={"loki": 30300}), "'prometheus', 'alertmanager' or 'grafana'"),
    (alertmanager(email={**MAIL, "smarthost": "smtp"}), "e.g. smtp.example.com:587"),
    (alertmanager(watchdog={"url": {"file": "x"}, "interval": "0s"}), "longer than 0, e.g. 1m"),
    ({"standalone": {"targets": {"other": ["192.0.2.50"]}}}, "e.g. 192.0.2.50:9400"),
    ({"alerts": {"xid": {"seventy": "reset"}}}, "alerts.xid.seventy"),
    ({"alerts": {"rules": {"GPULosst": {}}}}, "did you mean GPULost?"),
    (monitoring(storage={"path": "data/volumes"}), "takes an absolute path"),
    (monitoring(ingress={"grafana": "https://grafana.example.com"}), "takes a domain name"),
    (alertmanager(email={"to": ["ops"], "sender": "a@b", "smarthost": "m:25"}), "takes an e-mail"),
    (alertmanager(email={"to": [], "sender": "a@b", "smarthost": "m:25"}), "at least one address"),
    (alertmanager(email={"to": "a@b", "sender": "a@b", "smarthost": "m:25"}), "takes a list"),
    ({"standalone": {"bind": "localhost"}}, "takes an IP address, e.g. 192.0.2.11"),
    ({"standalone": {"ports": {"exporter": 0}}}, "standalone.ports.exporter"),
    # networks
    ({"cluster": {"pod_cidr": "16.0.0.0/7"}}, "kubeadm takes /8 to /24"),
    ({"cluster": {"pod_cidr": "10.244.0.0/25"}}, "each node gets a /24 of it"),
    ({"cluster": {"service_cidr": "16.0.0.0/8"}}, "is too large: kubeadm takes /12 or smaller"),
    ({"cluster": {"service_cidr": "10.96.0.0/29"}}, "is too small: it needs 10 addresses"),
    ({"cluster": {"service_cidr": "fd00::/112"}}, "are of different IP versions"),
    # numbers
    ({"cost": {"gpu_hour": {"NVIDIA H100 80GB HBM3": -2}}}, "greater than or equal to 0"),
    ({"cost": {"gpu_hour": {"*": float("nan")}}}, "cost.gpu_hour.*"),
    ({"cost": {"gpu_hour": {"H100": 2}}}, "e.g. NVIDIA H100 80GB HBM3 (given: 'H100')"),
    ({"gpu_operator": {"time_slices": 0}}, "gpu_operator.time_slices"),
    # what does not go together
    ({"cluster": {"pod_cidr": "10.96.0.0/16"}}, "overlaps cluster.service_cidr"),
    (virtual_ip(endpoint="lb:6443"), "cluster.virtual_ip and cluster.endpoint exclude each other"),
    (virtual_ip(service_cidr="10.0.0.0/16"), "is in cluster.service_cidr 10.0.0.0/16"),
    ({"cluster": {"virtual_router_id": 9}}, "says nothing without cluster.virtual_ip"),
    ({"cluster": {"virtual_ip_interface": "eth0"}}, "says nothing without cluster.virtual_ip"),
    ({"runtime": {"mode": "cdi"}}, 'in the modes "default" and "runtimeclass"'),
    ({"gpu_operator": {"enabled": False}}, 'use exporter.kind "chart"'),
    (
        monitoring(node_ports={"prometheus": 30090, "grafana": 30090}),
        "node_ports prometheus and grafana are both 30090",
    ),
    # settings of earlier releases
    ({"gate": {"renew_h": 12}}, "gate.renew_h was removed: proofs are always renewed after a day"),
    (monitoring(grafana_node_port=30300), 'set monitoring.node_ports["grafana"]'),
    ({"teams": {"a": {"namespace": "b"}}}, "teams.a.namespace was removed: the namespace always"),
    # kubelets
    (kubelet(cgroupDriver="cgroupfs"), "cluster.kubelet may not set cgroupDriver"),
    (kubelet(maxPodz=200), "did you mean maxPods?"),
    (kubelet(nonsense=1), "Kubernetes 1.37 has no such kubelet field"),
    (kubelet(maxPods="200"), "cluster.kubelet.maxPods: takes a whole number (given: '200')"),
    (kubelet(maxPods=True), "takes a whole number"),
    (kubelet(serializeImagePulls="no"), "takes True or False (given: 'no')"),
    (kubelet(shutdownGracePeriod=30), 'takes a duration, e.g. "1m30s"'),
    (kubelet(shutdownGracePeriod="30"), 'takes a duration, e.g. "1m30s"'),
    (kubelet(evictionHard="10%"), "cluster.kubelet.evictionHard: takes a dict"),
    (kubelet(evictionHard={"memory.available": 500}), "each value text"),
    (kubelet(allowedUnsafeSysctls="net.*"), "takes a list, each item text"),
    (kubelet(featureGates={"X": "true"}), "each value True or False"),
    # versions
    ({"versions": "1.36.6"}, "versions: takes a dict"),
    ({"versions": {"containerd": {"version": "abc"}}}, "versions.containerd.version: takes a ver"),
    ({"versions": {"kubernetes": {"version": "1"}}}, "e.g. 1.36.6 (given: '1')"),
    ({"versions": {"kubernetez": {}}}, "did you mean versions.kubernetes?"),
    ({"versions": {"driver": {"verison": "1.2"}}}, "did you mean versions.driver.version?"),
    ({"versions": {"charts": {"gpu-operator": {"version": "latest"}}}}, "takes a version"),
    (
        {"versions": {"kubernetes": {"version": "1.35.2", "minor": "1.36"}}},
        'set minor = "1.35"',
    ),
    ({"upgrade": {"max_unavailable": 0}}, "takes 1 or more, or a share such as 10%"),
    ({"upgrade": {"max_unavailable": "10"}}, "takes a number of nodes, or a share of them"),
    ({"upgrade": {"max_unavailable": {}}}, "takes at least one group of the inventory"),
    (
        {"upgrade": {"max_unavailable": {"a": 0, "workers": "5", "b": "7%"}}},
        "'a' takes 1 or more, or a share such as 10% (given: 0); 'workers' takes a number of nodes",
    ),
    ({"upgrade": {"drain": "sometimes"}}, "upgrade.drain"),
    ({"upgrade": {"drain_timeout_s": 0}}, "upgrade.drain_timeout_s"),
    # secrets, where they do not belong
    (alertmanager(slack={"webhook": HOOK}), NOT_ITSELF),
    (alertmanager(slack=HOOK), "alertmanager.slack: takes a dict of settings"),
    (alertmanager(slack={"webhook": {"file": HOOK}}), "not the secret itself"),
    (alertmanager(slack={"webhook": {"secret": HOOK}}), "NAME/KEY of a Secret"),
    (alertmanager(slack={"webhook": {}}), NOT_ITSELF),
    (alertmanager(slack={"webhook": {"value": WORD}}), "unknown setting alertmanager.slack.web"),
    (alertmanager(pagerduty={"routing_key": WORD}), NOT_ITSELF),
    (alertmanager(watchdog={"url": HOOK}), NOT_ITSELF),
    (
        alertmanager(email={**MAIL, "smarthost": "m:25", "username": "u", "password": WORD}),
        "alertmanager.email.password",
    ),
    (
        monitoring(remote_write=[{"url": "https://store.example/api", "bearer_token": WORD}]),
        "monitoring.remote_write.0.bearer_token",
    ),
    (monitoring(remote_write=[{"url": f"{PROXY}/"}]), "without / at its end"),
    (monitoring(remote_write={"url": PROXY}), "monitoring.remote_write: takes a list"),
    ({"proxy": {"http": f"{PROXY}/"}}, "proxy.http: takes an address"),
    ({"proxy": PROXY}, "proxy: takes a dict of settings"),
    ({"mirrors": {"images": {"nvcr.io": f"user:{WORD}@mirror"}}}, "mirrors.images.nvcr.io"),
    (alertmanager(slack={HOOK: True, "webhook": {"file": "x"}}), "setting alertmanager.slack.…"),
    ({"mirrors": {"images": {PROXY: 1}}}, "mirrors.images.…: takes text"),
    ({"grafana_password": [WORD]}, "grafana_password: takes text"),
    # a rule about several settings, beside secrets that are right
    (
        {
            "grafana_password": WORD,
            "proxy": {"http": PROXY},
            "gpu_operator": {"enabled": False, "values": {"token": WORD}},
        },
        "needs gpu_operator.enabled",
    ),
    (
        monitoring(
            remote_write=[{"url": f"{PROXY}/a", "headers": {"Authorization": WORD}}] * 2,
        ),
        "every remote_write needs a name of its own",
    ),
]


@pytest.mark.parametrize(
    ("data", "expected"), WRONG_SETTINGS, ids=[expected for _, expected in WRONG_SETTINGS]
)
def test_one_problem_that_names_the_setting(data: dict[Any, Any], expected: str) -> None:
    with pytest.raises(settings.SettingsError) as raised:
        load(data)
    [problem] = raised.value.problems
    problem_text = str(problem)
    assert expected in problem_text
    assert problem.remedy
    assert WORD not in problem_text
    # no regular expression, and not pydantic's words for a dict
    assert "^" not in problem_text
    assert "instance of" not in problem_text


def test_a_field_of_a_newer_kubelet_passes_and_a_wrong_type_does_not() -> None:
    data: dict[str, Any] = {
        "cluster": {"kubelet": {"brandNew": 1}},
        "versions": {
            "kubernetes": {"version": "1.35.9", "minor": "1.35"},
        },
    }
    load(data)
    data["cluster"]["kubelet"]["maxPods"] = "many"
    with pytest.raises(settings.SettingsError, match="maxPods"):
        load(data)


def test_what_is_right_stays_right() -> None:
    load(
        {
            "cluster": {
                "endpoint": "[2001:db8::1]:6443",
                "dns_domain": "gpu.example.com",
                "kubelet": {
                    "maxPods": 200,
                    "evictionHard": {"memory.available": "500Mi"},
                    "memorySwap": {"swapBehavior": "NoSwap"},
                    "registerWithTaints": [{"key": "gpu", "effect": "NoSchedule"}],
                },
            },
            "exporter": {"arguments": ["--debug"]},
            "cost": {"gpu_hour": {"*": 0, "Tesla T4": 0.5}},
            "proxy": {"http": PROXY},
            "alertmanager": {"group_wait": "0s", "slack": {"webhook": {"file": "~/slack"}}},
        }
    )
