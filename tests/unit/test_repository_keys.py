"""The end of a repository's key: read on the host, told before it comes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deploys.parts.packages.fact import KEYS
from gpuboot.hosts import node_state
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.repository_keys import RepositoryKey, parse
from gpuboot.preflight.repository_key_problems import summary, warnings
from tests.unit import apt_host
from tests.unit.apt_host import Key
from tests.unit.test_node_state import ANSWER
from tests.unit.test_preflight import CLEAN, WORKER

END = 1798540000  # 2026-12-29
KUBERNETES = RepositoryKey("kubernetes", "DE15B14486CD377B9E876E1A234654DA9A296436", END)


def key_warnings(key: RepositoryKey, now: float) -> list[str]:
    return warnings([WORKER], {WORKER.host: replace(CLEAN, repository_keys=(key,))}, now)


@pytest.mark.parametrize(
    ("before_s", "text"),
    [
        (31 * 86400, ""),
        (29 * 86400, "ends on 2026-12-29, and packages cannot be installed from it afterwards"),
        (-1, "ended on 2026-12-29, and packages cannot be installed from it"),
    ],
)
def test_it_is_told_a_month_before(before_s: int, text: str) -> None:
    lines = key_warnings(KUBERNETES, END - before_s)
    assert len(lines) == bool(text)
    if text:
        assert f"the key of the kubernetes repository ({KUBERNETES.fingerprint}) {text}" in lines[0]


def test_it_is_part_of_a_hosts_state() -> None:
    line = f"repository_key\tkubernetes {KUBERNETES.fingerprint} {END}\n"
    assert node_state.parse([line, *ANSWER]).repository_keys == (KUBERNETES,)


def test_a_key_that_never_ends_is_not_told_of() -> None:
    assert key_warnings(replace(KUBERNETES, end=0), END) == []


def test_each_is_listed_once_with_its_end() -> None:
    docker = RepositoryKey("docker", "9DC8")
    state = replace(CLEAN, repository_keys=(KUBERNETES, docker))
    text = "keys of package repositories end: docker never, kubernetes 2026-12-29"
    assert summary({"cp1": state, "gpu1": state}) == text
    assert summary({"cp1": CLEAN}) == ""


@pytest.mark.skipif(not apt_host.HAS_APT, reason=apt_host.REASON)
def test_they_are_read_on_the_host() -> None:
    with apt_host.host() as host:
        lasting, ending = Key(host.path("a")), Key(host.path("b"), "20d")
        host.write("/etc/apt/keyrings/gpuboot-cuda.asc", lasting.public())
        host.write("/etc/apt/keyrings/gpuboot-kubernetes.asc", ending.public())
        host.write("/etc/apt/keyrings/other.asc", lasting.public())
        result = host.run(f"{KEYS}configured_keys; printf 'end\\tok\\n'", umask=0o77)
        first, second = parse(Fields(result.stdout.splitlines()))
        assert first == RepositoryKey("cuda", lasting.fingerprint, 0)
        assert (second.repository, second.fingerprint) == ("kubernetes", ending.fingerprint)
        assert second.end > 0
        assert not host.path("/run/gpuboot").exists(), "gpg needs no folder"


@pytest.mark.skipif(not apt_host.HAS_APT, reason=apt_host.REASON)
def test_a_subkey_may_sign_in_place_of_its_primary_key() -> None:
    with apt_host.host() as host:
        key = Key(host.path("a"))
        key.add_subkey("10d")
        host.write("/etc/apt/keyrings/gpuboot-docker.asc", key.public())
        script = f"{KEYS}configured_keys; printf 'end\\tok\\n'"
        (parsed_key,) = parse(Fields(host.run(script).stdout.splitlines()))
        assert parsed_key.end == 0, "the primary key still signs"
