"""PRODUCT.yaml: the programme's own checklist, with status, evidence and notes filled in.

Its validator (scripts/validate.go) takes for a MUST no status but `Implemented`, for a SHOULD an
empty one as well, and asks for notes with N/A. The FAQ of the programme allows N/A where the
context of a requirement does not apply, and submissions of 1.36 for bare metal say that as
`Implemented`, with the reason in the notes. So does this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from gpuboot.conformance.ai.evidence_results import Result

IMPLEMENTED, NOT_APPLICABLE = "Implemented", "N/A"
# the validator asks for it, and the checklist has no line for it; it refuses what is in brackets
_SUITE_URL = "k8sConformanceUrl"
_SUITE_PLACE = "[https://github.com/cncf/k8s-conformance/tree/master/vX.Y/PRODUCT]"
_SIMULATED = "SIMULATED, not for submission: "


class ChecklistError(ValueError):
    """This is no checklist of the programme, or one of another release."""


def parse_checklist(text: str) -> dict[str, Any]:
    """The programme's file. Raises `ChecklistError`."""
    try:
        data = yaml.safe_load(text)
        for item in _items(data):
            _ = item["id"], item["level"], item["description"]
        _ = data["metadata"]["kubernetesVersion"]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ChecklistError(f"no checklist of the programme: {error!r}") from None
    return dict(data)


def levels(checklist: Mapping[str, Any]) -> dict[str, str]:
    """Requirement -> its level, in the checklist's order."""
    return {str(item["id"]): str(item["level"]) for item in _items(checklist)}


def product(
    checklist: Mapping[str, Any],
    results: Iterable[Result],
    kubernetes: str,
    evidence: Mapping[str, str],
    simulated: str = "",
) -> str:
    """PRODUCT.yaml: ids, descriptions and levels as the programme has them.

    + kubernetes: version of the cluster, with its v
    + evidence: requirement -> path of its file beside PRODUCT.yaml
    + simulated: what says of itself that it is

    Raises `ChecklistError` for a checklist of another minor release.
    """
    release = str(checklist["metadata"]["kubernetesVersion"])
    if _minor(release) != _minor(kubernetes):
        raise ChecklistError(f"it is of Kubernetes {release}, and the cluster runs {kubernetes}")
    by_id = {item.id: item for item in results}
    spec = {
        category: [{**item, **_answer(item, by_id.get(item["id"]), evidence)} for item in items]
        for category, items in checklist["spec"].items()
    }
    metadata = {**checklist["metadata"], "kubernetesVersion": kubernetes}
    metadata.setdefault(_SUITE_URL, _SUITE_PLACE)
    document = {"metadata": metadata, "spec": spec}
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return f"# {_SIMULATED}{simulated}\n{text}" if simulated else text


def _answer(
    item: Mapping[str, Any], result: Result | None, evidence: Mapping[str, str]
) -> dict[str, Any]:
    paths = [evidence[item["id"]]] if item["id"] in evidence else []
    if result and result.status == "pass":
        return {"status": IMPLEMENTED, "evidence": paths, "notes": result.summary}
    if result and result.status == "not_applicable":
        status = IMPLEMENTED if item["level"] == "MUST" else NOT_APPLICABLE
        return {"status": status, "evidence": paths, "notes": f"Not applicable: {result.summary}"}
    return {"status": "", "evidence": [], "notes": ""}


def _items(checklist: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for items in checklist["spec"].values():
        yield from items


def _minor(version: str) -> list[str]:
    return version.removeprefix("v").split(".")[:2]
