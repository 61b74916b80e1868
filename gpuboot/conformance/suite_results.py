"""What Kubernetes' conformance suite found: its JUnit file, and the one line that it comes to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from xml.etree import ElementTree

Status = Literal["passed", "failed", "skipped"]
_SPEC = "[It] "  # before the names of specs; what runs before and after them has other marks
_SKIPPED = "skipped"
_NOT_RUN = (_SKIPPED, "pending")  # of those that no spec's own code has skipped


class ResultsError(ValueError):
    """This is no JUnit file of the suite."""


@dataclass(frozen=True)
class Spec:
    """A spec that was selected, or a hook of the suite that failed.

    + text: what the failure or the skip says of itself
    """

    name: str
    status: Status
    text: str = ""


@dataclass(frozen=True)
class Results:
    """The suite's result. + failed, skipped: name -> the reason"""

    passed: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The result in one line: `446 passed, 0 failed, 0 skipped`."""
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"

    @property
    def is_good(self) -> bool:
        """Whether specs ran, and none failed."""
        return self.passed > 0 and not self.failed


def parse_junit(text: str) -> list[Spec]:
    """The specs of a JUnit file that Kubernetes' e2e.test wrote, without those not selected.

    Raises `ResultsError`.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ResultsError(f"the suite's JUnit file cannot be read: {error}") from None
    specs = (_spec(case) for case in root.iter("testcase"))
    return [spec for spec in specs if spec is not None]


def _spec(case: ElementTree.Element) -> Spec | None:
    name = case.get("name", "")
    for tag in ("failure", "error"):
        if (problem := case.find(tag)) is not None:
            text = problem.get("message") or (problem.text or "").strip()
            return Spec(name.removeprefix(_SPEC), "failed", text or "no reason was written")
    if not name.startswith(_SPEC):
        return None
    skip = case.find("skipped")
    if skip is None:
        return Spec(name.removeprefix(_SPEC), "passed")
    message = skip.get("message", "")
    if message in _NOT_RUN:
        return None
    return Spec(name.removeprefix(_SPEC), "skipped", message.removeprefix(f"{_SKIPPED} - "))


def results_of(
    specs: Iterable[Spec],
    expected: Collection[str] = (),
    excluded: Mapping[str, str] | None = None,
) -> Results:
    """What the specs come to. A spec that skipped itself, or never ran, is a failure.

    + expected: names of all that should have run; nothing: whatever ran
    + excluded: name -> why it cannot run here; only these count as skipped
    """
    excluded = excluded or {}
    by_name = {spec.name: spec for spec in specs}
    failed = {name: spec.text for name, spec in by_name.items() if spec.status == "failed"}
    for name, spec in by_name.items():
        if spec.status == "skipped" and name not in excluded:
            failed[name] = f"skipped itself: {spec.text}"
    for name in expected:
        if name not in by_name and name not in excluded:
            failed[name] = "did not run"
    skipped = {
        name: reason
        for name, reason in excluded.items()
        if name not in failed and (not expected or name in expected)
    }
    return Results(sum(spec.status == "passed" for spec in by_name.values()), failed, skipped)
