"""What limited each device over a span of time: the class of every minute, and their shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gpuboot.config.settings.profile import Thresholds
from gpuboot.query.latest_samples import Device, device_name
from gpuboot.query.profile.advice import ADVICE
from gpuboot.query.profile.classes import Class, Context, HostView, Name, classify
from gpuboot.query.profile.counters import MEAN_S, Means, Samples

STEP_S = 60.0
# model as nvidia-smi names it -> 10^9 bytes per second of all its NVLinks in one direction, by
# NVIDIA's data sheets
_NVLINK_GB = {
    "NVIDIA B200": 900,
    "NVIDIA H200": 450,
    "NVIDIA H100 80GB HBM3": 450,
    "NVIDIA A100-SXM4-80GB": 300,
    "NVIDIA A100-SXM4-40GB": 300,
    "Tesla V100-SXM2-32GB": 150,
    "Tesla V100-SXM2-16GB": 150,
}
# a class that holds for less of the time is one of several
_MAIN_SHARE = 0.5


@dataclass(frozen=True)
class Span:
    """The time that is judged. + end: unix seconds; interval_s: between two scrapes"""

    end: float
    window_s: float
    interval_s: float

    @property
    def moments(self) -> Iterator[float]:
        """Ends of the means that lie within it, the newest first."""
        count = max(1, int((self.window_s - MEAN_S) // STEP_S) + 1)
        return (self.end - STEP_S * step for step in range(count))


@dataclass(frozen=True)
class Profile:
    """The profile of a device.

    + name: UUID, and `/` and the instance's number under MIG; model, node, gpu: as its series say
    + pods: those that held it, `namespace/name`
    + main_class: the class that most of the window had, with the evidence of its newest moment
    + shares: class -> share of the window, the largest first
    + means: of the newest moment with that class
    """

    name: str
    model: str
    node: str
    gpu: str
    pods: tuple[str, ...]
    main_class: Class
    shares: Mapping[Name, float]
    means: Means
    notes: tuple[str, ...]

    @property
    def is_known(self) -> bool:
        """Whether the class is more than "insufficient_data"."""
        return self.main_class.name != "insufficient_data"

    @property
    def mixed(self) -> bool:
        """Whether no class held for half of the time."""
        return self.shares[self.main_class.name] < _MAIN_SHARE

    def to_json(self) -> dict[str, Any]:
        advice = ADVICE[self.main_class.name]
        return {
            "gpu_uuid": self.name,
            "model": self.model,
            "node": self.node,
            "gpu": self.gpu,
            "pods": list(self.pods),
            "class": self.main_class.name,
            "title": advice.title,
            "confidence": self.main_class.confidence,
            "mixed": self.mixed,
            "shares": {name: round(share, 3) for name, share in self.shares.items()},
            "evidence": [asdict(item) | {"text": str(item)} for item in self.main_class.evidence],
            "means": {name: round(value, 4) for name, value in sorted(self.means.values.items())},
            "samples": round(self.means.samples, 3),
            "meaning": advice.meaning,
            "first": list(advice.first),
            "notes": list(self.notes),
        }


def profile(
    device: Device,
    samples: Samples,
    span: Span,
    limits: Thresholds,
    hosts: Mapping[str, HostView],
) -> Profile:
    """The profile of one device. + hosts: what each node's host tells, by the node's name"""
    labels = samples.labels
    model, node = labels.get("modelName", ""), labels.get("node", "")
    nvlink = _NVLINK_GB.get(model)
    context = Context(
        has_holder=bool(samples.holders),
        nvlink_max=nvlink * 1e9 if nvlink else None,
        host=hosts.get(node, HostView()),
    )
    moments = [samples.at(end, span.interval_s) for end in span.moments]
    classes = [classify(means, context, limits) for means in moments]
    counted = Counter(entry.name for entry in classes)
    name = _verdict(counted, limits)
    newest = next(place for place, entry in enumerate(classes) if entry.name == name)
    return Profile(
        name=device_name(device),
        model=model,
        node=node,
        gpu=labels.get("gpu", ""),
        pods=tuple(sorted(samples.holders)),
        main_class=classes[newest],
        shares={entry: count / len(classes) for entry, count in counted.most_common()},
        means=moments[newest],
        notes=(*classes[newest].notes, *_notes(samples, device)),
    )


def _verdict(counted: Counter[Name], limits: Thresholds) -> Name:
    """The commonest class; none where too much of the window has no samples."""
    total, missing = counted.total(), counted["insufficient_data"]
    if missing > (1 - limits["samples"]) * total:
        return "insufficient_data"
    return next(name for name, _ in counted.most_common() if name != "insufficient_data")


def _notes(samples: Samples, device: Device) -> Iterator[str]:
    if len(samples.holders) > 1 or samples.labels.get("vgpu"):
        yield "shared by several pods: its counters are the whole GPU's, whoever uses it"
    if device[1]:
        yield "a MIG instance: heat, power and links are those of the whole GPU"
