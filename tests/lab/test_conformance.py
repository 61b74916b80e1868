"""Kubernetes' suite on a lab: its versions, the names of its images, and how it is run."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from lab.build.golang import module_version
from lab.build.image_table import table as lab_images
from lab.build.images import Image
from lab.build.software_kubernetes import KUBERNETES
from lab.conformance import runs, suite
from lab.conformance.builds import FOLDER, MODULE, recipes
from lab.conformance.images import image_names, table
from lab.conformance.suite import EXCLUDED, PARALLEL, PARTS, SERIAL, Programs
from lab.conformance.variants import After, Variant
from lab.state import LabError
from tests.lab.test_image_table import Programs as AnyPrograms
from tests.lab.test_image_table import programs

__all__ = ["programs"]

# as test/utils/image/manifest.go of Kubernetes v1.36.3 has them, shortened
SOURCE = """
	initRegistry = RegistryList{
		// TODO: https://github.com/kubernetes/kubernetes/issues/130271
		PromoterE2eRegistry:      "registry.k8s.io/e2e-test-images",
		GcEtcdRegistry:           "registry.k8s.io",
	}
	configs := map[ImageID]Config{}
	configs[Agnhost] = Config{list.PromoterE2eRegistry, "agnhost", "2.63.0"}
	configs[Etcd] = Config{list.GcEtcdRegistry, "etcd", "3.6.8-0"}
	configs[VolumeNFSServer] = Config{list.PromoterE2eRegistry, "volume/nfs", "1.6.0"}
"""
NAMES = defaultdict(lambda: "registry.k8s.io/e2e-test-images/any:1", image_names(SOURCE))
PROGRAMS = Programs(Path("/ginkgo"), Path("/e2e.test"), Path("/kubectl"))


@pytest.fixture
def images(programs: AnyPrograms) -> list[Image]:
    return table(programs, NAMES, ["cat", "sh", "sleep"], Path("/module"))


def test_names_are_those_of_the_suite_s_source() -> None:
    assert image_names(SOURCE) == {
        "Agnhost": "registry.k8s.io/e2e-test-images/agnhost:2.63.0",
        "Etcd": "registry.k8s.io/etcd:3.6.8-0",
        "VolumeNFSServer": "registry.k8s.io/e2e-test-images/volume/nfs:1.6.0",
    }


def test_the_suite_is_of_the_version_of_the_lab_s_clusters() -> None:
    version = re.search(rf"^\t{KUBERNETES} (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert version
    assert version[1] == module_version(KUBERNETES)
    replaced = re.findall(
        r"^\tk8s.io/\S+ => k8s.io/\S+ v0\.(\S+)", (MODULE / "go.mod").read_text(), re.M
    )
    assert set(replaced) == {version[1].removeprefix("v1.")}


def test_every_program_of_the_images_is_built(images: list[Image], programs: AnyPrograms) -> None:
    built = {name for recipe in recipes() for name in recipe.outputs}
    sources = {source for image in images for source in image.files.values()}
    used = {
        path.name for path in sources if isinstance(path, Path) and path.parent == Path("/programs")
    }
    of_the_lab = {
        source.name
        for image in lab_images(programs)
        for source in image.files.values()
        if isinstance(source, Path)
    }
    assert used - built <= of_the_lab | {"kubectl"}


def test_sh_is_bash_wherever_there_is_one(images: list[Image]) -> None:
    """Debian's ash drops variables such as `data-1`, which specs set."""
    shells = [image.files["/usr/bin/sh"] for image in images if "/usr/bin/sh" in image.files]
    assert len(shells) == len(images) - 2  # etcd and the sample API server have none
    assert set(shells) == {"-> bash"}


def test_arguments_of_pods_take_the_place_of_the_images_own(images: list[Image]) -> None:
    by_name = {image.name: image for image in images}
    agnhost = by_name[NAMES["Agnhost"]]
    assert (agnhost.entrypoint, agnhost.command) == (("/agnhost",), ("pause",))


def test_a_setuid_program_tries_to_become_root(images: list[Image]) -> None:
    assert [image.modes for image in images if image.modes] == [{"/usr/local/bin/nnp": 0o6755}]


def test_the_command_line_of_a_part_has_no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "EXCLUDED", {})
    command = suite.command(PARALLEL, PROGRAMS, Path("/lab/admin.conf"), Path("/out"), "DNS", 4)
    before, after = command[: command.index("--")], command[command.index("--") :]
    assert before == [
        "/ginkgo", "--procs=4", "--timeout=3h", "--no-color",
        "--label-filter=Conformance && !Serial", "--focus=DNS", "/e2e.test",
    ]  # fmt: skip
    assert {"--kubeconfig=/lab/admin.conf", "--report-prefix=parallel_"} < set(after)
    assert suite.junit_file(PARALLEL, Path("/out")) == Path("/out/junit_parallel_01.xml")


def test_serial_specs_run_one_by_one() -> None:
    command = suite.command(SERIAL, PROGRAMS, Path("/k"), Path("/out"), processes=4)
    assert {"--procs=1", "--label-filter=Conformance && Serial"} < set(command)
    assert not any(word.startswith(("--focus", "--skip", "--flake")) for word in command)


def test_a_spec_that_cannot_run_is_left_out_by_its_whole_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "[sig-node] Pods (a.b) should [NodeConformance] [Conformance]"
    monkeypatch.setattr(suite, "EXCLUDED", {name: "a reason"})
    command = suite.command(PARALLEL, PROGRAMS, Path("/k"), Path("/out"))
    (skip,) = [word for word in command if word.startswith("--skip=")]
    assert re.fullmatch(skip.removeprefix("--skip="), name)
    assert "--skip=" not in " ".join(suite.command(SERIAL, PROGRAMS, Path("/k"), Path("/out")))


def test_the_table_names_whole_specs_with_a_reason() -> None:
    assert all("[Conformance]" in name and len(reason) > 20 for name, reason in EXCLUDED.items())


def test_each_spec_belongs_to_one_part() -> None:
    for name in ("[sig-x] a [Serial] [Conformance]", "[sig-x] a [Conformance]"):
        assert sum(part.selects(name) for part in PARTS.values()) == 1


def test_names_of_specs_are_read_where_a_line_was_broken() -> None:
    text = "- testname: A\n  codename: '[sig-x] a long\n    name [Conformance]'\n  release: v1.9\n"
    assert suite.conformance_specs(text) == ["[sig-x] a long name [Conformance]"]


def test_a_spec_that_is_left_out_has_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "e2e.test"
    program.write_text("#!/bin/sh\necho '- codename: a [Conformance]'\n")
    program.chmod(0o755)
    programs = replace(PROGRAMS, suite=program)
    monkeypatch.setattr(suite, "EXCLUDED", {"a [Conformance]": "a reason"})
    assert runs.expected_specs(programs, [PARALLEL]) == ["a [Conformance]"]
    monkeypatch.setattr(suite, "EXCLUDED", {"b [Conformance]": "a reason"})
    with pytest.raises(LabError, match=r"names no spec: b \[Conformance\]"):
        runs.expected_specs(programs, [PARALLEL])


@pytest.mark.parametrize(
    ("variant", "title", "up", "after"),
    [
        (Variant(), "", [], []),
        (
            Variant(After.upgrade),
            "after upgrade",
            ["--previous-release"],
            ["deploys/site.py", "-y"],
        ),
        (
            Variant(After.restore),
            "after restore",
            [],
            ["deploys/restore.py", "-y", "--data", "gpuboot_restore=gpuboot-x"],
        ),
        (Variant(control_planes=3), "3 control planes", ["--control-planes", "3"], []),
        (Variant(flannel_backend="host-gw"), "flannel host-gw", [], []),
    ],
)
def test_variants(variant: Variant, title: str, up: list[str], after: list[str]) -> None:
    assert variant.title == title
    assert variant.up("x")[3:] == ["--name", "x", "--gpus", "1,1", *up]
    assert variant.after_deploy("x")[2:] == after
    backend = variant.flannel_backend
    assert variant.settings() == ({"cluster": {"flannel_backend": backend}} if backend else {})


def test_modules_stand_beside_the_code_that_builds_them() -> None:
    assert {path.parent.name for path in FOLDER.glob("*/go.sum")} == {"module", "sample-apiserver"}
