"""What a run shows of the packages that its own would remove, through the real command line."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.plan.test_changes import call, plan_lines, run_living

# as apt 2.6 prints it
MOBY = [
    "apt\tThe following packages will be REMOVED:",
    "apt\t  moby-containerd moby-engine moby-runc",
    "apt\tThe following held packages will be changed:",
    "apt\t  kubelet",
    "apt\tThe following packages will be DOWNGRADED:",
    "apt\t  kubelet libseccomp2",
    "apt\tRemv moby-engine [24.0.9-u1]",
    "apt\tRemv moby-containerd [1.7.20] [moby-engine:amd64 ]",
    "apt\tRemv moby-runc [1.1.12]",
    "apt\tInst containerd.io (2.3.7-1 localhost [amd64])",
    "apt\tInst kubelet [1.36.7-1.1] (1.36.6-1.1 localhost [amd64])",
    "apt\tInst libseccomp2 [2.7.0-1] (2.6.0-1 localhost [amd64]) []",
    "end\tok",
]
RUNNING = ["use\tmoby-engine docker.service", "manual\tmoby-runc", *MOBY]
REMOVED = [
    "- package moby-runc: version was 1.1.12",
    "- package moby-containerd: version was 1.7.20",
    "- package moby-engine: version was 24.0.9-u1",
]


def bare(
    answer: list[str], *command: str, settings: dict[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    words = command or ("pyinfra", "tests/plan/inventories/site.py", "deploys/site.py", "--dry")
    return call(list(words), settings, PLAN_REHEARSED=json.dumps(answer))


def allowed(*names: str) -> dict[str, Any]:
    return {"preflight": {"max_clock_skew_s": 1e12, "allow_removals": names}}


def test_what_goes_is_in_the_plan_by_name() -> None:
    lines = [line.strip() for line in plan_lines(bare(MOBY))]
    title = lines.index("Packages of others, as the package manager rehearsed this run")
    assert title < lines.index("Base")
    assert lines[title + 1].endswith(" · @fake/cp1, @fake/gpu1, @fake/cpu1")
    assert lines[title + 2 : title + 7] == [
        *REMOVED,
        "~ package kubelet: version (held, downgraded) 1.36.7-1.1 → 1.36.6-1.1",
        "~ package libseccomp2: version (downgraded) 2.7.0-1 → 2.6.0-1",
    ]


def test_what_is_missed_is_refused_and_a_setting_allows_it() -> None:
    rejected = bare(RUNNING)
    assert rejected.returncode == 1
    for host in ("cp1", "gpu1", "cpu1"):
        assert (
            f"[@fake/{host}] the packages of this run would remove moby-engine (docker.service "
            "uses it); moby-runc (installed by hand)\n    remedy: run `apt-get remove moby-engine "
            "moby-runc` there once nothing needs them, or let the run do so: "
            'preflight.allow_removals = ["moby-engine", "moby-runc"]'
        ) in rejected.stderr
    with_engine = bare(RUNNING, settings=allowed("moby-engine"))
    assert with_engine.returncode == 1
    assert "would remove moby-runc (installed by hand)\n" in with_engine.stderr
    with_runc = bare(RUNNING, settings=allowed("moby-engine", "moby-runc"))
    lines = [line.strip() for line in plan_lines(with_runc)]
    assert "- package moby-engine: version (docker.service uses it) was 24.0.9-u1" in lines


def test_preflight_alone_rehearses_as_well() -> None:
    result = bare(RUNNING, "gpuboot", "check", "tests/plan/inventories/site.py", "--json")
    assert result.returncode == 1
    causes = [item["cause"] for item in json.loads(result.stdout)["problems"]]
    assert len(causes) == 3
    assert all("would remove moby-engine" in cause for cause in causes)


def test_a_plan_for_programs_has_it() -> None:
    result = bare(MOBY, "gpuboot", "plan", "tests/plan/inventories/site.py")
    packages = json.loads(result.stdout)["packages"]
    assert [item["host"] for item in packages] == ["@fake/cp1", "@fake/gpu1", "@fake/cpu1"]
    assert packages[0]["changes"][2] == {
        "subject": "package moby-engine", "field": "version", "old": "24.0.9-u1", "new": None,
    }  # fmt: skip


def test_a_rehearsal_that_was_not_possible_is_told() -> None:
    result = bare(["error\tCould not connect to 192.0.2.9:80", "end\tok"])
    assert result.returncode == 0
    assert (
        "@fake/cp1, @fake/gpu1, @fake/cpu1: which packages this run removes there is not known: "
        "the rehearsal by the package manager was not possible: Could not connect to 192.0.2.9:80"
    ) in result.stderr
    line = "? which packages the run's own remove (Could not connect to 192.0.2.9:80): not known"
    assert any(item.strip().startswith(line) for item in plan_lines(result))


def test_what_the_package_manager_refuses_stops_the_run_before_it_begins() -> None:
    result = bare(
        ["refused\tyes", "error\tfoo : Depends: bar but it is not installable", "end\tok"]
    )
    assert result.returncode == 1
    cause = "[@fake/gpu1] the package manager cannot install this run's packages: foo : Depends:"
    assert cause in result.stderr


def test_hosts_that_have_all_packages_are_not_asked() -> None:
    """Their answer would be told otherwise."""
    result = run_living("--dry", PLAN_REHEARSED=json.dumps(["error\tasked", "end\tok"]))
    assert plan_lines(result)[-1].startswith("Nothing to do")
    assert "asked" not in result.stderr
    upgrade = run_living(
        "--dry", PLAN_DRIVER="590.1.1", PLAN_REHEARSED=json.dumps(["error\tasked", "end\tok"])
    )
    assert "@fake/gpu1: which packages this run removes there is not known" in upgrade.stderr


def test_the_proxys_password_is_shown_nowhere() -> None:
    proxy = {"https": "http://me:very-secret@proxy.example:3128"}
    command = ("pyinfra", "tests/plan/inventories/site.py", "deploys/site.py", "--dry", "-vvv")
    settings = {"preflight": {"max_clock_skew_s": 1e12}, "proxy": proxy}
    result = bare(MOBY, *command, settings=settings)
    assert result.returncode == 0, result.stderr
    assert "Rehearses an installation by apt" in result.stderr + result.stdout
    assert REMOVED[0] in result.stderr
    assert "very-secret" not in result.stderr + result.stdout
