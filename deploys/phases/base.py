"""What every node needs before anything else: apt's settings, the kernel's, and names."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic import SecretStr

from deploys.engine.operation import phase
from deploys.parts.docker import filter_operations as docker_filter
from deploys.parts.docker.filter_fact import CHAIN, program
from deploys.parts.files import operations as files
from deploys.parts.kernel import network_manager_operations as network_manager
from deploys.parts.kernel import operations as kernel
from deploys.parts.packages import operations as packages
from deploys.run.context import Context, current
from gpuboot.hosts import prerequisites, sysctls, time_services
from gpuboot.hosts import proxy as proxies
from gpuboot.preflight import firewall
from gpuboot.templates import render

# patterns of unattended-upgrades: prefixes of package names
UNATTENDED_UPGRADES_BLACKLIST = (
    "containerd",
    "cri-tools",
    "cuda",
    "docker",
    "kube",
    "libcuda",
    "libnvidia",
    "libnvsdm",
    "nvidia",
    "nvlsm",
)
APT_CONF = "/etc/apt/apt.conf.d/95gpuboot"


@phase("Base")
def base() -> None:
    """Prepare a host for Kubernetes."""
    context = current()
    settings = sysctls.expected(context.state.boot.sysctls)
    files.present(
        name="Configure kernel modules and sysctls",
        contents={
            "/etc/modules-load.d/gpuboot.conf": render("base/modules.conf.j2"),
            sysctls.FILE: render("base/sysctl.conf.j2", sysctls=settings),
        },
        absent=[sysctls.FORMER_FILE],
    )
    configure_apt(context)
    packages.finished(
        name="Finish installations that were interrupted",
        manager=context.platform.package_manager,
    )
    packages.installed(
        name="Install what adds package repositories",
        versions=dict.fromkeys(context.platform.package_names(prerequisites.FIRST), ""),
        manager=context.platform.package_manager,
    )
    kernel.applied(
        name="Load kernel modules and sysctls",
        features=["overlay", "br_netfilter"],
        sysctls=settings,
    )
    if context.settings.cluster.fail_swap_on:
        kernel.swap_off(name="Disable swap")
    _pod_network_respected(context)
    kernel.hosts(
        name="Write node names to /etc/hosts",
        addresses=known_names(context),
        template=context.state.boot.hosts_template,
    )


def _pod_network_respected(context: Context) -> None:
    """What else runs on the host leaves devices and packets of pods alone."""
    if "NetworkManager" in context.state.boot.units:
        network_manager.pod_network_unmanaged(name="Keep NetworkManager off the pod network")
    if firewall.beside_docker(context.state.packet_filter, context.settings):
        pods = context.settings.cluster.pod_cidr
        docker_filter.pods_let_through(
            name="Let pods through Docker's packet filter",
            pods=pods,
            unit=render(
                "base/docker-pods.service.j2", pods=pods, program=program(pods), chain=CHAIN
            ),
        )


def known_names(context: Context) -> dict[str, str]:
    """Node name -> address of those nodes that a host has to find: the control planes and itself.

    Not of all: then each worker that comes or goes would be a change on every host.
    """
    return {
        node.name: node.address
        for node in context.nodes
        if node.role == "control_plane" or node == context.node
    }


def package_names(context: Context, names: Sequence[str] = prerequisites.KUBERNETES) -> list[str]:
    """The packages a host needs; chrony only where nothing keeps the time yet.

    + names: what is needed in any case, as Debian calls it

    A container's clock is its host's: nothing to keep there.
    """
    state = context.state
    timed = state.container or time_services.running(state)
    return context.platform.package_names([*names, *([] if timed else [prerequisites.TIME])])


def configure_apt(context: Context) -> None:
    """apt's settings, and the proxy's password where root's apt alone reads it.

    Everybody reads the settings. dnf has its proxy in the site's own /etc/dnf/dnf.conf.
    """
    if context.platform.package_manager != "apt":
        return
    files.present(name="Configure apt", contents={APT_CONF: apt_conf(context)})
    auth = proxies.apt_auth(context.settings.proxy)
    files.secret(
        name="Store the proxy's credentials for apt",
        contents={proxies.APT_AUTH: SecretStr(auth)} if auth else {},
        absent=[] if auth else [proxies.APT_AUTH],
    )


def apt_conf(context: Context) -> str:
    """apt's settings: proxy, the mirrors' certificate authority, and the fence."""
    mirrors, proxy = context.settings.mirrors, context.settings.proxy
    urls = {urlsplit(mirror.url).hostname or "": mirror.url for mirror in mirrors.apt.values()}
    # apt knows single names alone, so the mirrors that an entry means are told one by one
    single = [name for name in proxy.no_proxy if not set(name) & set("/*") and name[0] != "."]
    direct_mirrors = [name for name, url in urls.items() if proxies.is_direct(url, proxy.no_proxy)]
    return render(
        "base/apt.conf.j2",
        http=proxies.without_password(proxy.http),
        https=proxies.without_password(proxy.https or proxy.http),
        direct=list(dict.fromkeys([*single, *direct_mirrors])),
        mirrors=sorted(urls) if mirrors.ca_bundle else [],
        ca_bundle=mirrors.ca_bundle,
        blacklist=UNATTENDED_UPGRADES_BLACKLIST,
    )
