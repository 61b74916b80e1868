"""One test per fixture below tests/facts/<module>.<Fact>/."""

from pathlib import Path

import freezegun
import pytest
from pyinfra_testing.facts import make_fact_tests

# The fixtures run with the time frozen. Freezing looks at every loaded module, which would make the
# Kubernetes client import its models, and these would hold the frozen datetime for good.
freezegun.configure(extend_ignore_list=["kubernetes"])

# facts whose command is a whole script are tested by running it, not by repeating it
pytestmark = pytest.mark.filterwarnings("ignore:No command set for test")

for _folder in sorted(Path(__file__).with_name("facts").glob("*.*/")):
    globals()[f"Test_{_folder.name.replace('.', '_')}"] = make_fact_tests(
        "deploys.facts", _folder.name, _folder
    )
