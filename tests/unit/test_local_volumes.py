"""A node that is installed anew: folders of its volumes that are gone."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api.host import Host

from deploys.engine import remote
from deploys.parts.storage import folder_volumes as local_volumes
from gpuboot.hosts.fact_output import framed

LEADER, GPU_HOST = (cast(Host, SimpleNamespace(name=name)) for name in ("cp1", "gpu1"))


def test_only_what_is_not_there_is_lost_and_every_container_can_write_what_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    existing, missing = tmp_path / "pvc-1 of a", tmp_path / "deep/pvc-2"
    existing.mkdir()
    volume_lines = [
        f"a/{path.name}\t{path}\tgpu1\trancher.io/local-path\t" for path in (existing, missing)
    ]
    volume_lines += [f"a/b\t{tmp_path}/other\tgpu1\topenebs.io/local\t", "a/c\t/far\tgpu2\t\t"]

    def run(target: Host, command: str, stdin: str = "") -> str:
        if target is LEADER:
            command = framed(f"printf '%s\\n' {shlex.join(volume_lines)}")
        shell: Any = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        assert shell.returncode == 0, shell.stderr
        return str(shell.stdout)

    monkeypatch.setattr(remote, "run", run)
    (lost_volume,) = local_volumes.missing_volumes(LEADER, GPU_HOST, "gpu1")
    assert lost_volume.path == str(missing)
    run(GPU_HOST, local_volumes.create_folder_command(lost_volume))
    assert missing.stat().st_mode & 0o777 == 0o777
    assert local_volumes.missing_volumes(LEADER, GPU_HOST, "gpu1") == []
