"""What `dcgmi diag -j` says: DCGM 4 (also 3, which named GPUs in another way).

Its exit status is not read: it is not 0 for a mere setting of the node, too. The layout is that of
testing/python3/dcgm_diag_schema.json in NVIDIA/DCGM v4.6.0, the names those of its
nvvs/include/NvvsJsonStrings.h.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")  # of DCGM 4 and 3
_CONFIGURATION = 5  # DCGM_ERROR_SEVERITY: a setting of the node, e.g. persistence mode


class DiagError(ValueError):
    """Output that is no answer of dcgmi; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Warned:
    """What DCGM says about a result. setting: it is about the node's settings, not its hardware."""

    text: str
    setting: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of one test on one GPU.

    + gpu: its number for DCGM; None: of the node
    + status: Pass, Fail, Warn, Skip, Not Run
    """

    category: str
    test: str
    gpu: int | None
    status: str
    warnings: tuple[Warned, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What a diagnosis found. error: why it did not run; there may be results all the same."""

    version: str = ""
    driver: str = ""
    results: tuple[Outcome, ...] = ()
    error: str = ""

    def of(self, gpu: int) -> tuple[Outcome, ...]:
        """The results of one GPU, and those of its node."""
        return tuple(item for item in self.results if item.gpu in (gpu, None))


def parse(text: str) -> Diagnosis:
    """Read an answer. Other programs' lines before and behind it are passed over.

    Raises `DiagError`.
    """
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0:
        last_lines = text.strip().splitlines()[-1:] or ["nothing"]
        raise DiagError(f"dcgmi printed no JSON: {last_lines[0][:200]}")
    try:
        data = json.loads(text[begin : end + 1])
        root = next((data[name] for name in _ROOTS if name in data), None)
        if root is None:
            raise DiagError("the JSON of dcgmi has no diagnostic: another version of DCGM?")
        return _diagnosis(data, root)
    except json.JSONDecodeError as error:
        raise DiagError(f"the JSON of dcgmi is not complete: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise DiagError(f"the JSON of dcgmi has another layout: {error!r}") from None


def _diagnosis(data: Mapping[str, Any], root: Mapping[str, Any]) -> Diagnosis:
    metadata = data.get("metadata", root)
    return Diagnosis(
        version=str(metadata.get("version", "")),
        driver=str(metadata.get("Driver Version Detected", "")),
        results=tuple(
            result
            for category in root.get("test_categories", ())
            for test in category["tests"]
            for result in _results(category["category"], test)
        ),
        error=str(root.get("runtime_error", "")),
    )


def _results(category: str, test: Mapping[str, Any]) -> Iterator[Outcome]:
    for item in test.get("results", ()):
        if item.get("entity_group", "GPU") != "GPU":
            continue  # CPUs and switches
        yield Outcome(
            category=category,
            test=test["name"],
            gpu=_gpu(item),
            status=item["status"],
            warnings=tuple(map(_warning, item.get("warnings", ()))),
        )
    summary = test.get("test_summary", {})
    if summary.get("status") and not test.get("results"):
        warnings = tuple(map(_warning, summary.get("warnings", ())))
        yield Outcome(
            category=category,
            test=test["name"],
            gpu=None,
            status=summary["status"],
            warnings=warnings,
        )


def _gpu(item: Mapping[str, Any]) -> int | None:
    number = item.get("entity_id", item.get("gpu_id", item.get("gpu_ids")))
    return None if number is None else int(number)


def _warning(item: Any) -> Warned:
    if isinstance(item, str):
        return Warned(text=item)
    setting = item.get("error_severity") == _CONFIGURATION
    return Warned(text=" ".join(str(item.get("warning", "")).split()), setting=setting)
