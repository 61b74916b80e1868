"""A profile for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gpuboot.query.profile.advice import ADVICE


def text(answer: Mapping[str, Any]) -> str:
    """The answer of `ProfileQuestion.answer`, as it is printed."""
    return "\n".join(_lines(answer))


def is_known(answer: Mapping[str, Any]) -> bool:
    """Whether the class of every GPU is known."""
    gpus: Sequence[Mapping[str, Any]] = answer["gpus"]
    return bool(gpus) and all(gpu["class"] != "insufficient_data" for gpu in gpus)


def _lines(answer: Mapping[str, Any]) -> Iterator[str]:
    subject = "/".join(filter(None, (answer["namespace"], answer["name"])))
    if answer["kind"] in ("namespace", "node", "gpu"):
        subject = answer["name"]
    title = f"{answer['kind']} {subject}"
    if answer["reason"]:
        yield f"{title}: unknown: {answer['reason']}"
        return
    until = datetime.fromtimestamp(answer["until"], UTC)
    gpus = answer["gpus"]
    count = f"{len(gpus)} GPU{'s' * (len(gpus) != 1)}"
    minutes = answer["window_s"] / 60
    yield f"{title}: {count}, {minutes:g} minutes until {until:%Y-%m-%d %H:%M:%S} UTC"
    for gpu in gpus:
        yield ""
        yield from _gpu(gpu)
    yield from _first_steps(gpus)


def _gpu(gpu: Mapping[str, Any]) -> Iterator[str]:
    pods = f"  {', '.join(gpu['pods'])}" if gpu["pods"] else ""
    yield f"{gpu['node']} GPU {gpu['gpu']}  {gpu['gpu_uuid']}  {gpu['model']}{pods}"
    doubt = " (suspected)" if gpu["confidence"] == "low" else ""
    shares = ", ".join(f"{ADVICE[name].title} {share:.0%}" for name, share in gpu["shares"].items())
    yield f"  {gpu['title']}{doubt}: {gpu['meaning']}"
    yield f"  of the window: {shares}{'; no class held for most of it' * gpu['mixed']}"
    for item in gpu["evidence"]:
        yield f"    {item['text']}  [{item['source']}]"
    for note in gpu["notes"]:
        yield f"    note: {note}"


def _first_steps(gpus: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What to try, once for each class."""
    for name in dict.fromkeys(gpu["class"] for gpu in gpus):
        advice = ADVICE[name]
        yield ""
        yield f"{advice.title}: what to try first"
        for number, step in enumerate(advice.first, start=1):
            yield f"  {number}. {step}"
