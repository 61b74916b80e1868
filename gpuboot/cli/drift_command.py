"""`gpuboot drift`: whether hosts and cluster are as the settings say, for a timer."""

from __future__ import annotations

import json as json_format
import time
from functools import partial

import typer

from gpuboot.cli import ending, runs
from gpuboot.config.exit_codes import COULD_NOT_TELL, FAILED, OK, with_unwritten
from gpuboot.plan import POINTER

DRIFT = FAILED


def drift(
    inventory: runs.Inventory,
    deploy: runs.Deploy = runs.SITE,
    json: runs.AsJson = False,
    metrics: runs.Metrics = None,
    data: runs.Data = None,
) -> None:
    """Compare hosts and cluster with the settings, and list what differs. Changes nothing.

    Exit code: 0 no drift, 1 drift, 2 could not tell.
    """
    from gpuboot.cli import drift_report as of_plan
    from gpuboot.verify.report.writer import write_atomically

    runs.require_folder(metrics)
    options = runs.options(data)
    result = runs.pyinfra(inventory, deploy, options, answer=POINTER, capture_output=True, dry=True)
    if result.code != 0 or not result.answer:
        runs.stop(result.output.rstrip() or "pyinfra told nothing")
    plan = json_format.loads(result.answer)
    drift_report = of_plan.from_plan(plan)
    print(result.answer if json else of_plan.text(drift_report), end="", flush=True)
    code = DRIFT if drift_report.differences else OK
    code = COULD_NOT_TELL if drift_report.is_unknown else code
    if metrics:
        content = of_plan.metrics(drift_report, time.time())
        success = ending.try_write(partial(write_atomically, metrics, content), metrics)
        code = with_unwritten(code, not success)
    raise typer.Exit(code)
