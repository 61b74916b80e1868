"""The images the lab offers, under upstream's names, and which files are in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lab.build import image_table_monitoring as monitoring
from lab.build import image_table_nvidia as nvidia
from lab.build import software
from lab.build.golang import module_version
from lab.build.image_parts import NOBODY_UID, Programs, built_from, shell
from lab.build.images import SYMLINK, Image, write_images
from lab.build.libraries import Source
from lab.build.progress import Progress
from lab.build.software_kubernetes import EARLIER, KUBERNETES, KubernetesRelease
from lab.build.store import digest, folder, stored

PAUSE = "3.10.2"
ETCD_PROGRAMS = ("etcd", "etcdctl", "etcdutl")
REGISTRY = "registry.k8s.io"
ETCD_REVISION = "-0"  # of upstream's image, after etcd's version
FLANNEL_CNI = "v1.9.1-flannel3"

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
IPTABLES = tuple(
    f"{family}tables{variant}{action}"
    for family in ("ip", "ip6")
    for variant in ("", "-nft")
    for action in ("", "-save", "-restore")
)
# Upstream's image has Debian's whole file (distroless, netbase). Without it nft lists protocols as
# numbers, in which kube-proxy does not find its own elements again: it deletes them all.
PROTOCOLS = b"icmp\t1\tICMP\ntcp\t6\tTCP\nudp\t17\tUDP\nsctp\t132\tSCTP\n"


def table(programs: Programs) -> list[Image]:
    """Every image; `programs` is what `lab.build.programs.build_all` returned."""
    return [
        *_kubernetes(programs),
        *_network(programs),
        _node_feature_discovery(programs),
        *nvidia.images(programs),
        *nvidia.of_other_registries(programs),
        *monitoring.images(programs),
    ]


def earlier(programs: Programs) -> list[Image]:
    """Images of the earlier releases that were built, for labs that try an upgrade."""
    existing = {image.name for image in table(programs)}
    built = [release for release in EARLIER if release.is_built(programs)]
    images = [image for release in built for image in _of_release(programs, release)]
    return [image for image in images if image.name not in existing]


def _of_release(programs: Programs, release: KubernetesRelease) -> list[Image]:
    """A release's control plane, and what its kubeadm names besides: of today's software."""
    version = f"v{release.version}"
    origin = f"real, built from the Go module {KUBERNETES}@{version}"
    tags = {"etcd": release.etcd, "coredns/coredns": release.coredns, "pause": release.pause}
    images_by_repository = {image.repository: image for image in _kubernetes(programs)}
    return [
        *_control_plane(programs, version, programs[release.program("kube")], origin),
        *(
            replace(
                images_by_repository[repository],
                name=f"{REGISTRY}/{repository}:{tag}",
                origin=f"STAND-IN under this tag, for kubeadm {version}: "
                f"{images_by_repository[repository].name}, "
                f"{images_by_repository[repository].origin}",
            )
            for repository, tag in tags.items()
        ),
    ]


def images_dirs(programs: Programs, progress: Progress) -> list[Path]:
    """Folders of the store with all images, laid out as the mirror's `/v2`; made if missing.

    Linking or copying them to the mirror's document root is all that a registry needs.
    """
    folders = [images_dir("images", table(programs), progress)]
    if earlier_images := earlier(programs):
        folders.append(images_dir("images-earlier", earlier_images, progress))
    return folders


def simulated_images_dir(programs: Programs, progress: Progress) -> Path:
    """The folder of the store with those of NVIDIA's registry alone, as `images_dirs` for all."""
    return images_dir("images-simulated", nvidia.images(programs), progress)


def images_dir(name: str, images: Sequence[Image], progress: Progress) -> Path:
    """The folder of the store with these images; made if missing. + name: how its name begins"""
    key = digest(*(part for image in images for part in _identity(image)), *SOURCES)

    def make(out: Path) -> None:
        progress(f"images: writing {len(images)}")
        write_images(images, out)

    return stored(f"{name}-{key}", make)


SOURCES = tuple(Path(__file__).parent / name for name in ("images.py", "libraries.py"))


def _identity(image: Image) -> list[str | bytes | Path]:
    """What an image is made of, for a key. A file in the store is known by its name there."""
    store = folder("")
    files: list[str | bytes | Path] = []
    for path, source in sorted(image.files.items()):
        in_store = isinstance(source, Path) and source.is_relative_to(store)
        files += [path, str(source) if in_store else source]
    metadata = (image.name, image.entrypoint, image.origin, image.env, image.user, image.workdir)
    added = (image.command, sorted(image.modes.items()))
    return [repr((*metadata, image.libs, *added)), *files]


def _control_plane(programs: Programs, version: str, kube: Path, origin: str) -> list[Image]:
    # one content, so one layer, for four images: kube-proxy's nft and iptables cost them little
    files: dict[str, Source] = {"/usr/local/bin/kube": kube}
    files |= {f"/usr/local/bin/{name}": f"{SYMLINK}kube" for name in CONTROL_PLANE}
    files |= _netfilter(programs)
    return [
        Image(f"{REGISTRY}/{name}:{version}", files, (name,), origin, libs=True)
        for name in CONTROL_PLANE
    ]


def _kubernetes(programs: Programs) -> list[Image]:
    etcd_module = f"{software.ETCD}/server/v3"
    etcd = module_version(etcd_module).removeprefix("v") + ETCD_REVISION
    coredns = module_version("github.com/coredns/coredns")
    origin = built_from(KUBERNETES)
    images = _control_plane(programs, software.kubernetes_version(), programs["kube"], origin)
    etcd_files = {f"/usr/local/bin/{name}": programs[name] for name in ETCD_PROGRAMS}
    images.append(Image(f"{REGISTRY}/etcd:{etcd}", etcd_files, ("etcd",), built_from(etcd_module)))
    images.append(
        Image(
            f"{REGISTRY}/coredns/coredns:{coredns}",
            {"/coredns": programs["coredns"]},
            ("/coredns",),
            built_from("github.com/coredns/coredns") + ", with a short list of plugins",
        )
    )
    pause = "STAND-IN: the lab's own program; upstream's is in no Go module"
    files: dict[str, Source] = {"/pause": programs["pause"]}
    images.append(Image(f"{REGISTRY}/pause:{PAUSE}", files, ("/pause",), pause, user="65535:65535"))
    return images


def _netfilter(programs: Programs) -> dict[str, Source]:
    """Debian's nft, iptables (on nftables) with its extensions, and conntrack."""
    root = programs["debian-root"]
    extensions = sorted((root / "usr/lib/x86_64-linux-gnu/xtables").glob("*.so"))
    files: dict[str, Source] = {
        f"/usr/lib/x86_64-linux-gnu/xtables/{path.name}": path for path in extensions
    }
    files["/etc/protocols"] = PROTOCOLS
    for name in ("nft", "conntrack", "xtables-nft-multi"):
        files[f"/usr/sbin/{name}"] = programs[name]
    return files | {f"/usr/sbin/{name}": f"{SYMLINK}xtables-nft-multi" for name in IPTABLES}


def _network(programs: Programs) -> list[Image]:
    version = module_version(software.FLANNEL)
    daemon: dict[str, Source] = {
        **shell(programs),
        **_netfilter(programs),
        "/opt/bin/flanneld": programs["flanneld"],
        "/opt/bin/install-conf": programs["install-conf"],
    }
    plugin = {**shell(programs), "/flannel": programs["flannel-cni"]}
    return [
        Image(
            f"ghcr.io/flannel-io/flannel:{version}",
            daemon,
            ("/opt/bin/flanneld",),
            built_from(software.FLANNEL) + ", without its backends for Tencent's VPC and UDP",
            libs=True,
        ),
        Image(
            f"ghcr.io/flannel-io/flannel-cni-plugin:{FLANNEL_CNI}",
            plugin,
            ("/flannel",),
            "STAND-IN: the lab's own program; no module proxy has upstream's module",
        ),
    ]


def _node_feature_discovery(programs: Programs) -> Image:
    names = ("nfd-master", "nfd-worker", "nfd-gc")
    return Image(
        f"registry.k8s.io/nfd/node-feature-discovery:{module_version(software.NFD)}",
        {f"/usr/bin/{name}": programs[name] for name in names},
        (),
        built_from(software.NFD),
        env={"GRPC_GO_LOG_SEVERITY_LEVEL": "INFO"},
        user=f"{NOBODY_UID}:{NOBODY_UID}",
    )
