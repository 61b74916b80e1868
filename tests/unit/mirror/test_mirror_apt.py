"""apt, as a mirror asks it: which packages hosts need, from repositories that their keys signed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuboot.mirror.apt_content import _filename
from gpuboot.mirror.client import FetchError
from gpuboot.mirror.mirror_apt import Apt, Package, RefusedError, Source
from gpuboot.mirror.signing import Home
from tests.unit.mirror.mirror_upstream import paragraph, publish, running

PARAGRAPHS = (
    paragraph("app", depends="lib (>= 1.5), none | other"),
    paragraph("lib", "1.0"),
    paragraph("lib", "1.6"),
    paragraph("lib", "2.0"),
    paragraph("other", depends="lib (<< 2.0)"),
    paragraph("alone", depends="libc6 (>= 2.34), awk | perl:any"),
    paragraph("older", depends="lib (= 9.9)"),
    paragraph("foreign").replace("amd64", "arm64"),
)


@pytest.fixture(scope="module")
def apt(keys: tuple[Home, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apt]:
    """A flat repository that apt has read; versions 1.* of lib are preferred."""
    with running() as upstream:
        packages = {str(number): text for number, text in enumerate(PARAGRAPHS)}
        publish(upstream, "/core:/stable:/deb", packages, keys[0])
        source = Source(f"{upstream.url}/core:/stable:/deb", keys[0].public())
        reader = Apt(tmp_path_factory.mktemp("apt") / "work", "amd64", None)
        reader.update([source], {"l?b": "1.*"})
        yield reader


@pytest.fixture(autouse=True)
def _no_package_installed(apt: Apt) -> None:
    apt.set_installed("")


def names(packages: list[Package]) -> list[str]:
    return sorted(
        f"{package.fields['Package']} {package.fields['Version']}" for package in packages
    )


def test_packages_come_with_what_they_need_in_the_version_that_is_preferred(apt: Apt) -> None:
    packages = apt.packages(["app"])
    assert names(packages) == ["app 1.0", "lib 1.6", "other 1.0"]
    assert all(package.text in PARAGRAPHS for package in packages)


def test_a_request_may_name_another_version_by_its_pattern(apt: Apt) -> None:
    assert names(apt.packages(["lib=2.*"])) == ["lib 2.0"]


def test_what_hosts_have_is_left_out_but_for_a_version_that_is_too_old(apt: Apt) -> None:
    status = "Package: lib\nStatus: install ok installed\nVersion: {}\nArchitecture: amd64\n"
    apt.set_installed(status.format("1.6"))
    assert names(apt.packages(["app"])) == ["app 1.0", "other 1.0"]
    apt.set_installed(status.format("1.0"))
    assert names(apt.packages(["app"])) == ["app 1.0", "lib 1.6", "other 1.0"]


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        ("nothing", "Unable to locate package nothing"),
        ("lib=3.*", "Version '3.*' for 'lib' was not found"),
        ("alone", "alone : Depends: libc6 (>= 2.34) but it is not installable"),
        ("foreign", "Unable to locate package foreign"),
    ],
)
def test_what_no_repository_has_is_told_in_apts_words(
    apt: Apt, requested: str, message: str
) -> None:
    with pytest.raises(RefusedError) as error:
        apt.packages(["lib", requested])
    assert message in str(error.value)


def test_what_only_a_distribution_has_is_known_and_a_publishers_gap_is_none_of_it(
    apt: Apt,
) -> None:
    assert apt.unmet() == ["awk", "libc6 (= 2.34)", "perl"]
    assert "lib" in apt.names()
    assert "libc6" not in apt.names()


@pytest.mark.parametrize("filename", ["../../etc/passwd", "/etc/passwd", "pool/../../x"])
def test_a_file_outside_of_the_repository_is_refused(filename: str) -> None:
    text = f"Package: a\nVersion: 1\nFilename: {filename}\n"
    with pytest.raises(FetchError, match="outside of the repository"):
        _filename(Package(Source("https://a.example", b""), text))
