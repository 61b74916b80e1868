"""What of an object's fields counts as set otherwise, and what the API server does to them."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.cluster.set_fields import field_differences

# a Deployment as a chart has it, and as the API server then shows it
DESIRED = {
    "metadata": {"labels": {"app": "web"}, "annotations": {}},
    "spec": {
        "replicas": 1,
        "paused": False,
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "hostNetwork": False,
                "nodeSelector": {},
                "imagePullSecrets": [],
                "securityContext": None,
                "containers": [
                    {
                        "name": "web",
                        "args": ["--a", "--b"],
                        "env": [{"name": "A", "value": "1"}, {"name": "EMPTY", "value": ""}],
                        "ports": [{"containerPort": 80}],
                        "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {}},
                        "volumeMounts": [{"mountPath": "/etc/web", "name": "config"}],
                    }
                ],
                "tolerations": [{"operator": "Exists"}],
                "volumes": [{"name": "config", "configMap": {"name": "web"}}],
            },
        },
    },
}
LIVE = {
    "metadata": {
        "labels": {"app": "web", "team": "ml"},
        "annotations": {"deployment.kubernetes.io/revision": "3"},
        "uid": "b8f6",
    },
    "spec": {
        "replicas": 1,
        "progressDeadlineSeconds": 600,
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "securityContext": {},
                "restartPolicy": "Always",
                "containers": [
                    {"name": "injected", "image": "proxy"},
                    {
                        "name": "web",
                        "args": ["--a", "--b"],
                        "env": [{"name": "EMPTY"}, {"name": "A", "value": "1"}],
                        "imagePullPolicy": "IfNotPresent",
                        "ports": [
                            {"containerPort": 443, "protocol": "TCP"},
                            {"containerPort": 80, "protocol": "TCP"},
                        ],
                        "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                        "volumeMounts": [{"mountPath": "/etc/web", "name": "config"}],
                    },
                ],
                "tolerations": [{"operator": "Exists"}],
                "volumes": [{"name": "config", "configMap": {"name": "web", "defaultMode": 420}}],
            },
        },
    },
    "status": {"replicas": 1},
}


def changed(path: str, value: Any) -> Any:
    """LIVE with another value, or without one (...), at a path of keys and indices."""

    def put(item: Any, keys: list[str]) -> Any:
        step, remaining_keys = keys[0], keys[1:]
        copy = list(item) if isinstance(item, list) else dict(item)
        place: Any = int(step) if isinstance(item, list) else step
        if not remaining_keys and value is ...:
            del copy[place]
        else:
            copy[place] = put(copy[place], remaining_keys) if remaining_keys else value
        return copy

    return put(LIVE, path.split("/"))


def test_what_the_api_server_and_others_add_is_no_difference() -> None:
    assert list(field_differences(DESIRED, LIVE)) == []


POD = "spec/template/spec"


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (changed("spec/replicas", 0), ("spec.replicas", 0, 1)),
        (changed("spec/paused", True), ("spec.paused", True, False)),
        (changed("metadata/labels/app", "x"), ("metadata.labels.app", "x", "web")),
        (changed("metadata/labels/app", ...), ("metadata.labels.app", None, "web")),
        (
            changed(f"{POD}/containers/1/args", ["--a"]),
            ("spec.template.spec.containers[web].args", ["--a"], ["--a", "--b"]),
        ),
        (
            changed(f"{POD}/containers/1/args", ["--b", "--a"]),
            ("spec.template.spec.containers[web].args", ["--b", "--a"], ["--a", "--b"]),
        ),
        (
            changed(f"{POD}/containers/1/env/1/value", "2"),
            ("spec.template.spec.containers[web].env[A].value", "2", "1"),
        ),
        (
            changed(f"{POD}/containers/1/resources/limits/memory", "2Gi"),
            ("spec.template.spec.containers[web].resources.limits.memory", "2Gi", "1024Mi"),
        ),
        (
            changed(f"{POD}/containers/1/resources/limits/memory", "much"),
            ("spec.template.spec.containers[web].resources.limits.memory", "much", "1024Mi"),
        ),
        # a list that is a whole: nobody adds to it
        (
            changed(f"{POD}/tolerations", [{"operator": "Exists"}, {"key": "a"}]),
            (
                "spec.template.spec.tolerations",
                [{"operator": "Exists"}, {"key": "a"}],
                [{"operator": "Exists"}],
            ),
        ),
        (
            changed(f"{POD}/tolerations/0/operator", "Equal"),
            ("spec.template.spec.tolerations[0].operator", "Equal", "Exists"),
        ),
        (
            changed(f"{POD}/volumes", ...),
            (
                "spec.template.spec.volumes",
                None,
                [{"name": "config", "configMap": {"name": "web"}}],
            ),
        ),
    ],
)
def test_what_is_set_otherwise(live: Any, expected: tuple[str, Any, Any]) -> None:
    assert list(field_differences(DESIRED, live)) == [expected]


def test_ports_are_told_apart_by_number_and_protocol() -> None:
    desired = {"spec": {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}}
    live = {
        "spec": {
            "ports": [
                {"port": 53, "protocol": "UDP", "targetPort": 53},
                {"port": 53, "protocol": "TCP", "targetPort": 53},
            ]
        }
    }
    assert list(field_differences(desired, live)) == []


def test_ports_of_a_network_policy_are_a_whole() -> None:
    desired = {"spec": {"ingress": [{"ports": [{"port": 80}]}]}}
    live = {"spec": {"ingress": [{"ports": [{"port": 80, "protocol": "TCP"}, {"port": 22}]}]}}
    [(path, _, _)] = field_differences(desired, live)
    assert path == "spec.ingress[0].ports"


def test_true_is_not_one() -> None:
    assert list(field_differences({"a": 1}, {"a": True})) == [("a", True, 1)]
    assert list(field_differences({"data": {"a": "1.0"}}, {"data": {"a": "1"}})) == [
        ("data.a", "1", "1.0")
    ]
