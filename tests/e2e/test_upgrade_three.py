"""A newer patch release of Kubernetes on three control planes, by one changed line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import Lab
from tests.e2e.test_backup import FOLDER

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-patch3", "--control-planes", "3", "--gpus", "1", "--previous-patch")
NAMES = ("cp1", "cp2", "cp3", "gpu1")


def test_control_planes_are_upgraded_after_one_backup(site: Lab, lock: dict[str, Any]) -> None:
    earlier = f"v{lock['previous_patch']['versions']['kubernetes']['version']}"
    assert site.versions() == {"kubelet": {earlier}, "images": {earlier}}
    site.kubectl("create", "configmap", "kept", "--from-literal=a=1")
    result = site.deploy()
    assert result.code == 0, result.details
    assert "proven" in result.text
    today = f"v{lock['versions']['kubernetes']['version']}"
    assert site.versions() == {"kubelet": {today}, "images": {today}}
    assert site.snapshot()["ready"] == {name: ["True"] for name in NAMES}
    data = json.loads(site.kubectl("get", "configmap", "kept", "-o", "json"))["data"]
    assert data == {"a": "1"}
    reasons = [
        {name.rpartition("-")[2] for name in site.ssh(machine, f"ls {FOLDER}").split()}
        for machine in NAMES[:3]
    ]
    assert [("upgrade" in reason) for reason in reasons] == [True, False, False]
    assert site.deploy("--json").changes == []
