"""APIs that a newer Kubernetes has no more and that somebody still asks for.

The API server counts who asks for a deprecated API: `apiserver_requested_deprecated_apis`, with the
release that removes it (kubernetes.io, "Deprecated API Migration Guide").
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuboot.config.versions import parse
from gpuboot.hosts.fact_output import Fields

_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, order=True)
class DeprecatedApi:
    """A deprecated API that has been asked for.

    + group: "" for the core group; + removed: minor release without it, e.g. `1.37`, "" for none
    """

    group: str
    version: str
    resource: str
    removed: str

    def __str__(self) -> str:
        return f"{self.resource} of {self.group}/{self.version}".replace("of /", "of ")


@dataclass(frozen=True)
class DeprecatedApis:
    """What one API server has been asked for; + error: why it does not tell, "" when it does"""

    error: str = ""
    apis: tuple[DeprecatedApi, ...] = ()


def parse_deprecated(lines: Iterable[str]) -> DeprecatedApis:
    """What `deploys/parts/cluster/deprecated_apis.sh` printed. Raises `FactOutputError`."""
    values = Fields(lines)
    if error := values.first("error"):
        return DeprecatedApis(error)
    if (status := values.first("status")) != "200":
        return DeprecatedApis(f"its metrics: HTTP status {status}")
    requested = {_api(line) for line in values.all("metric") if not line.endswith(" 0")}
    return DeprecatedApis(apis=tuple(sorted(requested)))


def _api(line: str) -> DeprecatedApi:
    labels = dict(_LABEL.findall(line))
    return DeprecatedApi(
        labels.get("group", ""), labels["version"], labels["resource"], labels["removed_release"]
    )


def warnings(answers: Mapping[str, DeprecatedApis], target: str) -> list[str]:
    """A line for each API that Kubernetes `target` lacks and that somebody has asked for.

    The count says neither who asked nor when, and stays until the API server starts again: so it
    is a warning.

    + answers: of the API servers, by inventory name of their hosts
    """
    apis = {api for answer in answers.values() for api in answer.apis}
    removed_apis = sorted(api for api in apis if api.removed and _removed(api.removed, target))
    return [
        *(
            f"{host}: whether APIs that Kubernetes {target} lacks are in use is not known: "
            f"{answer.error}"
            for host, answer in answers.items()
            if answer.error
        ),
        *(
            f"{api} has been asked for in this cluster, and Kubernetes {api.removed} has it no "
            "more; remedy: find who asks (its audit log marks such requests k8s.io/deprecated) and "
            f"move that to a newer version of the API before Kubernetes {target}"
            for api in removed_apis
        ),
    ]


def _removed(release: str, target: str) -> bool:
    return parse(release)[:2] <= parse(target)[:2]
