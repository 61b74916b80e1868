"""One test per fixture below tests/operations/<part>.<module>.<operation>/.

A fixture may have `changes`: what the operation records for the plan of a run.
"""

from pathlib import Path
from typing import Any

from pyinfra_testing.operations import make_operation_tests

from deploys.engine import changes


def _recording(tests: type[Any]) -> type[Any]:
    plain = tests._test

    def _test(self: Any, name: str, data: dict[str, Any]) -> None:
        changes.planned.clear()
        plain(self, name, data)
        recorded = [item.to_json() for items in changes.planned.values() for item in items]
        if "changes" in data:
            assert recorded == data["changes"]
        if not data.get("commands"):
            assert recorded == [], "what changes nothing has nothing to record"

    tests._test = _test
    return tests


for _folder in sorted(Path(__file__).with_name("operations").glob("*.*/")):
    globals()[f"Test_{_folder.name.replace('.', '_')}"] = _recording(
        make_operation_tests("deploys.parts", _folder.name, _folder)
    )
