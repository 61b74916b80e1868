"""The lab's mirror: one tree with the layouts of its publishers, served over TLS by the host."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

from lab import processes
from lab.build import image_table as imagetable
from lab.build import packages
from lab.build.software import PREVIOUS, kubernetes_version
from lab.build.store import digest
from lab.debian_releases import DebianRelease
from lab.gpusim.builds import DRIVER_VERSIONS
from lab.host import run, write_atomically
from lab.mirror.apt_repository import sign_release
from lab.mirror.keys import CertificateAuthority, SigningKey
from lab.mirror.parts import CHARTS, Part, repositories
from lab.state import MIRROR_NAME, Lab, LabError, cache_dir

WEBSERVER = Path(__file__).parent / "webserver.py"

# Images whose tags gpuboot's lock has (`versions.images`), and which the mirror serves.
IMAGES = {
    "local_path_provisioner": "docker.io/rancher/local-path-provisioner",
    "busybox": "docker.io/library/busybox",
    "prometheus": "quay.io/prometheus/prometheus",
    "alertmanager": "quay.io/prometheus/alertmanager",
    "node_exporter": "quay.io/prometheus/node-exporter",
}


def install(lab: Lab, found: list[Part]) -> None:
    """Lay the parts out as the lab's docroot, unless it has just these."""
    stamp = _stamp(lab)
    laid_out = digest(Path(__file__))
    wanted = json.dumps([laid_out, *((str(part.source), part.target) for part in found)])
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
    for repository in repositories(lab.debian).values():
        write_atomically(fresh / repository.key_path, repository.key().public())
    known = json.dumps(lock(fresh, lab.debian), indent=2)
    write_atomically(fresh / "lab.lock.json", f"{known}\n".encode())
    if lab.docroot.exists():
        old = lab.docroot.with_name("mirror.old")
        lab.docroot.rename(old)
        fresh.rename(lab.docroot)
        shutil.rmtree(old)
    else:
        fresh.rename(lab.docroot)
    stamp.write_text(wanted)


def restore(lab: Lab) -> None:
    """Lay the docroot out again from the parts it was made of: whatever was broken is whole again.

    Raises `LabError` when the lab has no docroot yet.
    """
    found = parts_of(lab)
    if not found:
        raise LabError(f"lab {lab.name} has no mirror yet; scripts/lab makes it")
    shutil.rmtree(lab.docroot, ignore_errors=True)
    install(lab, found)


def parts_of(lab: Lab) -> list[Part]:
    """The parts that the lab's docroot was laid out from; none when it has none yet."""
    if not _stamp(lab).exists():
        return []
    return [
        Part(Path(source), target) for source, target in json.loads(_stamp(lab).read_text())[1:]
    ]


def corrupt(lab: Lab, what: str) -> Path:
    """Flip one byte of a served file, and return its path.

    `what` is a path below the docroot; of a folder, its largest file is meant.
    """
    path = lab.docroot / what.strip("/")
    if path.is_dir():
        files = [file for file in path.rglob("*") if file.is_file()]
        path = max(files, key=lambda file: file.stat().st_size, default=path)
    if not path.is_file():
        raise LabError(f"the mirror has no {what!r}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    write_atomically(path, bytes(content))  # replaces the hard link, not what the store holds
    return path


def missign(lab: Lab, name: str) -> None:
    """Sign the apt repository `name` with a key that nobody trusts."""
    known = repositories(lab.debian)
    if name not in known:
        raise LabError(f"there is no repository {name!r}; there are: {', '.join(known)}")
    repository = known[name]
    intruder = SigningKey.ensure(cache_dir() / "keys" / "intruder", "intruder <no@gpuboot.invalid>")
    folder = lab.docroot / repository.path
    folder = folder if repository.flat else folder / "dists" / repository.suite
    sign_release(folder, (folder / "Release").read_text(), intruder)


def _stamp(lab: Lab) -> Path:
    return lab.folder / "mirror.parts"


def _link_tree(source: Path, target: Path) -> None:
    same_disk = source.stat().st_dev == target.stat().st_dev
    option = ["--link"] if same_disk else []
    run(["cp", "-a", *option, f"{source}/.", str(target)])


def lock(docroot: Path, release: DebianRelease) -> dict[str, object]:
    """What a site has to know to use this mirror: versions, digests of keys, registries.

    `previous`: settings with the releases before, which an upgrade starts from.
    """
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
        "kubernetes": _kubernetes(),
        "helm": helm,
        "charts": charts,
        "images": _tags(docroot),
    }
    previous = {
        "versions": {"kubernetes": _kubernetes(PREVIOUS)},
        "driver": {"version": DRIVER_VERSIONS[1]},
    }
    keys = {
        name: hashlib.sha256((docroot / repository.key_path).read_bytes()).hexdigest()
        for name, repository in repositories(release).items()
    }
    registries = sorted(path.name for path in (docroot / "v2").iterdir())
    return {"versions": versions, "previous": previous, "keys": keys, "registries": registries}


def _kubernetes(suffix: str = "") -> dict[str, str]:
    version = kubernetes_version(suffix).removeprefix("v")
    return {
        "version": version,
        "minor": version.rpartition(".")[0],
        "cri_tools": packages.CRI_TOOLS,
        "cni": packages.CNI,
        "pause": imagetable.PAUSE,
    }


def _tags(docroot: Path) -> dict[str, str]:
    """The tags of images that a site names by itself, by their names in gpuboot's lock."""
    found = {}
    for name, repository in IMAGES.items():
        manifests = (docroot / "v2" / repository / "manifests").glob("*")
        tags = [path.name for path in manifests if not path.name.startswith("sha256:")]
        if len(tags) > 1:
            raise LabError(f"the mirror has {repository} as {', '.join(sorted(tags))}: which one?")
        if tags:
            found[name] = tags[0]
    return found


def authority() -> CertificateAuthority:
    """The lab's certificate authority, one per cache."""
    return CertificateAuthority.ensure(cache_dir() / "keys" / "ca")


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
