"""What the tools of the level `deep` print is read: whole, cut off, empty, of other versions."""

from __future__ import annotations

import pytest

from gpuboot.verify.deep import dcgm_diag, gpu_state_at_work, nccl_tests, nvbandwidth
from tests.unit import deep_outputs as printed

GPU_LIST = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"


def test_a_table_of_eight_gpus_with_lines_of_mpirun_in_it() -> None:
    result = nccl_tests.parse(printed.EIGHT)
    assert [device for _, device in result.ranks] == list(range(8))
    assert (result.wrong, result.average, result.problems) == (0, 72.7724, ())
    assert [row.bytes for row in result.rows] == [8, 536870912, 2147483648, 4294967296]
    assert result.largest == nccl_tests.Row(bytes=4294967296, busbw=232.93, wrong=0)


def test_a_table_of_an_old_version_has_errors_instead_of_counts() -> None:
    result = nccl_tests.parse(printed.OLD)
    assert result.largest == nccl_tests.Row(bytes=134217728, busbw=21.86, wrong=None)
    assert result.wrong == 0


def test_wrong_values_are_counted() -> None:
    result = nccl_tests.parse(printed.nccl(wrong_values=25))
    assert result.wrong == 25
    assert result.largest is not None
    assert result.largest.wrong == 50


def test_what_nccl_says_went_wrong_is_kept() -> None:
    result = nccl_tests.parse(printed.NCCL_ERROR)
    assert result.problems[0].startswith("gpu1: Test NCCL failure common.cu:958 'unhandled system")
    assert result.largest is None


def test_a_run_that_was_cut_off_has_no_result() -> None:
    cut = printed.EIGHT.partition("# Out of bounds")[0]
    assert nccl_tests.parse(cut).wrong is None
    with pytest.raises(nccl_tests.NcclError, match="cut off"):
        nccl_tests.parse(cut[:-30])


@pytest.mark.parametrize("text", ["", "sh: all_reduce_perf: not found\n"])
def test_no_table_is_an_error(text: str) -> None:
    with pytest.raises(nccl_tests.NcclError, match=r"not found|nothing"):
        nccl_tests.parse(text)


def test_nvbandwidth_s_json_behind_other_lines() -> None:
    text = printed.nvbandwidth([55.1, 54.9], [[None, 370.2], [371.0, None]])
    result = nvbandwidth.parse(f"{GPU_LIST}{text}\ngpuboot: exit 0\n")
    assert result.cases[nvbandwidth.GPU_TO_HOST].of(1) == (54.9,)
    assert sorted(result.cases[nvbandwidth.GPU_TO_GPU].of(1)) == [370.2, 371.0]


def test_copies_between_gpus_are_waived_where_there_is_one() -> None:
    case = nvbandwidth.parse(printed.nvbandwidth([55.1])).cases[nvbandwidth.GPU_TO_GPU]
    assert case.waived


def test_a_test_case_that_failed_says_why() -> None:
    failed = printed.nvbandwidth([55.1], status="Error")
    case = nvbandwidth.parse(failed).cases[nvbandwidth.HOST_TO_GPU]
    assert case.problem
    assert not case.waived
    error = nvbandwidth.parse('{"nvbandwidth": {"error": "CUDA_ERROR_NO_DEVICE"}}').error
    assert error == "CUDA_ERROR_NO_DEVICE"


def test_nvbandwidth_that_was_cut_off() -> None:
    with pytest.raises(nvbandwidth.BandwidthError, match="not complete"):
        nvbandwidth.parse(printed.nvbandwidth([55.1])[:-40])


@pytest.mark.parametrize("text", ["", GPU_LIST, '{"nvbandwidth": {"testcases": [{}]}}'])
def test_no_bandwidth_is_an_error(text: str) -> None:
    with pytest.raises(nvbandwidth.BandwidthError):
        nvbandwidth.parse(text)


def test_diagnoses_of_each_gpu() -> None:
    text = printed.diag(
        {"software": ["Pass", "Pass"], "memory": ["Pass", "Fail"], "pcie": ["Skip", "Skip"]},
        warnings={("memory", 1): printed.MEMORY},
    )
    diagnosis = dcgm_diag.parse(f"{GPU_LIST}{text}\ngpuboot: exit 226\n")
    assert (diagnosis.version, diagnosis.driver, diagnosis.error) == ("4.6.1", "595.91.07", "")
    assert [(item.test, item.status) for item in diagnosis.of(1)] == [
        ("software", "Pass"), ("memory", "Fail"), ("pcie", "Skip")
    ]  # fmt: skip
    (warning,) = diagnosis.of(1)[1].warnings
    assert not warning.setting
    assert warning.text.startswith("Memory test: detected 1 uncorrectable memory errors on GPU 1")


def test_a_warning_about_a_setting_of_the_node_is_known_as_such() -> None:
    text = printed.diag({"software": ["Fail"]}, warnings={("software", 0): printed.SETTING})
    assert dcgm_diag.parse(text).results[0].warnings[0].setting


def test_the_layout_of_dcgm_3() -> None:
    text = """{"DCGM GPU Diagnostic": {"version": "3.3.8", "test_categories": [{"category":
      "Hardware", "tests": [{"name": "GPU Memory", "results": [{"gpu_id": "0", "status": "Skip",
      "warnings": ["not on this GPU"]}]}]}]}}"""
    diagnosis = dcgm_diag.parse(text)
    assert diagnosis.version == "3.3.8"
    assert (diagnosis.results[0].gpu, diagnosis.results[0].status) == (0, "Skip")
    assert diagnosis.results[0].warnings[0].text == "not on this GPU"


def test_a_diagnosis_that_did_not_run() -> None:
    diagnosis = dcgm_diag.parse(printed.diag({}, runtime_error="Unable to connect to host engine"))
    assert (diagnosis.error, diagnosis.results) == ("Unable to connect to host engine", ())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "nothing"),
        ("Error: unable to establish a connection to the specified host", "unable to establish"),
        (printed.diag({"memory": ["Pass"]})[:-20], "not complete"),
        ("{}", "another version"),
        ('{"DCGM Diagnostic": {"test_categories": [{}]}}', "another layout"),
    ],
)
def test_no_diagnosis_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(dcgm_diag.DiagError, match=reason):
        dcgm_diag.parse(text)


def smi(**values: object) -> str:
    defaults = {"uuid": "GPU-1", "clock": 1755, "limit": "700.00", "gen": 5, "width": 16,
             "reasons": "0x0000000000000004"}  # fmt: skip
    return printed.SMI.format(**(defaults | values))


def test_values_under_load() -> None:
    samples = gpu_state_at_work.parse(
        smi() + smi(clock=1980) + "Unable to determine the device handle\n"
    )
    assert gpu_state_at_work.summary(samples) == (
        "SM clock 1755 to 1980 of 1980 MHz, power 690.12 of 700 W, temperature 66 °C, "
        "PCIe generation 5, width 16"
    )
    assert (gpu_state_at_work.narrowed(samples), gpu_state_at_work.slowed(samples)) == ("", [])


def test_a_link_that_is_narrow_under_load() -> None:
    assert (
        gpu_state_at_work.narrowed(gpu_state_at_work.parse(smi(width=8, gen=4)))
        == "width 8 of 16, generation 4 of 5"
    )
    # a link that was wide for a moment is wide enough, and one at rest says nothing
    assert gpu_state_at_work.narrowed(gpu_state_at_work.parse(smi(gen=1) + smi())) == ""
    assert (
        gpu_state_at_work.narrowed(gpu_state_at_work.parse(smi(gen=1).replace(" 100,", " 0,")))
        == ""
    )


def test_slowdowns_count_when_they_last() -> None:
    hot = smi(reasons="0x0000000000000048")
    assert gpu_state_at_work.slowed(gpu_state_at_work.parse(hot)) == [
        "hardware slowdown in 100% of the time", "hardware thermal slowdown in 100% of the time"
    ]  # fmt: skip
    assert gpu_state_at_work.slowed(gpu_state_at_work.parse(hot + smi() * 10)) == []


def test_values_that_a_gpu_does_not_have() -> None:
    text = smi(width="[N/A]", gen="[Not Supported]", reasons="[N/A]")
    samples = gpu_state_at_work.parse(text)
    assert (gpu_state_at_work.narrowed(samples), samples[0].width, samples[0].reasons) == (
        "",
        None,
        0,
    )


def test_a_limit_below_the_model_s_own_is_told() -> None:
    assert "power 690.12 of 500 W, limited by a setting from 700 W" in gpu_state_at_work.summary(
        gpu_state_at_work.parse(smi(limit=500))
    )


@pytest.mark.parametrize(
    ("samples", "peer", "expected"),
    [
        ({}, {"clock": 1980}, ""),
        ({"clock": 1500}, {"clock": 1980},
         "SM clock at most 1500 MHz, and 1980 MHz of others of its model"),
        ({"limit": 500}, {}, "power limit 500 W, and 700 W of others of its model"),
        ({"clock": "[N/A]", "limit": "[N/A]"}, {}, ""),
        ({}, {"clock": "[N/A]", "limit": "[N/A]"}, ""),
    ],
)  # fmt: skip
def test_gpus_of_a_model_are_compared(
    samples: dict[str, object], peer: dict[str, object], expected: str
) -> None:
    assert (
        gpu_state_at_work.apart(
            gpu_state_at_work.parse(smi(**samples)), gpu_state_at_work.parse(smi(**peer))
        )
        == expected
    )


@pytest.mark.parametrize(
    "text", ["", smi()[:40], 'Field "clocks_event_reasons.active" is not a valid field to query.\n']
)
def test_what_is_cut_off_or_of_an_old_driver_is_no_sample(text: str) -> None:
    assert gpu_state_at_work.parse(text) == []
