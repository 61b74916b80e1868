"""What a host's own files do at its next boot to what a run sets (deploys/parts/node/boot.sh)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuboot.hosts.fact_output import Fields


@dataclass(frozen=True)
class ConfigLine:
    """A line of a file of the host. Lines that go on in the next have the number of the first."""

    file: str
    number: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.number}"


@dataclass(frozen=True)
class BootState:
    """What the boot of one host reads.

    + hosts_template: the file of which cloud-init makes /etc/hosts at each boot; "" for none
    + hosts_owner: the comment in /etc/hosts that names a program which writes it; "" for none
    + hosts_readonly: not even root can write /etc/hosts
    + sysctls: assignments of kernel settings that concern ours, in the order in which they are made
    + swap: commands that turn swap on without a swap unit of systemd
    + kubelet: flags of the kubelet, and commands that start it, beside those of its packages
    + containerd: commands that start containerd, beside that of its package
    + containerd_settings: those of other people's drop-ins, with their table: `a.b.key = value`
    + static_pods: files of /etc/kubernetes/manifests of a host that is no control plane
    + resolvers: resolv.conf and its like -> the name servers in it
    + resolver_missing: the file that the kubelet's configuration names, where it is not there
    + units: of NetworkManager and systemd-resolved those that run
    + reboots_by: programs that reboot the host after updates
    """

    hosts_template: str = ""
    hosts_owner: str = ""
    hosts_readonly: bool = False
    sysctls: tuple[ConfigLine, ...] = ()
    swap: tuple[ConfigLine, ...] = ()
    kubelet: tuple[ConfigLine, ...] = ()
    containerd: tuple[ConfigLine, ...] = ()
    containerd_settings: tuple[ConfigLine, ...] = ()
    static_pods: tuple[str, ...] = ()
    resolvers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resolver_missing: str = ""
    units: frozenset[str] = frozenset()
    reboots_by: tuple[str, ...] = ()


def parse(values: Fields) -> BootState:
    """What `deploys/parts/node/boot.sh` printed, be it among other lines."""
    return BootState(
        hosts_template=values.first("hosts_template"),
        hosts_owner=values.first("hosts_owner"),
        hosts_readonly="hosts_readonly" in values,
        sysctls=_lines(values, "sysctl_line"),
        swap=_lines(values, "swap_line"),
        kubelet=_lines(values, "kubelet_line"),
        containerd=_lines(values, "containerd_line"),
        containerd_settings=_lines(values, "containerd_setting"),
        static_pods=tuple(values.all("static_pod")),
        resolvers={name: tuple(text.split()) for name, text in values.pairs("resolver").items()},
        resolver_missing=values.first("resolver_missing"),
        units=frozenset(values.all("boot_unit")),
        reboots_by=tuple(values.all("reboots_by")),
    )


def _lines(values: Fields, key: str) -> tuple[ConfigLine, ...]:
    columns = (item.split("\t", 2) for item in values.raw(key))
    return tuple(ConfigLine(file, int(number), text.strip()) for file, number, text in columns)
