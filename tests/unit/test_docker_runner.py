"""vectorAdd in a container by Docker's client, as the shell of a host runs it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from deploys.parts.verify import docker_operations as verify_docker
from gpuboot.config.settings import parse_settings
from gpuboot.docker.docker_runner import workload_result

# `docker run` hands SIGTERM on and waits for the container, which is a shell that ignores it.
DOCKER = """#!/bin/bash
echo "$*" >>"$0.log"
case $1 in
  run) trap '' TERM; echo "GPU 0: NVIDIA (UUID: GPU-1)"; for _ in {1..300}; do sleep 0.1; done ;;
  ps) echo 3f4e ;;
esac
"""


def test_a_container_that_does_not_end_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = tmp_path / "docker"
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    monkeypatch.setattr(verify_docker, "_GRACE_S", 1)
    settings = parse_settings({"verify": {"timeout_s": 10}})
    command = verify_docker._command("GPU-1", settings).replace("timeout -k 1 10", "timeout -k 1 1")
    started_at = time.monotonic()
    result = subprocess.run(
        ["sh", "-c", f"PATH={tmp_path}:$PATH; {command}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert time.monotonic() - started_at < 10
    status, _, output = result.stdout.partition("\n")
    run, ps, remove = (tmp_path / "docker.log").read_text().splitlines()
    label = next(word for word in run.split() if word.startswith(verify_docker._PID_LABEL))
    assert ps == f"ps -q --filter label={label}"
    assert remove == "rm -f 3f4e"
    workload = workload_result("gpu1", "GPU-1", output, int(status), 2.0)
    assert (workload.passed, workload.uuids) == (False, ("GPU-1",))
    assert "ended with 137" in workload.error
