"""The exporters collect the requested fields: every one, and no others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from gpuboot.config.problems import join_first
from gpuboot.telemetry.fields import BY_NAME
from gpuboot.telemetry.requested_fields import RequestedFields
from gpuboot.verify.checks.limits import monitored_devices
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence, ExporterScrape
from gpuboot.verify.findings import Finding, FindingBuilder

_MAX_SHOWN = 4
REMEDY = (
    "run deploys/site.py, which starts the exporter with the current list; if the run changes "
    "nothing, delete this node's dcgm-exporter pod: a running one keeps the list it started with"
)


def evaluate(host: Host, evidence: Evidence) -> list[Finding]:
    """The fields of one node's exporter, for each of its GPUs and MIG devices.

    [] where another finding tells that it does not answer.

    A field counts as collected where any GPU of any node has it. One that no GPU has counts as
    well where the exporter is known to run with the current list: DCGM leaves out what a GPU
    cannot answer. Where that is not known, only fields are missed that every GPU has.
    """
    answers = [answer for answer in evidence.metrics.exporters if answer.node == host.node]
    if evidence.requested_fields is None or not host.uuids or len(answers) != 1 or answers[0].error:
        return []
    finding = _finding(host.node, evidence.requested_fields, answers[0], evidence.metrics.exporters)
    # a finding of the node would stand beside those of its GPUs, and leave them proven
    return [replace(finding, gpu_uuid=device.uuid) for device in monitored_devices(host)]


def _finding(
    node: str,
    requested: RequestedFields,
    answer: ExporterScrape,
    all_scrapes: Collection[ExporterScrape],
) -> Finding:
    builder = FindingBuilder("exporter", "fields collected = fields asked for", node)
    if requested.error:
        remedy = "name a list that can be read, by exporter.collectors_file or exporter.counters"
        return builder.unknown(f"the list of fields: {requested.error}", remedy)
    if difference := _difference(requested, answer, all_scrapes):
        return builder.failed(f"{answer.pod}: {difference}", REMEDY)
    collected = requested.names & answer.names
    absent = join_first(sorted(requested.names - collected), _MAX_SHOWN, ", ")
    return builder.passed(
        f"{len(collected)} of {len(requested.names)} fields have values"
        + (f"; this node's GPUs have no {absent}" if absent else "")
    )


def _difference(
    requested: RequestedFields, answer: ExporterScrape, all_scrapes: Collection[ExporterScrape]
) -> str:
    parts = []
    if answer.fields_digest not in {None, requested.digest}:
        parts.append("it was started with another list of fields")
    if extra := {name for name in answer.names - requested.names if name.startswith("DCGM_FI_")}:
        parts.append(
            f"it collects {join_first(sorted(extra), _MAX_SHOWN, ', ')}, which is not in its list"
        )
    missing = {name for name in requested.names - answer.names if not _may_be_absent(name)}
    if answer.fields_digest is None:
        missing -= {name for scrape in all_scrapes for name in scrape.names}
    if missing and answer.fields_digest != requested.digest:
        parts.append(f"it does not collect {join_first(sorted(missing), _MAX_SHOWN, ', ')}")
    return "; ".join(parts)


def _may_be_absent(name: str) -> bool:
    """Whether some supported GPU or release of DCGM has no such field."""
    field = BY_NAME.get(name)
    return field is None or bool(field.limits or field.since)
