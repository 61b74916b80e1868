"""The command that reads a host for a diagnosis, run here with small scripts for its facts."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api.exceptions import FactProcessError

from deploys.parts.cluster.fact import Kubeadm
from deploys.parts.diagnose import fact as recording
from deploys.parts.diagnose.fact import HostOutput, HostRecording
from deploys.parts.node.fact import NodeFact
from gpuboot.diagnose import facts
from gpuboot.diagnose.cause_model import diagnose
from gpuboot.diagnose.causes import TABLE
from gpuboot.diagnose.site_recording import from_json


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Facts of a line each; the last has no newline at its end."""

    def bare(text: str) -> Any:
        return lambda self, arguments: text

    monkeypatch.setattr(NodeFact, "bare_command", bare("printf 'hostname\\tgpu1\\n'"))
    monkeypatch.setattr(Kubeadm, "bare_command", bare("printf 'file\\tit'\"'\"'s\\n'; exit 3"))
    monkeypatch.setattr(recording, "SCRIPT", "printf 'end\\tok'")
    return monkeypatch


def run_recording(limit_s: int = 10) -> tuple[list[str], HostOutput]:
    fact = HostRecording()
    command = fact.command(socket="/run/x.sock", limit_s=limit_s, gpus=False)
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    return result.stdout.splitlines(), fact.process(result.stdout.splitlines())


@pytest.mark.usefixtures("small")
def test_every_fact_s_lines_come_back_apart_and_so_does_how_it_ended() -> None:
    _, host_recording = run_recording()
    assert host_recording.parts == {
        "node": ("hostname\tgpu1",),
        "kubeadm": ("file\tit's",),
        "diagnose": ("end\tok",),
    }
    assert host_recording.failed == {"kubeadm": "3"}
    assert host_recording.started_at <= host_recording.ended_at < host_recording.started_at + 30


def test_a_fact_that_hangs_keeps_none_of_the_others(small: pytest.MonkeyPatch) -> None:
    small.setattr(recording, "SCRIPT", "printf 'api\\t200\\n'; sleep 60")
    _, host_recording = run_recording(limit_s=1)
    assert host_recording.failed["diagnose"] in ("124", "137")
    assert host_recording.parts["diagnose"] == ("api\t200",)
    assert host_recording.parts["node"] == ("hostname\tgpu1",)
    assert host_recording.ended_at - host_recording.started_at < 30


@pytest.mark.usefixtures("small")
def test_an_answer_that_was_cut_off_is_none() -> None:
    lines, _ = run_recording()
    with pytest.raises(FactProcessError):
        HostRecording().process(lines[:-2])


def test_a_real_site_that_was_well_yields_nothing() -> None:
    """What a lab answered when nothing was wrong with it, its journals full of old complaints."""
    text = gzip.decompress(Path(__file__).with_name("recorded_site.json.gz").read_bytes())
    site = facts.of(from_json(text.decode()))
    assert {host.node for host in site.read} == {"cp1", "gpu1"}
    assert all(host.state and host.details.api == "200" for host in site.hosts)
    assert [host.gpu.runtime_handlers for host in site.hosts if host.gpu] == [("nvidia", "runc")]
    assert len(site.cluster.pods) > 20
    assert all(pod.containers for pod in site.cluster.pods)
    assert site.cluster.node("gpu1")
    assert diagnose(site, TABLE) == ()


def test_a_real_site_with_one_thing_broken_yields_just_that() -> None:
    text = gzip.decompress(Path(__file__).with_name("recorded_site.json.gz").read_bytes())
    site = json.loads(text)
    [gpu1] = [host for host in site["hosts"] if host["node"] == "gpu1"]
    gpu1["parts"]["diagnose"] = [
        line.replace("state\tkubelet active running", "state\tkubelet inactive dead")
        for line in gpu1["parts"]["diagnose"]
    ]
    findings = diagnose(facts.of(from_json(json.dumps(site))), TABLE)
    assert [finding.cause.id for finding in findings] == ["kubelet-stopped"]
