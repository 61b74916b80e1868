"""One test per fixture below tests/facts/<part>.<module>.<Fact>/.

Fixtures hold a fact's own command and lines. pyinfra sees both in the frame of every fact, with and
without other output beside it.
"""

from pathlib import Path
from typing import Any
from unittest import TestCase

import freezegun
import pytest
from pyinfra_testing.facts import make_fact_tests

from gpuboot.hosts.fact_output import framed
from tests.noise import framed_lines, noisy

# The fixtures run with the time frozen. Freezing looks at every loaded module, which would make the
# Kubernetes client import its models, and these would hold the frozen datetime for good.
freezegun.configure(extend_ignore_list=["kubernetes"])

# facts whose command is a whole script are tested by running it, not by repeating it
pytestmark = pytest.mark.filterwarnings("ignore:No command set for test")


def _in_frames(tests: Any) -> type[TestCase]:
    plain = tests._test_fn

    def in_frames(self: TestCase, name: str, data: dict[str, Any], fact: Any) -> None:
        output = data["output"]
        lines = output.splitlines() if isinstance(output, str) else output
        if "command" in data:
            data["command"] = framed(data["command"])
        for frame in (framed_lines, noisy):
            plain(self, name, {**data, "output": frame(lines)}, fact)

    tests._test_fn = in_frames
    case_type: type[TestCase] = tests
    return case_type


for _folder in sorted(Path(__file__).with_name("facts").glob("*.*/")):
    globals()[f"Test_{_folder.name.replace('.', '_')}"] = _in_frames(
        make_fact_tests("deploys.parts", _folder.name, _folder)
    )
