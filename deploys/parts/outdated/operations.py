"""The operation that asks what repositories serve. It changes nothing, so it yields nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pyinfra.context import host

from deploys.engine.answers import read
from deploys.engine.commands import Commands, executing
from deploys.engine.framed import HiddenInput
from deploys.engine.operation import operation
from deploys.parts.outdated.fact import ServedVersions


@operation(compared=False)
def answered(
    packages: Sequence[str],
    minor: str,
    charts: Mapping[str, str],
    environment: SecretStr | None,
    lock: Mapping[str, Any],
    cluster: str,
    path: str,
) -> Commands:
    """Ask what this host has and its repositories serve, and add it as a line of JSON to a file.

    + minor: the Kubernetes minor after the locked one
    + charts: chart -> URL of its repository
    + environment: shell commands for proxy and certificate authority; shown nowhere
    + lock, cluster: the version lock and the cluster's name, which go into the answer
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
        answer = {"host": host.name, "cluster": cluster, "lock": lock, **asdict(served)}
        stream.write(json.dumps(answer) + "\n")
    host.noop("the repositories were asked")
    yield from ()
