"""`scripts/lock --update`: what it takes by itself, what it leaves to a person, and digests."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import pytest

from gpuboot.mirror.client import FetchError
from scripts import update_lock
from scripts.update_lock import MODULES, Publishers, update

LOCK = resources.files("gpuboot.config").joinpath("versions.toml").read_text()
INDEX = json.dumps({"layers": [], "config": {"digest": "sha256:" + "0" * 64, "size": 1}})


class Fake:
    """Publishers by the ends of their addresses; others do not answer."""

    def __init__(self, answers: Mapping[str, str], modules: Mapping[str, list[str]]) -> None:
        self.answers, self.modules = answers, modules
        self.publishers = Publishers(self.fetch, self.module_versions)

    def fetch(self, url: str, headers: Mapping[str, str]) -> bytes:
        for end, text in self.answers.items():
            if url.endswith(end):
                return text.encode()
        raise FetchError(f"{url}: no route", "ask somebody")

    def module_versions(self, modules: Sequence[str]) -> Mapping[str, list[str]]:
        return {name: self.modules[name] for name in modules if name in self.modules}


def with_versions(**tables: Any) -> str:
    """The text of the lock with some older versions."""
    text = LOCK
    for key, value in tables.items():
        text = update_lock.with_value(text, key.replace("__", "."), value)
    return text


def values(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def test_a_patch_is_taken_and_a_minor_is_a_person_s() -> None:
    old = with_versions(kubernetes__version="1.36.3", kubernetes__minor="1.36")
    fake = Fake({}, {MODULES["kubernetes.version"]: ["v0.36.3", "v0.36.6", "v0.37.2", "v1.5.2"]})
    text, lines = update(old, fake.publishers)
    assert values(text)["kubernetes"]["version"] == "1.36.6"
    assert "taken: kubernetes.version 1.36.3 -> 1.36.6" in lines
    assert any(
        line.startswith("a person decides: kubernetes.version 1.36.3 -> 1.37.2") and "etcd" in line
        for line in lines
    ), lines


def test_comments_and_everything_else_of_the_lock_stay() -> None:
    old = with_versions(images__prometheus="v3.14.0")
    fake = Fake({}, {MODULES["images.prometheus"]: ["v0.314.0", "v0.316.0", "v0.317.0-rc.0"]})
    text, _ = update(old, fake.publishers)
    assert text == with_versions(images__prometheus="v3.16.0")
    assert with_versions() == LOCK


def test_a_repository_s_driver_of_the_branch_is_taken_and_a_branch_is_a_person_s() -> None:
    packages = "\n\n".join(
        f"Package: nvidia-open\nVersion: {version}-1\nArchitecture: amd64"
        for version in ("595.91.07", "595.112.07", "620.70.06")
    )
    old = with_versions(driver__version="595.91.07")
    text, lines = update(old, Fake({"x86_64/Packages": packages}, {}).publishers)
    assert values(text)["driver"]["version"] == "595.112.07"
    assert any("driver.version 595.91.07 -> 620.70.06: 615 has open" in line for line in lines)


def test_a_chart_is_never_taken_and_its_digest_is_put_down() -> None:
    digest = "ab" * 32
    index = (
        "entries:\n  kube-prometheus-stack:\n"
        f"  - {{version: 93.9.0, digest: {'cd' * 32}}}\n  - {{version: 88.5.3, digest: {digest}}}\n"
    )
    text, lines = update(LOCK, Fake({"helm-charts/index.yaml": index}, {}).publishers)
    chart = values(text)["charts"]["kube-prometheus-stack"]
    assert (chart["version"], chart["sha256"]) == ("88.5.3", digest)
    assert any("charts.kube-prometheus-stack.version 88.5.3 -> 93.9.0" in line for line in lines)


def test_digests_of_helm_are_of_both_architectures_and_of_the_version_that_was_taken() -> None:
    old = with_versions(helm__version="v4.3.0", helm__sha256__amd64="00" * 32)
    answers = {f"helm-v4.3.1-linux-{name}.tar.gz.sha256": digest for name, digest in
               {"amd64": "11" * 32, "arm64": "22" * 32}.items()}  # fmt: skip
    text, _ = update(old, Fake(answers, {MODULES["helm.version"]: ["v4.3.0", "v4.3.1"]}).publishers)
    assert values(text)["helm"] == {
        "version": "v4.3.1", "sha256": {"amd64": "11" * 32, "arm64": "22" * 32}
    }  # fmt: skip


def test_an_image_gets_the_digest_of_its_tag() -> None:
    tag = values(LOCK)["images"]["grafana"]
    fake = Fake({f"grafana/grafana/manifests/{tag}": INDEX}, {})
    text, _ = update(LOCK, fake.publishers)
    digest = hashlib.sha256(INDEX.encode()).hexdigest()
    assert values(text)["images"]["grafana"] == f"{tag}@sha256:{digest}"
    assert update(text, fake.publishers)[0] == text


def test_what_does_not_answer_is_named_and_changes_nothing() -> None:
    text, lines = update(LOCK, Fake({}, {}).publishers)
    assert text == LOCK
    assert any(line.startswith("did not answer: ") and "index.yaml" in line for line in lines)


def test_a_minor_of_a_program_before_its_first_release_is_a_person_s() -> None:
    fake = Fake({}, {MODULES["images.alertmanager"]: ["v0.34.2", "v0.34.9", "v0.35.0"]})
    text, lines = update(LOCK, fake.publishers)
    assert values(text)["images"]["alertmanager"] == "v0.34.9"
    assert any("images.alertmanager v0.34.2 -> v0.35.0" in line for line in lines)


def test_a_key_that_the_lock_lacks_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"kubernetes\.flavour"):
        update_lock.with_value(LOCK, "kubernetes.flavour", "1")
