"""What each side is told and says; and that the playbook asks for what gpuboot's phases ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from jinja2 import Environment
from jinja2.nativetypes import NativeEnvironment

from bench import sides
from bench.plain import values
from deploys.parts.kernel import operations as kernel
from deploys.parts.kubeadm import operations as kubeadm
from deploys.phases import base, drivers
from deploys.run.context import Context
from gpuboot.cluster.endpoint import decided
from gpuboot.cluster.kubeadm import init_config, packages
from gpuboot.config import versions
from gpuboot.config.inventory import Node, Role
from gpuboot.config.settings import Settings
from gpuboot.hosts import prerequisites, proxy, registries, sysctls
from gpuboot.templates import render

ANSIBLE = Path(sides.__file__).with_name("ansible")
CHANGED = """
PLAY [Host layers] ************************************************************

TASK [Configure kernel modules and sysctls] ***********************************
changed: [node2] => (item={'src': 'a.j2', 'dest': '/etc/a'})
changed: [node2] => (item={'src': 'b.j2', 'dest': '/etc/b'})
changed: [node1] => (item={'src': 'b.j2', 'dest': '/etc/b'})

RUNNING HANDLER [Restart containerd] ******************************************
changed: [node2]

PLAY RECAP ********************************************************************
node1 : ok=13   changed=1    unreachable=0    failed=0    skipped=8    rescued=0    ignored=0
node2 : ok=14   changed=2    unreachable=0    failed=0    skipped=8    rescued=0    ignored=0
"""
FAILED = """
TASK [Install packages] *******************************************************
[ERROR]: Task failed: Module failed: no such version
fatal: [node1]: FAILED! => {"changed": false, "msg": "no such version"}

PLAY RECAP ********************************************************************
node1 : ok=7    changed=0    unreachable=0    failed=1    skipped=5    rescued=0    ignored=0
"""


@pytest.fixture(scope="module")
def variables() -> dict[str, Any]:
    variables_of_all: dict[str, Any] = yaml.safe_load((ANSIBLE / "group_vars/all.yml").read_text())
    return variables_of_all


def test_ansible_tells_which_tasks_changed_which_host(tmp_path: Path) -> None:
    outcome = sides.SIDES["ansible"].outcome(CHANGED, "", tmp_path)
    kernel_files = "Configure kernel modules and sysctls"
    assert outcome.changed == {
        "node1": (kernel_files,),
        "node2": (kernel_files, "Restart containerd"),
    }
    assert outcome.failed == {}


def test_a_failed_task_is_told_with_its_reason(tmp_path: Path) -> None:
    outcome = sides.SIDES["mitogen"].outcome(FAILED, "", tmp_path)
    assert outcome.changed == {}
    assert re.match("Install packages: .*no such version", outcome.failed["node1"])


def test_a_change_that_was_not_recognised_is_not_overlooked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="changed=2"):
        sides.SIDES["ansible"].outcome(CHANGED.replace("changed: [node2]\n", ""), "", tmp_path)
    with pytest.raises(ValueError, match="no recap"):
        sides.SIDES["ansible"].outcome("", "cannot read the inventory", tmp_path)


def test_plain_pyinfra_tells_which_operations_changed_which_host(tmp_path: Path) -> None:
    side = sides.SIDES["pyinfra"]
    operations = [
        {"name": "Write /etc/a", "success": ["node2"], "error": [], "no_change": ["node1"]},
        {"name": "Hold packages", "success": [], "error": ["node1"], "no_change": []},
    ]
    results = {"operations": operations, "failed_hosts": ["node3"]}
    outcome = side.outcome(json.dumps({"plan": [], "results": results}), "", tmp_path)
    assert outcome.changed == {"node2": ("Write /etc/a",)}
    assert outcome.failed == {"node1": "Hold packages", "node3": "pyinfra failed"}
    with pytest.raises(ValueError, match="no such file"):
        side.outcome("", "no such file", tmp_path)


def test_plain_pyinfra_has_the_values_of_the_playbook(variables: dict[str, Any]) -> None:
    assert {key: str(value) for key, value in values.SYSCTLS.items()} == variables["sysctls"]
    assert list(values.SYSTEMS) == variables["supported_systems"]
    assert variables["blacklist"] == values.BLACKLIST
    assert list(values.CREDENTIALS) == variables["credentials"]
    assert variables["prerequisites"] == values.PREREQUISITES


def test_gpuboot_tells_what_its_report_says(tmp_path: Path) -> None:
    side = sides.SIDES["gpuboot"]
    assert side.outcome("", "", tmp_path).changed == {}
    hosts = {
        "node1": {"changed": ["Base | Configure apt"], "errors": []},
        "node2": {"changed": [], "errors": [{"operation": "Connect", "message": "timed out"}]},
    }
    (tmp_path / "run.json").write_text(json.dumps({"hosts": hosts}))
    (tmp_path / "report").write_text(str(tmp_path))
    outcome = side.outcome("", "", tmp_path)
    assert outcome.changed == {"node1": ("Base | Configure apt",)}
    assert "timed out" in outcome.failed["node2"]


def test_the_playbook_has_the_settings_of_the_base_phase(variables: dict[str, Any]) -> None:
    assert variables["sysctls"] == sysctls.EXPECTED
    assert variables["blacklist"] == list(base.UNATTENDED_UPGRADES_BLACKLIST)
    assert set(variables["prerequisites"]) == {*prerequisites.KUBERNETES, "nvidia-persistenced"}
    assert (ANSIBLE / "templates/nouveau.conf.j2").read_text() == drivers.NOUVEAU


def test_the_playbook_holds_what_gpuboot_holds(variables: dict[str, Any]) -> None:
    kubernetes = packages(versions.lock(Settings()))
    assert set(variables["held"]) == {"containerd.io", *prerequisites.TOOLKIT, *kubernetes}
    locked = {entry.partition("=")[0] for entry in variables["locked_packages"]}
    assert locked == {*variables["held"], "nvidia-open"}


def test_the_playbook_names_the_same_files(variables: dict[str, Any]) -> None:
    credentials = {proxy.APT_AUTH, proxy.ENVIRONMENT_FILE, registries.CONTAINERD}
    assert set(variables["credentials"]) == credentials
    tasks = {file.stem: file.read_text() for file in (ANSIBLE / "tasks").glob("*.yml")}
    assert kubeadm.CONFIG in tasks["kubernetes"]
    assert base.APT_CONF in tasks["packages"]
    (hosts,) = (
        task["ansible.builtin.blockinfile"]
        for task in yaml.safe_load(tasks["base"])
        if "ansible.builtin.blockinfile" in task
    )
    marks = [
        hosts["marker"].replace("{mark}", hosts[key]) for key in ("marker_begin", "marker_end")
    ]
    assert marks == [kernel.HOSTS_BEGIN, kernel.HOSTS_END]


def _nodes(roles: Sequence[Role]) -> list[Node]:
    return [
        Node(f"node{n}", f"node{n}", f"10.0.0.{n}", role, gpus=2, leader=n == 0)
        for n, role in enumerate(roles)
    ]


def _task(file: str, name: str) -> Any:
    tasks = yaml.safe_load((ANSIBLE / f"tasks/{file}.yml").read_text())
    return next(task for task in tasks if task["name"] == name)


@pytest.mark.parametrize("roles", [("control_plane",), ("control_plane", "worker")])
def test_the_playbook_writes_the_same_configuration_of_kubeadm(roles: tuple[Role, ...]) -> None:
    lock, settings = versions.lock(Settings()), Settings()
    settings = settings.model_copy(update={"cluster": decided(settings.cluster, server="")})
    nodes = _nodes(roles)
    task = _task("kubernetes", "Write kubeadm's configuration")
    site = {"cluster": settings.cluster, "versions": lock}
    rendered = {
        name: NativeEnvironment().from_string(value).render(site=site, nodes=nodes)
        for name, value in task["vars"].items()
    }
    template = task["ansible.builtin.template"]["src"]
    assert render(template, **rendered) == init_config(settings, lock, nodes)


def test_the_playbook_writes_the_same_node_names() -> None:
    nodes = _nodes(("control_plane", "worker", "worker"))
    block = _task("base", "Write node names to /etc/hosts")["ansible.builtin.blockinfile"]["block"]
    for node in nodes:
        context = cast(Context, SimpleNamespace(nodes=nodes, node=node))
        lines = Environment().from_string(block).render(nodes=nodes, inventory_hostname=node.name)
        host_names = dict(line.split()[::-1] for line in lines.splitlines() if line)
        assert host_names == base.known_names(context)
