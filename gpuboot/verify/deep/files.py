"""What deep tests printed, in the folder `deep` of a report: a file for each node and each pair.

A file is written when all tests of its node have ended, or those of its pair, so that a run that
was killed leaves what it found.
"""

from __future__ import annotations

from pathlib import Path

from gpuboot.verify.deep.answers import DeepAnswers, NodeAnswers, PairAnswer
from gpuboot.verify.report.writer import write_json

FOLDER = "deep"
_PAIRS = "pairs"


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
