"""A host with packages of others, and the publishers' repositories, for rehearsals by real apt."""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from deploys.parts.packages.rehearsal_fact import AptRehearsal
from gpuboot.hosts import package_rehearsal
from gpuboot.hosts.package_rehearsal import Rehearsal
from gpuboot.mirror import release
from tests.unit import apt_host
from tests.unit.apt_host import Host, Key

OWN_SOURCE = "/etc/apt/sources.list.d/gpuboot-test.sources"
KEY = "/etc/apt/keyrings/gpuboot-test.asc"

CONTAINERD = {"containerd.io": "2.3.7-*"}
DRIVER = {"nvidia-driver-pinning-595.91.07": "", "nvidia-open": "595.91.07-*"}


def fields(name: str, version: str, relations: Mapping[str, str]) -> str:
    """A package as an index and dpkg's status have it."""
    lines = {"Package": name, "Version": version, "Architecture": "amd64", "Maintainer": "x"}
    return "".join(f"{key}: {text}\n" for key, text in {**lines, **relations}.items())


class UsedHost:
    """A scratch host whose dpkg knows packages of others, and a publisher's repository."""

    def __init__(self, host: Host, address: str) -> None:
        self.host, self.address = host, address
        self.key = Key(host.path("publisher"))
        host.path("www/publisher").mkdir(parents=True)
        host.write("www/key.asc", self.key.public())
        for name in ("var/lib/dpkg/info", "proc", "bin"):
            host.path(name).mkdir(parents=True)
        host.write("etc/os-release", "ID=ubuntu\n")
        self.index = ""
        self.program("systemctl", "exit 0")

    def program(self, name: str, text: str) -> None:
        """A program of the host in place of the real one."""
        path = self.host.write(f"bin/{name}", f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def has(
        self,
        name: str,
        version: str,
        files: Sequence[str] = (),
        auto: bool = True,
        on_hold: bool = False,
        **relations: str,
    ) -> None:
        """An installed package. + files: its own; auto: nobody installed it by hand"""
        status = {"Status": f"{'hold' if on_hold else 'install'} ok installed"}
        text = fields(name, version, {**status, **_keys(relations), "Description": "x"})
        dpkg = self.host.path("var/lib/dpkg")
        with (dpkg / "status").open("a") as file:
            file.write(f"{text}\n")
        (dpkg / f"info/{name}.list").write_text("".join(f"{item}\n" for item in ("/.", *files)))
        if auto:
            with self.host.path("var/lib/apt/extended_states").open("a") as file:
                file.write(f"Package: {name}\nArchitecture: amd64\nAuto-Installed: 1\n\n")

    def offers(self, name: str, version: str, deb: Path | None = None, **relations: str) -> None:
        """A package of the publisher. + deb: its file, for those that are downloaded"""
        data = deb.read_bytes() if deb else b""
        if deb:
            self.host.write(f"www/publisher/{deb.name}", data)
        place = {"Filename": deb.name if deb else f"{name}.deb", "Size": str(len(data) or 1)}
        place["SHA256"] = hashlib.sha256(data).hexdigest() if deb else "0" * 64
        self.index += fields(name, version, {**_keys(relations), **place, "Description": "x"})
        self.index += "\n"
        folder = self.host.path("www/publisher")
        (folder / "Packages").write_text(self.index)
        release_fields = {"Origin": "test", "Date": release.date(), "Architectures": "amd64"}
        signed = self.key.clearsigned(
            release.text(release_fields, {"Packages": self.index.encode()})
        )
        (folder / "InRelease").write_bytes(signed)

    def pinning(self, version: str) -> None:
        """NVIDIA's package that pins the driver's packages, as its repository has it."""
        name = f"nvidia-driver-pinning-{version}"
        tree = self.host.path(f"trees/{name}")
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "etc/apt/preferences.d").mkdir(parents=True)
        relations = dict.fromkeys(("Provides", "Conflicts", "Replaces"), "nvidia-driver-pinning")
        text = fields(name, "1", {**relations, "Description": "x"})
        (tree / "DEBIAN/control").write_text(text)
        for folder in (tree / "DEBIAN", tree):
            folder.chmod(0o755)
        pin = f"Package: src:*nvidia*:any\nPin: version {version}-*\nPin-Priority: 1000\n"
        (tree / "etc/apt/preferences.d/nvidia-driver-pinning").write_text(pin)
        deb = self.host.path(f"trees/{name}_1_amd64.deb")
        command = ["dpkg-deb", "-b", str(tree), str(deb)]
        subprocess.run(command, check=True, capture_output=True)
        self.offers(name, "1", deb, **relations)

    def script(self, packages: Mapping[str, str], **options: object) -> str:
        """The fact's command, with /proc where the host has it."""
        text = (
            f"Types: deb\nURIs: {self.address}/publisher\nSuites: /\nArchitectures: amd64\n"
            f"Signed-By: {KEY}\n"
        )
        arguments = {"packages": packages, "sources": {OWN_SOURCE: text}, **options}
        arguments.setdefault("keys", {KEY: f"{self.address}/key.asc"})
        script = AptRehearsal().bare_command(arguments)
        return script.replace("/proc/", f"{self.host.root}/proc/")

    def rehearsed(
        self,
        packages: Mapping[str, str],
        shell: str = "dash",
        umask: int = 0o22,
        stdin: str = "",
        **options: object,
    ) -> Rehearsal:
        """What apt would do with these packages. + stdin: credentials"""
        script = self.script(packages, **options)
        result = self.host.run(
            f"printf %s {shlex.quote(stdin)} | (\n{script}\n)" if stdin else script,
            shell,
            umask,
            DPKG_ADMINDIR=str(self.host.path("var/lib/dpkg")),
            PATH=f"{self.host.path('bin')}:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        assert result.returncode == 0, result.stderr
        return AptRehearsal().value(result.stdout.splitlines())


def _keys(relations: Mapping[str, str]) -> dict[str, str]:
    """pre_depends -> Pre-Depends"""
    return {key.replace("_", "-").title(): text for key, text in relations.items()}


def relations_of(name: str) -> dict[str, Any]:
    """Relations by which a package takes another's place, as Docker's and Azure's have them."""
    return {"provides": name, "conflicts": name, "replaces": name}


@contextlib.contextmanager
def used_host() -> Iterator[UsedHost]:
    """A host without packages of others, and the publisher's repository."""
    with apt_host.host() as host, apt_host.served(host.path("www")) as address:
        rehearsal_host = UsedHost(host, address)
        rehearsal_host.offers("containerd.io", "2.3.7-1", **relations_of("containerd, runc"))
        rehearsal_host.offers(
            "docker-ce", "5:29.1.3-1", depends="containerd.io", conflicts="docker.io"
        )
        rehearsal_host.offers("kubelet", "1.36.6-1.1")
        rehearsal_host.offers(
            "nvidia-open", "595.91.07-1", depends="libnvidia-compute", source="nvidia-open"
        )
        for version in ("595.91.07-1", "600.10-1"):
            old = "libnvidia-compute-570" if version < "6" else "nothing"
            rehearsal_host.offers(
                "libnvidia-compute",
                version,
                source="nvidia-graphics-drivers",
                conflicts=old,
                replaces=old,
            )
        rehearsal_host.pinning("595.91.07")
        yield rehearsal_host


def azure(used: UsedHost, running: bool = True) -> None:
    """moby-engine as Azure's images have it."""
    unit = "/lib/systemd/system/docker.service"
    engine = relations_of("docker.io, docker-ce")
    depends = "moby-containerd, moby-runc"
    used.has("moby-engine", "24.0.9-u1", files=[unit], depends=depends, **engine)
    used.has(
        "moby-containerd", "1.7.20", files=["/usr/bin/containerd"], **relations_of("containerd")
    )
    used.has("moby-runc", "1.1.12", **relations_of("runc"))
    if running:
        used.program("systemctl", 'case "$*" in *docker.service*) echo "$5 loaded active";; esac')


def problems(rehearsed: Rehearsal, *allowed: str) -> list[str]:
    """Why such a run may not start, each with its remedy. + allowed: names that may go"""
    results = package_rehearsal.problems({"h": rehearsed}, allowed, {"h": "apt-get remove"})
    return [f"{item.cause}; {item.remedy}" for item in results]
