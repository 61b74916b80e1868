"""What keeps NVIDIA's kernel modules from being loaded, or GPUs from them, now and at each boot.

modprobe.d(5) in kmod 30: `install` runs a command in a module's place, `alias` looks for another
module, and `blacklist` keeps udev from loading a module for its devices. `module_blacklist=` is the
kernel's own. NVIDIA's driver README, "Common problems", names the drivers that hold its GPUs.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gpuboot.hosts.fact_output import Fields

# names the GPUs that are not the cluster's (`gpuboot.hosts.gpu_choice`)
OWN_FILE = "/etc/modprobe.d/gpuboot-gpus.conf"
# modules that hold a GPU, so that NVIDIA's driver cannot have it
CONFLICTING = ("nouveau", "nova_core", "nvidiafb")
# modules without which no program computes; those of displays are not among them
_NEEDED = ("nvidia", "nvidia_uvm")
# parameters of the module nvidia that hide GPUs from it
_HIDING = ("NVreg_ExcludedGpus", "NVreg_AssignGpus", "NVreg_GpuBlacklist")
# programs that load nothing, by which people keep a module out; what others do, nobody can tell
_LOADS_NOTHING = re.compile(r"(\S*/)?(false|true)( [^&|;]*)?|:|exit( \d+)?")


@dataclass(frozen=True)
class ModuleLoading:
    """What a host's boot does with NVIDIA's modules.

    + directives: those of modprobe's effective configuration that may concern them
    + lines: of its files, `FILE:LINE:TEXT`
    + boot_options: words of the kernel's command line
    + initramfs_modules: drivers that hold GPUs and that the initramfs loads, `FILE:LINE:NAME`
    """

    directives: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    boot_options: tuple[str, ...] = ()
    initramfs_modules: tuple[str, ...] = ()


def parse(values: Fields) -> ModuleLoading:
    """What `deploys/parts/node/module_loading.sh` printed, be it among other lines."""
    return ModuleLoading(
        directives=tuple(values.all("modprobe")),
        lines=tuple(values.all("modprobe_file")),
        boot_options=tuple(values.all("boot_option")),
        initramfs_modules=tuple(values.all("initramfs_module")),
    )


def conflicting(modules: frozenset[str]) -> str:
    """The first of a host's loaded modules that holds GPUs; "" for none."""
    return next((name for name in CONFLICTING if name in modules), "")


def problems(state: ModuleLoading, rebuild: str) -> Iterator[tuple[str, str]]:
    """Cause and remedy of what blocks the driver.

    + rebuild: the command that makes the initramfs again
    """
    gpuboot_directives = {
        _normal(line.split(":", 2)[2]) for line in state.lines if line.startswith(OWN_FILE)
    }
    for directive in dict.fromkeys(map(_normal, state.directives)):
        if directive in gpuboot_directives:
            continue
        if effect := _effect(directive):
            yield _problem(directive, effect, state, rebuild)
    for option in state.boot_options:
        key, _, value = option.partition("=")
        names = {name.replace("-", "_") for name in value.split(",")}
        if key == "module_blacklist" and (blocked := sorted(names & set(_NEEDED))):
            yield (
                f"`{option}` on the kernel's command line has the kernel refuse "
                f"{', '.join(blocked)}",
                _take_out(option),
            )
    for line in state.initramfs_modules:
        path, number, name = line.split(":", 2)
        yield (
            f"{path}, line {number}, has the initramfs load {name}, which holds the GPUs before "
            "NVIDIA's driver can",
            f"run `sed -i '{number}d' {path}` there, then `{rebuild}`, and reboot",
        )


def kept_out(state: ModuleLoading, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Modules that modules-load.d names and a boot does not load, each with what keeps it out.

    systemd-modules-load honours `blacklist` and `install` (systemd, modules-load.c), and looks for
    another module where an `alias` says so (kmod, lookup of names).
    """
    for line in [*state.lines, *(f"/proc/cmdline:1:{item}" for item in state.boot_options)]:
        path, number, text = line.split(":", 2)
        key, _, value = text.partition("=")
        if path == "/proc/cmdline":
            blocked = {item.replace("-", "_") for item in value.split(",")}
            is_blocking = key in ("module_blacklist", "modprobe.blacklist")
        else:
            kind, name, *command = [*_normal(text).split(), "", ""]
            blocked = {name}
            is_blocking = kind == "blacklist" or (
                kind == "install" and bool(_LOADS_NOTHING.fullmatch(" ".join(command).strip()))
            )
            is_blocking |= kind == "alias" and command[0].replace("-", "_") != name
        for name in sorted(blocked & {*names}) if is_blocking else ():
            yield name, f"{path}:{number}: `{text}`"


def _normal(text: str) -> str:
    """A directive with single blanks, and with its module's name as the kernel has it."""
    words = text.split()
    if len(words) > 1:
        words[1] = words[1].replace("-", "_")
    return " ".join(words)


def _effect(directive: str) -> str:
    """What a directive does to the driver; "" where that is no harm."""
    words = directive.split()
    kind, name, value = words[0], words[1], " ".join(words[2:])
    if kind == "blacklist" and name == "nvidia":
        return "keeps the NVIDIA driver from being loaded at boot"
    # these two take wildcards, the others do not
    matched = [module for module in _NEEDED if fnmatchcase(module, name)]
    if kind == "install" and matched and _LOADS_NOTHING.fullmatch(value):
        return f"runs a command instead of loading {matched[0]}"
    if kind == "alias" and matched and not value.replace("-", "_").startswith("nvidia"):
        return f"has modprobe look for `{value}` instead of {matched[0]}"
    if kind == "options" and name == "nvidia":
        hiding = [word for word in words[2:] if word.startswith(_HIDING)]
        return "hides GPUs from the driver" if hiding else ""
    return ""


def _problem(directive: str, effect: str, state: ModuleLoading, rebuild: str) -> tuple[str, str]:
    for line in state.lines:
        path, number, text = line.split(":", 2)
        if _normal(text) == directive:
            remedy = f"run `sed -i '{number}d' {path}` there"
            if not path.startswith(("/etc/", "/run/")):  # an update of its package brings it again
                name = path.rpartition("/")[2]
                remedy = f"run `ln -s /dev/null /etc/modprobe.d/{name}` there, which hides the file"
            return (
                f"`{directive}` in {path}, line {number}, {effect}",
                f"{remedy}, then `{rebuild}`",
            )
    option = next((item for item in state.boot_options if _option_matches(item, directive)), "")
    if option:
        return f"`{option}` on the kernel's command line {effect}", _take_out(option)
    return (
        f"`{directive}` in modprobe's configuration {effect}",
        f"find it by `grep -rn nvidia /{{etc,lib}}/modprobe.d`, remove it, then `{rebuild}`",
    )


def _option_matches(option: str, directive: str) -> bool:
    """Whether a word of the kernel's command line is what modprobe shows as a directive."""
    kind, _, argument = directive.partition(" ")
    key, _, value = option.partition("=")
    if kind == "blacklist":
        names = [name.replace("-", "_") for name in value.split(",")]
        return key == "modprobe.blacklist" and argument in names
    return kind == "options" and f"nvidia {option.removeprefix('nvidia.')}" == argument


def _take_out(option: str) -> str:
    return (
        f"take {option} out of the kernel's command line (GRUB_CMDLINE_LINUX* in /etc/default/grub "
        "or /etc/default/grub.d, then `update-grub`; on RHEL "
        f"`grubby --update-kernel=ALL --remove-args={option}`), and reboot"
    )
