"""What the conformance suite needs: `e2e.test`, its runners, and the programs of its images.

Real software, built from the Go modules in `module/` and `sample-apiserver/`: the versions that
upstream's own go.mod requires, so that the suite is the one that upstream publishes. Only labs
that run the suite want them.
"""

from __future__ import annotations

import stat
from pathlib import Path

from lab.build.base import apt_options
from lab.build.golang import (
    LINK,
    build_arguments,
    common_inputs,
    copy_module,
    go_recipe,
    run_go,
)
from lab.build.recipe import BuildContext, Recipe
from lab.build.software import kubernetes_version
from lab.build.software_kubernetes import KUBERNETES, version_variables
from lab.debian_releases import BOOKWORM
from lab.host import run

FOLDER = Path(__file__).parent
MODULE = FOLDER / "module"
SAMPLE_APISERVER_MODULE = FOLDER / "sample-apiserver"
SUITE = f"{KUBERNETES}/test/e2e"
AGNHOST = f"{KUBERNETES}/test/images/agnhost"
SAMPLE_APISERVER = "k8s.io/sample-apiserver"

# what upstream's images have from Alpine or Debian, and what that needs
PACKAGES = tuple(
    """
    bash bind9-dnsutils bind9-host coreutils curl iperf iproute2 libc-bin netcat-openbsd nginx
    util-linux
    """.split()  # noqa: SIM905 - as in lab.build.base
)
PROGRAMS = {
    "conformance-root": "root",
    **{
        f"conformance-{name}": f"root{path}"
        for name, path in {
            "bash": "/bin/bash",
            "curl": "/usr/bin/curl",
            "dig": "/usr/bin/dig",
            "getent": "/usr/bin/getent",
            "host": "/usr/bin/host",
            "ip": "/bin/ip",
            "iperf": "/usr/bin/iperf",
            "nc": "/bin/nc.openbsd",
            "nginx": "/usr/sbin/nginx",
            "nslookup": "/usr/bin/nslookup",
            "nsenter": "/usr/bin/nsenter",
        }.items()
    },
}


def recipes() -> list[Recipe]:
    """Every recipe of the suite, the longest first."""
    return [_suite(), _tools(), _sample_apiserver(), _debian_programs()]


def _suite() -> Recipe:
    """The suite itself, which is compiled as a test of Go is."""
    version = kubernetes_version()
    link = [*LINK, *(f"-X {key}={text}" for key, text in version_variables(version).items())]
    arguments = ["test", "-c", "-vet=off", *build_arguments()[1:], f"-ldflags={' '.join(link)}"]

    def make(build: BuildContext) -> None:
        copy_module(build, MODULE)
        run_go(build, *arguments, f"-o={build.out}/e2e.test", SUITE)

    inputs = (*common_inputs(MODULE), *arguments, SUITE)
    return Recipe("conformance-suite", {"e2e.test": "e2e.test"}, inputs, make, seconds=1100)


def _tools() -> Recipe:
    """What starts the suite, and what most of its pods run."""
    packages = {
        "ginkgo": "github.com/onsi/ginkgo/v2/ginkgo",
        "kubeconformance": f"{KUBERNETES}/test/conformance/image/go-runner",
        "agnhost": AGNHOST,
        "nnp": f"{KUBERNETES}/test/images/nonewprivs",
    }
    return go_recipe("conformance-tools", packages, module=MODULE, seconds=60)


def _sample_apiserver() -> Recipe:
    return go_recipe(
        "conformance-sample-apiserver",
        {"sample-apiserver": SAMPLE_APISERVER},
        module=SAMPLE_APISERVER_MODULE,
        seconds=240,
    )


def _debian_programs() -> Recipe:
    """Debian's packages with all that they need, unpacked into one folder."""
    inputs: tuple[str | Path, ...] = (BOOKWORM.codename, *PACKAGES, repr(PROGRAMS))
    return Recipe("conformance-debian", PROGRAMS, inputs, _unpack, seconds=30)


def _unpack(build: BuildContext) -> None:
    apt = build.work / "apt"
    options = apt_options(BOOKWORM, apt, build.work / "status")
    command = ["apt-get", *options, "install", "--download-only", "--yes"]
    run([*command, "--no-install-recommends", *PACKAGES], log=build.log)
    root = build.out / "root"
    root.mkdir()
    for deb in sorted((apt / "archives").glob("*.deb")):
        run(["dpkg-deb", "--extract", str(deb), str(root)])
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():  # root's rights belong in containers alone
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
