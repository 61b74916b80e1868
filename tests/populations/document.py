"""docs/hardware.md from the table: `python -m tests.populations` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpuboot.monitoring import rules
from gpuboot.monitoring.rules.catalogue import loaded_alerts
from gpuboot.telemetry.expressions import metric_names
from gpuboot.verify.checks.health_checks import METRICS
from tests.populations.course import SETTINGS
from tests.populations.derivations import derivations
from tests.populations.machine import Machine
from tests.populations.model import REQUESTED_FIELDS, Lack, Population, Source
from tests.populations.opposites import WELL
from tests.populations.sources import FIRST
from tests.populations.table import POPULATIONS
from tests.populations.watch_faults import BROKEN

PAGE = Path(__file__).parents[2] / "docs/hardware.md"
_HEAD = """\
# Kinds of GPUs

Not every GPU reports the same. This page says which kinds gpuboot is tried on, what each of them
lacks, and what of the real world nobody has shown yet. It is made from the table in
`tests/populations` by `python -m tests.populations`.

For each kind the fast tests build a node from public recordings: what the driver, the PCI bus, the
Kubernetes node and dcgm-exporter say. Then:

- the [proof](reports.md) runs, and every GPU and MIG instance must be proven;
- every [alert](runbooks/README.md) must stay silent on idle GPUs, under load, and for 26 hours,
  while NVLink's counters grow slowly, no IMEX daemon runs, and DCGM's health watches fail what is
  well ([dcgm.md](dcgm.md#what-a-result-means)); shared GPUs in use and more models (GB200, GB300,
  L40S, RTX PRO 6000, A100 PCIe without a bridge) as well;
- one fault of each family is made, and the proof and the alerts must name it, each alert within the
  time that it waits by itself and six minutes.

## What is tried

*Recorded* counts the values of our [default fields](metrics.md) that a public recording of such a
machine shows. The others are derived; the table says how.

| Name | Kind | Model | MIG | Fields with a value | Recorded |
|---|---|---|---|---|---|
"""
_LACKS = """
## What they lack

A field without a value has no series. The proof asks a GPU for no sensor that its own `nvidia-smi`
lacks. An alert that needs such a field says nothing about this kind of GPU; one that has another
field to go by takes that.

| What is lacking | Where | Fields | Alerts that read them | How that is known |
|---|---|---|---|---|
"""
_DERIVED = """
## What stands on derived values

Where no recording is public, a value or its absence is derived. Alerts that read it stand on that,
and so does the link `health` of the proof. Each by which a verdict may change is tried as the
opposite, too: where nothing is wrong, the proof and the alerts must stay as they are; where a GPU
is broken, they must say so. All are tried without any derived value, and with DCGM's mark for none.

| Derived | Fields | Alerts that read them | Links of the proof | Tried as well |
|---|---|---|---|---|
"""
_OPEN = """
## What has no recording yet

- A page of dcgm-exporter with gpuboot's whole list of fields, of any GPU: what is recorded are
  pages with upstream's default list, and `nvidia-smi`'s own answers.
- A page of dcgm-exporter of H100, H200, B200, GH200, A10G, GeForce and of A100 with strategy
  `single`. H100, H200, A10G, GeForce and A100 have recordings of `nvidia-smi` instead; of B200 and
  GH200 only its table of temperature, power and memory is public.
- The PCI bus of an HGX H100, H200 or B200 and of GH200 and GB10: the ids are those of the PCI id
  database.
- MIG on B200 and GH200, MIG-backed vGPUs beyond the names of their series, and GB200 or GB300.
- `nvidia-smi` on a GPU that is lost or requires a reset, beside its messages; and the exporter's
  page during any fault. The faults of the tests are made by hand, from NVIDIA's documents.
- A GPU whose fabric is not ready, seen by DCGM: only that `nvidia-smi` says *In Progress* and that
  CUDA fails with error 802.

If you have such a machine, the output of `nvidia-smi -q`, `nvidia-smi -L`, `lspci -vv` and
`curl NODE:9400/metrics` of a healthy node is all it takes to fill a gap.
"""
_SOURCES = "\n## Sources\n\n"


def text() -> str:
    """The content of docs/hardware.md."""
    kinds = list(POPULATIONS.values())
    return "".join(
        [
            _HEAD,
            *(_row(population) for population in kinds),
            _LACKS,
            *_lacks(kinds),
            _DERIVED,
            *_derived(kinds),
            _OPEN,
            _SOURCES,
            *(f"- {origin}\n" for origin in sorted({s.origin for s in _recorded(kinds)})),
        ]
    )


def _row(population: Population) -> str:
    reported = population.reported(
        population.cards[-1] if population.undivided else population.cards[0]
    )
    recorded = sum(group.source.recorded for group in reported.values())
    mig = population.strategy if population.instances else "off"
    counts = f"{len(reported)} of {len(REQUESTED_FIELDS)} | {recorded}"
    return f"| {population.name} | {population.title} | `{population.model}` | {mig} | {counts} |\n"


def _lacks(kinds: list[Population]) -> Iterator[str]:
    """A line for each lack, with all kinds that have it."""
    lacks: dict[tuple[str, frozenset[str], str], list[str]] = {}
    for population in kinds:
        for lack in _new_lacks(population):
            provenance = "recorded" if lack.source.recorded else lack.source.origin
            lacks.setdefault((lack.description, lack.fields, provenance), []).append(
                population.name
            )
    by_field = readers(kinds[0])
    for (description, names, provenance), populations in lacks.items():
        fields = ", ".join(f"`{_short(name)}`" for name in REQUESTED_FIELDS if name in names)
        alerts = ", ".join(sorted({alert for name in names for alert in by_field.get(name, ())}))
        yield (
            f"| {description} | {', '.join(populations)} | {fields} | {alerts or 'none'} "
            f"| {provenance} |\n"
        )


def _derived(kinds: list[Population]) -> Iterator[str]:
    """A line for each derivation, with what stands on it and what is tried instead."""
    by_field = readers(kinds[0])
    sources: dict[str, set[str]] = {}
    for source, names in derivations(kinds):
        sources.setdefault(source.origin, set()).update(names)
    for origin, names in sources.items():
        fields = ", ".join(f"`{_short(name)}`" for name in REQUESTED_FIELDS if name in names)
        alerts = ", ".join(sorted({alert for name in names for alert in by_field.get(name, ())}))
        links = "health" if names & METRICS else "none"
        cases = [
            opposite.description for opposite in WELL if opposite.source.origin == origin
        ] + BROKEN.get(origin, [])
        alert_text = alerts or "none"
        yield f"| {origin} | {fields} | {alert_text} | {links} | {'; '.join(cases) or _ABSENT} |\n"


_ABSENT = "no value at all; DCGM's mark for none"


def _new_lacks(population: Population) -> Iterator[Lack]:
    """Each lack, without the fields that one before it has told; not what comes with events."""
    reported: set[str] = set()
    for lack in (*population.mig_lacks, *population.lacks):
        remaining = lack.fields - reported
        reported |= remaining
        if remaining and lack.source is not FIRST:
            yield Lack(lack.description, lack.source, remaining)


def readers(population: Population) -> dict[str, set[str]]:
    """Field -> alerts that read it, themselves or by recording rules."""
    groups = rules.groups(SETTINGS, [Machine(population).node])
    records: dict[str, set[str]] = {}
    for rule in (rule for group in groups for rule in group["rules"] if "record" in rule):
        read = metric_names(rule["expr"])
        records[rule["record"]] = records.get(rule["record"], set()) | read
    alerts_by_field: dict[str, set[str]] = {}
    for alert in (alert for group in loaded_alerts(SETTINGS).values() for alert in group):
        for name in _raw(metric_names(rules.expression(alert)), records):
            alerts_by_field.setdefault(name, set()).add(alert.name)
    return alerts_by_field


def _raw(names: set[str], records: dict[str, set[str]]) -> set[str]:
    """The names with recording rules replaced by what those read."""
    fields: set[str] = set()
    new = set(names)
    while new:
        fields |= new
        new = {read for name in new for read in records.get(name, ())} - fields
    return fields - records.keys()


def _short(name: str) -> str:
    return name.removeprefix("DCGM_FI_DEV_").removeprefix("DCGM_FI_").removeprefix("DCGM_")


def _recorded(kinds: list[Population]) -> Iterator[Source]:
    for population in kinds:
        yield from (source for source in population.sources if source.recorded)
