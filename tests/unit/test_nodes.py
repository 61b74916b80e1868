"""The cluster that an inventory describes, and every mistake in it."""

import pytest

from gpuboot.config.inventory import Entry, default_name, led, plan, warnings

CP = Entry("cp1", ("control_plane", "prod"), {"address": "10.0.0.1"})
GPU = Entry("gpu1", ("workers", "prod"), {"address": "10.0.0.2", "gpus": 8})


def causes(entries: list[Entry], endpoint: str | None = None) -> list[str]:
    return [problem.cause for problem in plan(entries, endpoint)[1]]


def test_two_nodes() -> None:
    nodes, problems = plan([CP, GPU], None)
    assert problems == []
    assert [(n.name, n.role, n.gpus, n.leader) for n in nodes] == [
        ("cp1", "control_plane", 0, True),
        ("gpu1", "worker", 8, False),
    ]


def test_one_machine_may_do_both() -> None:
    nodes, problems = plan([Entry("@local", ("control_plane",), {"gpus": 1})], None)
    assert problems == []
    assert (nodes[0].name, nodes[0].address) == ("local", "")


def test_a_connector_names_groups_twice() -> None:
    entry = Entry("@local", ("control_plane", "inv", "control_plane"), {})
    assert causes([entry]) == []


def test_no_control_plane() -> None:
    assert causes([GPU]) == ["there is no control-plane node"]


SECOND = Entry("cp2", ("control_plane",), {"address": "10.0.0.3"})
THIRD = Entry("cp3", ("control_plane",), {"address": "10.0.0.4"})


def test_an_even_number_of_control_planes_is_told() -> None:
    [warning] = warnings(plan([CP, SECOND, GPU], None)[0])
    assert warning.startswith("2 control-plane nodes: etcd needs more than half of them")
    assert "remedy: use 3, or 1" in warning
    assert warnings(plan([CP, SECOND, THIRD], None)[0]) == warnings(plan([CP], None)[0]) == []


def test_several_control_planes_need_nothing_more() -> None:
    assert causes([CP, SECOND, THIRD]) == causes([CP, SECOND, THIRD], "vip.example:6443") == []


@pytest.mark.parametrize("endpoint", ["cp2:6443", "10.0.0.3:6443"])
def test_an_endpoint_that_is_one_machine(endpoint: str) -> None:
    [cause] = causes([CP, SECOND, THIRD], endpoint)
    assert f"cluster.endpoint {endpoint} is this one machine" in cause
    assert causes([CP, GPU], "cp1:6443") == []


def test_the_name_of_all_api_servers_is_no_nodes() -> None:
    entry = Entry("gpuboot-api", ("workers",), {})
    assert causes([CP, entry]) == ["gpuboot-api is the name of all API servers"]
    assert causes([CP, entry], "lb:6443") == []


def test_who_leads_is_a_member_that_answers() -> None:
    nodes, _ = plan([CP, SECOND, THIRD, GPU], None)

    def leader(*members: str) -> str:
        [lead] = [node.host for node in led(nodes, members) if node.leader]
        return lead

    assert leader() == leader("cp1", "cp2") == "cp1"
    assert leader("cp3", "cp2") == "cp2"

    def last(*members: str, **led_at: int) -> str:
        [lead] = [node.host for node in led(nodes, members, led_at) if node.leader]
        return lead

    assert last("cp1", "cp2", "cp3", cp2=5) == "cp2", "cp1 was replaced: it has never led"
    assert last("cp1", "cp2", "cp3", cp1=3, cp2=5) == "cp2", "cp1 was switched off for a while"
    assert last("cp1", "cp3", cp2=5) == "cp1"
    assert last(cp2=5) == "cp1", "there is no cluster"


def test_the_first_control_plane_leads() -> None:
    three = [Entry(f"c{i}", ("control_plane",), {"address": f"10.0.0.{i}"}) for i in (5, 6, 7)]
    nodes, _ = plan(three, "vip:6443")
    assert [node.leader for node in nodes] == [True, False, False]


def test_one_address_or_name_for_two() -> None:
    twin = Entry("gpu2", ("workers",), {"address": "10.0.0.2", "node_name": "gpu1"})
    assert causes([CP, GPU, twin]) == [
        "gpu1, gpu2 have the same name gpu1",
        "gpu1, gpu2 have the same address 10.0.0.2",
    ]


@pytest.mark.parametrize("value", [-1, "8", 1.5, True, None])
def test_gpus_must_be_a_count(value: object) -> None:
    entry = Entry("gpu1", ("workers",), {"gpus": value, "address": "10.0.0.2"})
    assert causes([CP, entry]) == [f"gpus is {value!r}, which is not a number of GPUs"]


def test_a_host_without_a_role_is_a_typo() -> None:
    entry = Entry("gpu1", ("worker", "prod"), {})
    assert causes([CP, entry]) == [
        "is in neither group control_plane nor workers (its groups: prod, worker)"
    ]


def test_a_host_with_two_roles() -> None:
    entry = Entry("cp1", ("control_plane", "workers"), {})
    assert "is in both groups, control_plane and workers" in causes([entry])


def test_address_must_be_one() -> None:
    entry = Entry("cp1", ("control_plane",), {"address": "cp1.example.com"})
    assert causes([entry]) == ["address 'cp1.example.com' is not an IP address"]


def test_address_comes_from_ssh_when_that_is_one() -> None:
    nodes, _ = plan([Entry("cp1", ("control_plane",), {"ssh_hostname": "192.0.2.7"})], None)
    assert nodes[0].address == "192.0.2.7"


def test_node_names_must_be_dns_names() -> None:
    entry = Entry("cp1", ("control_plane",), {"node_name": "CP_1"})
    assert causes([entry])[0].startswith("node name 'CP_1' is no name Kubernetes takes")


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("GPU1.example.com", "gpu1.example.com"),
        ("@vagrant/cp1", "cp1"),
        ("192.0.2.7", "node-192-0-2-7"),
        ("@local", "local"),
    ],
)
def test_default_names(host: str, name: str) -> None:
    assert default_name(host) == name


def test_all_mistakes_at_once() -> None:
    entries = [
        Entry("a", ("control_plane", "workers"), {"gpus": -2}),
        Entry("b", (), {"address": "nowhere"}),
    ]
    # that there is no control-plane node follows from the first
    assert len(causes(entries)) == 4
