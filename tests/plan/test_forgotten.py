"""A node that somebody deleted from the cluster, while its machine takes itself for a member."""

from __future__ import annotations

from pathlib import Path

from tests.plan.test_changes import call, plan_lines

# the cluster of the site knows cp1 and gpu1; this machine is one more that joined once
INVENTORY = """
from tests.plan.living_site import _living_host, _site, control_plane, workers as _workers

workers = ([*_workers[0], _living_host(_site["_host"](29, "gpu9", 2))], _workers[1])
"""


def test_the_plan_registers_it_again(tmp_path: Path) -> None:
    inventory = tmp_path / "site.py"
    inventory.write_text(INVENTORY)
    output = "\n".join(plan_lines(call(["pyinfra", str(inventory), "deploys/site.py", "--dry"])))
    assert "~ node gpu9: deleted → registered again" in output
    assert "~ node gpu1: deleted" not in output
