"""What deep tests printed, in the folder `deep` of a report: a file for each node and each pair.

A file is written when all tests of its node have ended, or those of its pair, so that a run that
was killed can go on where it stood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gpuboot.verify.deep.deep_answers import (
    DeepAnswers,
    NodeAnswers,
    PairAnswer,
    node_from_json,
    pair_from_json,
)
from gpuboot.verify.report.writer import write_json

FOLDER = "deep"
_PAIRS = "pairs"
_Read = TypeVar("_Read")


class KeptError(ValueError):
    """A file that is none of these; the text says which, and why."""


def save(answers: NodeAnswers | PairAnswer, report: Path) -> None:
    """Keep what was found on a node, or between two. Raises OSError. + report: its folder"""
    folder, name = report / FOLDER, ""
    if isinstance(answers, PairAnswer):
        folder, name = folder / _PAIRS, "--".join(answers.nodes)
    else:
        name = answers.node
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{name}.json", answers.to_json())


def save_all(answers: DeepAnswers, report: Path) -> None:
    """Keep all of them. Raises OSError."""
    for node in answers.nodes.values():
        save(node, report)
    for pair in answers.pairs.values():
        save(pair, report)


def read(report: Path) -> DeepAnswers:
    """What a report's folder has; nothing where there is none. Raises `KeptError`."""
    folder = report / FOLDER
    nodes = [_read(path, node_from_json) for path in sorted(folder.glob("*.json"))]
    pairs = [_read(path, pair_from_json) for path in sorted((folder / _PAIRS).glob("*.json"))]
    return DeepAnswers(
        nodes={answer.node: answer for answer in nodes},
        pairs={answer.nodes: answer for answer in pairs},
    )


def _read(path: Path, made_of: Callable[[Mapping[str, Any]], _Read]) -> _Read:
    try:
        return made_of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise KeptError(f"{path}: not the answers of a test: {error!r}") from None


def newest(report: Path, cluster: str) -> Path | None:
    """The newest folder before this one that has answers of the cluster's nodes."""
    current = report.resolve()
    # names are those of `gpuboot.verify.report.writer.new_folder`
    run_name = re.compile(rf"\d{{8}}T\d{{6}}Z-{re.escape(cluster)}(-\d+)?")
    earlier = (
        path
        for path in current.parent.glob("2*")
        if path.name < current.name and run_name.fullmatch(path.name)
    )
    return next(
        (path for path in sorted(earlier, reverse=True) if any((path / FOLDER).glob("*.json"))),
        None,
    )
