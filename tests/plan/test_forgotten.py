"""A node that somebody deleted from the cluster, while its machine takes itself for a member."""

from __future__ import annotations

from pathlib import Path

from tests.plan.test_changes import call, shown

# the cluster of the site knows cp1 and gpu1; this machine is one more that joined once
INVENTORY = """
from tests.plan.living_site import _living, _site, control_plane, workers as _workers

workers = ([*_workers[0], _living(_site["_host"](29, "gpu9", 2))], _workers[1])
"""


def test_the_plan_registers_it_again(tmp_path: Path) -> None:
    inventory = tmp_path / "site.py"
    inventory.write_text(INVENTORY)
    said = "\n".join(shown(call(["pyinfra", str(inventory), "deploys/site.py", "--dry"])))
    assert "~ node gpu9: deleted → registered again" in said
    assert "~ node gpu1: deleted" not in said
