"""DKMS: modules that it has and did not build. Texts are those of dkms 2.8 and 3, and of gcc."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.driver.operations import load
from deploys.parts.node.fact import SCRIPT
from gpuboot.config import versions
from gpuboot.config.settings import parse_settings
from gpuboot.diagnose.causes.driver_causes import driver_not_loaded
from gpuboot.hosts import dkms
from gpuboot.hosts.dkms import DkmsState
from gpuboot.hosts.failures import explain
from gpuboot.hosts.module_loading import ModuleLoading
from gpuboot.hosts.node_state import parse
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit import diagnose_cases_hosts
from tests.unit.diagnose_site import gpu_host, site, state
from tests.unit.test_node_state import ANSWER
from tests.unit.test_preflight import CLEAN, WORKER

KERNEL, VERSION = "6.8.0-90-generic", "595.91.07"
LOG = f"/var/lib/dkms/nvidia/{VERSION}/build/make.log"
# of a module that uses what the kernel does not have
FAILED = """\
DKMS make.log for nvidia-595.91.07 for kernel 6.8.0-90-generic (x86_64)
make: Entering directory '/usr/src/linux-headers-6.8.0-90-generic'
  CC [M]  /var/lib/dkms/nvidia/595.91.07/build/nvidia.o
/var/lib/dkms/nvidia/595.91.07/build/nvidia.c:2:21: error: 'gone' undeclared (first use in this)
    2 | int f(void){ return gone; }
make[1]: *** [/usr/src/linux-headers-6.8.0-90-generic/scripts/Makefile.build:255: nvidia.o] Error 1
make: *** [/usr/src/linux-headers-6.8.0-90-generic/Makefile:2065: build] Error 2
make: Leaving directory '/usr/src/linux-headers-6.8.0-90-generic'
"""
POSTINST = """\
Error! Bad return status for module build on kernel: 6.8.0-90-generic (x86_64)
Consult /var/lib/dkms/nvidia/595.91.07/build/make.log for more information.
dpkg: error processing package nvidia-dkms-open (--configure):
 installed nvidia-dkms-open package post-installation script subprocess returned error exit \
status 10
"""


@pytest.mark.parametrize(
    ("status", "module"),
    [
        (["nvidia/595.91.07: added"], "nvidia/595.91.07"),
        (["nvidia, 595.91.07: added"], "nvidia/595.91.07"),
        (["nvidia/595.91.07, 6.8.0-85-generic, x86_64: installed"], "nvidia/595.91.07"),
        (["nvidia/595.91.07: broken"], "nvidia/595.91.07"),
        (["nvidia-current/595.91.07: added"], "nvidia-current/595.91.07"),
        (["nvidia/595.91.07, 6.8.0-90-generic, x86_64: installed"], ""),
        (["nvidia, 595.91.07, 6.8.0-90-generic, x86_64: installed"], ""),
        (["nvidia/595.91.07, 6.8.0-90-generic, aarch64: built"], ""),
        (
            [
                "nvidia/595.91.07, 6.8.0-85-generic, x86_64: installed",
                "nvidia/595.91.07, 6.8.0-90-generic, x86_64: installed (WARNING! Diff between "
                "built and installed module!)",
            ],
            "",
        ),
        (["nvidia/570.172.08: added"], ""),
        ([], ""),
        (["Deprecated feature: CLEAN"], ""),
    ],
)
def test_what_is_not_built_for_a_kernel(status: list[str], module: str) -> None:
    assert dkms.not_built(status, VERSION, KERNEL) == module


def run_function(root: Path, status: str, log: str = "") -> list[str]:
    """What the fact's function prints."""
    program = root / "bin/dkms"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{status}'\n")
    program.chmod(0o755)
    if log:
        file = root / LOG.lstrip("/")
        file.parent.mkdir(parents=True)
        file.write_text(log)
    function = SCRIPT[SCRIPT.index("dkms_state() {") : SCRIPT.index("#!/bin/sh")]
    script = re.sub(r"(?<![\w/])/var/", f"{root}/var/", function)
    result = subprocess.run(
        ["sh", "-uc", f"{script}dkms_state"],
        env={"PATH": f"{root}/bin:{os.environ['PATH']}", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.replace(f"{root}/", "/").splitlines()


def test_the_log_of_a_build_that_failed(tmp_path: Path) -> None:
    lines = run_function(tmp_path, f"nvidia/{VERSION}: added", FAILED)
    state = parse([*ANSWER[:-1], *lines, ANSWER[-1]])
    assert state.dkms.status == (f"nvidia/{VERSION}: added",)
    assert state.dkms.log == LOG
    [error] = state.dkms.errors
    assert error.endswith("error: 'gone' undeclared (first use in this)")


def test_a_log_without_an_error_of_the_compiler_shows_its_end(tmp_path: Path) -> None:
    lines = run_function(tmp_path, f"nvidia/{VERSION}: added", "DKMS make.log\n\nKilled\n\n")
    assert lines[2:] == ["dkms_error\tDKMS make.log", "dkms_error\tKilled"]


def test_a_module_that_was_built_leaves_no_log(tmp_path: Path) -> None:
    line = f"nvidia/{VERSION}, {KERNEL}, x86_64: installed"
    assert run_function(tmp_path, f"{line}\nzfs/2.2.2: added") == [f"dkms\t{line}"]


ADDED: dict[str, Any] = {
    "dkms": DkmsState((f"nvidia/{VERSION}: added",)),
    "packages": {"nvidia-open": f"{VERSION}-1ubuntu1"},
    "headers": "installed",
    "kernel": KERNEL,
}


def problems(**changes: Any) -> list[tuple[str, str]]:
    parsed = parse_settings({"versions": {"driver": {"version": VERSION}}})
    state = replace(CLEAN, **(ADDED | changes))
    reported = evaluate([WORKER], {WORKER.host: state}, parsed, versions.lock(parsed))
    return [(problem.cause, problem.remedy) for problem in reported]


def test_preflight_names_module_log_and_error() -> None:
    [(cause, remedy)] = problems(
        dkms=replace(ADDED["dkms"], log=LOG, errors=("nvidia.c:2:21: error: 'gone'",))
    )
    assert cause == (
        f"DKMS has nvidia/{VERSION} and has not built it for the running kernel {KERNEL}: {LOG} "
        "ends with: nvidia.c:2:21: error: 'gone'"
    )
    assert f"`dkms install nvidia/{VERSION} -k {KERNEL}`" in remedy
    [(cause, _)] = problems()
    assert cause.endswith(f"for the running kernel {KERNEL}")
    [(cause, _)] = problems(driver_module="570.172.08")
    assert f"DKMS has nvidia/{VERSION}" in cause


@pytest.mark.parametrize(
    "changes",
    [
        {"packages": {}},  # the run installs the driver, which builds it
        {"packages": {"nvidia-open": "570.172.08-1"}},
        {"headers": "available"},  # the run installs them, and DKMS builds what it has
        {
            "dkms": replace(ADDED["dkms"], unfinished=("nvidia-dkms-open",))
        },  # the run has dpkg configure it, which builds it
        {"driver_module": VERSION},  # this kernel has one, be it of other means
        {"dkms": DkmsState(("nvidia/570.172.08: added",))},  # of a driver that was there before
        {
            "driver_module": VERSION,
            "dkms": DkmsState((f"nvidia/{VERSION}, {KERNEL}, x86_64: built",)),
        },
    ],
)
def test_what_the_run_mends_by_itself_is_no_problem(changes: dict[str, Any]) -> None:
    assert problems(**changes) == []


def test_a_driver_that_does_not_load_shows_what_dkms_says(tmp_path: Path) -> None:
    run_function(tmp_path, f"nvidia/{VERSION}: added", FAILED)
    (tmp_path / "bin/modprobe").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin/modprobe").chmod(0o755)
    command = re.sub(r"(?<![\w/])/var/", f"{tmp_path}/var/", str(load()))
    result = subprocess.run(
        ["sh", "-c", command],
        env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    message = result.stderr.replace(f"{tmp_path}/", "/")
    assert f"nvidia/{VERSION}: added\n{LOG}:\n" in message
    assert "error: 'gone' undeclared" in message
    assert "the NVIDIA kernel module does not load\n    remedy: " in message


def test_an_installation_that_ends_in_dkms() -> None:
    failure = explain(POSTINST)
    assert failure is not None
    assert failure.cause == "DKMS could not build a kernel module"
    assert "make.log" in failure.remedy
    problem = explain(POSTINST.partition("\ndpkg:")[2])
    assert problem is not None
    assert problem.cause == "a package's own installation script failed"


def test_a_diagnosis_shows_what_keeps_the_driver_out() -> None:
    off: dict[str, Any] = {"driver_loaded": "", "driver_module": "", "packages": ADDED["packages"]}
    plain: dict[str, Any] = {"gpu": diagnose_cases_hosts.NO_DRIVER, "state": state(**off)}
    assert not evidence(**plain)[2:]
    added = DkmsState((f"nvidia/{VERSION}: added",), LOG, ("nvidia.c:2:21: error: 'gone'",))
    [line] = evidence(**plain | {"state": state(dkms=added, **off)})[2:]
    assert line.startswith(f"DKMS has nvidia/{VERSION}")
    assert LOG in line
    blocked = ModuleLoading(("install nvidia /bin/false",), ("/etc/modprobe.d/x.conf:1:x",))
    [line] = evidence(**plain | {"state": state(module_loading=blocked, **off)})[2:]
    assert "runs a command instead of loading nvidia" in line


def evidence(**host: Any) -> tuple[str, ...]:
    """Of the cause driver-not-loaded."""
    [sighting] = driver_not_loaded(site(gpu_host(**host)))
    return tuple(sighting.evidence)
