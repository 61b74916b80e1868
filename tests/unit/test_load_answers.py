"""What the pods of a load print, and what is told of it."""

from __future__ import annotations

from gpuboot.verify.load import load_answers as report
from gpuboot.verify.load.load_answers import GpuLoad, Outcome

A, B = "GPU-51aa0001-5157-4c6c-8abc-000000000000", "GPU-51aa0001-5157-4c6c-8abc-000000000001"
GPU_LIST = f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {A})\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: {B})\n"
COUNTED = "Worker 0:0[1004]: TensorEngineActive: generated ???, dcgm 0.000 (612391.2 gflops)."


def test_before_anything_ran_nothing_is_known() -> None:
    assert report.read("gpu1", GPU_LIST) == []


def test_each_gpu_tells_its_own() -> None:
    log = (
        f"{GPU_LIST}{A}: program dcgmproftester12\n{B}: program dcgmproftester12\n"
        f"{A}: Wrong version of dcgmproftester is used.\n{A}: program dcgmproftester13\n"
        f"{A}: Starting\n{A}: {COUNTED}\n{B}: CUDA_ERROR_UNKNOWN\n{B}: exit 1\n"
    )
    first, second = report.read("gpu1", log)
    assert (first.program, first.said) == ("dcgmproftester13", COUNTED)
    assert (first.ended, first.error) == (False, "")
    assert second.error == "CUDA_ERROR_UNKNOWN / exit code 1"
    assert second.ended


def test_a_program_that_fails_without_a_word_of_its_own() -> None:
    log = f"{A}: program dcgmproftester12\n{A}: Killed\n{A}: exit 137\n"
    [gpu] = report.read("gpu1", log)
    assert gpu.error == "Killed / exit code 137"


def test_the_report_tells_where_what_and_what_to_type() -> None:
    log = f"{A}: program dcgmproftester13\n{A}: {COUNTED}\n{A}: exit 0\n"
    outcome = Outcome(
        kind="compute",
        asked_s=120,
        gpus=tuple(report.read("gpu1", log)),
        left={"gpu2": "the node is cordoned"},
        simulated="NVRM version: SIMULATED by the gpuboot lab",
    )
    assert report.from_json(outcome.to_json()) == outcome
    assert report.text(outcome, "inventories/prod.py").splitlines() == [
        "compute, 120 s asked for",
        "SIMULATED: no real GPU is behind this. It says so itself: NVRM version: SIMULATED by the "
        "gpuboot lab",
        f"gpu1 {A}: {COUNTED}, by dcgmproftester13",
        "gpu2: not loaded: the node is cordoned",
        "to see it:",
        f"  gpuboot query inventories/prod.py gpu {A}",
        "  gpuboot profile inventories/prod.py node gpu1",
        "  (for its class, which is of means of five minutes: --seconds 600)",
    ]


def test_a_load_that_is_long_enough_for_its_class_says_no_more() -> None:
    gpu = GpuLoad(node="gpu1", uuid=A, program="dcgmproftester13", said=COUNTED, ended=True)
    text = report.text(Outcome(kind="compute", asked_s=600, gpus=(gpu,)), "i.py")
    assert "means of five minutes" not in text


def test_a_load_that_nobody_counted_says_so() -> None:
    gpus = (GpuLoad(node="gpu1", uuid=A), GpuLoad(node="gpu1", uuid=B, error="it hangs"))
    text = report.text(Outcome(kind="memory", asked_s=60, gpus=gpus, stopped=True), "i.py")
    assert "memory, 60 s asked for, ended before its time" in text
    assert f"gpu1 {A}: nothing was counted" in text
    assert f"gpu1 {B}: failed: it hangs" in text
    empty_report = report.text(Outcome(kind="memory", asked_s=60, error="no cluster"), "i.py")
    assert empty_report.startswith("no cluster\n")
    assert empty_report.endswith("no GPU was loaded")
