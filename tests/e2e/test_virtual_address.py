"""The API's virtual address on three control planes: who has it, whose loss moves it, and back.

One story of one lab: each test goes on where the one before it ended.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lab.settings import home
from tests.e2e.api_requests import CONTROLS, bears_the_loss, begin, ready
from tests.e2e.conftest import Lab, assert_refused, fresh_lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]

NAMES = [*CONTROLS, "gpu1"]
# the address is what is tried here; the stack's start is most of a run's time
PLAIN = {"monitoring": {"enabled": False}}
LAST_NUMBER = 200  # of the address: none of the lab's own


@pytest.fixture(scope="module")
def site() -> Iterator[Lab]:
    """Three machines for control planes and a GPU node, bare; their API shall have an address."""
    with fresh_lab("test-address", "--control-planes", "3", "--gpus", "1", "--no-deploy") as lab:
        network = ipaddress.ip_network(f"{machines(lab)['cp1']}/24", strict=False)
        cluster = {"virtual_ip": str(network[LAST_NUMBER])}
        yield replace(lab, settings={**PLAIN, "cluster": cluster})


def machines(site: Lab) -> dict[str, str]:
    """Addresses by name."""
    records = json.loads((home(site.name) / "lab.json").read_text())["machines"]
    return {item["name"]: item["address"] for item in records}


def address(site: Lab) -> str:
    return str(site.settings["cluster"]["virtual_ip"])


def holders(site: Lab) -> list[str]:
    look = f"ip -o address show to {address(site)}"
    return [name for name in CONTROLS if site.ssh(name, look).strip()]


def holder(site: Lab) -> str:
    (name,) = until(
        lambda: [] if len(current := holders(site)) != 1 else current, "one has the address"
    )
    return str(name)


def outside(site: Lab) -> str:
    """What the API says to somebody who knows the address and the cluster's authority."""
    ca = "/etc/kubernetes/pki/ca.crt"
    return site.ssh("gpu1", f"curl -sS --cacert {ca} https://{address(site)}:6443/readyz")


def test_an_address_that_somebody_has_is_refused(site: Lab) -> None:
    host = json.loads((home(site.name) / "lab.json").read_text())["mirror"]["address"]
    foreign_result = site.dry(settings={**PLAIN, "cluster": {"virtual_ip": host}})
    assert_refused(
        foreign_result,
        f"cluster.virtual_ip {host} is taken: a machine that is not in the inventory",
    )
    address = machines(site)["gpu1"]
    own_result = site.dry(settings={**PLAIN, "cluster": {"virtual_ip": address}})
    assert_refused(own_result, f"cluster.virtual_ip {address} is its own address")


def test_a_site_is_made_with_it(site: Lab) -> None:
    result = site.deploy()
    assert result.code == 0, result.details
    assert "proven" in result.text
    assert ready(site) == dict.fromkeys(NAMES, True)
    assert f"{address(site)} gpuboot-api" in site.ssh("gpu1", "cat /etc/hosts")
    assert "inactive" in site.ssh("gpu1", "systemctl is-active haproxy; true")
    assert outside(site) == "ok"
    holder(site)
    assert site.deploy("--json").changes == []


def test_no_request_is_lost_with_the_machine_that_has_it(site: Lab) -> None:
    token = begin(site)
    first = holder(site)
    bears_the_loss(site, first, token)
    second = holder(site)
    assert second != first, "it moves once, and not back"
    assert outside(site) == "ok"


def test_it_leaves_a_machine_whose_api_server_has_failed(site: Lab) -> None:
    first = holder(site)
    manifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
    site.ssh(first, f"mv {manifest} /root/")
    try:
        until(lambda: holders(site) not in ([], [first]), "another one has it")
        assert outside(site) == "ok"
    finally:
        site.ssh(first, f"mv /root/kube-apiserver.yaml {manifest}")
    until(lambda: site.ssh(first, "kubectl get --raw /readyz; true").endswith("ok"), "it is back")
    assert holder(site) != first


def test_what_somebody_did_to_it_is_named_and_repaired(site: Lab) -> None:
    machine = holder(site)
    change = "sed -i 's/priority 100/priority 200/' /etc/keepalived/keepalived.conf"
    site.ssh(machine, f"systemctl disable --now keepalived; {change}")
    plan_text = site.dry().text
    for line in ("unit keepalived.service", "-    priority 200", "+    priority 100"):
        assert line in plan_text
    result = site.deploy()
    assert result.code == 0, result.details
    assert site.ssh(machine, "systemctl is-active keepalived").strip() == "active"
    assert site.deploy("--json").changes == []


def test_two_that_do_not_hear_each_other_are_told(site: Lab) -> None:
    block = "nft add table inet novrrp; nft add chain inet novrrp in '{ type filter hook input "
    block += "priority 0; }'; nft add rule inet novrrp in meta l4proto 112 drop"
    peer = next(name for name in CONTROLS if name != holder(site))
    site.ssh(peer, block)
    try:
        until(lambda: len(holders(site)) == 2, "two have it")
        result = site.deploy()
        print(result.details)
        assert_refused(
            result, f"the virtual address {address(site)} is on ", "IP protocol 112 (VRRP)"
        )
    finally:
        site.ssh(peer, "nft delete table inet novrrp")
    holder(site)


def test_a_living_site_goes_back_to_load_balancers(site: Lab) -> None:
    result = site.deploy(settings={**PLAIN, "cluster": {}})
    assert result.code == 0, result.details
    assert "proven" in result.text
    assert holders(site) == []
    assert "127.0.0.1 gpuboot-api" in site.ssh("gpu1", "cat /etc/hosts")
    assert site.deploy("--json", settings={**PLAIN, "cluster": {}}).changes == []


def test_a_living_site_goes_over_to_it(site: Lab) -> None:
    result = site.deploy()
    assert result.code == 0, result.details
    assert "proven" in result.text
    holder(site)
    assert outside(site) == "ok"
    assert "inactive" in site.ssh("gpu1", "systemctl is-active haproxy; true")
    assert site.deploy("--json").changes == []


def test_a_reset_takes_it_away(site: Lab) -> None:
    name = f"gpuboot_reset=gpuboot-{site.name}"
    reset = ["pyinfra", "inventories/lab.py", "deploys/reset.py", "-y", "--data", name]
    result = site.command(reset)
    assert result.code == 0, result.details
    assert holders(site) == []
    for machine in CONTROLS:
        assert site.ssh(machine, "ls /etc/keepalived/keepalived.conf 2>&1; true").startswith("ls:")
