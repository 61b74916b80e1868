"""Images: layout of the registry tree, layers, shared layers, libraries."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.build.images import LAYER_TYPE, Image, normal, write_image, write_images
from lab.build.libraries import GLIBC, LOADER, Source, is_dynamic, libraries, root_of
from lab.state import LabError


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def _image(program: Path, name: str = "registry.example/team/app:v1", **options: Any) -> Image:
    files: dict[str, Source] = {
        "/bin/app": program,
        "/etc/app.conf": "a = b\n",
        "/opt/app": "-> ../bin/app",
    }
    return Image(name, files, ("/bin/app",), "STAND-IN: a test", **options)


def _read(root: Path, image: Image, name: str) -> Any:
    return json.loads((root / image.registry / image.repository / name).read_text())


def test_names_fall_apart_into_registry_repository_and_tag() -> None:
    image = Image("registry.k8s.io/coredns/coredns:v1.14.2", {}, (), "")
    assert (image.registry, image.repository, image.tag) == (
        *("registry.k8s.io", "coredns/coredns"),
        "v1.14.2",
    )


def test_the_tree_is_a_registry(tmp_path: Path, program: Path) -> None:
    image = _image(program, user="65534", env={"A": "b"}, workdir="/opt")
    digest = write_image(image, tmp_path)
    manifest = _read(tmp_path, image, "manifests/v1")
    assert manifest == _read(tmp_path, image, f"manifests/{digest}")
    blobs = tmp_path / "registry.example/team/app/blobs"
    (layer,) = manifest["layers"]
    assert layer["mediaType"] == LAYER_TYPE
    for descriptor in (layer, manifest["config"]):
        data = (blobs / descriptor["digest"]).read_bytes()
        assert descriptor["size"] == len(data)
        assert descriptor["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    config = _read(tmp_path, image, f"blobs/{manifest['config']['digest']}")
    assert config["rootfs"]["diff_ids"] == [layer["digest"]]
    assert config["config"]["User"] == "65534"
    assert config["config"]["Entrypoint"] == ["/bin/app"]
    assert config["config"]["WorkingDir"] == "/opt"
    assert "A=b" in config["config"]["Env"]
    label = config["config"]["Labels"]["org.opencontainers.image.description"]
    assert label == "gpuboot lab: STAND-IN: a test"
    assert not list(blobs.glob(".part*"))


def test_the_layer_holds_the_files_under_usr(tmp_path: Path, program: Path) -> None:
    image = _image(program)
    write_image(image, tmp_path)
    (layer,) = _read(tmp_path, image, "manifests/v1")["layers"]
    with tarfile.open(tmp_path / "registry.example/team/app/blobs" / layer["digest"]) as archive:
        members = {member.name: member for member in archive}
        names = archive.getnames()
        conf = archive.extractfile("etc/app.conf")
        assert conf is not None
        assert conf.read() == b"a = b\n"
    assert members["usr/bin/app"].mode == 0o755
    assert members["etc/app.conf"].mode == 0o644
    assert members["bin"].linkname == "usr/bin"
    assert members["opt/app"].linkname == "../bin/app"
    assert members["tmp"].mode == 0o1777
    assert {member.uid for member in members.values()} == {0}
    assert len({member.mtime for member in members.values()}) == 1
    for name in names:  # a folder comes before what is in it
        parent = name.rpartition("/")[0]
        assert not parent or names.index(parent) < names.index(name)


def test_equal_inputs_give_equal_digests(tmp_path: Path, program: Path) -> None:
    first = write_image(_image(program), tmp_path / "one")
    copy = tmp_path / "copy"
    shutil.copyfile(program, copy)
    copy.chmod(0o755)
    assert write_image(_image(copy), tmp_path / "two") == first
    copy.write_text("#!/bin/bash\n")
    assert write_image(_image(copy), tmp_path / "three") != first


def test_images_of_equal_content_share_one_file(tmp_path: Path, program: Path) -> None:
    images = [_image(program), _image(program, "registry.example/other:v2", user="1")]
    digests = write_images(images, tmp_path)
    assert set(digests) == {image.name for image in images}
    layers = [_read(tmp_path, i, f"manifests/{i.tag}")["layers"][0]["digest"] for i in images]
    assert layers[0] == layers[1]
    files = [tmp_path / i.registry / i.repository / "blobs" / layers[0] for i in images]
    assert files[0].samefile(files[1])


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="gone, which is to be /usr/bin/app in an image"):
        write_image(_image(tmp_path / "gone"), tmp_path)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/bin/sh", "/usr/bin/sh"),
        ("/lib64/x", "/usr/lib64/x"),
        ("/bin", "/bin"),
        ("/binary", "/binary"),
    ],
)
def test_paths_go_where_the_links_of_merged_usr_lead(path: str, place: str) -> None:
    assert normal(path) == place


def _compile(out: Path, *options: str) -> Path:
    source = out.with_suffix(".c")
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", *options, "-o", str(out), str(source)], check=True)
    return out


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_libraries_are_those_of_programs_that_want_some(tmp_path: Path, program: Path) -> None:
    dynamic = _compile(tmp_path / "dynamic")
    static = _compile(tmp_path / "static", "-static")
    assert is_dynamic(dynamic)
    assert not is_dynamic(static)
    assert not is_dynamic(program)
    # what the container runtime brings in is linked with the C library, whatever the image is
    brought = libraries([static, program, "text", b"bytes"])
    assert {Path(path).name for path in brought} == {*GLIBC, Path(LOADER).name}
    library_paths = libraries([dynamic])
    assert "/usr/lib/x86_64-linux-gnu/libc.so.6" in library_paths
    assert "/usr/lib64/ld-linux-x86-64.so.2" in library_paths
    assert all(path.is_file() for path in library_paths.values())


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_libraries_of_two_systems_are_not_mixed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "lib/x86_64-linux-gnu").mkdir(parents=True)
    (root / "lib/x86_64-linux-gnu/libc.so.6").write_text("")
    inside, outside = _compile(root / "inside"), _compile(tmp_path / "outside")
    with pytest.raises(LabError, match="cannot have libraries of 2 systems"):
        libraries([inside, outside])


def test_usr_is_no_system_of_its_own(tmp_path: Path) -> None:
    """A Debian whose /lib is a link to /usr/lib, with Python in /usr/bin and a shell in /bin."""
    library = tmp_path / "usr/lib/x86_64-linux-gnu/libc.so.6"
    library.parent.mkdir(parents=True)
    library.touch()
    (tmp_path / "lib").symlink_to("usr/lib")
    programs = [tmp_path / "usr/bin/python3", tmp_path / "bin/sh", tmp_path / "opt/x/bin/program"]
    assert {root_of(program) for program in programs} == {tmp_path}


def test_arguments_and_unusual_modes_are_in_the_image(tmp_path: Path, program: Path) -> None:
    usual = _image(program)
    image = replace(usual, command=("pause",), modes={"/usr/bin/app": 0o4755})
    for name, variant in (("usual", usual), ("image", image)):
        write_image(variant, tmp_path / name)
    manifest = _read(tmp_path / "image", image, "manifests/v1")
    config = _read(tmp_path / "image", image, f"blobs/{manifest['config']['digest']}")
    assert config["config"]["Cmd"] == ["pause"]
    (layer,) = manifest["layers"]
    blobs = tmp_path / "image/registry.example/team/app/blobs"
    with tarfile.open(blobs / layer["digest"]) as archive:
        assert archive.getmember("usr/bin/app").mode == 0o4755
    assert layer != _read(tmp_path / "usual", usual, "manifests/v1")["layers"][0]
