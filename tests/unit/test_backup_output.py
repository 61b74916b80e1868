"""A busy host, on which what etcdutl prints gets lost: no backup is left that says nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.test_backup import CTR, STATUS, Machine

# prints nothing so many times
QUIET_CTR = """\
#!/bin/sh
case "$*" in
  *"snapshot status"*)
    echo >>"$CALLS.status"
    [ "$(wc -l <"$CALLS.status")" -gt TIMES ] || exit 0 ;;
esac
"""


@pytest.mark.parametrize(("times", "good"), [(1, True), (2, True), (3, False)])
def test_what_etcdutl_prints_is_lost(tmp_path: Path, times: int, good: bool) -> None:
    machine = Machine(tmp_path)
    plain = (CTR % STATUS).removeprefix("#!/bin/sh\n")
    machine.program("ctr", QUIET_CTR.replace("TIMES", str(times)) + plain)
    result = machine.run()
    assert (result.returncode == 0) is good, result.stderr
    metadata = [json.loads((path / "about.json").read_text()) for path in machine.backups]
    assert [item["snapshot"]["revision"] for item in metadata] == [7] * good
    assert good or "does not tell what is in the snapshot" in result.stderr
