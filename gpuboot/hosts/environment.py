"""HTTP proxies that programs on a host find in their environment."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpuboot.hosts.fact_output import Fields

# What every command of ours runs with, instead of what /etc/environment and sudo put there: kubeadm
# copies each variable that ends in _proxy and has a value into the control plane's pods
# (kubernetes v1.36, cmd/kubeadm/app/util/env.go), and kubectl would look for the API server there.
# The proxy of `settings.proxy` is told to each program that needs it.
_NAMES = ("http", "https", "all", "no", "ftp", "rsync", "socks")
WITHOUT_PROXIES = {
    name: "" for kind in _NAMES for name in (f"{kind}_proxy", f"{kind}_proxy".upper())
}


@dataclass(frozen=True)
class ProxyVariable:
    """A variable that names a proxy.

    + place: a file, commands (of ours), systemd, or a unit
    + value: without a password
    """

    place: str
    name: str
    value: str


def parse(values: Fields) -> tuple[ProxyVariable, ...]:
    """What `deploys/parts/node/proxies.sh` printed, be it among other lines."""
    return tuple(ProxyVariable(*words) for words in values.words("proxy_variable", 3))


def proxy_of(variables: Iterable[ProxyVariable]) -> tuple[str, tuple[str, ...]]:
    """The proxy that a program with these variables reaches https by ("" for none), and NO_PROXY.

    Go's programs read the upper case first, then the lower.
    """
    values = {item.name: item.value for item in variables}
    address, excepted = (
        values.get(name) or values.get(name.lower(), "") for name in ("HTTPS_PROXY", "NO_PROXY")
    )
    return address, tuple(name.strip() for name in excepted.split(",") if name.strip())
