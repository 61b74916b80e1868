"""The site that a run has made; its leader's lock is a file of this machine, in folder $PLAN_LOCK.

What its hosts were asked goes to the file $PLAN_COMMANDS. $PLAN_LOCK_TOLD: what the fact about the
leader says of the lock, as JSON lines.
"""

import json
import os

from deploys.engine import open_command
from gpuboot.hosts import run_lock
from gpuboot.hosts.fact_output import answer
from tests.noise import framed_lines
from tests.plan.inventories.counted import control_plane, workers

__all__ = ["control_plane", "workers"]

run_lock.FOLDER = os.environ["PLAN_LOCK"]
open_command.begin = lambda host, command: open_command._Local(command)

_responses = control_plane[0][0][1]["fake_responses"]
_fact = next(key for key in _responses if str(key).startswith("Reads everything gpuboot"))
_lock_lines = json.loads(os.environ.get("PLAN_LOCK_TOLD", "[]"))
_responses[_fact] = framed_lines([*answer(_responses[_fact]).lines, *_lock_lines])
