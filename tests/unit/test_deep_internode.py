"""What NCCL between nodes says of each of them: each kind of good and bad, and who is to blame."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from gpuboot.verify.deep import internode
from gpuboot.verify.deep.deep_answers import Answer, DeepAnswers, NodeAnswers, PairAnswer
from gpuboot.verify.deep.nccl_tests import Network, network
from gpuboot.verify.deep.thresholds import INTERNODE, internode_threshold
from gpuboot.verify.devices import Gpu, Host
from gpuboot.verify.findings import Finding
from tests.unit import deep_outputs as printed

H100 = "NVIDIA H100 80GB HBM3"
ADDRESSES = {"n1": "10.244.1.1", "n2": "10.244.1.2", "n3": "10.244.1.3", "n4": "10.244.1.4"}
SLOW = 98.0


def host(name: str, model: str = H100) -> Host:
    gpus = tuple(
        Gpu(pci=f"0000:0{i}:00.0", uuid=f"GPU-{name}-{i}", index=i, name=model) for i in range(8)
    )
    return Host(node=name, expected_gpus=8, gpus=gpus)


def answered(first: str, second: str, output: str = "", **fields: Any) -> PairAnswer:
    """+ fields: of the run that is printed, or the answer"""
    answer = fields.pop("answer", None)
    text = output or printed.between(
        {f"internode-{first}-0": 8, f"internode-{second}-0": 8}, **fields
    )
    return PairAnswer(
        nodes=(first, second),
        uuids=(),
        hosts={
            f"internode-{first}-0": first, f"internode-{second}-0": second,
            ADDRESSES[second]: second,
        },
        gpus={first: 8, second: 8},
        answer=answer or Answer(ended="answered", output=text, exit=0, seconds=61.0),
    )  # fmt: skip


def findings_by_node(
    *pair_answers: PairAnswer, nodes: int = 2, threshold: float | None = None, model: str = H100
) -> dict[str, Finding]:
    names = list(ADDRESSES)[:nodes]
    answers = DeepAnswers(
        nodes={name: NodeAnswers(node=name) for name in names},
        pairs={answer.nodes: answer for answer in pair_answers},
    )
    hosts = [host(name, model) for name in names]
    return {item.node: item for item in internode.evaluate(hosts, answers, threshold)}


def ring(**slow: float) -> list[PairAnswer]:
    """Four nodes in a ring. + slow: `n1n2` and the like -> GB/s"""
    names = [*ADDRESSES, "n1"]
    return [
        answered(first, second, busbw=slow.get(f"{first}{second}", 470.0))
        for first, second in pairwise(names)
    ]


def test_two_sound_nodes_pass_by_what_is_published_for_their_network() -> None:
    findings = findings_by_node(answered("n1", "n2"))
    assert {item.status for item in findings.values()} == {"pass"}
    assert findings["n1"].detail == (
        "with n2: bus bandwidth 470 GB/s by RoCE, 3200 Gb/s a node, at least 440 "
        "(oracle-quickstart/oci-hpc scripts/ncclscout.py)"
    )
    assert findings["n1"].seconds == 61.0


def test_a_slow_node_is_told_from_its_neighbours() -> None:
    findings = findings_by_node(*ring(n1n2=SLOW, n2n3=SLOW), nodes=4)
    assert {node for node, item in findings.items() if item.status == "fail"} == {"n2"}
    assert findings["n2"].detail.endswith("; it fails with every node that it was tried with")
    assert "bus bandwidth 98 GB/s by RoCE, 3200 Gb/s a node, below 440" in findings["n2"].detail
    assert findings["n1"].detail.endswith("; n2 fails with others, too")


def test_a_slow_path_between_two_sound_nodes_is_told_from_a_node() -> None:
    findings = findings_by_node(*ring(n2n3=SLOW), nodes=4)
    assert {node for node, item in findings.items() if item.status == "fail"} == {"n2", "n3"}
    assert findings["n2"].detail.endswith("; with n1 it is sound, so it is what lies between")


def test_of_two_nodes_nobody_knows_which_it_is() -> None:
    findings = findings_by_node(answered("n1", "n2", busbw=SLOW))
    assert {item.status for item in findings.values()} == {"fail"}
    assert findings["n2"].detail.endswith("; it is either node, or what lies between")


def test_where_all_are_slow_all_fail() -> None:
    findings = findings_by_node(*ring(n1n2=SLOW, n2n3=SLOW, n3n4=SLOW, n4n1=SLOW), nodes=4)
    assert {item.status for item in findings.values()} == {"fail"}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"adapters": 0}, "bus bandwidth 470 GB/s by Socket: nothing is published"),
        ({"adapters": 4}, "by RoCE, 1600 Gb/s a node: nothing is published"),
    ],
)
def test_over_a_network_that_nobody_has_figures_of_nothing_passes(
    fields: dict[str, Any], text: str
) -> None:
    findings = findings_by_node(answered("n1", "n2", **fields))
    assert {item.status for item in findings.values()} == {"unknown"}
    assert text in findings["n1"].detail
    assert "verify.deep.internode.least_gbps" in findings["n1"].remedy


def test_nor_with_another_model() -> None:
    assert findings_by_node(answered("n1", "n2"), model="NVIDIA L40S")["n1"].status == "unknown"


def test_a_site_s_own_limit_comes_first() -> None:
    over: dict[str, Any] = {"adapters": 0, "busbw": 11.2}
    assert findings_by_node(answered("n1", "n2", **over), threshold=10)["n1"].status == "pass"
    below = findings_by_node(answered("n1", "n2", **over), threshold=12)["n1"]
    assert below.status == "fail"
    assert "below 12 (verify.deep.internode.least_gbps)" in below.detail
    assert findings_by_node(answered("n1", "n2", busbw=300.0), threshold=250)["n1"].status == "pass"


def test_wrong_values_fail_however_fast_they_come() -> None:
    findings = findings_by_node(answered("n1", "n2", wrong_values=3), threshold=1)
    assert findings["n1"].status == "fail"
    assert "6 values of the sum are wrong" in findings["n1"].detail


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (printed.UNREACHED.format(second="10.244.1.2"), "n2 does not answer by ssh: Connection"),
        (printed.LOST_NODE.format(first="internode-n1-0", second="10.244.1.2"), "mpirun lost n2"),
    ],
)
def test_a_peer_that_is_missing_is_named_and_the_other_one_is_not(output: str, text: str) -> None:
    findings = findings_by_node(answered("n1", "n2", output))
    assert (findings["n1"].status, findings["n2"].status) == ("not_covered", "fail")
    assert text in findings["n2"].detail


def test_a_peer_on_which_mpirun_starts_nothing_is_named_and_unknown() -> None:
    findings = findings_by_node(answered("n1", "n2", printed.NOT_JOINED))
    assert {item.status for item in findings.values()} == {"unknown"}
    assert "mpirun could not start on n2" in findings["n1"].detail


def test_what_was_printed_last_is_told_where_there_is_no_table() -> None:
    output = "Host key verification failed.\n\ngpuboot: exit 255\n"
    assert (
        "Host key verification failed."
        in findings_by_node(answered("n1", "n2", output))["n1"].detail
    )


def test_errors_of_nccl_are_told() -> None:
    finding = findings_by_node(answered("n1", "n2", printed.NCCL_ERROR))["n1"]
    assert finding.status == "fail"
    assert "unhandled system error" in finding.detail


@pytest.mark.parametrize(
    "output",
    [
        "\n",
        "gpuboot: this image has no mpirun\n",
        "Host key verification failed.\n",
        printed.EIGHT.partition("# Out of bounds")[0].replace("gpu1", "internode-n1-0"),
        printed.between({"internode-n1-0": 8, "internode-n2-0": 8}).partition("# Out of")[0],
        printed.between({"internode-n1-0": 8, "internode-n2-0": 8})[:-150],
    ],
)
def test_what_is_empty_cut_off_or_none_of_it_never_passes(output: str) -> None:
    findings = findings_by_node(answered("n1", "n2", output))
    assert "pass" not in {item.status for item in findings.values()}


def test_a_table_of_an_old_version_is_judged_by_its_figure() -> None:
    assert findings_by_node(answered("n1", "n2", printed.OLD), threshold=20)["n1"].status == "pass"
    assert findings_by_node(answered("n1", "n2", printed.OLD), threshold=25)["n1"].status == "fail"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer(ended="hung", reason="no answer within 900 s"), "fail"),
        (Answer(ended="not started", reason="n2: gpuboot: this image has no sshd"), "unknown"),
        (Answer(ended="not started", reason="time was up"), "unknown"),
    ],
)
def test_no_answer_is_never_a_pass(answer: Answer, status: str) -> None:
    assert findings_by_node(answered("n1", "n2", answer=answer))["n1"].status == status


def test_a_node_that_nobody_tried_is_not_covered() -> None:
    assert findings_by_node(nodes=3)["n3"].status == "not_covered"


def test_every_limit_between_nodes_is_of_one_model_and_network() -> None:
    for item in INTERNODE:
        over = Network("IB", "IB", item.network)
        assert internode_threshold(f"{item.model} SXM", item.gpus, over) is item
        assert internode_threshold(item.model, item.gpus // 2, over) is None
        assert internode_threshold(item.model, item.gpus, Network("IB", "", item.network)) is None
        assert item.source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Network()),
        ("a:1:2 [0] NCCL INFO Using network Socket\n", Network("Socket")),
        ("a:1:2 [0] NCCL INFO Assigned NET plugin AWS Libfabric to comm\n",
         Network("AWS Libfabric")),
        ("a:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA\n",
         Network("IB")),
        (printed.ROCE.format(host="a", n=0) * 2 + printed.ROCE.format(host="b", n=0)
         + printed.ROCE.format(host="b", n=1) + "b:1:2 [0] NCCL INFO Using network IB\n",
         Network("IB", "RoCE", 400)),
    ],
)  # fmt: skip
def test_the_network_is_what_nccl_s_log_says(text: str, expected: Network) -> None:
    assert network(text) == expected
