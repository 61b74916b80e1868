"""`gpuboot init` as a person uses it; pyinfra is replaced by its answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app, runs
from gpuboot.config.problems import Problem
from gpuboot.hosts.reading import Reading
from gpuboot.site.site_check import parse_assignments
from tests.documents import ROOT
from tests.unit.fake_pyinfra import HOSTS, FakePyinfra, fake_pyinfra
from tests.unit.site_hosts import reading

__all__ = ["fake_pyinfra"]

runner = CliRunner()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "is_terminal", lambda: True)


def files() -> set[str]:
    return {str(path) for name in ("inventories", "group_data") for path in Path(name).iterdir()}


def error_text(result: Any) -> str:
    """What was said; nothing was written."""
    assert result.exit_code == 1, result.output
    assert "nothing was written" in result.stderr
    assert files() == set()
    return " ".join(str(result.stderr).split())


def inventory(name: str = "prod") -> dict[str, Any]:
    return parse_assignments("inventory", Path(f"inventories/{name}.py").read_text())


def init(*arguments: str, answers: str = "") -> Any:
    return runner.invoke(app, ["init", *arguments], input=answers)


def test_arguments_suffice(fake_pyinfra: FakePyinfra) -> None:
    result = init("--name", "prod", "--user", "ubuntu", "cp1", "gpu1", "gpu2:2222")
    assert result.exit_code == 0, result.output
    assert files() == {"inventories/prod.py", "group_data/prod.py"}
    assert [name for name, _ in inventory()["control_plane"]] == ["cp1"]
    assert {name: data["gpus"] for name, data in inventory()["workers"]} == {"gpu1": 8, "gpu2": 8}
    assert 'ssh_user = "ubuntu"' in Path("group_data/prod.py").read_text()
    screen = result.stdout.splitlines()
    assert (
        "written: inventories/prod.py  control plane: cp1; workers: gpu1, gpu2; 16 GPUs" in screen
    )
    assert screen[-2:] == [
        "next:    gpuboot check inventories/prod.py",
        "         pyinfra inventories/prod.py deploys/site.py --dry",
    ]
    assert fake_pyinfra.commands[0][4:] == ["deploys/read_hosts.py", "-y"]
    hosts = parse_assignments("reading.py", fake_pyinfra.inventories[0])["hosts"]
    assert [(name, data.get("ssh_port")) for name, data in hosts] == [
        ("cp1", None), ("gpu1", None), ("gpu2", 2222),
    ]  # fmt: skip


def test_all_that_is_missing_is_named_at_once(fake_pyinfra: FakePyinfra) -> None:
    message = error_text(init())
    assert "2 problems" in message
    assert "[HOSTS] no host is named" in message
    assert "[--name] the site has no name" in message
    assert fake_pyinfra.commands == []


def test_all_that_is_wrong_is_named_before_a_host_is_read(fake_pyinfra: FakePyinfra) -> None:
    message = error_text(init("--name", "all", "--control-plane", "cp9", "gpu1", "gpu1", "gpu2:x"))
    for part in ("name all means a group", "[gpu1] is given twice", "'gpu2:x' is no host",
                 "[cp9] is to lead, and is none of the hosts"):  # fmt: skip
        assert part in message
    assert fake_pyinfra.commands == []


@pytest.mark.parametrize("kind", [["--control-plane", "a"], ["--endpoint", "a:1"]])
def test_docker_hosts_have_no_control_plane(fake_pyinfra: FakePyinfra, kind: list[str]) -> None:
    assert "give --monitor" in error_text(init("--name", "d", "--docker", *kind, "a"))
    assert "add --docker" in error_text(init("--name", "d", "--monitor", "a", "a"))


def test_several_control_plane_nodes_may_have_an_address(fake_pyinfra: FakePyinfra) -> None:
    three = [word for name in HOSTS for word in ("--control-plane", name)]
    assert init("--name", "own", *three, *HOSTS).exit_code == 0
    result = init("--name", "prod", *three, "--endpoint", "lb.example.com:6443", *HOSTS)
    assert result.exit_code == 0, result.output
    assert [name for name, _ in inventory()["control_plane"]] == list(HOSTS)
    assert inventory()["workers"] == []
    settings = parse_assignments("group_data", Path("group_data/prod.py").read_text())["gpuboot"]
    assert settings["cluster"]["endpoint"] == "lb.example.com:6443"


def test_an_even_number_of_control_plane_nodes_is_refused(fake_pyinfra: FakePyinfra) -> None:
    two = ["--control-plane", "cp1", "--control-plane", "gpu1", "--endpoint", "lb.example.com:6443"]
    assert "use one, three or five" in error_text(init("--name", "prod", *two, *HOSTS))


def test_files_are_never_overwritten_unasked(fake_pyinfra: FakePyinfra) -> None:
    Path("group_data/prod.py").write_text("mine")
    result = init("--name", "prod", *HOSTS)
    assert result.exit_code == 1
    assert "[group_data/prod.py] is there already" in result.stderr
    assert files() == {"group_data/prod.py"}
    assert fake_pyinfra.commands == []
    assert init("--name", "prod", "--force", *HOSTS).exit_code == 0
    assert "gpuboot = {" in Path("group_data/prod.py").read_text()


def test_a_folder_that_cannot_be_written_to_leaves_nothing_half_done(
    fake_pyinfra: FakePyinfra,
) -> None:
    Path("group_data").rmdir()
    Path("group_data").touch()
    result = init("--name", "prod", *HOSTS)
    assert result.exit_code == 3
    assert "not written: " in result.stderr
    assert "remedy: " in result.stderr
    assert list(Path("inventories").iterdir()) == []


def test_every_host_that_cannot_be_read_is_told_of(fake_pyinfra: FakePyinfra) -> None:
    denied = Problem("gpu2", "its user may not become root without a password", "allow it")
    cause = "Authentication error (username=me): failed"
    fake_pyinfra.answer = Reading(
        hosts={"cp1": HOSTS["cp1"]},
        unreachable={"gpu1": cause},
        problems=(denied, Problem("gpu1", f"cannot be reached: {cause}", "--exclude gpu1")),
    )
    message = error_text(init("--name", "prod", "--user", "me", *HOSTS))
    assert "2 problems" in message
    assert f"[me@gpu1] cannot be reached: {cause} remedy: give the user and key" in message
    assert "[gpu2] its user may not become root" in message


def test_what_a_host_answered_instead_of_its_state_is_quoted(fake_pyinfra: FakePyinfra) -> None:
    cause = "its state could not be read (the command's own message stands above)"
    fake_pyinfra.answer = Reading(problems=(Problem("gpu1", cause, "check that"),))
    fake_pyinfra.output = "[gpu1] Sorry, try again.\n"
    message = error_text(init("--name", "prod", *HOSTS))
    assert "Sorry, try again." in message.partition(cause)[0]


def test_a_password_of_sudo_is_asked_for_in_every_run(fake_pyinfra: FakePyinfra) -> None:
    result = init("--name", "prod", "--user", "me", "--same-sudo-password", *HOSTS)
    assert fake_pyinfra.commands[0][-1] == "--same-sudo-password"
    assert 'ssh_user = "me"  # a user that may sudo with its password' in (
        Path("group_data/prod.py").read_text()
    )
    assert "deploys/site.py --dry --same-sudo-password" in result.stdout


def test_pyinfra_that_tells_nothing_is_quoted(fake_pyinfra: FakePyinfra) -> None:
    fake_pyinfra.answer, fake_pyinfra.output, fake_pyinfra.code = None, "it broke\n", 1
    result = init("--name", "prod", *HOSTS)
    assert result.exit_code == 1
    assert "it broke\nno host was read" in result.stderr
    assert files() == set()


def test_what_a_run_would_refuse_is_no_reason_not_to_write(fake_pyinfra: FakePyinfra) -> None:
    old = reading(21, "gpu1", 1, os_id="centos", os_version="7", os_name="CentOS 7", arch="ppc64le")
    fake_pyinfra.answer = Reading(hosts={"gpu1": old})
    result = init("--name", "prod", "gpu1")
    assert result.exit_code == 0
    assert "2 problems to solve before the first run" in result.stdout
    assert "[gpu1] runs CentOS 7" in result.stdout
    assert files() == {"inventories/prod.py", "group_data/prod.py"}


def test_new_host_keys_are_told_of(fake_pyinfra: FakePyinfra) -> None:
    fake_pyinfra.output = "    Added host key for gpu1 to known_hosts\n"
    assert (
        "host keys that were new are in known_hosts now: gpu1" in init("--name", "p", *HOSTS).stdout
    )


def test_docker_hosts(fake_pyinfra: FakePyinfra) -> None:
    result = init("--name", "prod", "--docker", *HOSTS)
    assert result.exit_code == 0, result.output
    assert [name for name, _ in inventory()["monitor"]] == ["cp1"]
    assert [name for name, _ in inventory()["gpu_hosts"]] == ["gpu1", "gpu2"]
    assert "pyinfra inventories/prod.py deploys/standalone.py --dry" in result.stdout
    message = init("--name", "other", "--docker", "--monitor", "gpu2", *HOSTS)
    assert "[cp1] is in group gpu_hosts and promises no GPU" in message.stderr


def test_the_readme_shows_what_it_says(fake_pyinfra: FakePyinfra) -> None:
    debian: dict[str, Any] = {
        "os_id": "debian", "os_version": "12", "os_codename": "bookworm",
        "os_name": "Debian GNU/Linux 12 (bookworm)", "cpus": 2, "memory_mib": 24576,
        "root_login": True,
    }  # fmt: skip
    fake_pyinfra.answer = Reading(
        hosts={
            name: reading(
                number, name, gpus, **debian,
                default_address=f"10.77.0.{number}", addresses=(f"10.77.0.{number}",),
            )
            for name, number, gpus in (("cp1", 11, 0), ("gpu1", 21, 2), ("gpu2", 22, 4))
        }
    )  # fmt: skip
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```text\n(host  address.*?)```", page, re.DOTALL)
    assert example is not None
    _, _, output = init("--name", "prod", *HOSTS).stdout.partition("\n")
    assert example[1] == output.replace("next:", "…\nnext:")


@pytest.mark.usefixtures("terminal")
def test_a_person_is_asked_for_what_is_missing(
    fake_pyinfra: FakePyinfra, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("Host gpu1\n")
    arguments = ["--ssh-config", str(tmp_path / "config")]
    result = init(*arguments, answers="cp1 gpu1 gpu2\n\ngpu1\n")
    assert result.exit_code == 0, result.output
    assert "config: gpu1" in result.stdout
    assert "Name of the site [prod]" in result.stdout
    assert "Control plane (one host, or three or five) [cp1]" in result.stdout
    assert [name for name, _ in inventory()["control_plane"]] == ["gpu1"]


@pytest.mark.usefixtures("terminal")
def test_a_person_who_names_several_is_asked_for_their_address(fake_pyinfra: FakePyinfra) -> None:
    result = init("--name", "prod", *HOSTS, answers="cp1 gpu1 gpu2\nlb.example.com:6443\n")
    assert result.exit_code == 0, result.output
    assert len(inventory()["control_plane"]) == 3
    refusal = init("--name", "other", *HOSTS, answers="cp7\n")
    assert refusal.exit_code == 1
    assert "[cp7] is none of the hosts" in refusal.stderr


def test_a_command_outside_of_a_site_s_folder_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "where `gpuboot init` made the site" in wrong_folder("check", "inventories/prod.py")
    (tmp_path / "deploys").mkdir()  # of another project
    assert "without a `deploys` of another project" in wrong_folder("init", "--name", "prod", "a")


def wrong_folder(*arguments: str) -> str:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    return result.stderr.replace("the \n", "the ")


@pytest.mark.usefixtures("fake_pyinfra")
def test_an_empty_folder_is_linked_to_the_installed_project() -> None:
    Path("config.py").unlink()
    first = init("--name", "prod", *HOSTS)
    assert "linked to the installed gpuboot: config.py, group_data/all.py" in first.stdout
    assert Path("group_data/all.py").resolve() == ROOT / "group_data/all.py"
    Path("config.py").unlink()
    Path("config.py").symlink_to("gone/config.py")  # of an environment that was removed
    second = init("--name", "other", *HOSTS)
    assert "linked to the installed gpuboot: config.py" in second.stdout
    assert Path("config.py").resolve() == ROOT / "config.py"
