"""What becomes of pods, as the API server tells it, and their logs while they are written."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.verify.pod_feed import PodFeed

PATH = "/api/v1/namespaces/gpuboot-verify-1/pods"


def pod(name: str, version: int, state: str = "waiting") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "resourceVersion": str(version)},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"containerStatuses": [{"name": "main", "state": {state: {}}}]},
    }


def event(kind: str, item: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode()


class Growing:
    """Lines that a test hands in; None ends them."""

    def __init__(self) -> None:
        self.chunks: queue.Queue[bytes | None] = queue.Queue()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.chunks.get, None)

    def stop(self) -> None:
        self.chunks.put(None)


class Server:
    """+ listing: pods that a list has; watches: one after the other; logs: of containers"""

    def __init__(self, *watches: Growing | ClusterError, listing: Iterable[Any] = ()) -> None:
        self.listings = [list(listing)]
        self.watches = list(watches)
        self.logs: dict[str, Growing] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []

    def json(self, path: str) -> Any:
        self.requests.append((path, {}))
        return {"metadata": {"resourceVersion": "7"}, "items": self.listings[-1]}

    @contextmanager
    def lines(self, path: str, query: Mapping[str, str], idle_s: float) -> Iterator[Growing]:
        self.requests.append((path, dict(query)))
        if path.endswith("/log"):
            yield self.logs[path.split("/")[-2]]
            return
        watch = self.watches.pop(0)
        if isinstance(watch, ClusterError):
            raise watch
        yield watch

    def feed(self) -> PodFeed:
        feed = PodFeed(cast(Cluster, self), "gpuboot-verify-1", 5)
        feed.start()
        return feed


def until(true: Callable[[], bool], feed: PodFeed) -> None:
    """Wait for something that a thread of the feed does."""
    end = time.monotonic() + 5
    while not true():
        assert time.monotonic() < end, "it does not happen"
        feed.wait(0.05)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboot.verify.pod_feed._PAUSE_S", 0.01)


def test_pods_are_told_as_they_come_change_and_go() -> None:
    watch = Growing()
    feed = Server(watch, listing=[pod("a", 6)]).feed()
    assert set(feed.pods()) == {"a"}
    watch.chunks.put(event("ADDED", pod("b", 8)))
    until(lambda: set(feed.pods()) == {"a", "b"}, feed)
    watch.chunks.put(event("DELETED", pod("a", 9)))
    until(lambda: set(feed.pods()) == {"b"}, feed)
    feed.close()


def test_a_pod_just_made_is_there_before_the_watch_tells() -> None:
    feed = Server(Growing()).feed()
    feed.add(pod("new", 8))
    assert set(feed.pods()) == {"new"}
    feed.close()


def test_a_watch_that_ends_goes_on_where_it_ended() -> None:
    first, second = Growing(), Growing()
    server = Server(first, second)
    feed = server.feed()
    first.chunks.put(event("ADDED", pod("a", 12)))
    first.chunks.put(None)
    second.chunks.put(event("ADDED", pod("b", 13)))
    until(lambda: set(feed.pods()) == {"a", "b"}, feed)
    versions = [query["resourceVersion"] for _, query in server.requests if "watch" in query]
    assert versions == ["7", "12"]
    feed.close()


def test_a_version_that_the_server_no_longer_knows_makes_it_read_all_again() -> None:
    watch = Growing()
    server = Server(watch, listing=[pod("a", 6)])
    feed = server.feed()
    server.listings.append([pod("b", 20)])
    watch.chunks.put(event("ERROR", {"code": 410}))
    until(lambda: set(feed.pods()) == {"b"}, feed)
    feed.close()


def test_a_watch_that_fails_is_an_error_for_who_asks() -> None:
    feed = Server(ClusterError("GET pods: 403 forbidden")).feed()
    with pytest.raises(ClusterError, match="403 forbidden"):
        until(lambda: feed.pods() == {"never": None}, feed)


def test_a_log_is_followed_once_its_container_runs() -> None:
    watch, server = Growing(), Server(listing=[pod("a", 6)])
    server.watches.append(watch)
    server.logs["a"] = Growing()
    feed = server.feed()
    assert feed.log("a", "main") == ""
    watch.chunks.put(event("MODIFIED", pod("a", 8, "running")))
    server.logs["a"].chunks.put(b"one")
    until(lambda: feed.log("a", "main") == "one", feed)
    server.logs["a"].chunks.put(b"two")
    until(lambda: feed.log("a", "main") == "one\ntwo", feed)
    followed = [query for path, query in server.requests if path == f"{PATH}/a/log"]
    assert followed == [{"container": "main", "follow": "true"}]
    feed.close()


def test_a_log_whose_stream_breaks_is_read_again_from_its_beginning() -> None:
    watch, server = Growing(), Server(listing=[pod("a", 6, "running")])
    server.watches.append(watch)
    server.logs["a"] = Growing()
    for line in (b"one", None, b"one", b"two"):
        server.logs["a"].chunks.put(line)
    feed = server.feed()
    until(lambda: feed.log("a", "main") == "one\ntwo", feed)
    feed.close()
