"""Two verifications at once: one waits for the other, and neither removes the other's pods."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from gpuboot.cluster.api import ClusterError
from gpuboot.config.settings import parse_settings
from gpuboot.verify import lease, workload
from gpuboot.verify.evidence import VERIFY_PREFIX
from gpuboot.verify.findings import verdict
from gpuboot.verify.session import LABELS
from tests.unit.evidence import of
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import clock, requested_gpus, run

__all__ = ["clock"]

FOREIGN_HOLDER = f"{VERIFY_PREFIX}other0"
SETTINGS = parse_settings({"monitoring": {"grafana": False}, "verify": {"timeout_s": 60}})


def lease_object(renewed: float) -> dict[str, Any]:
    text = datetime.fromtimestamp(renewed, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"metadata": {}, "spec": {"holderIdentity": FOREIGN_HOLDER, "renewTime": text}}


@dataclass
class Busy(FakeCluster):
    """Another verification holds all GPUs of gpu1, and renews its Lease until it ends."""

    until: float = 0.0
    other_holders: dict[tuple[str, int], str] = field(
        default_factory=lambda: {
            ("gpu1", i): f"{FOREIGN_HOLDER}/vectoradd-gpu1-{i}" for i in range(2)
        }
    )

    def _answer(self, path: str, query: dict[str, str]) -> Any:
        runs = time.monotonic() < self.until
        self.gpu_holders = self.other_holders if runs else {}
        if runs and path == lease.PATH:
            return lease_object(time.monotonic())
        return super()._answer(path, query)


def test_it_waits_for_another_one_and_proves_then() -> None:
    cluster, messages = Busy(until=1030), list[str]()
    assert verdict(run(cluster, SETTINGS, messages).findings) == "proven"
    assert messages[0] == f"waiting for another verification, {FOREIGN_HOLDER}, to end"
    assert requested_gpus(cluster) == {"gpu1": [1, 1], "gpu2": [1, 3]}
    assert cluster.lease is None


def test_one_that_does_not_end_is_left_alone_and_nothing_fails() -> None:
    cluster = Busy(until=9999, namespaces={FOREIGN_HOLDER: "Active"})
    findings = list(run(cluster, SETTINGS).findings)
    assert verdict(findings) == "not_covered"
    assert of(findings, "fail") == []
    assert {item.detail.split(",")[0] for item in of(findings, "not_covered", "workload")} == {
        "another verification"
    }
    assert (cluster.created, cluster.namespaces) == ([], {FOREIGN_HOLDER: "Active"})


def test_one_that_was_killed_is_cleaned_up_after() -> None:
    cluster = FakeCluster(lease=lease_object(1000 - 41), namespaces={FOREIGN_HOLDER: "Active"})
    cluster.pods["vectoradd-gpu1"] = {}
    cluster.placed["gpu1", 0] = ("vectoradd-gpu1", "vectoradd-0")
    assert verdict(run(cluster, SETTINGS).findings) == "proven"
    assert cluster.namespaces.keys() - {FOREIGN_HOLDER}
    assert (cluster.pods, cluster.lease) == ({}, None)


def test_two_that_begin_at_the_same_moment_have_one_winner() -> None:
    class Race(Busy):
        def _change_lease(self, method: str, body: dict[str, Any] | None) -> dict[str, Any]:
            if method == "POST" and not self.until:
                self.until = time.monotonic() + 5
                raise ClusterError("leases already exists", 409)
            return super()._change_lease(method, body)

    cluster = Race()
    assert verdict(run(cluster, SETTINGS).findings) == "proven"
    assert time.monotonic() >= 1005


def test_one_that_was_taken_for_dead_blames_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that slept: another verification removed its pods, and no renewal told it yet."""

    def overtaken(self: workload.Workload) -> list[Any]:
        cluster.pods.clear()
        cluster.lease = lease_object(time.monotonic())
        self._session.wait(0)
        return wait(self)

    wait = workload.Workload.wait
    monkeypatch.setattr(workload.Workload, "wait", overtaken)
    cluster = FakeCluster()
    findings = list(run(cluster, SETTINGS).findings)
    assert {item.link for item in of(findings, "fail")} == set()
    assert "another verification took over" in of(findings, "not_covered", "workload")[0].detail
    assert not [item for item in findings if "somebody deleted the pod" in item.detail]
    assert cluster.lease is not None  # the other one's


def test_every_run_has_a_namespace_of_its_own() -> None:
    names: set[str] = set()
    for _ in range(3):
        cluster = FakeCluster()
        run(cluster, SETTINGS)
        names |= cluster.namespaces.keys()
    assert len(names) == 3
    assert all(name.startswith(VERIFY_PREFIX) for name in names)
    assert LABELS["app.kubernetes.io/managed-by"] == "gpuboot"


def test_the_lease_is_renewed_while_it_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_RENEW_S", 0.01)
    cluster, renewals = FakeCluster(), list[str]()
    changed = cluster._change_lease

    def record_change(method: str, body: dict[str, Any] | None) -> dict[str, Any]:
        if method == "PUT" and body:
            renewals.append(body["spec"]["renewTime"])
        return changed(method, body)

    monkeypatch.setattr(cluster, "_change_lease", record_change)
    lock = lease.VerificationLock(cluster, "gpuboot-verify-a", lambda _: None)  # type: ignore[arg-type]
    assert lock.acquire(0) == ""
    lock._released.wait(0.2)
    lock.release()
    assert renewals
    assert (lock._is_lost, cluster.lease) == (False, None)
