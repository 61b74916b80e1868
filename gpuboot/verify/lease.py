"""A lock, held as a Lease: two verifications at once would take each other's GPUs.

Repairs have one of their own, so that two controllers do not act at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from gpuboot.cluster.api import Cluster, ClusterError

NAMESPACE = "kube-system"
NAME = "gpuboot-verify"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
PATH = f"{LEASES}/{NAME}"
VERIFICATION = "another verification"
_RENEW_S = 10.0
_EXPIRED_S = 40  # a verification that has not renewed for so long was killed
_POLL_S = 2.0
_CONFLICT = 409


class VerificationLock:
    """The right to take GPUs for verification, renewed while it is held.

    + holder: name of this verification
    + progress: takes lines of progress
    + name: of the Lease; purpose: its holders are, for a person

    Times in the Lease are the API server's, so that nobody's own clock matters.
    """

    def __init__(
        self,
        cluster: Cluster,
        holder: str,
        progress: Callable[[str], None],
        name: str = NAME,
        purpose: str = VERIFICATION,
    ) -> None:
        self._name, self._purpose = name, purpose
        self._path = f"{LEASES}/{name}"
        self._cluster = cluster
        self._holder = holder
        self._progress = progress
        self._clock = datetime.min, 0.0  # the API server's time, and ours of that moment
        self._released = threading.Event()
        self._renewing: threading.Thread | None = None
        self._is_lost = False

    def acquire(self, patience_s: float) -> str:
        """Wait for the lock. Returns "", or why it was not granted. Raises `ClusterError`.

        + patience_s: for how long another verification may go on
        """
        self._clock = self._cluster.now(), time.monotonic()
        until = time.monotonic() + patience_s
        last_reported = ""
        while not self._try_acquire():
            lease = self._read()
            if lease is None:
                continue
            holder = lease["spec"].get("holderIdentity", "")
            if time.monotonic() >= until:
                since = lease["spec"].get("acquireTime", "")
                return f"{self._purpose}, {holder}, has been running since {since}"
            if holder != last_reported:
                self._progress(f"waiting for {self._purpose}, {holder}, to end")
                last_reported = holder
            time.sleep(_POLL_S)
        self._renewing = threading.Thread(target=self._renew, daemon=True)
        self._renewing.start()
        return ""

    def release(self) -> None:
        """Give the lock to others. Does nothing without it."""
        if self._renewing is None:
            return
        self._released.set()
        self._renewing.join(timeout=_RENEW_S)
        if not self.is_lost():
            self._cluster.send("DELETE", self._path, missing_ok=True)
        self._renewing = None

    def is_lost(self) -> bool:
        """Whether another verification took this one for dead. Raises `ClusterError`.

        Reads the Lease, since a machine that slept has not renewed it. False before `acquire`.
        """
        if not self._is_lost and self._renewing is not None:
            lease = self._read()
            holder = lease["spec"].get("holderIdentity") if lease else None
            self._is_lost = holder != self._holder
        return self._is_lost

    def _try_acquire(self) -> bool:
        lease = self._read()
        now = self._now()
        spec = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": _EXPIRED_S,
            "acquireTime": now,
            "renewTime": now,
        }
        try:
            if lease is None:
                meta = {"name": self._name, "namespace": NAMESPACE}
                body = {"metadata": meta, "spec": spec}
                self._cluster.send("POST", LEASES, body)
            elif self._expired(lease):
                self._replace({**lease, "spec": spec})
            else:
                return False
        except ClusterError as error:
            if error.status != _CONFLICT:  # another one was faster
                raise
            return False
        return True

    def _renew(self) -> None:
        while not self._released.wait(_RENEW_S):
            try:
                lease = self._read()
                if lease is None or lease["spec"].get("holderIdentity") != self._holder:
                    self._is_lost = True
                    return
                self._replace({**lease, "spec": {**lease["spec"], "renewTime": self._now()}})
            except ClusterError:
                continue  # there are three more tries before others take it for dead

    def _read(self) -> dict[str, Any] | None:
        try:
            lease: dict[str, Any] = self._cluster.json(self._path)
        except ClusterError as error:
            if error.status == 404:
                return None
            raise
        return lease

    def _replace(self, lease: dict[str, Any]) -> None:
        # the resource version in it makes this fail where somebody else was faster
        self._cluster.send("PUT", self._path, lease)

    def _expired(self, lease: dict[str, Any]) -> bool:
        try:
            renewed = datetime.fromisoformat(lease["spec"]["renewTime"])
        except (KeyError, ValueError):
            return True
        return self._time() - renewed > timedelta(seconds=_EXPIRED_S)

    def _time(self) -> datetime:
        server_time, at = self._clock
        return server_time + timedelta(seconds=time.monotonic() - at)

    def _now(self) -> str:
        return self._time().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
