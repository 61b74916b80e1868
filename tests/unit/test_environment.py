"""Proxies in the environment: what kubeadm would copy, and what asks one for the API server."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api.command import StringCommand
from pyinfra.connectors.util import make_unix_command

from deploys.parts.node import fact as node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.environment import WITHOUT_PROXIES, ProxyVariable, parse
from gpuboot.hosts.fact_output import Fields
from gpuboot.preflight import environment_problems
from group_data import all as defaults
from tests.unit.test_preflight import CLEAN, LEADER

SCRIPT = Path(node.__file__).with_name("proxies.sh")
PROXY = "http://proxy.example:3128"


def variables(source: str, **values: str) -> tuple[ProxyVariable, ...]:
    return tuple(ProxyVariable(source, name, value) for name, value in values.items())


def causes(*proxy_variables: ProxyVariable, **settings: Any) -> list[str]:
    state = replace(CLEAN, proxy_variables=proxy_variables)
    return [
        cause
        for cause, _ in environment_problems.problems(LEADER, state, parse_settings(dict(settings)))
    ]


def shell(command: str, **environ: str) -> list[str]:
    result = subprocess.run(
        ["sh", "-uc", command],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environ},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return result.stdout.splitlines()


def test_what_login_puts_into_the_environment_reaches_no_command() -> None:
    """kubeadm takes what ends in _proxy, in any case, where it has a value."""
    assert defaults._env == WITHOUT_PROXIES
    command = make_unix_command(StringCommand("env"), _env=defaults._env).get_raw_value()
    lines = shell(
        command, HTTP_PROXY=PROXY, https_proxy=PROXY, No_PROXY="", ALL_PROXY=PROXY, no_proxy="a"
    )
    proxy_lines = [line for line in lines if line.partition("=")[0].lower().endswith("_proxy")]
    assert proxy_lines
    assert [line for line in proxy_lines if line.partition("=")[2]] == []


def test_commands_with_a_proxy_of_the_sites_own_env() -> None:
    proxy_variables = variables("commands", HTTPS_PROXY=PROXY)
    [cause] = causes(*proxy_variables)
    assert "kubeadm copies into the control plane's pods" in cause
    excepted = "gpuboot-api,10.96.0.0/12,10.244.0.0/16"
    assert causes(*proxy_variables, *variables("commands", NO_PROXY=excepted)) == []
    assert causes(*proxy_variables, *variables("commands", NO_PROXY="gpuboot-api")) != []
    assert causes(*variables("commands", no_proxy="localhost")) == []


@pytest.mark.parametrize("source", ["systemd", "kubelet", "/etc/default/kubelet"])
def test_a_kubelet_that_would_ask_a_proxy_for_the_api(source: str) -> None:
    [cause] = causes(*variables(source, https_proxy=PROXY))
    assert cause == (
        f"its kubelet would reach the API server (gpuboot-api) through the proxy {PROXY}, by the "
        f"environment of {source}"
    )
    assert causes(*variables(source, HTTPS_PROXY=PROXY, NO_PROXY="localhost, gpuboot-api")) == []
    settings = {"cluster": {"endpoint": "10.0.0.9:6443"}}
    assert causes(*variables(source, HTTPS_PROXY=PROXY, NO_PROXY="10.0.0.0/8"), **settings) == []
    assert causes(*variables(source, HTTP_PROXY=PROXY)) == [], "the API is asked by https"


def test_what_a_unit_says_counts_before_what_systemd_says() -> None:
    everywhere = variables("systemd", HTTPS_PROXY=PROXY)
    assert causes(*everywhere, *variables("kubelet", NO_PROXY="gpuboot-api")) == []
    assert causes(*variables("containerd", HTTPS_PROXY=PROXY)) == [], "it asks no API server"


def test_a_proxy_that_the_settings_do_not_name_is_told() -> None:
    state = replace(CLEAN, proxy_variables=variables("/etc/environment", https_proxy=PROXY))
    assert causes(*state.proxy_variables) == [], "no command of ours gets it"
    [line] = environment_problems.warnings([LEADER], {LEADER.host: state}, parse_settings({}))
    assert line.startswith(f"cp1: /etc/environment names the proxy {PROXY}, which gpuboot and")
    configured = parse_settings({"proxy": {"https": PROXY}})
    assert environment_problems.warnings([LEADER], {LEADER.host: state}, configured) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f'HTTPS_PROXY="{PROXY}"', [("HTTPS_PROXY", PROXY)]),
        ("http_proxy='http://me:se@cret@proxy.example:3128/'", [("http_proxy", f"{PROXY}/")]),
        (f'"HTTPS_PROXY={PROXY}"', [("HTTPS_PROXY", PROXY)]),  # of a unit
        (f"HTTPS_PROXY=$'{PROXY}'", [("HTTPS_PROXY", PROXY)]),  # of `systemctl show-environment`
        ("NO_PROXY=localhost, 10.0.0.0/8", [("NO_PROXY", "localhost, 10.0.0.0/8")]),
        ('https_proxy=""', []),
        ("HTTPS_PROXY=", []),
        ("# HTTPS_PROXY=http://old:1", []),
        ("PROXY_COMMAND=x", []),
    ],
)
def test_lines_with_proxies(line: str, expected: list[tuple[str, str]]) -> None:
    lines = shell(f'. {SCRIPT}\nprintf "%s\\n" "$LINE" | proxies_in here', LINE=line)
    assert [(item.name, item.value) for item in parse(Fields(lines, last=None))] == expected


def test_the_environment_of_commands_is_read() -> None:
    lines = shell(f". {SCRIPT}\nproxies", https_proxy=PROXY, HTTP_PROXY="")
    assert f"proxy_variable\tcommands https_proxy {PROXY}" in lines
    assert not [line for line in lines if "commands HTTP_PROXY" in line]
