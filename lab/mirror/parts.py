"""What the mirror serves: apt repositories, Helm, charts and images, made once in the store.

Each part is kept under a key of what it is made from, so a second lab or run costs next to nothing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpuboot.mirror.mirror_layout import chart_index
from lab import publishers
from lab.build import packages, packages_docker
from lab.build.base import MIRRORED, mirrored_debs
from lab.build.debs import Deb, build_deb
from lab.build.golang import module_dir
from lab.build.image_table import images_dirs, simulated_images_dir
from lab.build.progress import Progress
from lab.build.software_kubernetes import EARLIER
from lab.build.store import digest, stored
from lab.charts import assemble
from lab.debian_releases import DebianRelease
from lab.gpusim.builds import DRIVER_VERSIONS
from lab.gpusim.packages import DCGM_VERSIONS, cuda_keyring, dcgm_debs, driver_debs
from lab.host import run
from lab.mirror.apt_repository import build_repo
from lab.mirror.keys import SigningKey
from lab.state import MIRROR_URL, cache_dir

LAB = Path(__file__).parents[1]
Builds = Mapping[str, Path]
TOOLKIT_MODULE = "github.com/NVIDIA/nvidia-container-toolkit"


@dataclass(frozen=True)
class Repository:
    """An apt repository of the mirror: its place, its kind, and where its key is published.

    `key_path` is relative to the docroot; so is `path`. `signer`: the repository whose key it is
    signed with; "": its own.
    """

    name: str
    path: str
    key_path: str
    flat: bool = True
    suite: str = "stable"
    component: str = "stable"
    origin: str = ""
    signer: str = ""

    def key(self) -> SigningKey:
        """The key that signs it."""
        signer = self.signer or self.name
        return SigningKey.ensure(
            cache_dir() / "keys" / signer, f"gpuboot lab {signer} <lab@gpuboot.invalid>"
        )


@cache
def repositories(release: DebianRelease) -> Mapping[str, Repository]:
    """The mirror's apt repositories, by name, for machines of a Debian release."""
    codename, cuda = release.codename, f"apt/cuda/{release.cuda}/x86_64"
    debian, docker = "apt/debian", "apt/docker/linux/debian"
    toolkit = "apt/libnvidia-container"
    served = (
        Repository("debian", debian, f"{debian}/key.asc", False, codename, "main", "Debian (lab)"),
        Repository("cuda", cuda, f"{cuda}/{release.cuda_key}", origin="NVIDIA CUDA"),
        Repository(
            "toolkit",
            f"{toolkit}/stable/deb/amd64",
            f"{toolkit}/gpgkey",
            origin="libnvidia-container",
        ),
        Repository("docker", docker, f"{docker}/gpg", False, codename, "stable", "Docker"),
        *map(_kubernetes, kubernetes_minors()),
    )
    return {repository.name: repository for repository in served}


def kubernetes_minors() -> list[str]:
    """Minor releases that have a repository of their own: today's, then those of earlier ones."""
    today = packages.minor()
    return list(dict.fromkeys([today, *(release.minor for release in EARLIER)]))


def _kubernetes(minor: str) -> Repository:
    """A repository as on pkgs.k8s.io, where one key signs those of all minor releases."""
    name = kubernetes_repository(minor)
    path = f"apt/kubernetes/core:/stable:/v{minor}/deb"
    return Repository(name, path, f"{path}/Release.key", origin="Kubernetes", signer="kubernetes")


def kubernetes_repository(minor: str) -> str:
    """The name of a minor release's repository."""
    return "kubernetes" if minor == packages.minor() else f"kubernetes-{minor}"


CHARTS = {
    "gpu-operator": "nvidia",
    "kube-prometheus-stack": "prometheus-community",
    "dcgm-exporter": "dcgm-exporter",
}


@dataclass(frozen=True)
class Part:
    """A folder of the store and where it goes below the docroot ("" is the docroot itself)."""

    source: Path
    target: str


def make_parts(
    release: DebianRelease,
    base: Path,
    builds: Builds,
    progress: Progress,
    extra_packages: Iterable[str] = (),
) -> list[Part]:
    """Everything the mirror serves; made as needed.

    + base: the machines' base system
    + extra_packages: Debian packages that not all labs' mirrors have
    """
    known_repositories = repositories(release)
    debian = mirrored_debs(release, base, MIRRORED, progress)
    if names := list(extra_packages):
        debian += mirrored_debs(release, base, names, progress)
    archives = {deb.name: deb for deb in [*debian, *_built(packages.kernel_headers())]}
    parts = [_apt(known_repositories["debian"], list(archives.values()), progress)]
    for name, debs in _vendor_debs(release, builds).items():
        parts.append(_apt(known_repositories[name], _built(debs), progress))
    images = [Part(folder, "v2") for folder in images_dirs(builds, progress)]
    return [*parts, _helm(builds), *_charts(progress), *images]


def simulated_parts(release: DebianRelease, builds: Builds, progress: Progress) -> list[Part]:
    """What the mirror serves where publishers serve the rest: the simulated driver, NVIDIA's
    charts and images, and headers of the running kernel, which Debian need not have."""
    cuda = repositories(release)["cuda"]
    debs = [*_driver_debs(release, builds), *packages.kernel_headers()]
    folder = simulated_images_dir(builds, progress)
    charts = _charts(progress, publishers.CHARTS)
    return [_apt(cuda, _built(debs), progress), *charts, Part(folder, "v2")]


def _driver_debs(release: DebianRelease, builds: Builds) -> list[Deb]:
    cuda = repositories(release)["cuda"]
    keyring = cuda_keyring(cuda.key().public(), f"{MIRROR_URL}/{cuda.path}", release.cuda)
    drivers = [deb for version in DRIVER_VERSIONS for deb in driver_debs(version, builds)]
    engines = [deb for version in DCGM_VERSIONS for deb in dcgm_debs(version)]
    return [keyring, *drivers, *engines]


def _vendor_debs(release: DebianRelease, builds: Builds) -> dict[str, list[Deb]]:
    module = module_dir(TOOLKIT_MODULE, f"v{packages.TOOLKIT.split('-')[0]}")
    return {
        "docker": [
            packages.containerd(builds, release),
            *(packages_docker.docker(builds, release) if "dockerd" in builds else ()),
        ],
        **{
            kubernetes_repository(minor): packages.kubernetes(builds, minor)
            for minor in (
                packages.minor(),
                *(
                    earlier_release.minor
                    for earlier_release in EARLIER
                    if earlier_release.is_built(builds)
                ),
            )
        },
        "toolkit": packages.toolkit(builds, module),
        "cuda": _driver_debs(release, builds),
    }


def _built(debs: Iterable[Deb]) -> list[Path]:
    """Archives of our own packages, from the store."""
    return [_built_one(deb) for deb in debs]


def _built_one(deb: Deb) -> Path:
    contents = [
        f"{dest}={source}@{_stamp(source)}" if isinstance(source, Path) else f"{dest}={source!r}"
        for dest, source in sorted(deb.files.items())
    ]
    identity = repr(
        (deb.filename, deb.version, sorted(deb.scripts.items()), deb.modes, deb.depends)
    )
    relations = repr((deb.description, deb.provides, deb.conflicts, deb.recommends, deb.conffiles))
    key = digest(identity, relations, "\n".join(contents), LAB / "build/debs.py")
    folder = stored(f"deb-{deb.name}-{key}", lambda part: _build_into(deb, part))
    return folder / deb.filename


def _build_into(deb: Deb, part: Path) -> None:
    build_deb(deb, part)


def _stamp(path: Path) -> str:
    # Programs lie in the store under a key of their own; the checkout's small files do not.
    if cache_dir() in path.parents:
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _apt(repository: Repository, debs: list[Path], progress: Progress) -> Part:
    name, key = repository.name, repository.key()
    public = key.public()
    made_from = "\n".join(str(deb) for deb in debs)

    def make(part: Path) -> None:
        progress(f"mirror: apt repository {name} ({len(debs)} packages)")
        build_repo(
            part,
            debs,
            key,
            repository.flat,
            suite=repository.suite,
            component=repository.component,
            origin=repository.origin,
        )

    stamp = digest(repr(repository), made_from, public, LAB / "mirror/apt_repository.py")
    return Part(stored(f"apt-{name}-{stamp}", make), repository.path)


def _helm(builds: Builds) -> Part:
    helm = builds["helm"]

    def make(part: Path) -> None:
        version = helm_version(helm)
        tarball = part / f"helm-{version}-linux-amd64.tar.gz"
        folder = part / "linux-amd64"
        folder.mkdir()
        shutil.copy2(helm, folder / "helm")
        (folder / "helm").chmod(0o755)
        options = ["--owner=0", "--group=0", "--mtime=@1767225600", "-C", str(part)]
        run(["tar", *options, "-I", "gzip -1n", "-cf", str(tarball), "linux-amd64"])
        shutil.rmtree(folder)
        checksum = hashlib.sha256(tarball.read_bytes()).hexdigest()
        for suffix, text in ((".sha256", checksum), (".sha256sum", f"{checksum}  {tarball.name}")):
            (part / f"{tarball.name}{suffix}").write_text(f"{text}\n")

    return Part(stored(f"helm-{digest(str(helm), Path(__file__))}", make), "helm")


def helm_version(helm: Path) -> str:
    """What a helm program says its version is, e.g. "v4.3.0"."""
    return run([str(helm), "version", "--template", "{{.Version}}"]).strip()


def _charts(progress: Progress, names: Iterable[str] = CHARTS) -> Iterator[Part]:
    key = digest(LAB / "charts", LAB / "build/recipes/go.mod")
    for chart, repository in ((name, CHARTS[name]) for name in names):

        def make(part: Path, chart: str = chart) -> None:
            progress(f"mirror: chart {chart}")
            archive = assemble.package(chart, part)
            # JSON is YAML
            index = json.dumps(chart_index({archive.name: archive.read_bytes()}), indent=2)
            (part / "index.yaml").write_text(index + "\n")

        folder = stored(f"chart-{chart}-{key}", make)
        yield Part(folder, f"charts/{repository}")
