"""modprobe's configuration and the kernel's command line: what blocks NVIDIA's driver, and where.

The configuration is in a folder of each test; kmod's modprobe prints what of it holds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.driver.fact import DriverState
from deploys.parts.driver.operations import other_module, reboot_reason
from deploys.parts.node.fact import SCRIPT
from deploys.phases.drivers import NOUVEAU
from gpuboot.cluster.node_upgrade import Difference
from gpuboot.config import versions
from gpuboot.config.settings import parse_settings
from gpuboot.hosts import module_loading
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.module_loading import CONFLICTING, OWN_FILE, ModuleLoading
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit.test_preflight import CLEAN, WORKER

FUNCTION = SCRIPT[SCRIPT.index("module_loading() {") : SCRIPT.index("#!/bin/sh")]
REBUILD = "update-initramfs -u -k all"
ETC, LIB = "/etc/modprobe.d/site.conf", "/usr/lib/modprobe.d/blacklist-nvidia.conf"


class Machine:
    """A folder that looks like a host to the fact's function."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz-6.8.0-90-generic root=/dev/sda1 ro quiet")
        self.file("/bin/modprobe", self.modprobe())
        (root / "bin/modprobe").chmod(0o755)

    def modprobe(self) -> str:
        """kmod reads no folder but those that it is told; files of one name hide each other."""
        real = shutil.which("modprobe", path="/usr/sbin:/sbin:/usr/bin:/bin")
        assert real, "these tests ask the real modprobe: install kmod"
        folders = " ".join(
            f"-C {self.root}{folder}/modprobe.d" for folder in ("/etc", "/run", "/usr/lib", "/lib")
        )
        return f'#!/bin/sh\nexec {real} {folders} "$@"\n'

    def file(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def state(self) -> ModuleLoading:
        script = re.sub(r"(?<![\w/])/(sys|etc|usr|run|proc|lib)/", rf"{self.root}/\1/", FUNCTION)
        result = subprocess.run(
            ["sh", "-uc", script + "module_loading"],
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin", "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
        lines = result.stdout.replace(str(self.root), "").splitlines()
        return module_loading.parse(Fields([*lines, "end\tok"]))

    def problems(self) -> list[tuple[str, str]]:
        return list(module_loading.problems(self.state(), REBUILD))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_blocks_a_plain_machine(machine: Machine) -> None:
    machine.file(ETC, NOUVEAU)
    machine.file("/usr/lib/modprobe.d/nvidia-kms.conf", "options nvidia-drm modeset=1 fbdev=1")
    assert machine.problems() == []


@pytest.mark.parametrize(
    "line",
    [
        "options nvidia NVreg_RestrictProfilingToAdminUsers=0",
        "options nvidia-drm modeset=1",
        "options nvidia NVreg_OpenRmEnableUnsupportedGpus=1 NVreg_PreserveVideoMemoryAllocations=1",
        # Debian's own packages, and NVIDIA's older ones
        "install nvidia modprobe -i nvidia-current $CMDLINE_OPTS",
        # a site's own program, of which nobody can tell what it does
        "install nvidia /usr/local/sbin/load-nvidia",
        "alias nvidia nvidia-current",
        "alias char-major-195* nvidia",
        # a server without displays computes without these
        "blacklist nvidia-drm",
        "install nvidia-modeset /bin/false",
        # udev loads it for no device: it is loaded by its name
        "blacklist nvidia_uvm",
        "#blacklist nvidia",
        "blacklist nvidia*",  # modprobe takes no wildcard here
        "install nvme* /bin/false",
        "install nvidia /bin/true && /sbin/modprobe -i nvidia",
        "install nouveau /bin/false",
        "alias nouveau off",
    ],
)
def test_lines_that_do_no_harm(machine: Machine, line: str) -> None:
    machine.file(ETC, line)
    assert machine.problems() == []


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("install nvidia /bin/false", "runs a command instead of loading nvidia"),
        ("install  nvidia\t/bin/true", "runs a command instead of loading nvidia"),
        ("install nvidia-uvm /usr/bin/false", "runs a command instead of loading nvidia_uvm"),
        ("install nvidia /bin/false # no GPU here", "runs a command instead of loading nvidia"),
        ("install nv* /bin/false", "runs a command instead of loading nvidia"),
        ("blacklist nvidia", "keeps the NVIDIA driver from being loaded at boot"),
        ("alias nvidia off", "has modprobe look for `off` instead of nvidia"),
        ("alias nvidia-uvm off", "has modprobe look for `off` instead of nvidia_uvm"),
        ("alias nv* off", "has modprobe look for `off` instead of nvidia"),
        ("options nvidia NVreg_ExcludedGpus=GPU-1", "hides GPUs from the driver"),
        ("options nvidia NVreg_AssignGpus=0000:01:00.0", "hides GPUs from the driver"),
    ],
)
def test_lines_that_block_the_driver(machine: Machine, line: str, effect: str) -> None:
    machine.file(ETC, f"# by the site\n{line}")
    [(cause, remedy)] = machine.problems()
    assert f"in {ETC}, line 2, {effect}" in cause
    assert remedy == f"run `sed -i '2d' {ETC}` there, then `{REBUILD}`"
    (machine.root / ETC.lstrip("/")).write_text("# by the site\n")  # what the remedy does
    assert machine.problems() == []


def test_a_package_s_file_is_hidden_instead_of_edited(machine: Machine) -> None:
    machine.file(LIB, "blacklist nvidia\nblacklist nvidia-drm\nalias nvidia off")  # prime-select
    problems = machine.problems()
    assert len(problems) == 2
    hides = "ln -s /dev/null /etc/modprobe.d/blacklist-nvidia.conf"
    assert all(f"in {LIB}, line " in cause and hides in remedy for cause, remedy in problems)
    hiding = machine.root / "etc/modprobe.d"
    hiding.mkdir(parents=True)
    (hiding / "blacklist-nvidia.conf").symlink_to("/dev/null")
    assert machine.problems() == []


def test_of_two_files_of_one_name_the_one_that_holds_is_named(machine: Machine) -> None:
    machine.file("/usr/lib/modprobe.d/a.conf", "blacklist nvidia")
    machine.file("/etc/modprobe.d/a.conf", "\n\nblacklist nvidia")
    [(cause, _)] = machine.problems()
    assert "in /etc/modprobe.d/a.conf, line 3," in cause


def test_the_run_s_own_choice_of_gpus_is_no_problem(machine: Machine) -> None:
    machine.file(OWN_FILE, "options nvidia NVreg_ExcludedGpus=GPU-1")
    assert machine.problems() == []
    machine.file(ETC, "options nvidia NVreg_ExcludedGpus=GPU-2")
    assert len(machine.problems()) == 1


@pytest.mark.parametrize("command", ["/bin/true", "true", "/usr/bin/false", ":", "exit 1"])
def test_what_loads_nothing_blocks_a_module(machine: Machine, command: str) -> None:
    machine.file(ETC, f"install nvidia {command}")
    assert len(machine.problems()) == 1


def test_a_directive_that_no_line_shows(machine: Machine) -> None:
    machine.file(ETC, "blacklist \\\n  nvidia")
    [(cause, remedy)] = machine.problems()
    assert "`blacklist nvidia` in modprobe's configuration" in cause
    assert "grep -rn nvidia" in remedy


@pytest.mark.parametrize(
    ("option", "output", "effect"),
    [
        ("module_blacklist=nouveau,nvidia", "", "has the kernel refuse nvidia"),
        ("module_blacklist=nvidia-uvm", "", "has the kernel refuse nvidia_uvm"),
        ("modprobe.blacklist=nvidia", "blacklist nvidia", "keeps the NVIDIA driver"),
        ("modprobe.blacklist=snd,nvidia", "blacklist nvidia", "keeps the NVIDIA driver"),
        (
            "nvidia.NVreg_ExcludedGpus=GPU-1",
            "options nvidia NVreg_ExcludedGpus=GPU-1",
            "hides GPUs from the driver",
        ),
    ],
)
def test_the_kernel_s_command_line(machine: Machine, option: str, output: str, effect: str) -> None:
    """modprobe reads the command line of the running kernel, which a test cannot set."""
    machine.file("/proc/cmdline", f"root=/dev/sda1 {option} quiet")
    machine.file("/bin/modprobe", f"#!/bin/sh\necho '{output}'")
    [(cause, remedy)] = machine.problems()
    assert f"`{option}` on the kernel's command line {effect}" in cause
    assert f"take {option} out of the kernel's command line" in remedy


@pytest.mark.parametrize(
    "option",
    ["modprobe.blacklist=nouveau", "rd.driver.blacklist=nvidia", "module_blacklist=nvidiafb"],
)
def test_words_of_the_command_line_that_do_no_harm(machine: Machine, option: str) -> None:
    machine.file("/proc/cmdline", option)
    assert machine.problems() == []


def test_the_initramfs_loads_another_driver(machine: Machine) -> None:
    machine.file("/etc/initramfs-tools/modules", "# one a line\nxhci_hcd\nnouveau modeset=1")
    [(cause, remedy)] = machine.problems()
    assert "/etc/initramfs-tools/modules, line 3, has the initramfs load nouveau" in cause
    assert f"sed -i '3d' /etc/initramfs-tools/modules` there, then `{REBUILD}`" in remedy


def test_without_modprobe_nothing_is_known_to_block(machine: Machine) -> None:
    machine.file("/bin/modprobe", "#!/bin/sh\nexit 127")
    assert machine.problems() == []


def causes(**changes: Any) -> list[str]:
    parsed = parse_settings({"driver": changes.pop("driver", {})})
    state = replace(CLEAN, **changes)
    reported = evaluate([WORKER], {WORKER.host: state}, parsed, versions.lock(parsed))
    return [problem.cause for problem in reported]


def test_preflight_names_what_blocks_the_driver() -> None:
    blocked = ModuleLoading(("blacklist nvidia",), (f"{ETC}:3:blacklist  nvidia",))
    assert causes(module_loading=blocked) == [
        f"`blacklist nvidia` in {ETC}, line 3, keeps the NVIDIA driver from being loaded at boot"
    ]
    assert causes(module_loading=blocked, driver={"enabled": False}, driver_loaded="580.1") == []


@pytest.mark.parametrize("name", CONFLICTING)
def test_a_driver_that_holds_the_gpus_takes_a_reboot(name: str) -> None:
    assert f"blacklist {name}\n" in NOUVEAU
    assert causes(modules=frozenset({name})) == []
    [cause] = causes(modules=frozenset({name}), driver={"reboot": "never"})
    assert cause.startswith(f"driver {name} is loaded")
    holder = other_module(DriverState(conflicting=name), "595.91.07")
    assert reboot_reason(holder, "595.91.07") == f"{name} is loaded, 595.91.07 is installed"
    assert Difference(version="595.91.07", loaded=name).module == name


def test_other_modules_hold_no_gpu() -> None:
    modules = frozenset({"nvidia", "ast", "vfio_pci"})
    assert module_loading.conflicting(modules) == ""
    assert causes(modules=modules, driver={"reboot": "never"}) == []
