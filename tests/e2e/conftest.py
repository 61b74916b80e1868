"""The lab as the tests see it: machines brought up once, runs of the product, what they printed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lab.failures import log_file
from lab.settings import home
from tests.e2e.alert_faults import HOLD_FOR

ROOT = Path(__file__).resolve().parents[2]
RUN_TIMEOUT_S = 1500
SETTLES_WITHIN_S = 120
_IDLE = re.compile(r"^\s*$|\] +(No changes|Skipped)$|  -  ")


@dataclass(frozen=True)
class Run:
    """One finished command: exit code, and all it printed (`text` is both streams)."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def applied(self) -> bool:
        """Whether a run changed all that it had to; GPUs that pods hold are not covered (2)."""
        return self.code == 0 or (self.code == 2 and "NOT COVERED" in self.text)

    @property
    def changes(self) -> list[str]:
        """The operations that changed something, by name, of a successful run with `--json`."""
        assert self.applied, self.details
        results = json.loads(self.out)["results"]
        assert results["totals"]["error"] == 0
        changed = [operation["name"] for operation in results["operations"] if operation["success"]]
        assert bool(changed) is bool(results["totals"]["success"])
        return changed

    @property
    def details(self) -> str:
        """What tells a person why it failed: `text` without steps that did nothing."""
        lines = (line for line in self.text.splitlines() if not _IDLE.search(line))
        return "\n".join(lines)[-12000:]


@dataclass(frozen=True)
class Lab:
    """A running lab, by name, driven by the commands that a person uses.

    + settings: laid over those of the lab in every run, where it has none of its own
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reports(self) -> Path:
        """Where its runs leave their reports: apart from those of people's own runs."""
        return ROOT / "reports" / f"tests-{self.name}"

    def command(
        self,
        argv: Sequence[str],
        timeout: int = RUN_TIMEOUT_S,
        settings: Mapping[str, Any] | None = None,
        stdin: str = "",
    ) -> Run:
        """Run it to its end. + stdin: what it reads from standard input"""
        result = subprocess.run(
            argv,
            cwd=ROOT,
            env=self.environment(settings),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return Run(result.returncode, result.stdout, result.stderr)

    def environment(self, settings: Mapping[str, Any] | None = None) -> dict[str, str]:
        """What a command has to know to work with this lab, by name of the variable."""
        reports = {"verify": {"reports": str(self.reports)}}
        laid_over = {**reports, **self.settings, **(settings or {})}
        return {
            **os.environ,
            "GPUBOOT_LAB": self.name,
            "GPUBOOT_LAB_SETTINGS": json.dumps(laid_over),
        }

    def lab(self, *arguments: str, timeout: int = RUN_TIMEOUT_S) -> Run:
        return self.command(["scripts/lab", *arguments], timeout)

    def ssh(self, machine: str, script: str, user: str = "root") -> str:
        result = self.lab("ssh", "--name", self.name, "--user", user, machine, script)
        assert result.code == 0, f"{machine}: {script}\n{result.details}"
        return result.out

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What `kubectl` prints. + stdin: for its standard input, as with `apply -f -`"""
        command = ["scripts/lab", "kubectl", "--name", self.name, *arguments]
        result = self.command(command, stdin=stdin)
        assert result.code == 0, f"kubectl {arguments}\n{result.text}"
        return result.out

    def reboot(self, machine: str) -> None:
        """Reboot it, and wait until it can be logged in to."""
        read = ("ssh", "--name", self.name, machine, "cat /proc/sys/kernel/random/boot_id")
        before = self.lab(*read).out
        self.ssh(machine, "systemctl --no-block reboot")

        def has_rebooted() -> bool:
            result = self.lab(*read)
            return result.code == 0 and result.out != before

        until(has_rebooted, f"{machine} has rebooted")

    def renew(self, daemon_set: str, machine: str) -> None:
        """Restart the pod of a GPU Operator's DaemonSet on a machine."""
        pod = ("-l", f"app={daemon_set}", "--field-selector", f"spec.nodeName={machine}")
        self.kubectl("-n", "gpu-operator", "delete", "pod", *pod)

    def deploy(
        self,
        *arguments: str,
        inventory: str = "inventories/lab.py",
        settings: Mapping[str, Any] | None = None,
    ) -> Run:
        """`pyinfra INVENTORY deploys/site.py -y`, with settings laid over the lab's."""
        return self.command(
            ["pyinfra", inventory, "deploys/site.py", "-y", *arguments], settings=settings
        )

    def dry(
        self, inventory: str = "inventories/lab.py", settings: Mapping[str, Any] | None = None
    ) -> Run:
        """What such a run would change."""
        return self.command(["pyinfra", inventory, "deploys/site.py", "--dry"], settings=settings)

    def verify(self, settings: Mapping[str, Any] | None = None) -> tuple[Run, dict[str, Any]]:
        """`gpuboot verify`, and the report it wrote."""
        result = self.command(["gpuboot", "verify", "inventories/lab.py"], settings=settings)
        return result, json.loads((self.reports / "latest/verify.json").read_text())

    def prometheus(self, query: str) -> list[dict[str, Any]]:
        service = "kube-prometheus-stack-prometheus:9090"
        proxy = f"/api/v1/namespaces/monitoring/services/{service}/proxy"
        path = f"{proxy}/api/v1/query?query={quote(query)}"
        answer = json.loads(self.kubectl("get", "--raw", path))
        assert answer["status"] == "success", answer
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def versions(self) -> dict[str, set[str]]:
        """Versions of Kubernetes: of the kubelets, and of the control plane's images."""
        nodes = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        pods = json.loads(self.kubectl("get", "pods", "-n", "kube-system", "-o", "json"))["items"]
        images = [container["image"] for pod in pods for container in pod["spec"]["containers"]]
        return {
            "kubelet": {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes},
            "images": {image.rpartition(":")[2] for image in images if "/kube-" in image},
        }

    def snapshot(self, pod_selector: str = "") -> dict[str, Any]:
        """What a run that changes nothing must leave as it was: every pod and every node.

        + pod_selector: which pods by their labels; "" for all
        """
        selector = ("-l", pod_selector) if pod_selector else ()
        pods = json.loads(self.kubectl("get", "pods", "-A", *selector, "-o", "json"))["items"]
        nodes = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        return {
            "pods": {
                pod["metadata"]["uid"]: [
                    status["restartCount"] for status in pod["status"].get("containerStatuses", [])
                ]
                for pod in pods
            },
            "ready": {
                node["metadata"]["name"]: [
                    condition["status"]
                    for condition in node["status"]["conditions"]
                    if condition["type"] == "Ready"
                ]
                for node in nodes
            },
        }


def assert_refused(result: Run, *parts: str) -> None:
    """The run failed, and said all of `parts` and a remedy."""
    assert result.code == 1, result.details
    missing = [part for part in (*parts, "remedy") if part not in result.text]
    assert not missing, f"not said: {missing}\n{result.details}"


def until(look: Callable[[], Any], description: str, within_s: float = SETTLES_WITHIN_S) -> Any:
    """What `look` returns as soon as it is true."""
    end = time.monotonic() + within_s
    while not (value := look()):
        if time.monotonic() > end:
            pytest.fail(f"not within {within_s} s: {description}")
        time.sleep(3)
    return value


@contextmanager
def fresh_lab(
    name: str, *arguments: str, settings: Mapping[str, Any] | None = None
) -> Iterator[Lab]:
    """A lab of a test's own, made by `scripts/lab ARGUMENTS` from nothing, and taken down again."""
    lab = Lab(name, settings or {})
    # ended by a signal the tests take their labs down as well
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    lab.lab("down", "--name", name)
    try:
        result = lab.lab("--name", name, *arguments, timeout=3600)
        assert result.code == 0, f"scripts/lab {arguments} failed\n{result.details}\n{_details()}"
        yield lab
    finally:
        if "GPUBOOT_KEEP_LAB" not in os.environ:
            lab.lab("down", "--name", name)


def _details() -> str:
    """The end of the log of what went wrong in the lab's own commands."""
    log = log_file()
    return log.read_text()[-3000:] if log.exists() else ""


# First what a person sees first. Alerts begin when it is quiet: what test_lab broke is over by the
# time that the stack has been tried.
ORDER = ("test_lab", "test_monitoring_stack", "test_alerts", "test_dashboards")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order of files, and who needs no default lab: `beside` can run while that one is used."""
    for item in items:
        if item.get_closest_marker("lab") and "lab" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.beside)
    items.sort(key=lambda item: ORDER.index(item.path.stem) if item.path.stem in ORDER else 9)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The default lab, deployed from bare machines; taken down afterwards.

    Its alerts hold for seconds instead of minutes.
    """
    with fresh_lab("test", settings={"alerts": {"rules": HOLD_FOR}}) as running:
        yield running


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A lab of a module's own: its `LAB` is the lab's name and the arguments of `scripts/lab`."""
    with fresh_lab(*request.module.LAB) as running:
        yield running


@pytest.fixture(scope="module")
def lock(site: Lab) -> dict[str, Any]:
    """What the mirror of `site` has: its versions, and settings with those before."""
    document: dict[str, Any] = json.loads((home(site.name) / "mirror/lab.lock.json").read_text())
    return document
