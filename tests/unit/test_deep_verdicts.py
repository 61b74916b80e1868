"""What deep tests say of a GPU: each kind of good and bad, and what nobody can judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.verify.deep.deep_answers import Answer, NodeAnswers, Step
from gpuboot.verify.deep.thresholds import TABLE, threshold
from gpuboot.verify.deep.verdicts import evaluate
from gpuboot.verify.devices import Gpu, Host
from gpuboot.verify.findings import Finding
from tests.unit import deep_outputs as printed

H100 = "NVIDIA H100 80GB HBM3"
UUIDS = ("GPU-a", "GPU-b")
LINK = [[None, 370.2], [371.0, None]]


def host(name: str = H100, count: int = 2) -> Host:
    gpus = tuple(
        Gpu(pci=f"0000:0{i}:00.0", uuid=UUIDS[i], index=i, name=name) for i in range(count)
    )
    return Host(node="gpu1", expected_gpus=count, gpus=gpus)


def make_answer(output: str, **fields: Any) -> Answer:
    return Answer(
        ended="answered", output=output, exit=fields.pop("exit", 0), seconds=61.0, **fields
    )


def smi(uuid: str, **values: object) -> str:
    defaults = {"uuid": uuid, "clock": 1980, "limit": 700, "gen": 5, "width": 16, "reasons": "0x0"}
    return printed.SMI.format(**(defaults | values))


SOUND = NodeAnswers(
    node="gpu1",
    uuids=UUIDS,
    steps={
        "diag": make_answer(printed.diag({"software": ["Pass"] * 2, "memory": ["Pass"] * 2})),
        "bandwidth": make_answer(printed.nvbandwidth([55.1, 54.9], LINK)),
        "collective": make_answer(printed.nccl()),
    },
    samples=smi("GPU-a") + smi("GPU-b"),
)


def findings_of(
    answers: NodeAnswers = SOUND,
    machine: Host | None = None,
    diag: Answer | None = None,
    bandwidth: Answer | None = None,
    collective: Answer | None = None,
) -> list[Finding]:
    step_answers: dict[Step, Answer | None] = {
        "diag": diag, "bandwidth": bandwidth, "collective": collective
    }  # fmt: skip
    steps = {
        **answers.steps,
        **{name: step_answer for name, step_answer in step_answers.items() if step_answer},
    }
    return evaluate(machine or host(), replace(answers, steps=steps))


def of(findings: list[Finding], link: str) -> list[tuple[str | None, str, str]]:
    return [(item.gpu_uuid, item.status, item.detail) for item in findings if item.link == link]


def test_a_sound_node_passes_at_every_link() -> None:
    findings = findings_of()
    assert {item.status for item in findings} == {"pass"}
    assert {(item.link, item.gpu_uuid) for item in findings} == {
        *((link, uuid) for link in ("diag", "bandwidth", "load") for uuid in UUIDS),
        ("collective", None),
    }
    assert of(findings, "bandwidth")[0][2] == (
        "from the host 55.1 GB/s, to the host 55.1 GB/s, to other GPUs 370.2 GB/s "
        "(Azure/azurehpc-health-checks conf/nd96isr_h100_v5.conf)"
    )


def test_memory_errors_of_one_gpu_are_its_own() -> None:
    output = printed.diag({"memory": ["Pass", "Fail"]}, warnings={("memory", 1): printed.MEMORY})
    findings = findings_of(diag=make_answer(output, exit=226))
    (first, second) = of(findings, "diag")
    assert first[1] == "pass"
    assert second[:2] == ("GPU-b", "fail")
    assert "uncorrectable memory errors" in second[2]


def test_a_setting_is_no_fault_of_the_hardware() -> None:
    output = printed.diag(
        {"software": ["Fail", "Pass"], "memory": ["Pass", "Pass"]},
        warnings={("software", 0): printed.SETTING},
    )
    item = next(
        finding for finding in findings_of(diag=make_answer(output)) if finding.status == "fail"
    )
    assert "Persistence mode" in item.detail
    assert item.remedy.startswith("a setting of the node")


def test_a_diagnosis_that_skipped_the_hardware_proves_nothing() -> None:
    output = printed.diag({"software": ["Pass"] * 2, "memory": ["Skip"] * 2, "pcie": ["Skip"] * 2})
    ((_, status, detail), _) = of(findings_of(diag=make_answer(output)), "diag")
    assert (status, detail) == (
        "not_covered", "DCGM ran no test of the hardware on it; skipped: memory, pcie"
    )  # fmt: skip


def test_a_gpu_that_dcgm_does_not_name_is_unknown() -> None:
    findings = findings_of(diag=make_answer(printed.diag({"memory": ["Pass"]})))
    assert [status for _, status, _ in of(findings, "diag")] == ["pass", "unknown"]


def test_a_slow_link_to_the_host_and_between_gpus() -> None:
    slow = printed.nvbandwidth([55.1, 12.3], LINK)
    findings = findings_of(bandwidth=make_answer(slow))
    assert [status for _, status, _ in of(findings, "bandwidth")] == ["pass", "fail"]
    assert (
        "from the host below 48 GB/s, to the host below 48 GB/s" in of(findings, "bandwidth")[1][2]
    )
    peers = printed.nvbandwidth([55.1, 54.9], [[None, 20.1], [20.2, None]])
    item = next(
        finding for finding in findings_of(bandwidth=make_answer(peers)) if finding.status == "fail"
    )
    assert "to other GPUs below 335 GB/s" in item.detail
    assert "nvlink --status" in item.remedy


def test_copies_that_came_out_wrong_fail() -> None:
    broken = printed.nvbandwidth([55.1, 54.9], LINK, status="Error")
    (item,) = (
        finding
        for finding in findings_of(bandwidth=make_answer(broken, exit=1))
        if finding.link == "bandwidth"
    )
    assert (item.status, item.gpu_uuid) == ("fail", None)


def test_a_sum_that_is_wrong_is_worse_than_slow() -> None:
    (item,) = of(findings_of(collective=make_answer(printed.nccl(wrong_values=3))), "collective")
    assert item == (None, "fail", "6 values of the sum are wrong")


def test_a_peer_that_is_missing() -> None:
    (item,) = of(findings_of(collective=make_answer(printed.nccl(count=1))), "collective")
    assert item == (None, "fail", "1 of 2 GPUs took part")


def test_an_all_reduce_is_judged_where_its_number_of_gpus_is_published() -> None:
    nvl = host("NVIDIA H100 NVL")
    quick, slow = (
        of(
            findings_of(machine=nvl, collective=make_answer(printed.nccl(busbw=busbw))),
            "collective",
        )[0]
        for busbw in (230.0, 90.0)
    )
    assert quick[1] == "pass"
    assert slow[1] == "fail"
    assert "below 208 GB/s" in slow[2]
    # of two of the eight GPUs of a board nothing is published
    (item,) = of(findings_of(collective=make_answer(printed.nccl(busbw=90.0))), "collective")
    assert item[1] == "pass"
    assert "no figure is published for 2 NVIDIA H100 80GB HBM3" in item[2]


def test_of_an_unknown_model_the_figures_stand_without_a_judgement() -> None:
    findings = findings_of(
        machine=host("NVIDIA L4"), bandwidth=make_answer(printed.nvbandwidth([5.1, 5.2], LINK))
    )
    (first, _) = of(findings, "bandwidth")
    assert first[1] == "pass"
    assert "no figures are published for NVIDIA L4" in first[2]


@pytest.mark.parametrize("step", ["diag", "bandwidth", "collective"])
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer(ended="hung", reason="no answer within 1800 s"), "fail"),
        (Answer(ended="not started", reason="ErrImagePull: not found"), "unknown"),
        (Answer(ended="left out", reason="names no image"), "not_covered"),
        (make_answer(""), "unknown"),
        (make_answer('{"DCGM Diagnostic": {"test_cat'), "unknown"),
        (make_answer("Segmentation fault\n", exit=139), "unknown"),
    ],
)
def test_no_answer_is_never_a_pass(step: Step, answer: Answer, status: str) -> None:
    changed = replace(SOUND, steps={**SOUND.steps, step: answer})
    (item,) = of(findings_of(changed), step)
    assert item[:2] == (None, status)


def test_without_anything_nothing_passes() -> None:
    assert not any(item.status == "pass" for item in evaluate(host(), NodeAnswers(node="gpu1")))


def test_a_node_in_use_says_so_at_every_link() -> None:
    findings = evaluate(
        host(), NodeAnswers(node="gpu1", skipped="its GPUs are in use by ml/train-0")
    )
    assert {item.status for item in findings} == {"not_covered"}
    assert {item.link for item in findings} == {"diag", "bandwidth", "collective", "load"}


def test_one_gpu_has_nobody_to_reduce_with() -> None:
    single = replace(SOUND, uuids=UUIDS[:1], samples=smi("GPU-a"))
    findings = findings_of(
        single,
        host(count=1),
        diag=make_answer(printed.diag({"memory": ["Pass"]})),
        bandwidth=make_answer(printed.nvbandwidth([55.1])),
    )
    assert {item.link for item in findings} == {"diag", "bandwidth", "load"}
    assert {item.status for item in findings} == {"pass"}


def test_under_load_links_and_clocks_are_judged() -> None:
    slow = replace(SOUND, samples=smi("GPU-a", width=8) + smi("GPU-b", reasons="0x80"))
    first, second = of(findings_of(slow), "load")
    assert first[1:] == (
        "fail",
        "PCIe width 8 of 16 under load; SM clock 1980 of 1980 MHz, power 690.12 of 700 W, "
        "temperature 66 °C, PCIe generation 5, width 8",
    )
    assert second[1] == "fail"
    assert second[2].startswith("external power brake in 100% of the time")
    unseen = replace(SOUND, samples="")
    assert {status for _, status, _ in of(findings_of(unseen), "load")} == {"not_covered"}


def test_a_gpu_that_falls_behind_its_neighbours_fails() -> None:
    slow = replace(SOUND, samples=smi("GPU-a") + smi("GPU-b", clock=1200))
    first, second = of(findings_of(slow), "load")
    assert (first[1], second[1]) == ("pass", "fail")
    assert second[2].startswith("SM clock at most 1200 MHz, and 1980 MHz of others")
    capped = replace(SOUND, samples=smi("GPU-a", limit=500) + smi("GPU-b", limit=500))
    assert {status for _, status, _ in of(findings_of(capped), "load")} == {"pass"}


def test_what_nvidia_smi_says_instead_of_values_is_told() -> None:
    text = 'Field "clocks_event_reasons.active" is not a valid field to query.\n\n'
    ((_, status, detail), _) = of(findings_of(replace(SOUND, samples=text)), "load")
    assert (status, detail) == ("unknown", f"nvidia-smi says: {text.strip()}")


def test_numbers_in_a_container_follow_its_own_list() -> None:
    turned = replace(SOUND, uuids=("GPU-b", "GPU-a"))
    output = printed.diag({"memory": ["Pass", "Fail"]}, warnings={("memory", 1): printed.MEMORY})
    findings = findings_of(turned, diag=make_answer(output))
    assert [(uuid, status) for uuid, status, _ in of(findings, "diag")] == [
        ("GPU-b", "pass"), ("GPU-a", "fail")
    ]  # fmt: skip


def test_every_threshold_has_its_source_and_no_model_has_two() -> None:
    repositories = ("Azure/azurehpc-health-checks conf/", "oracle-quickstart/oci-hpc playbooks/")
    assert all(item.source.startswith(repositories) for item in TABLE)
    assert all(threshold(item.model) is item for item in TABLE)
    assert all(item.host or item.all_reduce for item in TABLE)
    assert threshold("NVIDIA L4") is None


def test_a_model_without_figures_of_copies_passes_with_none() -> None:
    findings = findings_of(machine=host("NVIDIA B200"))
    ((_, status, detail), _) = of(findings, "bandwidth")
    assert status == "pass"
    assert detail.endswith("(no figures are published for NVIDIA B200)")
