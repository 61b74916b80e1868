"""What an XID of the NVIDIA driver asks for: one table for rules, runbooks and repair."""

from __future__ import annotations

from typing import Literal

XidClass = Literal["reboot", "reset", "nvlink", "inspect", "application", "information", "context"]
