"""The images that the suite's pods run, under the names that the suite asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lab.build.golang import module_dir, module_version
from lab.build.image_parts import Programs, built_from
from lab.build.image_table import ETCD_PROGRAMS, images_dir
from lab.build.images import SYMLINK, Image
from lab.build.libraries import Source
from lab.build.progress import Progress
from lab.build.software import ETCD, kubernetes_version
from lab.build.software_kubernetes import KUBERNETES
from lab.conformance.builds import AGNHOST
from lab.host import run

# where the suite's source lists its images, and its registries
LIST = "test/utils/image/manifest.go"
TOOLS = ("curl", "dig", "getent", "host", "ip", "iperf", "nc", "nslookup", "nsenter")
NONROOT_UID = "1234"
_REAL = f"real, built from the Go module {AGNHOST}, with Debian's programs instead of Alpine's"
_STAND_IN = "STAND-IN: "
_AGNHOST_PASSWD = """\
root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/:/sbin/nologin
user-defined-in-image:x:1000:1000::/:/bin/sh
"""
_AGNHOST_GROUP = """\
root:x:0:
nogroup:x:65534:
user-defined-in-image:x:1000:
group-defined-in-image:x:50000:user-defined-in-image
"""
# a spec looks for the base of upstream's image in it
_OS_RELEASE = 'NAME="Alpine Linux (STAND-IN: made by the lab from Debian packages)"\n'
_NGINX = """\
user root;
worker_processes 1;
error_log stderr;
pid /tmp/nginx.pid;
events {}
http {
  access_log off;
  server {
    listen 80;
    root /usr/share/nginx/html;
  }
}
"""


def image_names(source: str) -> dict[str, str]:
    """The names of all images of the suite, by their names in its source.

    + source: of the file `LIST`
    """
    registries = dict(re.findall(r'^\t+(\w+):\s+"([^"]+)",$', source, re.MULTILINE))
    configs = re.findall(r'configs\[(\w+)\] = Config\{list\.(\w+), "(.+?)", "(.+?)"\}', source)
    return {key: f"{registries[name]}/{path}:{tag}" for key, name, path, tag in configs}


def conformance_dir(programs: Programs, progress: Progress) -> Path:
    """The folder of the store with all these images, laid out as the mirror's `/v2`."""
    source = module_dir(KUBERNETES)
    names = image_names((source / LIST).read_text())
    applets = run([str(programs["busybox"]), "--list"]).split()
    return images_dir("images-conformance", table(programs, names, applets, source), progress)


def table(
    programs: Programs, names: Mapping[str, str], applets: Sequence[str], source: Path
) -> list[Image]:
    """Every image.

    + names: as the suite calls them, by their names in its source
    + applets: commands of busybox
    + source: folder of Kubernetes' module
    """
    shell = _shell(programs, applets)
    agnhost = _agnhost(programs, names["Agnhost"], shell, source)
    previous_tag_origin = (
        f"{_STAND_IN}today's agnhost under this tag: its programs are {agnhost.origin}"
    )
    return [
        agnhost,
        replace(agnhost, name=names["AgnhostPrev"], origin=previous_tag_origin),
        replace(agnhost, name=names["NonRoot"], user=NONROOT_UID, command=()),
        *(_with_picture(agnhost, names[name], name.lower(), source) for name in _PICTURES),
        Image(
            names["BusyBox"],
            shell,
            (),
            f"{_STAND_IN}Debian's busybox-static; bash is its sh, because Debian's ash drops "
            "variables of the environment whose names no shell knows",
            libs=True,
            command=("sh",),
        ),
        *(_nginx(programs, names[name], shell) for name in ("Nginx", "NginxNew")),
        _dns(programs, names["GlibcDnsTesting"], shell),
        _no_new_privileges(programs, names["Nonewprivs"], shell),
        _etcd(programs, names["Etcd"]),
        _sample_apiserver(programs, names["APIServer"]),
        _conformance(programs, shell),
    ]


_PICTURES = ("Kitten", "Nautilus")


def _shell(programs: Programs, applets: Sequence[str]) -> dict[str, Source]:
    """All commands of busybox, and bash as `sh`."""
    links: dict[str, Source] = {f"/usr/bin/{name}": f"{SYMLINK}busybox" for name in applets}
    links["/usr/bin/busybox"] = programs["busybox"]
    return {
        **links,
        "/usr/bin/bash": programs["conformance-bash"],
        "/usr/bin/sh": f"{SYMLINK}bash",
        "/root/": "",
        "/var/run/": "",
    }


def _tools(programs: Programs, *names: str) -> dict[str, Source]:
    return {f"/usr/bin/{name}": programs[f"conformance-{name}"] for name in names}


def _agnhost(programs: Programs, name: str, shell: Mapping[str, Source], source: Path) -> Image:
    porter = source / "test/images/agnhost/porter"
    files: dict[str, Source] = {
        **shell,
        **_tools(programs, *TOOLS),
        "/agnhost": programs["agnhost"],
        "/agnhost-2": f"{SYMLINK}agnhost",
        "/uploads/": "",
        "/etc/passwd": _AGNHOST_PASSWD,
        "/etc/group": _AGNHOST_GROUP,
        **{f"/localhost.{part}": porter / f"localhost.{part}" for part in ("crt", "key")},
    }
    return Image(name, files, ("/agnhost",), _REAL, libs=True, command=("pause",))


def _with_picture(agnhost: Image, name: str, picture: str, source: Path) -> Image:
    """agnhost serving a picture and a number of its own, which updates are told by."""
    folder = source / "test/images" / picture / "html"
    pages: dict[str, Source] = {f"/{picture}.jpg": folder / f"{picture}.jpg"}
    pages["/data.json"] = folder / "data.json"
    pages["/etc/os-release"] = _OS_RELEASE
    files = {**agnhost.files, **pages}
    return replace(agnhost, name=name, files=files, command=("test-webserver",))


def _nginx(programs: Programs, name: str, shell: Mapping[str, Source]) -> Image:
    page = programs["conformance-root"] / "usr/share/nginx/html/index.html"
    files: dict[str, Source] = {
        **shell,
        "/usr/sbin/nginx": programs["conformance-nginx"],
        "/etc/nginx/nginx.conf": _NGINX,
        "/usr/share/nginx/html/index.html": page,
        "/var/lib/nginx/": "",
        "/var/log/nginx/": "",
    }
    origin = f"{_STAND_IN}Debian's nginx under this tag"
    return Image(name, files, (), origin, libs=True, command=("nginx", "-g", "daemon off;"))


def _dns(programs: Programs, name: str, shell: Mapping[str, Source]) -> Image:
    """Names are looked up by the C library and by dig, as in upstream's image of Debian."""
    files = {**shell, **_tools(programs, "dig", "getent", "host", "nslookup")}
    return Image(name, files, (), "real, Debian's bind9-dnsutils", libs=True, command=("bash",))


def _no_new_privileges(programs: Programs, name: str, shell: Mapping[str, Source]) -> Image:
    """A program with root's setuid bit, which must not count in a pod without escalation."""
    path = "/usr/local/bin/nnp"
    files = {**shell, path: programs["nnp"]}
    origin = f"real, built from the Go module {KUBERNETES}/test/images/nonewprivs"
    modes = {path: 0o6755}
    return Image(name, files, (), origin, libs=True, command=("nnp",), modes=modes)


def _etcd(programs: Programs, name: str) -> Image:
    version = module_version(f"{ETCD}/server/v3")
    files: dict[str, Source] = {f"/usr/local/bin/{part}": programs[part] for part in ETCD_PROGRAMS}
    return Image(name, files, ("etcd",), f"{_STAND_IN}etcd {version} under this tag")


def _sample_apiserver(programs: Programs, name: str) -> Image:
    files: dict[str, Source] = {"/sample-apiserver": programs["sample-apiserver"]}
    origin = "real, built from the Go module k8s.io/sample-apiserver"
    return Image(name, files, ("/sample-apiserver",), origin)


def _conformance(programs: Programs, shell: Mapping[str, Source]) -> Image:
    """What `gpuboot conformance --kubernetes` starts: the suite, with upstream's own start."""
    names = ("ginkgo", "e2e.test", "kubectl", "kubeconformance")
    programs_in_it = {f"/usr/local/bin/{name}": programs[name] for name in names}
    return Image(
        f"registry.k8s.io/conformance:{kubernetes_version()}",
        {**shell, **programs_in_it, "/kubernetes/": ""},
        ("kubeconformance",),
        built_from(KUBERNETES),
        env={
            "E2E_FOCUS": r"\[Conformance\]",
            "E2E_PROVIDER": "local",
            "E2E_PARALLEL": "1",
            "E2E_VERBOSITY": "4",
            "RESULTS_DIR": "/tmp/results",
        },
        libs=True,
    )
