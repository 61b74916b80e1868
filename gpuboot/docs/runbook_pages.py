"""docs/runbooks: one page for each alert, made from the tables of alerts, texts and XIDs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args

from gpuboot.config.settings import Settings
from gpuboot.config.settings.alerting import XidClass
from gpuboot.config.tables import read_table
from gpuboot.monitoring import rules
from gpuboot.monitoring.rules.alert import Action, Alert, number
from gpuboot.monitoring.rules.xid import REMEDIES, Xid, table

INDEX = "README.md"
XIDS = "XID.md"
# Which XIDs an alert's page explains.
_EXPLAINED: dict[str, tuple[XidClass, ...]] = {
    "GPUXidFatal": ("reboot", "reset", "nvlink"),
    "GPUXidApplication": ("application",),
    "GPUXidInspect": ("inspect",),
    "GPUXidRepeated": ("information", "context"),
}
_ACTIONS = {
    "none": "none on the GPU",
    "investigate": "investigate",
    "drain": "end the jobs that use its NVLinks",
    "reset": "reset the GPU",
    "reboot": "reboot the node",
    "replace": "replace the GPU",
    "capacity": "more GPUs, or less demand",
}
_SEVERITIES = {"critical": "wakes somebody", "warning": "this working day", "info": "to be read"}
_TITLES = {
    "xid": "XIDs",
    "memory": "Memory",
    "health": "Health, heat, power, clocks",
    "dcgm": "DCGM's host engine",
    "interconnect": "NVLink and PCIe",
    "exporter": "Lost GPUs and the exporter",
    "workload": "Use and demand",
    "cluster": "Nodes and cluster",
}
_CAPITALS = "(In capitals: labels of the alert, and INVENTORY: your pyinfra inventory.)"
_INDEX_TEXT = """# Runbooks

One page for each alert, made by `gpuboot docs runbooks docs/runbooks` from the tables in
`gpuboot/monitoring/rules/`: alerts in Python, `runbooks.toml`, `xid.toml`. Every alert's
`runbook_url` leads to its page; publish this folder anywhere and say where by the setting
`alerts.runbooks`.

Words in capitals stand for what the alert's labels say (NODE, UUID, GPU, NAMESPACE, POD), for your
inventory (INVENTORY), and for what a command before has shown (BUS_ID, WATTS). PromQL goes into
Prometheus or Grafana, Explore. What each XID means: [XID.md](XID.md).

Any alert can be switched off or changed in the settings:

```python
"alerts": {"rules": {
    "GPUAllocatedIdle": {"enabled": False},
    "GPUThermalMarginLow": {"threshold": 3, "hold_for": "30m", "severity": "info"},
}}
```
"""
_XID_TEXT = """# XIDs

What each XID of the NVIDIA driver asks for, made from `gpuboot/monitoring/rules/xid.toml`.
The classes are
NVIDIA's catalog's (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html); where
others decide differently, it is noted. Another class for a code:
`"alerts": {"xid": {94: "reset"}}`.

DCGM does not see every XID (some stand in the kernel log only), and the exporter's
`DCGM_FI_DEV_XID_ERRORS` is the *last* one, which never goes away: the alerts use the counter
`DCGM_EXP_XID_ERRORS_TOTAL`.
"""


@cache
def texts() -> Mapping[str, Mapping[str, Any]]:
    """Alert -> its texts, the steps spelled out."""
    data = read_table("monitoring/rules/runbooks.toml")
    steps = data.pop("steps")
    for text in data.values():
        for key in ("check", "remedy"):
            text[key] = [steps.get(step, step) for step in text.get(key, ())]
    return data


def pages() -> dict[str, str]:
    """File name -> content, of every page of docs/runbooks."""
    groups = rules.all_alerts(Settings())
    contents = {INDEX: _index(groups), XIDS: _xids()}
    for alerts in groups.values():
        contents |= {f"{alert.name}.md": page(alert) for alert in alerts}
    return contents


def outdated(folder: Path) -> list[str]:
    """Names of pages in `folder` that are missing, different or of no alert."""
    expected = pages()
    existing = {path.name: path.read_text("utf-8") for path in folder.glob("*.md")}
    return sorted(
        name
        for name in expected.keys() | existing.keys()
        if expected.get(name) != existing.get(name)
    )


def write(folder: Path) -> None:
    """Make `folder` hold just the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    expected = pages()
    for path in folder.glob("*.md"):
        if path.name not in expected:
            path.unlink()
    for name, text in expected.items():
        (folder / name).write_text(text, "utf-8")


def actions(alert: Alert) -> list[str]:
    """The values that the label `gpu_action` of this alert may have."""
    words = re.sub(r"\{\{.*?\}\}", " ", alert.action).split()
    return [action for action in get_args(Action) if action in words]


def page(alert: Alert) -> str:
    """The runbook of one alert, Markdown."""
    text = texts()[alert.name]
    action_text = " or ".join(_ACTIONS[action] for action in actions(alert))
    head = f"**{alert.severity}** ({_SEVERITIES[alert.severity]}) · action: {action_text}"
    lines = [
        f"# {alert.name}",
        "",
        head,
        "",
        text["meaning"],
        "",
        f"*Why it matters:* {text['reason']}",
    ]
    lines += ["", "## Check", "", _CAPITALS, "", *(f"- {step}" for step in text["check"])]
    lines += ["", "## Remedy", "", *_numbered(text["remedy"])]
    explained = _EXPLAINED.get(alert.name, ())
    if explained:
        xids = [xid for xid in table().values() if xid.kind in explained]
        lines += ["", "## Codes", "", *_codes(xids), "", f"All codes: [{XIDS}]({XIDS})"]
    lines += ["", "## Rule", "", "```promql", rules.expression(alert), "```", ""]
    lines += [*_numbers(alert), f"- Source: {text['source']}"]
    return "\n".join(lines) + "\n"


def _numbers(alert: Alert) -> Iterator[str]:
    delay = "at once" if alert.hold_for == "0s" else f"after {alert.hold_for}"
    retention = f", and stays for {alert.keep_for}" if alert.keep_for else ""
    yield f"- Fires {delay}{retention}"
    if alert.threshold is None:
        yield "- Threshold: none that can be set"
    else:
        setting = f'"alerts": {{"rules": {{"{alert.name}": {{"threshold": …}}}}}}'
        unit = texts()[alert.name]["unit"]
        yield f"- Threshold: {number(alert.threshold)}, {unit}; setting: `{setting}`"


def _numbered(steps: Sequence[str]) -> list[str]:
    if len(steps) == 1:
        return [steps[0]]
    return [f"{place}. {step}" for place, step in enumerate(steps, start=1)]


def _codes(xids: Sequence[Xid]) -> list[str]:
    rows = [
        f"| {xid.code} | {xid.kind} | {xid.meaning} | {xid.note} |"
        for xid in sorted(xids, key=lambda xid: xid.code)
    ]
    return ["| XID | Class | Meaning | Note |", "|---|---|---|---|", *rows]


def _index(groups: dict[str, list[Alert]]) -> str:
    lines = [_INDEX_TEXT]
    for name, alerts in groups.items():
        lines += [f"## {_TITLES[name]}", "", "| Alert | Severity | For | Meaning |"]
        lines.append("|---|---|---|---|")
        for alert in alerts:
            sentence = texts()[alert.name]["meaning"].partition(". ")[0].rstrip(".")
            link = f"[{alert.name}]({alert.name}.md)"
            lines.append(f"| {link} | {alert.severity} | {alert.hold_for} | {sentence} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _xids() -> str:
    lines = [_XID_TEXT, "| Class | What to do |", "|---|---|"]
    lines += [f"| {kind} | {remedy} |" for kind, remedy in REMEDIES.items()]
    return "\n".join([*lines, "", *_codes(list(table().values()))]) + "\n"
