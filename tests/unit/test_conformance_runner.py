"""Kubernetes' suite in a cluster that does not exist: started, waited for, fetched, removed."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.conformance import suite_manifests, suite_runner
from gpuboot.conformance.suite_manifests import NAMESPACE, OUTPUT, POD, SUITE, Request
from gpuboot.conformance.suite_runner import Outcome, from_json, unpack
from tests.unit.test_runner import clock

__all__ = ["clock"]

REQUEST = Request("1.36.3", "docker.io/library/busybox:1.37.0", processes=4)
BINDING = f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{NAMESPACE}"


def packed(**files: str) -> str:
    """What the output container prints for these files."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"/tmp/results/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return base64.encodebytes(target.getvalue()).decode()


RESULTS = packed(**{"e2e.log": "•••", "junit_01.xml": "<testsuites/>", "e2e.tar.gz": ""})


@dataclass
class SuiteCluster:
    """A cluster in which the suite takes `runs_s` seconds.

    + objects: path -> what was created there
    + namespaces: their names; that of a spec is left where the suite was ended
    + waiting: why the suite's container does not start
    """

    exit_code: int = 0
    runs_s: float = 600.0
    output: str = RESULTS
    waiting: str = ""
    taints: list[dict[str, str]] = field(default_factory=list)
    objects: dict[str, Any] = field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    started: float = 0.0
    silent_from: float = 1e9

    def send(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        if method == "DELETE":
            self.objects = {key: item for key, item in self.objects.items() if key != path}
            self.namespaces.pop(path.rpartition("/")[2], None)
            if path.endswith("/pods"):
                self.objects = {k: v for k, v in self.objects.items() if "/pods/" not in k}
            return {}
        name = body["metadata"]["name"]
        if path == "/api/v1/namespaces":
            assert name not in self.namespaces
            self.namespaces[name] = body["metadata"]["labels"]
        if name == POD:
            self.started = time.monotonic()
            self.namespaces["pods-7431"] = {"e2e-run": "a"}
        self.objects[f"{path}/{name}"] = body
        return {**body, "metadata": {**body["metadata"], "uid": "uid-1"}}

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        if path == "/api/v1/nodes":
            plain = {"metadata": {"name": "gpu1"}, "spec": {}}
            return {
                "items": [plain, {"metadata": {"name": "gpu2"}, "spec": {"taints": self.taints}}]
            }
        if path == "/api/v1/namespaces":
            label = (query or {}).get("labelSelector", "")
            names = [n for n, labels in self.namespaces.items() if not label or label in labels]
            return {"items": [{"metadata": {"name": name}} for name in names]}
        if time.monotonic() - self.started > self.silent_from:
            raise ClusterError("GET: no answer within 20 s")
        if path not in self.objects:
            raise ClusterError(f"{path} not found", 404)
        return {**self.objects[path], "status": self._status()}

    def _status(self) -> dict[str, Any]:
        if self.waiting:
            states: dict[str, Any] = {SUITE: {"waiting": {"reason": self.waiting}}, OUTPUT: {}}
        elif time.monotonic() - self.started < self.runs_s:
            states = {SUITE: {"running": {}}, OUTPUT: {"running": {}}}
        else:
            self.namespaces.pop("pods-7431", None)
            states = {SUITE: {"terminated": {"exitCode": self.exit_code}}}
            states[OUTPUT] = {"terminated": {"exitCode": 0}} if self.output else {"running": {}}
        statuses = [{"name": name, "state": state} for name, state in states.items()]
        return {"containerStatuses": statuses}

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        return (self.output if query["container"] == OUTPUT else "•••").encode()


def run(
    cluster: SuiteCluster,
    messages: list[str] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Outcome:
    lines: list[str] = [] if messages is None else messages
    outcome = suite_runner.run(cast(Cluster, cluster), REQUEST, lines.append, stopped)
    assert BINDING not in cluster.objects, "an administrator's rights were left"
    return outcome


def test_results_are_fetched_and_nothing_is_left() -> None:
    cluster, messages = SuiteCluster(exit_code=1), list[str]()
    outcome = run(cluster, messages)
    assert outcome == Outcome({"e2e.log": "•••", "junit_01.xml": "<testsuites/>"}, exit_code=1)
    assert from_json(outcome.to_json()) == outcome
    assert cluster.namespaces == {}
    assert "1 min: 3 specs passed" in messages


def test_rights_go_with_the_namespace_also_when_nobody_removes_them() -> None:
    binding = suite_manifests.role_binding("uid-1")
    assert binding["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert binding["roleRef"]["name"] == "cluster-admin"
    assert (
        suite_manifests.pod(REQUEST)["spec"]["activeDeadlineSeconds"] == suite_manifests.LONGEST_S
    )


def test_the_pod_runs_upstream_s_image_as_hydrophone_does() -> None:
    pod = suite_manifests.pod(REQUEST)["spec"]
    suite, output = pod["containers"]
    assert suite["image"] == "registry.k8s.io/conformance:v1.36.3"
    variables = {item["name"]: item["value"] for item in suite["env"]}
    assert variables["E2E_FOCUS"] == r"\[Conformance\]"
    assert variables["E2E_EXTRA_GINKGO_ARGS"] == "--procs=4"
    assert output["image"] == REQUEST.helper_image
    assert pod["restartPolicy"] == "Never"


def test_a_focus_selects_among_conformance_specs_alone() -> None:
    request = Request("1.36.3", "busybox", focus="DNS")
    suite = suite_manifests.pod(request)["spec"]["containers"][0]
    variables = {item["name"]: item["value"] for item in suite["env"]}
    assert variables["E2E_FOCUS"] == "DNS"
    assert variables["E2E_EXTRA_GINKGO_ARGS"] == "--label-filter=Conformance"


def test_what_is_ended_before_its_time_takes_the_namespaces_of_specs_along() -> None:
    cluster = SuiteCluster()
    outcome = run(cluster, stopped=lambda: time.monotonic() - cluster.started > 60)
    assert outcome.stopped
    assert cluster.namespaces == {}


def test_what_a_killed_command_has_left_is_removed_first() -> None:
    cluster = SuiteCluster(exit_code=0, runs_s=0.0)
    suite_runner._start(cast(Cluster, cluster), REQUEST)
    messages = list[str]()
    assert run(cluster, messages).exit_code == 0
    assert messages[0] == f"removing what a killed command has left: the namespace {NAMESPACE}"


def test_two_at_a_time_are_refused_and_the_first_goes_on() -> None:
    cluster = SuiteCluster()
    suite_runner._start(cast(Cluster, cluster), REQUEST)
    outcome = suite_runner.run(cast(Cluster, cluster), REQUEST, lambda _: None, lambda: False)
    assert "runs already" in outcome.error
    assert "remedy: " in outcome.error
    assert BINDING in cluster.objects


def test_a_cluster_with_one_node_for_pods_is_told_before_anything_is_made() -> None:
    cluster = SuiteCluster(taints=[{"key": "own", "effect": "NoSchedule"}])
    assert "needs 2 nodes that take any pod, and there is gpu1" in run(cluster).error
    assert cluster.objects == {}


@pytest.mark.parametrize(
    ("cluster", "error"),
    [
        (SuiteCluster(waiting="ErrImagePull"), "the suite's pod did not start: ErrImagePull"),
        (SuiteCluster(exit_code=137, output=""), "ended with exit code 137 and wrote no results"),
        (SuiteCluster(output="no base64!"), "results did not arrive whole"),
        (SuiteCluster(output=RESULTS[: len(RESULTS) // 2]), "results did not arrive whole"),
    ],
)
def test_no_result_is_an_error_that_says_why(cluster: SuiteCluster, error: str) -> None:
    outcome = run(cluster)
    assert error in outcome.error
    assert outcome.files == {}
    assert cluster.namespaces.keys() <= {"pods-7431"}


def test_an_api_server_that_keeps_silent_ends_it_after_a_while() -> None:
    with pytest.raises(ClusterError, match="no answer"):
        run(SuiteCluster(silent_from=30.0))


def test_a_file_that_is_missing_among_the_results_is_said() -> None:
    with pytest.raises(ValueError, match="did not arrive whole"):
        unpack(packed(**{"e2e.log": ""}))


def test_the_answer_is_json() -> None:
    assert json.loads(Outcome(stopped=True).to_json())["stopped"] is True
