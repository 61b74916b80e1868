"""What deep tests printed, in the folder `deep` of a report: one file for each node.

A file is written when all tests of its node have ended, so that a run that was killed can go on
where it stood.
"""

from __future__ import annotations

import json
from pathlib import Path

from gpuboot.verify.deep.answers import NodeAnswers, from_json
from gpuboot.verify.report.writer import write_json

FOLDER = "deep"


class KeptError(ValueError):
    """A file that is none of these; the text says which, and why."""


def save(answers: NodeAnswers, report: Path) -> None:
    """Keep what was found on a node. Raises OSError. + report: folder of the report"""
    folder = report / FOLDER
    folder.mkdir(exist_ok=True)
    write_json(folder / f"{answers.node}.json", answers.to_json())


def read(report: Path) -> dict[str, NodeAnswers]:
    """What a report's folder has, by node; nothing where there is none. Raises `KeptError`."""
    return {path.stem: _read(path) for path in sorted((report / FOLDER).glob("*.json"))}


def _read(path: Path) -> NodeAnswers:
    try:
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise KeptError(f"{path}: not the answers of a node: {error!r}") from None


def newest(report: Path, cluster: str) -> Path | None:
    """The newest folder before this one that has answers of the cluster's nodes."""
    here = report.resolve()
    earlier = (path for path in here.parent.glob(f"2*-{cluster}*") if path.name < here.name)
    return next(
        (path for path in sorted(earlier, reverse=True) if any((path / FOLDER).glob("*.json"))),
        None,
    )
