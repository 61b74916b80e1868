"""gpuboot's settings for the machines of the benchmark, and what the playbook is told of them."""

from __future__ import annotations

import os
from typing import Any

from bench.site import Site
from lab import settings as lab_settings

REPORTS_VARIABLE = "GPUBOOT_BENCH_REPORTS"


def settings(site: Site) -> dict[str, Any]:
    """The lab's settings, with one mirror for the images of all registries.

    Each registry by itself would have a file of its own on every machine, and each file costs
    Ansible two more commands there. Reports go to the folder in $GPUBOOT_BENCH_REPORTS.
    """
    lab_values = lab_settings.settings(site.lab)
    mirror = lab_values["mirrors"]["apt"]["docker"]["url"].partition("/apt/")[0]
    lab_values["mirrors"] = {**lab_values["mirrors"], "images": {"*": f"{mirror}/v2"}}
    reports = os.environ.get(REPORTS_VARIABLE, "reports")
    lab_values["verify"] = {**lab_values.get("verify", {}), "reports": reports}
    return lab_values
