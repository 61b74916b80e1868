"""What an operation says to the record of its run, and asks of it; nothing where there is none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pyinfra.api.host import Host

from deploys.engine import run_ending as ending
from gpuboot.config.settings import Settings
from gpuboot.verify.report.report_model import POINTER
from gpuboot.verify.report.run_failures import Failure
from gpuboot.verify.report.writer import make_folder, point


class Record(Protocol):
    """The record of a run (`deploys.run.report.Recorder`)."""

    def proved(self, operation: str, parts: Mapping[str, float]) -> None:
        """Note that an operation has shown its own report.

        + operation: its hash
        + parts: of the proof, with their seconds
        """

    def failures(self) -> dict[str, Failure]:
        """Inventory name of each host that has failed -> what failed there first."""


record: Record | None = None  # of this run


def proved(host: Host, parts: Mapping[str, float]) -> None:
    """The operation that runs on this host has shown its own report: nobody need tell it again.

    + parts: of the proof, with their seconds
    """
    if record is not None and host.executing_op_hash:
        record.proved(host.executing_op_hash, parts)


def failures() -> dict[str, Failure]:
    """Inventory name of each host that has failed in this run -> what failed there first."""
    return {} if record is None else record.failures()


_folder: Path | None = None


def folder(settings: Settings) -> Path:
    """The report folder of this run; made when first asked for.

    Where it cannot be made, what is written into it fails as well: see `ending.writing`.
    """
    global _folder
    if _folder is None:
        reports = Path(settings.verify.reports)
        _folder = reports / "not-written"
        with ending.writing(reports):
            _folder = make_folder(reports, settings.cluster.name)
            if pointer := os.environ.get(POINTER):
                Path(pointer).write_text(str(_folder.resolve()), encoding="utf-8")
            point(_folder)
    return _folder
