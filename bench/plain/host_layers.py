"""The state of bench/ansible/host_layers.yml, by operations of pyinfra's own library.

As somebody writes it who knows pyinfra: what needs no operation is decided by what one command has
read of the machine, and what follows from a change has `_if`.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import FileSystemLoader
from pyinfra.api.exceptions import DeployError
from pyinfra.api.operation import OperationMeta
from pyinfra.context import host
from pyinfra.facts.deb import DebPackages
from pyinfra.facts.server import Command
from pyinfra.operations import apt, files, server, systemd
from pyinfra.operations.util import any_changed

from bench.plain.values import (
    ANSIBLE,
    BLACKLIST,
    CDI,
    CREDENTIALS,
    GPUBOOT,
    ISOLATE,
    PREREQUISITES,
    READ,
    REGISTRIES,
    ROOT,
    SYSCTLS,
    SYSTEMS,
)

site: dict[str, Any] = host.data.site
versions: dict[str, Any] = site["versions"]
nodes: list[dict[str, str]] = host.data.nodes
leads = host.name == nodes[0]["name"]
folders = [*(["/etc/gpuboot"] if leads else []), "/etc/apt/keyrings", "/etc/containerd/conf.d",
           REGISTRIES, f"{REGISTRIES}/_default"]  # fmt: skip


def read() -> dict[str, list[str]]:
    """Key -> values of the lines that one command prints."""
    script = (ROOT / "deploys/parts/node/fact.sh").read_text()
    script += READ.format(folders=" ".join(folders), credentials=" ".join(CREDENTIALS))
    values: dict[str, list[str]] = {}
    for line in host.get_fact(Command, command=script).splitlines():
        key, tab, value = line.partition("\t")
        if tab:
            values.setdefault(key, []).append(value)
    return values


machine = read()


def value(key: str) -> str:
    """What the machine said of a key first; "" for nothing."""
    return machine.get(key, [""])[0]


def check() -> None:
    """Raise `DeployError` for a machine that cannot become a GPU node."""
    problems = {
        "user": value("uid") != "0",
        "architecture": value("arch") != "x86_64",
        "system": f"{value('os_id')} {value('os_version')}" not in SYSTEMS,
        "CPUs": int(value("cpus")) < 2,
        "memory": int(value("memory_kib")) < 3500 * 1024,
        "disk": int(value("disk_kib")) < site["preflight"]["min_disk_mib"] * 1024,
        "GPUs": sum(" 0x0302" in pci or " 0x0300" in pci for pci in machine.get("pci", []))
        != host.data.gpus,
        "features": {"overlay", "br_netfilter"} - {*machine.get("kernel_feature", [])},
        "headers": value("headers") == "missing",
        "Secure Boot": value("secure_boot") not in ("", "0"),
        "others": {"selinux", "foreign", "remnant", "broken"} & machine.keys(),
        "read": value("end") != "ok",
    }
    if any(problems.values()):
        raise DeployError(f"{host.name}: {', '.join(filter(problems.get, problems))}")


def template(src: Path, dest: str, mode: str = "644", **variables: Any) -> OperationMeta:
    """A file from a template of gpuboot or of the playbook."""
    kwargs = {
        "trim_blocks": True,
        "lstrip_blocks": True,
        "loader": FileSystemLoader(str(GPUBOOT)),
    }
    return files.template(
        name=f"Write {dest}", src=str(src), dest=dest, mode=mode, jinja_env_kwargs=kwargs,
        **variables,
    )  # fmt: skip


def base() -> None:
    """Folders, kernel modules and settings, swap, names."""
    for folder in machine.get("missing_folder", []):
        files.directory(name=f"Make {folder}", path=folder, mode="755")
    kernel_files = [
        template(GPUBOOT / "base/modules.conf.j2", "/etc/modules-load.d/gpuboot.conf"),
        template(
            GPUBOOT / "base/sysctl.conf.j2", "/etc/sysctl.d/99-zz-gpuboot.conf", sysctls=SYSCTLS
        ),
        template(ANSIBLE / "nouveau.conf.j2", "/etc/modprobe.d/gpuboot-nouveau.conf"),
    ]
    server.shell(
        name="Load kernel modules",
        commands=["modprobe -a overlay br_netfilter"],
        _if=any_changed(*kernel_files),
    )
    for key, expected in SYSCTLS.items():
        server.sysctl(name=f"Set {key}", key=key, value=expected)
    if site["cluster"]["fail_swap_on"] and "swap" in machine:
        pattern = (
            r"s/^([^#[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+swap[[:space:]].*)$/# \1/"
        )
        commands = ["swapoff -a", f"sed -i -E '{pattern}' /etc/fstab"]
        server.shell(name="Turn swap off", commands=commands)
    for path in machine.get("old_credentials", []):
        files.file(name=f"Remove {path}", path=path, present=False)
    files.block(
        name="Write node names to /etc/hosts",
        path="/etc/hosts",
        marker="# gpuboot: {mark}",
        begin="nodes of the cluster",
        end="end",
        content=[
            f"{node['address']} {node['name']}"
            for node in nodes
            if node["role"] == "control_plane" or node["name"] == host.name
        ],
    )


def repositories() -> list[dict[str, str]]:
    """The repositories of the playbook's group_vars."""
    urls = {name: mirror["url"] for name, mirror in site["mirrors"]["apt"].items()}
    system, release = value("os_id"), value("os_version")
    docker = f"{urls['docker']}/{system}"
    kubernetes = f"{urls['kubernetes']}/core:/stable:/v{versions['kubernetes']['minor']}/deb/"
    cuda = f"{urls['cuda']}/{system}{release.replace('.', '')}/x86_64/"
    codename = {"suite": value("os_codename"), "components": "stable"}
    return [
        {"name": "docker", "url": docker, "key_url": f"{docker}/gpg", **codename},
        {"name": "kubernetes", "url": kubernetes, "key_url": f"{kubernetes}Release.key"},
        {"name": "cuda", "url": cuda, "key_url": f"{cuda}3bf863cc.pub"},
        {
            "name": "toolkit",
            "url": f"{urls['toolkit']}/stable/deb/amd64/",
            "key_url": f"{urls['toolkit']}/gpgkey",
        },
    ]


def sources() -> None:
    """apt's configuration, repositories and their keys; the index where they changed."""
    mirrors = site["mirrors"]["apt"]
    names = sorted({urlsplit(mirror["url"]).hostname for mirror in mirrors.values()})
    changes = [
        template(
            GPUBOOT / "base/apt.conf.j2", "/etc/apt/apt.conf.d/95gpuboot", http="", https="",
            mirrors=names, ca_bundle=site["mirrors"]["ca_bundle"], blacklist=BLACKLIST,
        )
    ]  # fmt: skip
    for repository in repositories():
        name = repository["name"]
        key = f"/etc/apt/keyrings/gpuboot-{name}.asc"
        dest = f"/etc/apt/sources.list.d/gpuboot-{name}.sources"
        variables = {**repository, "key": key}
        changes += [
            template(ANSIBLE / "repository.sources.j2", dest, repository=variables),
            files.download(
                name=f"Download {key}", src=repository["key_url"], dest=key, mode="644",
                sha256sum=mirrors[name]["key_sha256"],
            ),
        ]  # fmt: skip
    apt.update(name="Read the index", _if=any_changed(*changes))


def packages() -> None:
    """What is missing, by one run of apt after the driver's pin; holds."""
    kubernetes, toolkit = versions["kubernetes"], versions["toolkit"]["version"]
    locked = {
        "containerd.io": f"{versions['containerd']['version']}-*",
        "cri-tools": f"{kubernetes['cri_tools']}-*",
        **dict.fromkeys(("kubeadm", "kubectl", "kubelet"), f"{kubernetes['version']}-*"),
        "kubernetes-cni": f"{kubernetes['cni']}-*",
        "libnvidia-container-tools": toolkit,
        "libnvidia-container1": toolkit,
        "nvidia-container-toolkit": toolkit,
        "nvidia-container-toolkit-base": toolkit,
    }
    driver = versions["driver"]["version"]
    installed = host.get_fact(DebPackages)
    pin = f"nvidia-driver-pinning-{driver}"
    headers = [] if value("headers") == "installed" else [f"linux-headers-{value('kernel')}"]
    missing = [name for name in [*PREREQUISITES, *headers] if name not in installed]
    # pyinfra compares versions as they are written, without "*"
    missing += [
        f"{name}={version}"
        for name, version in {**locked, "nvidia-open": f"{driver}-*"}.items()
        if not any(fnmatch(item, version) for item in installed.get(name, ()))
    ]
    for names in ([] if pin in installed else [pin], missing):
        if names:
            apt.packages(
                name=f"Install {len(names)} packages", packages=names, no_recommends=True,
                allow_downgrades=True,
                extra_install_args="--allow-change-held-packages -o DPkg::Lock::Timeout=600",
            )  # fmt: skip
    if missing or {*locked} - {*machine.get("hold", [])}:
        server.shell(name="Hold packages", commands=[f"apt-mark hold {' '.join(locked)}"])


def driver() -> None:
    """The driver is loaded, and nvidia-smi lists every GPU."""
    version, loaded = versions["driver"]["version"], value("driver")
    if "nouveau" in machine.get("module", []) or (loaded and version not in loaded):
        server.reboot(name="Reboot where another driver is loaded", reboot_timeout=900)
    if version not in loaded or "uvm" not in machine:
        server.shell(name="Load the driver", commands=["modprobe nvidia && modprobe nvidia-uvm"])
    if value("smi") != str(host.data.gpus):
        count = f'[ "$(nvidia-smi -L | grep -c "UUID: GPU-")" = {host.data.gpus} ]'
        server.shell(name="Check that nvidia-smi lists every GPU", commands=[count])


def runtime() -> None:
    """containerd and NVIDIA's toolkit."""
    for registry, mirror in site["mirrors"]["images"].items():
        template(
            GPUBOOT / "containerd/hosts.toml.j2",
            f"{REGISTRIES}/{registry.replace('*', '_default')}/hosts.toml",
            registry=registry, mirror=mirror, ca_bundle=site["mirrors"]["ca_bundle"],
        )  # fmt: skip
    if "isolated" not in machine:
        server.shell(name="Let only privileged containers choose GPUs", commands=[ISOLATE])
    variables: dict[str, Any] = {
        "site": site,
        "containerd_config_version": 4,
        "registry_folders": REGISTRIES,
    }
    configuration = any_changed(
        template(ANSIBLE / "config.toml.j2", "/etc/containerd/config.toml", **variables),
        template(
            ANSIBLE / "99-nvidia.toml.j2", "/etc/containerd/conf.d/99-nvidia.toml", **variables
        ),
    )
    if "cdi" not in machine:
        server.shell(name="Generate the CDI specification of the GPUs", commands=[CDI])
    # kubelet runs once kubeadm has configured it
    for unit, running in {"containerd": True, "nvidia-persistenced": True, "kubelet": None}.items():
        systemd.service(name=f"Start {unit}", service=unit, running=running, enabled=True)
    systemd.service(name="Restart containerd", service="containerd", restarted=True,
                    _if=configuration)  # fmt: skip


def kubernetes() -> None:
    """kubeadm's configuration on the first control plane."""
    if not leads:
        return
    leader = nodes[0]
    endpoint = site["cluster"]["endpoint"].split(":")[0]
    template(
        GPUBOOT / "kubernetes/kubeadm-init.yaml.j2", "/etc/gpuboot/kubeadm.yaml", mode="600",
        cluster=site["cluster"], node=leader, certificate_key="", any_address="0.0.0.0",
        taints=None if any(node["role"] == "worker" for node in nodes) else [],
        cri_socket="unix:///run/containerd/containerd.sock",
        version=f"v{versions['kubernetes']['version']}",
        certificate_names=[
            "localhost", "127.0.0.1", leader["name"], leader["address"], endpoint,
        ],
        etcd_metrics="http://0.0.0.0:2381", proxy_metrics="0.0.0.0:10249",
    )  # fmt: skip


check()
base()
sources()
packages()
driver()
runtime()
kubernetes()
