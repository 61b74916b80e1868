"""Objects of ours in the cluster: what is applied, what is removed, what is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuboot.kubernetes.manifests import Owned, as_owned, difference, manifest


def config_map(name: str = "a", namespace: str = "mon", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"grafana_dashboard": "1"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def there(item: dict[str, Any]) -> Owned:
    meta = as_owned(item)["metadata"]
    digest = meta["annotations"]["gpuboot.io/sha256"]
    return Owned(item["kind"], meta["namespace"], meta["name"], digest)


def test_nothing_to_do_for_what_is_there() -> None:
    assert difference([config_map(x="1")], [there(config_map(x="1"))], ["mon"]).nothing


@pytest.mark.parametrize("found", [[], [there(config_map(x="2"))]])
def test_what_is_missing_or_differs_is_applied(found: list[Owned]) -> None:
    change = difference([config_map(x="1")], found, ["mon"])
    [item] = change.apply
    assert item["data"] == {"x": "1"}
    assert item["metadata"]["labels"] == {
        "grafana_dashboard": "1",
        "app.kubernetes.io/managed-by": "gpuboot",
    }
    assert not change.delete


def test_only_our_namespaces_are_pruned() -> None:
    found = [there(config_map("old")), there(config_map("old", "other"))]
    assert difference([], found, ["mon"]).delete == (found[0],)


def test_the_digest_covers_labels_and_ignores_order() -> None:
    plain, other = config_map(a="1", b="2"), config_map(b="2", a="1")
    assert there(plain) == there(other)
    other["metadata"]["labels"] = {"grafana_dashboard": "2"}
    assert there(plain) != there(other)


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
