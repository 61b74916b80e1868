"""The lab's mirror: one tree with the layouts of its publishers, served over TLS by the host."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

from lab import packages, processes
from lab.base import run
from lab.contents import CHARTS, REPOSITORIES, Part, source_key
from lab.debs import write_atomically
from lab.keys import Authority
from lab.state import MIRROR_NAME, Lab, cache_dir

WEBSERVER = Path(__file__).parent / "webserver.py"


def install(lab: Lab, found: list[Part]) -> None:
    """Lay the parts out as the lab's docroot, unless it has just these."""
    stamp = lab.folder / "mirror.parts"
    wanted = "\n".join(f"{part.source} {part.target}" for part in found)
    wanted += f"\n{source_key('mirror.py').hex()}\n"
    if lab.docroot.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    fresh = lab.docroot.with_name("mirror.part")
    if fresh.exists():
        shutil.rmtree(fresh)
    fresh.mkdir(parents=True)
    for part in found:
        target = fresh / part.target
        target.mkdir(parents=True, exist_ok=True)
        _link_tree(part.source, target)
    for repository in REPOSITORIES.values():
        write_atomically(fresh / repository.key_path, repository.key().public())
    write_atomically(fresh / "lab.lock.json", (json.dumps(lock(fresh), indent=2) + "\n").encode())
    if lab.docroot.exists():
        old = lab.docroot.with_name("mirror.old")
        lab.docroot.rename(old)
        fresh.rename(lab.docroot)
        shutil.rmtree(old)
    else:
        fresh.rename(lab.docroot)
    stamp.write_text(wanted)


def _link_tree(source: Path, target: Path) -> None:
    same_disk = source.stat().st_dev == target.stat().st_dev
    option = ["--link"] if same_disk else []
    run(["cp", "-a", *option, f"{source}/.", str(target)])


def lock(docroot: Path) -> dict[str, object]:
    """What a site has to know to use this mirror: versions, digests of keys, registries."""
    tarball = next((docroot / "helm").glob("*.tar.gz"))
    charts = {}
    for chart, repository in CHARTS.items():
        archive = next((docroot / "charts" / repository).glob(f"{chart}-*.tgz"))
        charts[chart] = {
            "repository": repository,
            "version": archive.name.removeprefix(f"{chart}-").removesuffix(".tgz"),
            "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        }
    helm = {
        "version": tarball.name.split("-")[1],
        "sha256": {"amd64": hashlib.sha256(tarball.read_bytes()).hexdigest()},
    }
    versions = {
        "toolkit": {"version": packages.TOOLKIT},
        "containerd": {"version": packages.CONTAINERD},
        "kubernetes": {
            "version": packages.KUBERNETES,
            "minor": packages.KUBERNETES.rpartition(".")[0],
            "cri_tools": packages.CRI_TOOLS,
            "cni": packages.CNI,
            "pause": packages.PAUSE,
        },
        "helm": helm,
        "charts": charts,
    }
    keys = {
        name: hashlib.sha256((docroot / repository.key_path).read_bytes()).hexdigest()
        for name, repository in REPOSITORIES.items()
    }
    registries = sorted(path.name for path in (docroot / "v2").iterdir())
    return {"versions": versions, "keys": keys, "registries": registries}


def authority() -> Authority:
    """The lab's certificate authority, one per cache."""
    return Authority.ensure(cache_dir() / "keys" / "ca")


def trust(lab: Lab) -> None:
    """Give the lab its CA certificate and its mirror a server certificate."""
    ca = authority()
    lab.folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ca.certificate, lab.ca)
    if not (lab.folder / "mirror.key").exists():
        ca.issue(
            MIRROR_NAME, lab.host_address, lab.folder / "mirror.crt", lab.folder / "mirror.key"
        )


def start(lab: Lab) -> None:
    """Start the mirror's web server, unless it runs."""
    files = [lab.docroot, lab.host_address, 443, lab.folder / "mirror.crt"]
    files.append(lab.folder / "mirror.key")
    command = [sys.executable, "-I", str(WEBSERVER), *map(str, files)]
    folder, unit = server_dir(lab), lab.unit("mirror")
    if not processes.is_running(unit, folder):
        processes.kill(unit, folder)
    processes.start(unit, folder, command)


def stop(lab: Lab) -> None:
    """Stop the mirror's web server."""
    processes.kill(lab.unit("mirror"), server_dir(lab))


def is_running(lab: Lab) -> bool:
    return processes.is_running(lab.unit("mirror"), server_dir(lab))


def server_dir(lab: Lab) -> Path:
    """The web server's folder: its console.log is the access log."""
    return lab.folder / "mirror-server"
