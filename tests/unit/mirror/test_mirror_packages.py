"""Which packages a mirror needs: the closure under dependencies, and apt's opinion of it.

bookworm-Packages: 36 paragraphs of Debian 12's main/binary-amd64/Packages, less
the fields that nobody reads here.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from gpuboot.mirror.closure import Missing, PackageRequest, closure
from gpuboot.mirror.packages import (
    BadIndexError,
    Index,
    Package,
    Pin,
    Relation,
    compare,
    installed,
    parse,
    relations,
)
from tests.unit.mirror.mirror_upstream import paragraph

RECORDED = Path(__file__).parent / "bookworm-Packages"


def index(*paragraphs: str, pins: tuple[Pin, ...] = ()) -> Index:
    return Index(parse("r", "\n".join(paragraphs)), pins)


def names(packages: tuple[Package, ...]) -> list[str]:
    return [f"{package.name} {package.version}" for package in packages]


def chosen_names(*requested: str, among: Index) -> list[str]:
    resolved = closure(among, [PackageRequest(name) for name in requested])
    assert resolved.missing == ()
    return [package.name for package in resolved.packages]


def test_what_debian_publishes_gives_the_packages_that_apt_would_install() -> None:
    among = Index(parse("debian", RECORDED.read_text()))
    assert chosen_names("conntrack", among=among) == [
        "conntrack", "gcc-12-base", "libc6", "libgcc-s1", "libmnl0", "libnetfilter-conntrack3",
        "libnfnetlink0",
    ]  # fmt: skip


def test_of_alternatives_the_first_that_there_is_unless_one_is_needed_anyway() -> None:
    first, two = paragraph("one"), paragraph("two")
    either = paragraph("app", depends="none | two | one")
    assert chosen_names("app", among=index(either, first, two)) == ["app", "two"]
    assert chosen_names("one", "app", among=index(either, first, two)) == ["app", "one"]


def test_versions_hold() -> None:
    old, new = paragraph("lib", "1.9"), paragraph("lib", "1.10")
    for relation, version in {
        "lib": "1.10", "lib (<< 1.10)": "1.9", "lib (= 1.9)": "1.9", "lib (>= 1.9)": "1.10",
    }.items():  # fmt: skip
        resolved = closure(
            index(paragraph("app", depends=relation), old, new), [PackageRequest("app")]
        )
        assert names(resolved.packages) == ["app 1.0", f"lib {version}"], relation


def test_versions_are_ordered_as_dpkg_orders_them() -> None:
    ordered = ["1.0~rc1-1", "1.0-1", "1.0-1+b2", "1.0-1.1", "1.10-1", "1:0.5-1"]
    for version, right in itertools.pairwise(ordered):
        assert compare(version, right) < 0 < compare(right, version)
        command = ["dpkg", "--compare-versions", version, "lt", right]
        assert subprocess.run(command, check=False).returncode == 0


def test_who_provides_a_name_stands_for_it_with_a_version_only_for_who_provides_one() -> None:
    mail = paragraph("exim", provides="mta")
    editor = paragraph("vim", provides="editor (= 9)")
    assert chosen_names("app", among=index(paragraph("app", depends="mta"), mail)) == [
        "app",
        "exim",
    ]
    wanting = paragraph("app", depends="editor (>= 8)")
    assert chosen_names("app", among=index(wanting, editor)) == ["app", "vim"]
    resolved = closure(index(paragraph("app", depends="mta (>= 1)"), mail), [PackageRequest("app")])
    assert resolved.missing == (Missing("mta (>= 1)", "app 1.0"),)


def test_a_package_of_the_name_goes_before_those_that_provide_it() -> None:
    among = index(
        paragraph("app", depends="awk"), paragraph("gawk", provides="awk"), paragraph("awk")
    )
    assert chosen_names("app", among=among) == ["app", "awk"]


def test_circles_end_and_what_is_needed_before_unpacking_counts() -> None:
    circle = [paragraph("a", pre_depends="b"), paragraph("b", depends="a:any, c [amd64]")]
    assert chosen_names("a", among=index(*circle, paragraph("c"))) == ["a", "b", "c"]


def test_a_pinned_version_is_preferred_to_a_newer_one_in_its_repository_alone() -> None:
    versions = [paragraph("nvidia-open", version) for version in ("595.1-1", "595.9-1", "600.1-1")]
    pin = Pin("r", "595.1-*")
    requested = [PackageRequest("nvidia-open")]
    assert names(closure(index(*versions, pins=(pin,)), requested).packages) == [
        "nvidia-open 595.1-1"
    ]
    foreign_pin = Pin("elsewhere", "595.1-*")
    resolved = closure(index(*versions, pins=(foreign_pin,)), requested)
    assert names(resolved.packages) == ["nvidia-open 600.1-1"]


def test_wanted_versions_are_patterns_and_what_is_missing_is_told() -> None:
    among = index(paragraph("kubelet", "1.36.6-1.1"), paragraph("kubelet", "1.36.7-1.1"))
    resolved = closure(
        among, [PackageRequest("kubelet", "1.36.6-*"), PackageRequest("kubelet", "1.35.*")]
    )
    assert names(resolved.packages) == ["kubelet 1.36.6-1.1"]
    assert resolved.missing == (Missing("kubelet=1.35.*"),)


def test_an_alternative_that_needs_what_nobody_has_is_none() -> None:
    app, dependency = paragraph("app", depends="one | two"), paragraph("two")
    broken = paragraph("one", depends="nobody")
    assert chosen_names("app", among=index(app, broken, dependency)) == ["app", "two"]
    resolved = closure(index(app, broken), [PackageRequest("app")])
    assert resolved.missing == (Missing("nobody", "one 1.0"),)


def test_what_hosts_have_is_left_out_but_for_a_version_that_is_too_old() -> None:
    status = (
        "Package: libc6\nStatus: install ok installed\nVersion: 2.36\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
        "Package: curl\nStatus: install ok installed\nVersion: 7\n"
    )
    installed_packages = installed(status)
    assert [package.name for package in installed_packages] == ["libc6", "curl"]
    among = index(
        paragraph("app", depends="libc6 (>= 2.30)"),
        paragraph("new", depends="libc6 (>= 2.40), gone"),
        paragraph("libc6", "2.41"),
        paragraph("gone"),
    )
    requested = [PackageRequest("app"), PackageRequest("curl")]
    assert [package.name for package in closure(among, requested, installed_packages).packages] == [
        "app"
    ]
    resolved = closure(among, [PackageRequest("new")], installed_packages)
    assert names(resolved.packages) == ["gone 1.0", "libc6 2.41", "new 1.0"]


def test_packages_of_other_architectures_are_told_apart() -> None:
    arm_paragraph = paragraph("kubelet").replace("amd64", "arm64")
    everywhere = paragraph("doc").replace("Architecture: amd64", "Architecture: all")
    packages = parse("r", "\n".join([arm_paragraph, paragraph("kubelet"), everywhere]))
    assert [package.runs_on("amd64") for package in packages] == [False, True, True]
    assert [package.runs_on("arm64") for package in packages] == [True, False, True]


def test_a_package_without_a_digest_is_refused() -> None:
    [package] = parse("r", paragraph("old").replace("SHA256", "MD5sum"))
    with pytest.raises(BadIndexError, match="no SHA256"):
        _ = package.sha256


@pytest.mark.parametrize("filename", ["../../etc/passwd", "/etc/passwd", "pool/../../x.deb"])
def test_a_file_outside_of_the_repository_is_refused(filename: str) -> None:
    text = paragraph("evil").replace("pool/evil_1.0_amd64.deb", filename)
    [package] = parse("r", text)
    with pytest.raises(BadIndexError, match="outside"):
        _ = package.filename


def test_relations_are_read_as_debian_writes_them() -> None:
    assert relations("a (>= 1:2~) | b:any [amd64], c") == (
        (Relation("a", ">=", "1:2~"), Relation("b")),
        (Relation("c"),),
    )
    assert relations(" ") == ()


def apt(
    folder: Path, packages: list[Package], requested: list[str]
) -> subprocess.CompletedProcess[str]:
    """What apt says to installing these on an empty machine, from these packages alone."""
    shutil.rmtree(folder, ignore_errors=True)
    repository, etc = folder / "repository", folder / "etc"
    for part in (repository, etc, folder / "lists/partial", folder / "archives/partial"):
        part.mkdir(parents=True)
    (repository / "Packages").write_text("\n".join(package.text for package in packages))
    (folder / "status").touch()
    (etc / "sources.list").write_text(f"deb [trusted=yes] copy:{repository} /\n")
    options = {
        "Dir::Etc": etc, "Dir::State": folder, "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status", "Dir::Cache": folder,
        "Dir::Cache::archives": folder / "archives", "APT::Architecture": "amd64",
        "APT::Architectures": "amd64", "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root", "Debug::NoLocking": "true", "Acquire::Languages": "none",
        "Dir::Log": folder,
    }  # fmt: skip
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "APT_CONFIG": "/dev/null"}
    for command in (["update"], ["install", "--simulate", *requested]):
        result = subprocess.run(
            ["apt-get", "-qq", *words, *command],
            capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip
    return result


def made_repository(seed: int) -> list[Package]:
    """Packages that need one another by alternatives, versions and names that others provide."""
    draw = random.Random(seed)
    count = 14
    paragraphs = []
    for number in range(count):
        groups = []
        for _ in range(draw.randint(0, 2)):
            ones = []
            for _ in range(draw.randint(1, 2)):
                target_number = (
                    draw.randint(0, count) if draw.random() < 0.2 else draw.randint(0, 9)
                )
                version = draw.choice(["", "", "", "", " (>= 1.5)", " (<< 2.5)", " (= 1.6)"])
                ones.append(f"{draw.choice(['p', 'p', 'v'])}{target_number}{version}")
            groups.append(" | ".join(ones))
        fields = {"depends": ", ".join(groups)} if groups else {}
        fields["provides"] = f"v{number % 10}{draw.choice(['', ' (= 1.6)'])}"
        for version in draw.sample(["1.0", "1.6", "2.0"], draw.randint(1, 3)):
            paragraphs.append(paragraph(f"p{number}", version, **fields))
    return parse("r", "\n".join(paragraphs))


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")
def test_what_apt_installs_from_everything_it_installs_from_the_closure(tmp_path: Path) -> None:
    """None of these packages conflict; apt may still refuse two versions of one."""
    requested, installable = ["p0", "p1"], 0
    for seed in range(14):
        packages = made_repository(seed)
        resolved = closure(Index(packages), map(PackageRequest, requested))
        if apt(tmp_path / "apt", packages, requested).returncode != 0:
            continue
        installable += 1
        assert resolved.missing == (), seed
        assert len(resolved.packages) < len(packages)
        result = apt(tmp_path / "apt", list(resolved.packages), requested)
        assert result.returncode == 0, (seed, names(resolved.packages), result.stderr)
    assert installable >= 5


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")
def test_apt_installs_from_the_closure_whatever_the_closure_calls_whole(tmp_path: Path) -> None:
    """None of these packages conflict: then apt must find all that it needs in the closure."""
    complete = incomplete = 0
    for seed in range(24):
        packages = made_repository(seed)
        resolved = closure(Index(packages), [PackageRequest("p0"), PackageRequest("p1")])
        if resolved.missing:
            incomplete += 1
            continue
        complete += 1
        result = apt(tmp_path / "apt", list(resolved.packages), ["p0", "p1"])
        assert result.returncode == 0, (seed, names(resolved.packages), result.stderr)
    assert complete >= 5
    assert incomplete >= 3


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")
def test_apt_installs_what_debian_publishes_from_the_closure(tmp_path: Path) -> None:
    resolved = closure(Index(parse("debian", RECORDED.read_text())), [PackageRequest("conntrack")])
    result = apt(tmp_path / "apt", list(resolved.packages), ["conntrack"])
    assert result.returncode == 0, result.stderr
    less = [package for package in resolved.packages if package.name != "libmnl0"]
    assert apt(tmp_path / "apt", less, ["conntrack"]).returncode != 0
