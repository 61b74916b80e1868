"""Firewalls on the nodes: what their rules drop of the cluster's traffic, by recorded rules.

`packet_filters/` holds what the fact printed where ufw 0.36.2, firewalld 1.3.3, iptables 1.8.9 and
nft 1.0.6 had put rules into the kernel (network namespaces on Debian 12).
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.packet_filter import parse
from gpuboot.hosts.packet_rules import PacketFilter
from gpuboot.preflight import firewall
from tests.unit.test_preflight import CLEAN, LEADER, WORKER

FOLDER = Path(__file__).with_name("packet_filters")
WORKER2 = replace(WORKER, address="10.0.0.6")
IPTABLES_MODE = {"cluster": {"proxy_mode": "iptables"}}


def recorded(name: str) -> PacketFilter:
    lines = (FOLDER / f"{name}.txt").read_text().splitlines()
    return parse(Fields(lines, last=None))


def check_filter(
    rules: PacketFilter,
    settings: Mapping[str, Any] | None = None,
    leads: bool = True,
    **changes: Any,
) -> tuple[list[tuple[str, str]], list[str]]:
    """Causes with remedies, and warnings, of the leader (or the worker) that has these rules."""
    filtered_state = replace(
        CLEAN, packet_filter=rules, interfaces=(("eth0", "10.0.0.5/24"),), **changes
    )
    unfiltered_state = replace(CLEAN, packet_filter=PacketFilter())
    states = {LEADER.host: filtered_state, WORKER.host: unfiltered_state}
    if not leads:
        filtered_state = replace(filtered_state, interfaces=(("eth0", "10.0.0.6/24"),))
        states = {LEADER.host: unfiltered_state, WORKER.host: filtered_state}
    arguments = [LEADER, WORKER2], states, parse_settings(dict(settings or {}))
    problems = [(item.cause, item.remedy) for item in firewall.problems(*arguments)]
    return problems, list(firewall.warnings(*arguments))


def test_ufw_is_named_with_the_commands_that_open_exactly_what_the_site_needs() -> None:
    [(inside, opened), (forwarded, routed)], warnings = check_filter(recorded("ufw"), leads=False)
    assert inside == (
        "its firewall drops 10250/tcp, 8472/udp, 9100/tcp, 10249/tcp from other nodes; 10250/tcp, "
        "9100/tcp, 10249/tcp from pods (iptables by ufw, chain INPUT: policy drop)"
    )
    assert opened == (
        "run there: `ufw allow proto tcp from 10.0.0.5 to any port 10250,9100,10249`, "
        "`ufw allow proto tcp from 10.244.0.0/16 to any port 10250,9100,10249`, "
        "`ufw allow proto udp from 10.0.0.5 to any port 8472`"
    )
    assert (
        "between pods of different nodes (iptables by ufw, chain FORWARD: policy drop)" in forwarded
    )
    assert routed == (
        "run there: `ufw route allow from 10.244.0.0/16`, `ufw route allow to 10.244.0.0/16`"
    )
    assert warnings == []


def test_the_ports_are_those_of_the_role_and_of_the_settings() -> None:
    settings = {
        "cluster": {"flannel_backend": "wireguard", "virtual_ip": "10.0.0.100"},
        "monitoring": {"control_plane_targets": False},
    }
    [(cause, remedy), _], _ = check_filter(recorded("ufw"), settings)
    assert "6443/tcp, 10250/tcp, 51820/udp, 9100/tcp from other nodes" in cause
    assert "2379" not in cause, "it is the only control plane"
    assert "8472" not in cause + remedy
    assert "`ufw allow proto udp from 10.0.0.6 to any port 51820`" in remedy
    host_gw = {"cluster": {"flannel_backend": "host-gw"}, "monitoring": {"enabled": False}}
    [(cause, _), _], _ = check_filter(recorded("ufw"), host_gw, leads=False)
    assert cause.startswith("its firewall drops 10250/tcp from other nodes; 10250/tcp from pods (")


def test_control_planes_open_etcd_and_vrrp_to_each_other_alone() -> None:
    second = replace(LEADER, host="cp2", name="cp2", address="10.0.0.7", leader=False)
    states = {
        LEADER.host: replace(
            CLEAN, packet_filter=recorded("ufw"), interfaces=(("eth0", "10.0.0.5/24"),)
        )
    }
    settings = parse_settings({"cluster": {"virtual_ip": "10.0.0.100"}})
    first, _ = firewall.problems([LEADER, WORKER2, second], states, settings)
    assert "`ufw allow proto tcp from 10.0.0.7 to any port 2379,2380`" in first.remedy
    assert "`ufw allow proto vrrp from 10.0.0.7 to any`" in first.remedy
    assert "from 10.0.0.6 to any port 2379" not in first.remedy


def test_many_nodes_are_named_by_their_network() -> None:
    other_nodes = [
        replace(WORKER2, host=f"w{n}", name=f"w{n}", address=f"10.0.0.{n}") for n in (7, 8, 9)
    ]
    far = [replace(WORKER2, host=f"f{n}", name=f"f{n}", address=f"10.1.0.{n}") for n in (1, 2)]
    filtered_state = replace(
        CLEAN, packet_filter=recorded("ufw"), interfaces=(("eth0", "10.0.0.5/24"),)
    )
    nodes = [LEADER, WORKER2, *other_nodes, *far]
    first, _ = firewall.problems(nodes, {LEADER.host: filtered_state}, parse_settings({}))
    for source in ("10.0.0.0/24", "10.1.0.1", "10.1.0.2"):
        assert f"`ufw allow proto udp from {source} to any port 8472`" in first.remedy
    assert "from 10.0.0.7 " not in first.remedy


def test_what_ufw_lets_pass_is_right() -> None:
    """Its allow list, a source network, a device, and a rule whose limit concerns SSH alone."""
    problems, warnings = check_filter(recorded("ufw_open"), {"monitoring": {"enabled": False}})
    assert (problems, warnings) == ([], [])
    [(cause, _)], _ = check_filter(recorded("ufw_open"))
    assert "drops 2381/tcp, 10257/tcp, 10259/tcp, 10249/tcp from other nodes (" in cause


def test_docker_drops_pods_where_flannel_accepts_them_elsewhere() -> None:
    """Seen: with flannel's table beside it, and Docker's policy, no packet passes.

    So a run lets pods through Docker's own chain, and preflight has nothing to say.
    """
    rules, settings = recorded("docker"), parse_settings({})
    assert firewall.beside_docker(rules, settings)
    assert check_filter(rules) == ([], [])
    assert not firewall.beside_docker(rules, parse_settings(IPTABLES_MODE))
    assert not firewall.beside_docker(recorded("ufw"), settings)
    assert not firewall.beside_docker(PacketFilter(), settings)


def test_docker_that_guards_the_address_of_one_container_is_right() -> None:
    """Docker 28 and later, for each port that is published: the address is no pod's way out."""
    assert check_filter(recorded("docker_port")) == ([], [])


def test_whoever_sets_the_policy_beside_docker_pods_pass() -> None:
    """Docker's chain for users comes before others' rules, and ours are in it after a boot too."""
    lines = (FOLDER / "docker.txt").read_text().splitlines()
    rules = parse(Fields([*lines, "filter_rule\tip iptables :SITE - [0:0]"], last=None))
    assert firewall.beside_docker(rules, parse_settings({}))
    assert check_filter(rules) == ([], [])


def test_docker_s_chain_that_nothing_asks_lets_no_pod_pass() -> None:
    lines = (FOLDER / "docker.txt").read_text().splitlines()
    remaining_lines = [line for line in lines if "-A FORWARD -j DOCKER-USER" not in line]
    assert remaining_lines != lines
    [(cause, _)], _ = check_filter(parse(Fields(remaining_lines, last=None)))
    assert "packets between pods" in cause
    assert "chain FORWARD: policy drop" in cause


def test_docker_is_no_reason_where_flannel_accepts_pods_behind_it() -> None:
    assert check_filter(recorded("docker"), IPTABLES_MODE) == ([], [])


def test_docker_that_lets_pods_pass_is_right() -> None:
    lines = (FOLDER / "docker.txt").read_text().splitlines()
    lines += [
        f"filter_rule\tip iptables -A DOCKER-USER -{way} 10.244.0.0/16 -j ACCEPT" for way in "sd"
    ]
    assert check_filter(parse(Fields(lines, last=None))) == ([], [])


def test_a_member_of_the_cluster_is_not_refused_for_what_the_cluster_itself_wrote() -> None:
    rules = recorded("member_iptables")
    assert rules.drops
    assert check_filter(rules, IPTABLES_MODE) == check_filter(rules) == ([], [])


def test_oracles_images_reject_at_the_end_of_both_chains() -> None:
    [(inside, opened), (forwarded, let_pass)], warnings = check_filter(
        recorded("oracle"), IPTABLES_MODE
    )
    assert "chain INPUT: `-A INPUT -j REJECT --reject-with icmp-host-prohibited`" in inside
    assert "`iptables -I INPUT -p tcp -s 10.0.0.6 -m multiport --dports 6443,10250," in opened
    assert "`iptables -I INPUT -p udp -s 10.0.0.6 -m multiport --dports 8472 -j ACCEPT`" in opened
    assert "netfilter-persistent save" in opened
    # flannel's own rule comes behind the one that rejects
    assert "chain FORWARD: `-A FORWARD -j REJECT" in forwarded
    assert "`iptables -I FORWARD -d 10.244.0.0/16 -j ACCEPT`" in let_pass
    assert warnings == []


def test_firewalld_by_its_zones_on_any_system() -> None:
    [(inside, opened), (forwarded, trusted)], warnings = check_filter(recorded("firewalld"))
    assert "inet firewalld, chain filter_IN_public: `reject with icmpx admin-prohibited`" in inside
    assert "`firewall-cmd --permanent --zone=public --add-port=6443/tcp --add-port=" in opened
    assert "--add-port=8472/udp`" in opened
    assert "packets between pods" in forwarded
    assert trusted == (
        "run there: `firewall-cmd --permanent --zone=trusted --add-source=10.244.0.0/16`, "
        "`firewall-cmd --reload`"
    )
    assert warnings == []


def test_a_table_of_nft_that_drops_what_comes_goes_and_passes() -> None:
    """As the CIS benchmark for Debian asks: all three chains drop, new TCP may go out."""
    [(inside, opened), (forwarded, _)], warnings = check_filter(recorded("hardened"))
    assert "(inet filter, chain input: policy drop)" in inside
    assert "`nft insert rule inet filter input ip saddr 10.0.0.6 udp dport 8472 accept`" in opened
    assert "/etc/nftables.conf" in opened
    assert "inet filter, chain forward: policy drop" in forwarded
    assert warnings == []
    strict = (FOLDER / "hardened.txt").read_text().replace("established,related,new", "established")
    problems, _ = check_filter(parse(Fields(strict.splitlines(), last=None)))
    [(cause, remedy)] = [item for item in problems if "to other nodes" in item[0]]
    assert "10250/tcp, 8472/udp" in cause
    assert "nft insert rule inet filter output ip daddr 10.0.0.6 tcp dport" in remedy


def test_rules_of_iptables_legacy_and_of_a_table_that_only_nft_shows() -> None:
    [(cause, remedy)], _ = check_filter(recorded("legacy"))
    assert "(iptables-legacy, chain INPUT: policy drop)" in cause
    assert "`iptables-legacy -I INPUT -p tcp -s 10.0.0.6" in remedy
    [(cause, _)], _ = check_filter(recorded("own_ip_filter"))
    assert "from pods (ip filter, chain incoming: policy drop)" in cause
    assert "from other nodes" not in cause, "a set of addresses lets the other node in"


@pytest.mark.parametrize(
    "name", ["fail2ban", "fail2ban_recidive", "crowdsec", "crowdsec_nft", "nft", "ufw_open"]
)
def test_what_guards_ssh_and_lists_of_others_are_no_reason(name: str) -> None:
    text = (FOLDER / f"{name}.txt").read_text()
    if name == "fail2ban_recidive":  # it bans 10.0.0.6 on all ports
        text = text.replace("10.0.0.6", "10.0.0.99")
    rules = parse(Fields(text.splitlines(), last=None))
    assert rules.drops
    assert check_filter(rules, {"monitoring": {"enabled": False}}) == ([], [])


def test_a_node_that_is_banned_is_named() -> None:
    for name in ("fail2ban_recidive", "crowdsec_many"):
        [(cause, _)], warnings = check_filter(recorded(name))
        assert "6443/tcp" in cause
        assert warnings == []


def test_a_long_list_is_judged_where_nodes_have_private_addresses() -> None:
    text = (FOLDER / "crowdsec_many.txt").read_text()
    rules = parse(Fields([x for x in text.splitlines() if "10.0.0.6" not in x], last=None))
    assert check_filter(rules) == ([], [])
    public = replace(LEADER, address="203.0.113.5"), replace(WORKER2, address="203.0.113.6")
    state = replace(CLEAN, packet_filter=rules, interfaces=(("eth0", "203.0.113.5/24"),))
    warnings = list(firewall.warnings(public, {LEADER.host: state}, parse_settings({})))
    assert len(warnings) == 1
    assert "crowdsec-blacklists-0 src -j DROP" in warnings[0]


def test_a_rule_that_nobody_can_judge_is_a_warning_that_quotes_it() -> None:
    lines = (FOLDER / "nfqueue.txt").read_text().replace("INPUT DROP", "INPUT ACCEPT").splitlines()
    problems, warnings = check_filter(parse(Fields(lines, last=None)))
    assert problems == []
    assert len(warnings) == 1
    assert "`-A FORWARD -j NFQUEUE --queue-num 0`" in warnings[0]


def test_rules_that_cannot_be_read_are_told() -> None:
    _, [warning] = check_filter(parse(Fields(["filter_unread\tiptables-legacy"], last=None)))
    assert "rules of iptables-legacy are in force there and cannot be read" in warning


def test_nothing_is_asked_of_a_host_without_rules() -> None:
    assert check_filter(PacketFilter()) == ([], [])


def test_nodes_and_pods_of_ipv6_are_judged_by_their_own_rules() -> None:
    leader, worker = replace(LEADER, address="fd00::5"), replace(WORKER2, address="fd00::6")
    state = replace(CLEAN, packet_filter=recorded("ufw"), interfaces=(("eth0", "fd00::5/64"),))
    cluster = {
        "pod_cidr": "fd00:10:244::/56",
        "service_cidr": "fd00:10:96::/112",
        "flannel_backend": "wireguard",
    }
    inside, forwarded = firewall.problems(
        [leader, worker], {leader.host: state}, parse_settings({"cluster": cluster})
    )
    assert "6443/tcp, 10250/tcp, 51821/udp" in inside.cause
    assert "(ip6tables by ufw, chain INPUT: policy drop)" in inside.cause
    assert "`ufw allow proto udp from fd00::6 to any port 51821`" in inside.remedy
    assert "`ufw route allow from fd00:10:244::/56`" in forwarded.remedy
