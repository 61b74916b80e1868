"""Objects of ours in the cluster: what is applied, what is removed, what is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuboot.cluster.manifests import as_owned, difference, manifest


def config_map(name: str = "a", namespace: str = "mon", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"grafana_dashboard": "1"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def live_object(item: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """The object as it lives. + metadata: fields of its metadata"""
    owned = as_owned(item)
    return {**owned, "metadata": {**owned["metadata"], "uid": "1", **metadata}}


def test_nothing_to_do_for_what_is_there() -> None:
    assert difference([config_map(x="1")], [live_object(config_map(x="1"))], ["mon"]).is_empty


@pytest.mark.parametrize("live", [[], [live_object(config_map(x="2"))]])
def test_what_is_missing_or_differs_is_applied(live: list[dict[str, Any]]) -> None:
    change = difference([config_map(x="1")], live, ["mon"])
    [item] = change.apply
    assert item["data"] == {"x": "1"}
    assert item["metadata"]["labels"] == {
        "grafana_dashboard": "1",
        "app.kubernetes.io/managed-by": "gpuboot",
    }
    assert not change.delete


def test_only_our_namespaces_are_pruned() -> None:
    live = [live_object(config_map("old")), live_object(config_map("old", "other"))]
    assert difference([], live, ["mon"]).delete == (live[0],)


def test_the_digest_covers_labels_and_ignores_order() -> None:
    plain, permuted_map = config_map(a="1", b="2"), config_map(b="2", a="1")
    assert live_object(plain) == live_object(permuted_map)
    permuted_map["metadata"]["labels"] = {"grafana_dashboard": "2"}
    assert live_object(plain) != live_object(permuted_map)


def test_mistakes_are_named() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s", "namespace": "mon"}}
    with pytest.raises(ValueError, match="Secret s: only ConfigMap"):
        as_owned(secret)
    with pytest.raises(ValueError, match="without 'namespace'"):
        as_owned({"kind": "ConfigMap", "metadata": {"name": "x"}})
    with pytest.raises(ValueError, match="twice"):
        difference([config_map(), config_map(x="1")], [], ["mon"])


def test_the_manifest_is_one_document() -> None:
    read = json.loads(manifest([as_owned(config_map(x="line\nline"))]))
    assert read["kind"] == "List"
    assert read["items"][0]["data"]["x"] == "line\nline"


def test_what_was_changed_by_hand_is_applied_though_its_digest_is_ours() -> None:
    changed = {**live_object(config_map(x="1")), "data": {"x": "2"}}
    assert [item["data"] for item in difference([config_map(x="1")], [changed], []).apply] == [
        {"x": "1"}
    ]
    unlabelled = live_object(config_map(x="1"))
    del unlabelled["metadata"]["labels"]["grafana_dashboard"]
    assert len(difference([config_map(x="1")], [unlabelled], []).apply) == 1


def test_marks_of_others_stay_and_are_no_difference() -> None:
    live = live_object(config_map(x="1"))
    live["metadata"]["labels"]["team"] = "ml"
    live["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = "now"
    assert difference([config_map(x="1")], [live], ["mon"]).is_empty


def test_a_key_added_by_hand_is_taken_away() -> None:
    live = {**live_object(config_map(x="1")), "data": {"x": "1", "y": "2"}}
    live["metadata"]["labels"]["team"] = "ml"
    change = difference([config_map(x="1")], [live], ["mon"])
    assert not change.apply
    [replacement] = change.replace
    assert replacement.added == ("data.y",)
    assert replacement.item["data"] == {"x": "1"}
    assert (
        replacement.item["metadata"]["labels"].items()
        >= {"team": "ml", "grafana_dashboard": "1"}.items()
    )


RULE = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "PrometheusRule",
    "metadata": {"name": "r", "namespace": "mon"},
    "spec": {"groups": [{"name": "gpu", "rules": [{"alert": "A", "expr": "up == 0"}]}]},
}


def managed(manager: str, fields: dict[str, Any], **extra: Any) -> list[dict[str, Any]]:
    """As `kubectl get -o yaml --show-managed-fields` shows who set which fields."""
    own_entry = {
        "manager": "gpuboot",
        "operation": "Apply",
        "fieldsV1": {"f:spec": {"f:groups": {}}},
    }
    return [own_entry, {"manager": manager, "operation": "Update", "fieldsV1": fields, **extra}]


@pytest.mark.parametrize(
    ("entries", "added"),
    [
        # `kubectl edit`: a group, a field of our group, a field of the spec
        (
            managed("kubectl-edit", {"f:spec": {"f:groups": {'k:{"name":"my"}': {"f:name": {}}}}}),
            ('spec.groups[{"name":"my"}]',),
        ),
        (
            managed(
                "kubectl-edit",
                {"f:spec": {"f:groups": {'k:{"name":"gpu"}': {".": {}, "f:interval": {}}}}},
            ),
            ("spec.groups.interval",),
        ),
        (managed("kubectl-patch", {"f:spec": {"f:limit": {}}}), ("spec.limit",)),
        # what is ours as well, marks, and what a controller notes in the status
        (managed("kubectl", {"f:spec": {"f:groups": {'k:{"name":"gpu"}': {".": {}}}}}), ()),
        (managed("kubectl-label", {"f:metadata": {"f:labels": {"f:team": {}}}}), ()),
        (managed("PrometheusOperator", {"f:status": {"f:bindings": {}}}, subresource="status"), ()),
    ],
)
def test_fields_that_others_have_set(entries: list[dict[str, Any]], added: tuple[str, ...]) -> None:
    change = difference([RULE], [live_object(RULE, managedFields=entries)], ["mon"])
    assert tuple(path for replacement in change.replace for path in replacement.added) == added
    assert change.is_empty is not bool(added)


def test_objects_of_helm_are_not_ours() -> None:
    of_helm = config_map("b")
    of_helm["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    assert difference([], [of_helm], ["mon"]).is_empty
