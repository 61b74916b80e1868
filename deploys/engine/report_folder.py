"""The report folder of a run."""

from __future__ import annotations

import os
from pathlib import Path

from deploys.engine import run_ending as ending
from gpuboot.config.settings import Settings
from gpuboot.verify.report.report_model import POINTER
from gpuboot.verify.report.writer import make_folder, point

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
