"""The operation that asks what repositories serve. It changes nothing, so it yields nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pyinfra.context import host

from deploys.facts.details import HiddenInput
from deploys.facts.served import ServedVersions
from deploys.lib.answers import read
from deploys.lib.commands import Commands, executing
from deploys.lib.operation import operation


@operation(compared=False)
def answered(
    packages: Sequence[str],
    minor: str,
    charts: Mapping[str, str],
    environment: SecretStr | None,
    lock: Mapping[str, Any],
    path: str,
) -> Commands:
    """Ask what this host's repositories serve, and add the answer as a line of JSON to a file.

    + minor: the Kubernetes minor after the locked one
    + charts: chart -> URL of its repository
    + environment: shell commands for proxy and certificate authority; shown nowhere
    + lock: the version lock, which goes into the answer
    + path: file on the control machine
    """
    if not executing():
        return
    exports = environment.get_secret_value() if environment else ":"
    served = read(
        ServedVersions, packages=packages, minor=minor, charts=dict(charts),
        _stdin=HiddenInput([exports]),
    )  # fmt: skip
    with Path(path).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"host": host.name, "lock": lock, **asdict(served)}) + "\n")
    host.noop("the repositories were asked")
    yield from ()
