"""containerd on every node, and NVIDIA's container toolkit on GPU nodes."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic import SecretStr

from deploys.engine.operation import phase
from deploys.parts.containerd import operations as containerd
from deploys.parts.files import operations as files
from deploys.parts.packages import operations as packages
from deploys.parts.toolkit import operations as toolkit
from deploys.parts.units import operations as units
from deploys.phases import node_software as parts
from deploys.phases.repositories import add_repository
from deploys.run.context import Context, current
from gpuboot.hosts import proxy as proxies
from gpuboot.hosts import registries
from gpuboot.templates import render

# settings.runtime.mode -> options of `nvidia-ctk runtime configure`. The handler nvidia is there in
# each: in "cdi" for dcgm-exporter alone, which claims no GPU and must see them all.
MODES = {"default": "--set-as-default", "runtimeclass": "", "cdi": ""}
# Of RuntimeClasses that the GPU Operator makes beside nvidia, also where it installs no toolkit
# (v26.7.0, assets/pre-requisites/0210_runtime_class_legacy.yaml, 0220_runtime_class_cdi.yaml): a
# pod that names one would wait for ever for its handler. The programs that the operator's toolkit
# has for them are in a package for it alone; the runtime itself chooses between their modes.
HANDLERS = ("nvidia-cdi", "nvidia-legacy")


@phase("Runtime")
def runtime() -> None:
    """Install containerd and the toolkit, and make containerd know the GPUs."""
    context = current()
    if not parts.upgraded_as_node(context):
        add_repository(context, "docker")
        packages.installed(
            name=f"Install containerd {context.lock.containerd.version}",
            versions=parts.containerd(context),
            manager=context.platform.package_manager,
            hold=True,
        )
        if context.node.gpus:
            install_toolkit(context)
    if context.node.gpus:
        toolkit.isolated(name="Let only privileged containers choose GPUs themselves")
    mirrors(context)
    logins = registries.containerd(context.settings)
    keep_secrets(context, registries.CONTAINERD, logins, direct(context))
    configuration = containerd_configuration(context)
    containerd.configured(
        name="Configure containerd, restarting it on changes",
        root=configuration.root,
        toolkit=configuration.toolkit,
        proxy=configuration.proxy,
    )
    units.running(name="Start containerd", units=["containerd.service"])
    if context.node.gpus:
        containerd.cdi(name="Generate the CDI specification of the GPUs")


def mirrors(context: Context) -> None:
    """Configure where containerd pulls images from; it reads that again for each."""
    if contents := registry_files(context):
        files.present(name="Configure registry mirrors", contents=contents)


def install_toolkit(context: Context) -> None:
    """Install NVIDIA's container toolkit on the current host, from NVIDIA's repository."""
    add_repository(context, "toolkit")
    packages.installed(
        name=f"Install NVIDIA Container Toolkit {context.lock.toolkit.version}",
        versions=parts.toolkit(context),
        manager=context.platform.package_manager,
        hold=True,
    )


def containerd_configuration(context: Context) -> containerd.Configuration:
    """What containerd is to run with on the current host."""
    return containerd.Configuration(
        root=root_config(context),
        toolkit=MODES[context.settings.runtime.mode] if context.node.gpus else "none",
        proxy=proxies.UNIT if proxies.is_set(context.settings.proxy) else "",
    )


def root_config(context: Context) -> str:
    """The text of containerd's root file, with @VERSION@ for the configuration version."""
    return render(
        "containerd/config.toml.j2",
        sandbox=f"registry.k8s.io/pause:{context.lock.kubernetes.pause}",
        runtime=context.settings.runtime,
        handlers=HANDLERS if context.node.gpus else (),
    )


def registry_files(context: Context) -> dict[str, str]:
    """The hosts.toml of every mirrored registry, by path. `*` stands for all others."""
    mirrors = context.settings.mirrors
    files_by_path = {}
    for registry, url in mirrors.images.items():
        folder = "_default" if registry == "*" else registry
        files_by_path[f"/etc/containerd/certs.d/{folder}/hosts.toml"] = render(
            "containerd/hosts.toml.j2", registry=registry, mirror=url, ca_bundle=mirrors.ca_bundle
        )
    return files_by_path


def keep_secrets(
    context: Context, path: str, logins: SecretStr | None, direct: Sequence[str] = ()
) -> None:
    """What image pulls need and only root may read: a proxy's address may hold a password too.

    + path, logins: the file of the registries' passwords and its text, None without any
    + direct: what is reached without the proxy, beside the site's own list
    """
    proxy = context.settings.proxy
    environment = proxies.environment(proxy, direct) if proxies.is_set(proxy) else None
    texts = {proxies.ENVIRONMENT_FILE: environment, path: logins}
    files.secret(
        name="Store proxy and registry credentials for image pulls",
        contents={name: text for name, text in texts.items() if text},
        absent=[name for name, text in texts.items() if not text],
    )


def direct(context: Context) -> list[str]:
    """What containerd reaches without the proxy: nodes, pods, Services and mirrors.

    Nodes by the host's own network and not one by one: another worker is no change here, which
    would restart containerd.
    """
    settings = context.settings
    hosts = {urlsplit(url).hostname for url in settings.mirrors.images.values()}
    return [
        "localhost", "127.0.0.1", settings.cluster.pod_cidr, settings.cluster.service_cidr,
        ".svc", f".{settings.cluster.dns_domain}", *proxies.nearby(
            context.node.address,
            [node.address for node in context.nodes if node.role == "control_plane"],
            [network for network, _ in context.state.routes],
        ),
        *sorted(name for name in hosts if name),
    ]  # fmt: skip
