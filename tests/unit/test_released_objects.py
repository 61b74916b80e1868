"""What releases consist of, by name, as a host's shell reads it out of Helm's own records."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gpuboot.cluster.helm_releases import parse_released

SCRIPT = Path(__file__).resolve().parents[2] / "deploys/parts/helm/fact.sh"
MANIFEST = """---
# Source: web/templates/account.yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  labels:
    name: not-this
  name: web
---
# Source: web/templates/config.yaml
kind: "ConfigMap"
apiVersion: v1
metadata:
    name: 'web'
    namespace: shop
data:
  kind.yaml: |
    kind: Secret
    metadata:
      name: hidden
  text: "a \\"quoted\\" line"
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: web:reader
rules:
- name: not-this-either
"""
NAMES = (
    ("ServiceAccount", "", "web"),
    ("ConfigMap", "shop", "web"),
    ("ClusterRole", "", "web:reader"),
)
AWKS = [name for name in ("mawk", "gawk", "busybox", "original-awk") if shutil.which(name)]


def record(manifest: str) -> str:
    """A release as Helm keeps it, in the Secret's base64."""
    parts = {
        "name": "web",
        "chart": {"metadata": {"name": "web", "version": "1"}, "values": {"a": "kind: x\n"}},
        "config": {"text": "kind: Secret\nmetadata:\n  name: mine\n"},
        "manifest": manifest,
        "hooks": [{"manifest": "kind: Job\nmetadata:\n  name: hook\n"}],
        "version": 1,
    }
    packed = base64.b64encode(gzip.compress(json.dumps(parts, separators=(",", ":")).encode()))
    return base64.b64encode(packed).decode()


def script_output(folder: Path, manifest: str, awk: str) -> list[str]:
    """What the script prints of one release, with a server that has it."""
    (folder / "bin").mkdir()
    program = folder / "bin/awk"
    program.write_text(f'#!/bin/sh\nexec {awk} {"awk" if awk == "busybox" else ""} "$@"\n')
    program.chmod(0o755)
    revisions = '{\n "items": [\n  {\n   "name": "sh.helm.release.v1.web.v1"\n  }\n ]\n}'
    secret = f'{{\n  "data": {{\n    "release": "{record(manifest)}"\n  }}\n}}'
    head = f"""
work={folder}/work; mkdir "$work"; names=yes; as=; mark=$(printf '\\036')
put() {{ printf '%s\\t%s\\n' "$1" "$2"; }}
ask() {{
  case $1 in
    */revisions) printf '%s\\n200 %s\\n' '{revisions}' "$mark" >"$1" ;;
    *) printf '%s\\n200 %s\\n' '{secret}' "$mark" >"$1" ;;
  esac
}}
set -- '/api/v1/namespaces/shop/secrets?pretty=true'
"""
    result = subprocess.run(
        ["sh", "-c", head + SCRIPT.read_text()],
        env={"PATH": f"{folder}/bin:/usr/bin:/bin", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.splitlines()


@pytest.mark.parametrize("awk", AWKS)
def test_each_object_is_named_and_nothing_else_leaves_the_host(tmp_path: Path, awk: str) -> None:
    lines = script_output(tmp_path, MANIFEST, awk)
    assert parse_released(lines) == {"/api/v1/namespaces/shop/secrets?pretty=true": NAMES}
    assert "quoted" not in "\n".join(lines)


def test_a_release_without_objects_and_one_that_is_not_there() -> None:
    lines = ["asked\ta", "asked\tb", "asked\tc", "status\t0 200", "status\t1 200", "status\t2 403"]
    assert parse_released([*lines, "named\t0 yes", "end\tok"]) == {"a": (), "b": None}
