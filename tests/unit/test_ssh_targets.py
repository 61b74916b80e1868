"""Hosts as a person names them, and GPUs as a person calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuboot.config.ssh_targets import Target, aliases, parse, parse_all, unreachable
from gpuboot.hosts import gpu_models, gpu_names
from tests.unit.site_hosts import H100, L40S


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("gpu1", Target("gpu1", "me")),
        ("root@gpu1", Target("gpu1", "root")),
        ("root@gpu1:2222", Target("gpu1", "root", 2222)),
        ("192.0.2.1:22", Target("192.0.2.1", "me", 22)),
        ("2001:db8::1", Target("2001:db8::1", "me")),
        ("root@[2001:db8::1]:22", Target("2001:db8::1", "root", 22)),
        ("@fake/gpu1", Target("@fake/gpu1")),
    ],
)
def test_hosts_as_people_write_them(text: str, target: Target) -> None:
    assert parse(text, "me") == target
    assert parse(str(target)) == target


@pytest.mark.parametrize("text", ["", "a b", "gpu1:ssh", "gpu1:70000", "gpu1:0", "ssh://g", "a@"])
def test_what_is_no_host(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no host|port that does not exist"):
        parse(text)


def test_all_wrong_hosts_are_told_at_once() -> None:
    _, problems = parse_all(["gpu1", "root@gpu1", "a b", "gpu2:0"])
    assert [item.host for item in problems] == ["root@gpu1", "a b", "gpu2:0"]


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ("Authentication error (username=me): failed", "--key"),
        ("SSH host key error (Host key does not match.)", "ssh-keygen -R gpu1"),
        ("Could not resolve hostname (Name or service not known)", "~/.ssh/config"),
        ("Could not connect (timed out)", "`ssh -p 22 me@gpu1`"),
    ],
)
def test_a_host_that_cannot_be_reached_has_a_clear_word(cause: str, remedy: str) -> None:
    problem = unreachable(Target("gpu1", "me", 22), cause)
    assert problem.cause == f"cannot be reached: {cause}"
    assert remedy in problem.remedy


def test_the_host_key_of_another_port_is_forgotten_by_its_own_name() -> None:
    problem = unreachable(Target("gpu1", "me", 2222), "SSH host key error (no match)")
    assert problem.remedy.endswith("ssh-keygen -R '[gpu1]:2222'")


def test_hosts_of_an_ssh_config(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("Host gpu2 gpu1\n  User me\nHost *.example.com !x\n  Port 1\n")
    assert aliases(file) == ["gpu1", "gpu2"]
    assert aliases(tmp_path / "none") == []


def test_gpus_by_model() -> None:
    assert gpu_names.summary([H100, H100, L40S]) == "2 x H100 SXM5 80GB, 1 x L40S"
    assert gpu_names.summary([]) == "no GPU"
    assert gpu_names.name(0x2399) == "Hopper GPU 10de:2399"


def test_the_names_agree_with_the_generations() -> None:
    families = {"V100": "Volta", "T4": "Turing", "A100": "Ampere", "L40": "Ada", "H100": "Hopper",
                "GH200": "Grace Hopper", "B200": "Blackwell or newer"}  # fmt: skip
    for family, generation in families.items():
        ids = [device for device, name in gpu_names.NAMES.items() if name.split()[0] == family]
        assert ids
        assert {gpu_models.generation(device).name for device in ids} == {generation}
