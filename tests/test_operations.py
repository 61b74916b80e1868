"""One test per fixture below tests/operations/<module>.<operation>/."""

from pathlib import Path

from pyinfra_testing.operations import make_operation_tests

for _folder in sorted(Path(__file__).with_name("operations").glob("*.*/")):
    globals()[f"Test_{_folder.name.replace('.', '_')}"] = make_operation_tests(
        "deploys.operations", _folder.name, _folder
    )
