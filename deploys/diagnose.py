"""Reads a site for a diagnosis. Run by `gpuboot diagnose`; changes nothing.

$GPUBOOT_ANSWER names the file that gets what was read, as JSON; $GPUBOOT_UNTIL says when it must be
there, in seconds since 1970.
"""

import os
import time
from pathlib import Path

from deploys.parts.diagnose.recorder import first, record
from deploys.run.collect import denied_root
from deploys.run.context import begin, read_leader
from gpuboot.diagnose import UNTIL
from gpuboot.monitoring.components import expected

_LEAST_S = 10.0


def diagnose() -> None:
    """Read all hosts and the cluster, once, whichever host's greenlet comes first."""
    if not first():
        return
    settings, lock, nodes = begin()
    remaining_s = float(os.environ[UNTIL]) - time.time()
    recording = record(
        settings,
        nodes,
        read_leader(),
        max(remaining_s, _LEAST_S),
        denied_root,
        expected(settings, lock, nodes),
    )
    Path(os.environ["GPUBOOT_ANSWER"]).write_text(recording.to_json(), encoding="utf-8")


# pyinfra executes a deploy file without a module name; an import must not run anything
if "__name__" not in globals():
    diagnose()
