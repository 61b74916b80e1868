"""The site's HTTP proxy, in the words of each program that has to use it.

Its address may hold a password. So what is made here either has none, or is for standard input and
for files that only root reads.
"""

import ipaddress
from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from pydantic import SecretStr

from gpuboot.config.settings import Proxy, Settings

# what containerd and dockerd are started with
ENVIRONMENT_FILE = "/etc/gpuboot/proxy.env"
UNIT = f"""\
# Written by gpuboot: images are pulled through the proxy
[Service]
EnvironmentFile={ENVIRONMENT_FILE}
"""
APT_AUTH = "/etc/apt/auth.conf.d/95gpuboot-proxy.conf"


def is_set(proxy: Proxy) -> bool:
    """Whether there is any proxy."""
    return bool(proxy.http or proxy.https)


def is_direct(url: str, no_proxy: Iterable[str]) -> bool:
    """Whether an address is reached without the proxy.

    + no_proxy: names (with all below them), addresses, networks (CIDR), or `*`
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    for entry in no_proxy:
        name = entry.lower().removeprefix("*").lstrip(".")
        if entry == "*" or host == name or host.endswith(f".{name}") or _within(host, entry):
            return True
    return False


def _within(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def nearby(host_address: str, addresses: Iterable[str], routes: Iterable[str]) -> list[str]:
    """The network that a host's address is in, and those of some others that are not in it.

    + host_address: the host's address; + addresses: those that it must reach without the proxy
    + routes: networks (CIDR) that it has routes to
    """
    networks = [ipaddress.ip_network(item, strict=False) for item in routes if item != "default"]
    around = [
        item for item in networks if item.prefixlen and ipaddress.ip_address(host_address) in item
    ]
    narrowest = max(around, key=lambda item: item.prefixlen, default=None)
    covered = [host_address] if narrowest is None else [str(narrowest)]
    return [
        *covered,
        *(item for item in addresses if not any(_within(item, network) for network in covered)),
    ]


def without_password(url: str | None) -> str | None:
    """The proxy's address alone."""
    if not url:
        return None
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def apt_auth(proxy: Proxy) -> str:
    """Name and password for apt (apt_auth.conf(5)); "" where the proxy asks for none.

    apt gives them to a proxy of plain http only where the entry says http.
    """
    lines = []
    for url in (proxy.http, proxy.https):
        parts = urlsplit(url or "")
        if parts.username is not None:
            machine = parts.netloc.rpartition("@")[2]
            lines.append(
                f"machine {parts.scheme}://{machine} login {unquote(parts.username)}"
                f" password {unquote(parts.password or '')}\n"
            )
    return "".join(dict.fromkeys(lines))


def used(proxy: Proxy, url: str) -> str | None:
    """The proxy through which an address is reached; None: directly."""
    address = proxy.http if url.startswith("http:") else proxy.https or proxy.http
    return None if is_direct(url, proxy.no_proxy) else address


def curl(settings: Settings, url: str) -> SecretStr | None:
    """Configuration of one download by curl (`--config -`); None without a proxy."""
    if not is_set(settings.proxy):
        return None
    proxy = used(settings.proxy, url)
    return SecretStr(f'proxy = "{_safe(proxy)}"\n' if proxy else 'noproxy = "*"\n')


def exports(settings: Settings, extra_variables: dict[str, str]) -> SecretStr | None:
    """Shell commands that set the environment of a download; None where there is nothing to set.

    + extra_variables: variables beside the proxy's
    """
    variables = {
        name.lower(): value for name, value in _variables(settings.proxy).items()
    } | extra_variables
    lines = [f"export {name}='{value}'\n" for name, value in variables.items()]
    return SecretStr("".join(lines)) if lines else None


def environment(proxy: Proxy, direct: Iterable[str]) -> SecretStr:
    """`ENVIRONMENT_FILE` (systemd.exec(5)).

    + direct: what is reached without the proxy, beside the site's own list
    """
    variables = _variables(proxy, direct)
    return SecretStr("".join(f"{name}='{value}'\n" for name, value in variables.items()))


def _variables(proxy: Proxy, direct: Iterable[str] = ()) -> dict[str, str]:
    if not is_set(proxy):
        return {}
    variables = {
        "HTTP_PROXY": _safe(proxy.http or ""),
        "HTTPS_PROXY": _safe(proxy.https or proxy.http or ""),
        "NO_PROXY": ",".join(dict.fromkeys([*direct, *proxy.no_proxy])),
    }
    return {name: value for name, value in variables.items() if value}


def _safe(url: str) -> str:
    """The URL without a character that means something to a shell, systemd or curl."""
    return quote(url, safe="!#%&()*+,/:;=?@[]~")
