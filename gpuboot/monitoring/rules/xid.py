"""What an XID of the NVIDIA driver asks for: one table for rules, runbooks and repair.

The table is `xid.toml`; a site overrides single codes by `settings.alerts.xid`. A code has one
class, so the classes are disjoint whatever is overridden.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from gpuboot.config.settings.alerting import XidClass
from gpuboot.config.support import Source
from gpuboot.config.tables import read_table

CLASSES: tuple[XidClass, ...] = get_args(XidClass)
# The GPU cannot go on without help.
FATAL: tuple[XidClass, ...] = ("reboot", "reset", "nvlink")
# class -> what to do about it
REMEDIES: Mapping[XidClass, str] = {
    "reboot": "Drain the node and reboot it; if it comes back, replace the GPU.",
    "reset": "Drain the GPU's pods and reset it (reboot where NVSwitches forbid a reset).",
    "nvlink": "Drain, reset all GPUs of the node together; if it comes back, ask for support.",
    "inspect": "A person looks: the sub-code in the kernel log, cabling, power, vGPU software.",
    "application": "Tell the owner of the program. Never drain for it.",
    "information": "Nothing. It feeds trends.",
    "context": "Read the XIDs beside it; this one only accompanies them.",
}


@dataclass(frozen=True)
class Xid:
    """A code of the table.

    + code: as the driver prints it
    + kind: its class, before any override
    + meaning: what happened, in a few words
    + note: where others decide differently, or ""
    """

    code: int
    kind: XidClass
    meaning: str
    note: str


@cache
def _data() -> dict[str, Any]:
    return read_table("monitoring/rules/xid.toml")


def source() -> Source:
    """Where the table was read, and when."""
    return Source(_data()["as_of"], _data()["source"])


@cache
def table() -> Mapping[int, Xid]:
    """Every code with a class, by code, in ascending order.

    Raises ValueError when the table names a class that does not exist.
    """
    data = _data()
    notes = data["notes"]
    xids = {}
    for code, (kind, meaning) in sorted(data["codes"].items(), key=lambda item: int(item[0])):
        if kind not in CLASSES:
            raise ValueError(f"xid.toml: {code} is of the unknown class {kind!r}")
        xids[int(code)] = Xid(int(code), kind, meaning, notes.get(code, ""))
    return xids


def classes(overrides: Mapping[int, XidClass]) -> dict[int, XidClass]:
    """Code -> class, in ascending order.

    + overrides: `settings.alerts.xid`; may name codes that the table lacks
    """
    merged = {code: xid.kind for code, xid in table().items()} | dict(overrides)
    return dict(sorted(merged.items()))


def codes(xid_class: XidClass, overrides: Mapping[int, XidClass]) -> list[int]:
    """The codes of a class, ascending. + overrides: `settings.alerts.xid`"""
    return [code for code, kind in classes(overrides).items() if kind == xid_class]


def regex(xid_classes: tuple[XidClass, ...], overrides: Mapping[int, XidClass]) -> str:
    """A regular expression for the label `xid` that matches just the codes of these classes.

    + overrides: `settings.alerts.xid`; when they leave a class empty, nothing matches
    """
    matching = [code for code, kind in classes(overrides).items() if kind in xid_classes]
    # no code is negative: an empty pattern would match series without the label
    return "|".join(map(str, matching)) or "-1"


def meaning(code: int) -> str:
    """A few words on what an XID means; for codes that the table lacks they say so."""
    known_xid = table().get(code)
    return (
        known_xid.meaning if known_xid else "unknown here: not in NVIDIA's catalog, or unused there"
    )
