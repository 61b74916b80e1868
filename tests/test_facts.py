"""One test per fixture below tests/facts/<module>.<Fact>/."""

from pathlib import Path

from pyinfra_testing.facts import make_fact_tests

for _folder in sorted(Path(__file__).with_name("facts").glob("*.*/")):
    globals()[f"Test_{_folder.name.replace('.', '_')}"] = make_fact_tests(
        "deploys.facts", _folder.name, _folder
    )
