"""The sides of the benchmark: how each tool is run on machines, and what it says it did."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.environment import program
from bench.settings import REPORTS_VARIABLE, settings
from bench.site import SITE_VARIABLE, Command, Host, Outcome, Side, Site
from gpuboot.cluster.endpoint import decided
from gpuboot.site.load_site import load
from gpuboot.verify.report.report_model import POINTER

REPOSITORY = Path(__file__).resolve().parent.parent
_ANSIBLE = REPOSITORY / "bench" / "ansible"
_PLAIN = REPOSITORY / "bench" / "plain"
_BANNER = re.compile(r"^(?:TASK|RUNNING HANDLER) \[(?:\S+ : )?(.+)\] \*+$")
_RESULT = re.compile(r"^(changed|fatal|failed): \[([^\]]+)\](.*)$")
_RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)\s")
# of the settings: what the playbook needs
_SECTIONS = {"cluster", "driver", "runtime", "preflight", "mirrors"}


@dataclass(frozen=True)
class Gpuboot:
    """gpuboot's own phases, by pyinfra."""

    name: str = "gpuboot"
    title: str = "gpuboot"

    def command(self, site: Site, work: Path) -> Command:
        """See `Side`; forgets what an earlier run reported."""
        work.mkdir(parents=True, exist_ok=True)
        (work / "report").unlink(missing_ok=True)
        site.save()
        return Command(
            argv=(
                str(Path(sys.executable).with_name("pyinfra")),
                *("bench/inventory.py", "deploys/host_layers.py", "-y"),
            ),
            env={
                SITE_VARIABLE: str(site.file),
                REPORTS_VARIABLE: str(work / "reports"),
                POINTER: str(work / "report"),
                "PYTHONPATH": str(REPOSITORY),  # pyinfra's own program does not look there
            },
            cwd=REPOSITORY,
        )

    def outcome(self, stdout: str, stderr: str, work: Path) -> Outcome:
        """See `Side`. A run with nothing to do executes nothing and reports nothing."""
        if not (work / "report").exists():
            lines = [line for line in stderr.splitlines() if "remedy:" in line or "error" in line]
            return Outcome({}, {"": lines[0].strip()} if lines else {})
        report = Path((work / "report").read_text()) / "run.json"
        hosts: Mapping[str, Any] = json.loads(report.read_text())["hosts"]
        return Outcome(
            {name: tuple(host["changed"]) for name, host in hosts.items() if host["changed"]},
            {name: str(host["errors"][0]) for name, host in hosts.items() if host["errors"]},
        )


@dataclass(frozen=True)
class Ansible:
    """bench/ansible/host_layers.yml.

    + strategy: Ansible's own, or one of Mitogen's
    """

    name: str
    title: str
    strategy: str = "linear"

    def command(self, site: Site, work: Path) -> Command:
        """See `Side`; writes the inventory. The cache of facts in `work` stays."""
        work.mkdir(parents=True, exist_ok=True)
        inventory = work / "inventory.yml"
        inventory.write_text(json.dumps(_inventory(site), indent=2) + "\n")
        playbook = program("ansible-playbook")
        env = {
            "ANSIBLE_CONFIG": str(_ANSIBLE / "ansible.cfg"),
            "ANSIBLE_HOME": str(work / "home"),
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(work / "facts"),
            "ANSIBLE_FORKS": str(len(site.hosts)),
            "ANSIBLE_STRATEGY": self.strategy,
            "ANSIBLE_NOCOLOR": "1",
            "LC_ALL": "C.UTF-8",
        }
        if self.strategy.startswith("mitogen"):
            (plugins,) = playbook.parent.parent.glob(
                "lib/python3*/site-packages/ansible_mitogen/plugins/strategy"
            )
            env["ANSIBLE_STRATEGY_PLUGINS"] = str(plugins)
        argv = (str(playbook), "--inventory", str(inventory), "host_layers.yml")
        return Command(argv=argv, env=env, cwd=_ANSIBLE)

    def outcome(self, stdout: str, stderr: str, work: Path) -> Outcome:
        """See `Side`."""
        changed: dict[str, list[str]] = {}
        failed: dict[str, str] = {}
        counts = {}
        for task, kind, host, remainder in _results(stdout):
            if kind == "recap":
                counts[host] = remainder
            elif kind != "changed":
                failed.setdefault(host, f"{task}: {remainder}")
            elif task not in changed.setdefault(host, []):
                changed[host].append(task)
        if not counts:
            raise ValueError(f"Ansible printed no recap: {stderr.strip()[-500:] or stdout[-500:]}")
        for host, changed_count in counts.items():
            if len(changed.get(host, ())) != int(changed_count):
                raise ValueError(
                    f"{host}: the recap says changed={changed_count}, the tasks {changed}"
                )
        return Outcome({host: tuple(tasks) for host, tasks in changed.items()}, failed)


@dataclass(frozen=True)
class Pyinfra:
    """bench/plain/host_layers.py: operations of pyinfra's library, without gpuboot."""

    name: str = "pyinfra"
    title: str = "plain pyinfra"

    def command(self, site: Site, work: Path) -> Command:
        """See `Side`; writes the inventory."""
        work.mkdir(parents=True, exist_ok=True)
        inventory = work / "inventory.json"
        inventory.write_text(json.dumps(_inventory(site), indent=2) + "\n")
        return Command(
            argv=(
                str(Path(sys.executable).with_name("pyinfra")),
                *("inventory.py", "host_layers.py", "-y", "--json"),
            ),
            env={"GPUBOOT_BENCH_INVENTORY": str(inventory), "PYTHONPATH": str(REPOSITORY)},
            cwd=_PLAIN,
        )

    def outcome(self, stdout: str, stderr: str, work: Path) -> Outcome:
        """See `Side`."""
        results = _json_results(stdout, stderr)
        changed: dict[str, list[str]] = {}
        failed = dict.fromkeys(results["failed_hosts"], "pyinfra failed")
        for step in results["operations"]:
            for name in step["success"]:
                changed.setdefault(name, []).append(str(step["name"]))
            for name in step["error"]:
                failed.setdefault(name, str(step["name"]))
        return Outcome({name: tuple(names) for name, names in changed.items()}, failed)


def _json_results(stdout: str, stderr: str) -> dict[str, Any]:
    """Raises `ValueError` where pyinfra printed none."""
    try:
        results: dict[str, Any] = json.loads(stdout)["results"]
    except (ValueError, KeyError):
        text = stderr.strip()[-500:] or stdout[-500:]
        raise ValueError(f"pyinfra printed no results: {text}") from None
    return results


def _results(stdout: str) -> Iterator[tuple[str, str, str, str]]:
    """What a playbook printed: task, kind of result, host, and the rest of the line.

    A line of the recap is of kind "recap", with the number of changes as its rest.
    """
    task = ""
    for line in stdout.splitlines():
        if banner := _BANNER.match(line):
            task = banner[1]
        elif result := _RESULT.match(line):
            yield task, result[1], result[2], result[3].strip()
        elif recap := _RECAP.match(line):
            yield "", "recap", recap[1], recap[2]
            if int(recap[3]) or int(recap[4]):
                yield "", "failed", recap[1], "by the recap"


def _inventory(site: Site) -> dict[str, Any]:
    selected_hosts, lock = load(settings(site))
    ordered = sorted(site.hosts, key=lambda host: host.role != "control_plane")
    if without := [host.name for host in ordered if not host.gpus]:
        raise ValueError(f"the playbook is for machines with GPUs, not for {', '.join(without)}")
    return {
        "all": {
            "hosts": {host.name: _host(host) for host in ordered},
            "vars": {
                "ansible_user": "root",
                "ansible_ssh_private_key_file": str(site.ssh_key),
                "ansible_ssh_common_args": f"-o UserKnownHostsFile={site.known_hosts}",
                "nodes": [
                    {"name": host.name, "address": host.address, "role": host.role}
                    for host in ordered
                ],
                "site": {
                    **selected_hosts.model_dump(mode="json", include=_SECTIONS),
                    "cluster": decided(selected_hosts.cluster, server="").model_dump(mode="json"),
                    "versions": lock.model_dump(mode="json"),
                },
            },
        }
    }


def _host(host: Host) -> dict[str, Any]:
    return {"ansible_host": host.address, "gpus": host.gpus}


SIDES: Mapping[str, Side] = {
    side.name: side
    for side in (
        Gpuboot(),
        Ansible("ansible", "Ansible, pipelining"),
        Ansible("mitogen", "Ansible with Mitogen", strategy="mitogen_linear"),
        Pyinfra(),
    )
}
