"""The table of kubelet fields is upstream's, where its source is on this machine (for the lab)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lab.build import toolchain
from tests.inputs.command_line import ROOT

TABLE = (ROOT / "gpuboot/config/settings/kubelet.toml").read_text()
_KINDS = (
    (r"bool", "bool"),
    (r"int(32|64)", "int"),
    (r"float64", "float"),
    (r"metav1\.Duration", "duration"),
    (r"map\[string\]string", "dict of text"),
    (r"map\[string\]bool", "dict of bool"),
    (r"\[\]string", "list of text"),
    (r"\[\]int32", "list of int"),
    (r"\[\].+", "list of dict"),
    # Go types whose kind is string
    (r"string|.*(Policy|Strategy)", "text"),
    (r".+", "dict"),
)


def kind(go: str) -> str:
    return next(name for pattern, name in _KINDS if re.fullmatch(pattern, go.removeprefix("*")))


def test_the_table_is_upstream_s() -> None:
    match = re.search(r"k8s\.io/kubelet (v[\d.]+), (\S+)\.$", TABLE, re.MULTILINE)
    assert match
    source = Path(toolchain.environment()["GOMODCACHE"], f"k8s.io/kubelet@{match[1]}", match[2])
    if not source.is_file():
        pytest.skip(f"{source} is not here; the lab's builds bring it")
    struct = re.search(r"type KubeletConfiguration struct \{(.*?)\n\}", source.read_text(), re.S)
    assert struct
    names = re.findall(r"^\s*\w+ (\S+) `json:\"(\w+)", struct[1], re.MULTILINE)
    assert len(names) > 100
    assert tomllib.loads(TABLE)["fields"] == {name: kind(go) for go, name in names}
