"""Objects of ours in the cluster: what is applied, what is removed, what is left alone."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploys.facts.objects import Owned as Fact
from gpuboot.fact_output import answer
from gpuboot.kubernetes.manifests import Owned, as_owned, difference, manifest, parse_owned


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


KUBECTL = """#!/bin/sh
case "$2" in
  *prometheusrules*) if [ -n "$NO_TYPES" ]; then
    echo "error: the server doesn't have a resource type \\"prometheusrules\\"" >&2; exit 1; fi ;;
esac
if [ -n "$DOWN" ]; then echo "connection refused" >&2; exit 1; fi
printf 'object\\tConfigMap\\tmon\\ta\\tab12\\n'
"""


def read(tmp_path: Path, kubectl: str | None = KUBECTL, **environment: str) -> list[str]:
    """What the fact's script prints on a host with this kubectl."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "mktemp", "rm", "cat", "grep", "tr", "cut", "awk"):
        (programs / name).symlink_to(str(shutil.which(name)))
    if kubectl:
        (programs / "kubectl").write_text(kubectl)
        (programs / "kubectl").chmod(stat.S_IRWXU)
    config = tmp_path / "admin.conf"
    config.touch()
    done = subprocess.run(
        ["sh", "-c", Fact().command(str(config))],
        env={**os.environ, **environment, "PATH": str(programs)},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer(done.stdout.splitlines()).lines


def test_the_script_reads_what_is_there(tmp_path: Path) -> None:
    found = parse_owned(read(tmp_path))
    assert found.objects == (Owned("ConfigMap", "mon", "a", "ab12"),)


def test_kinds_that_are_not_defined_yet_hold_nothing(tmp_path: Path) -> None:
    found = parse_owned(read(tmp_path, NO_TYPES="1"))
    assert not found.error
    assert [item.name for item in found.objects] == ["a"]


def test_a_cluster_that_does_not_answer_is_no_empty_cluster(tmp_path: Path) -> None:
    assert parse_owned(read(tmp_path, DOWN="1")).error == "connection refused"


def test_a_host_without_kubectl(tmp_path: Path) -> None:
    assert parse_owned(read(tmp_path, kubectl=None)).error == "there is no cluster yet"


def test_half_an_answer_is_an_error() -> None:
    with pytest.raises(ValueError, match="ends early"):
        parse_owned(["object\tConfigMap\tmon\ta\tab12"])
