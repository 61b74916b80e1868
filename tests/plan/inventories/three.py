"""Three bare control planes and a GPU server that do not exist; see tests/plan/inventories/site.py.

$PLAN_NEIGHBOUR: what cp1 answers when it is asked who has an address, a JSON list of lines.
"""

import json
import os
import runpy
from pathlib import Path

from tests.noise import framed_lines

_site = runpy.run_path(str(Path(__file__).with_name("site.py")))
_data = _site["_data"]
_NEIGHBOUR = {
    "Who answers at an address": framed_lines(
        json.loads(os.environ.get("PLAN_NEIGHBOUR", '["end\\tok"]'))
    )
}

control_plane = ([_site["_host"](number, f"cp{number - 10}", 0) for number in (11, 12, 13)], _data)
workers = ([_site["_host"](21, "gpu1", 8)], _data)
for _, _host in control_plane[0]:
    _host["fake_responses"] |= _NEIGHBOUR
