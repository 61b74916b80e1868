"""What was read of a site for a diagnosis, as one document: a bundle holds it, tests replay it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from gpuboot.config.redaction import masked
from gpuboot.hosts.host_clock import skew

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class HostRecording:
    """What one host printed.

    + node: its name in Kubernetes; host: its name in the inventory
    + error: why it could not be read; "" when it was
    + began, before, after: its own clock when it began, ours before and after, seconds since 1970
    + parts: fact -> lines; failed: fact -> exit status of one that did not end well
    """

    node: str
    host: str
    role: str
    gpus: int
    error: str = ""
    began: float = 0.0
    ended: float = 0.0
    before: float = 0.0
    after: float = 0.0
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def skew_s(self) -> float:
        """Seconds its clock is ahead (behind: negative) of ours, at least."""
        if not self.began:
            return 0.0
        latest = self.after - (self.ended - self.began)  # when it can have begun, by our clock
        return skew(self.began, self.before, latest)


@dataclass(frozen=True, kw_only=True)
class ClusterRecording:
    """What the API server answered, cut down to what causes look at.

    + error: why it was not asked or did not answer; "" when it did
    + now: its clock, seconds since 1970
    + found: path -> answer; errors: path -> why there is none
    + logs: `namespace/pod/container`, and with `/previous` of one that ended -> last lines
    + targets: Prometheus' scrape targets; None where it did not answer
    """

    error: str = ""
    now: float = 0.0
    found: Mapping[str, Json] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    logs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    targets: tuple[Json, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A site at one moment.

    + leader: inventory name of the control plane that was asked for the cluster
    + settings: as JSON, without secrets; reports: folder of the reports of runs
    """

    site: str
    leader: str
    seconds: float = 0.0
    hosts: tuple[HostRecording, ...] = ()
    cluster: ClusterRecording = field(default_factory=ClusterRecording)
    settings: Json = field(default_factory=dict)
    reports: str = ""

    def to_json(self) -> str:
        """The document."""
        return _adapter().dump_json(self, indent=1).decode()


def from_json(text: str) -> Recording:
    """The inverse of `Recording.to_json`. Raises ValueError when the text is no such document."""
    return _adapter().validate_json(text)


def without_secrets(recording: Recording, mask: Callable[[str], str]) -> Recording:
    """The recording with all texts masked. + mask: of `gpuboot.config.redaction`"""
    plain = masked(_adapter().dump_python(recording, mode="json"), mask)
    return _adapter().validate_python(plain)


@cache
def _adapter() -> TypeAdapter[Recording]:
    return TypeAdapter(Recording)
