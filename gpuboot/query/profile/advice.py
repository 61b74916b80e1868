"""What each class means, and what to try first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuboot.query.profile.classes import Name


@dataclass(frozen=True)
class Advice:
    """+ title: for people; meaning: in a sentence; first: what to try, the likeliest first"""

    title: str
    meaning: str
    first: tuple[str, ...]


ADVICE: Mapping[Name, Advice] = {
    "insufficient_data": Advice(
        "not enough samples",
        "what was scraped does not tell what the GPU did",
        (
            "a pod or GPU that has just begun: ask again in a quarter of an hour",
            "the exporter's target in Prometheus: `up` and its scrape errors; `gpuboot verify`",
            "a profiler that holds the counters: `dcgmi profile --resume`, or end Nsight",
        ),
    ),
    "thermally_throttled": Advice(
        "slowed by heat or power",
        "the hardware holds its clocks down: nothing in the program changes that",
        (
            "the node's dashboard: all GPUs hot means room or fans, one alone a blocked path",
            "`nvidia-smi -q -d TEMPERATURE,PERFORMANCE` on the node; the machine's power supplies",
        ),
    ),
    "idle": Advice(
        "idle",
        "nothing runs on it, and nothing holds it",
        ("nothing: it is free",),
    ),
    "idle_held": Advice(
        "idle, and held",
        "a pod or a process holds it, and gives it nothing to do",
        (
            "end the pod, or scale the workload down: others may wait for this GPU",
            "a notebook or a server without requests: share the GPU (MIG, time slices)",
            "a job that is stuck: its log, and its other pods",
        ),
    ),
    "memory_bound": Advice(
        "bound by device memory",
        "it moves data as fast as the memory can: faster arithmetic would not help",
        (
            "fewer bytes: FP16, BF16 or FP8 instead of FP32; quantized weights",
            "fewer passes: fused kernels (torch.compile, FlashAttention), larger batches for "
            "inference, which use each weight more often",
            "a GPU with more memory bandwidth",
        ),
    ),
    "compute_bound": Advice(
        "bound by arithmetic",
        "its multiprocessors work, and a pipe of them is busy: what a GPU is bought for",
        (
            "tensor cores, where the busiest pipe is FP32: TF32, BF16, FP16 or FP8",
            "structured sparsity, a smaller model, or more GPUs",
        ),
    ),
    "communication_bound": Advice(
        "bound by communication between GPUs",
        "its links are busy, and its arithmetic waits",
        (
            "overlap communication with computation; larger buckets of gradients",
            "another split: fewer GPUs per tensor-parallel group, kept within NVLink",
            "NCCL_DEBUG=INFO: the links it takes; `gpuboot verify INVENTORY --level deep` measures "
            "them",
        ),
    ),
    "pcie_bound": Advice(
        "bound by PCIe",
        "data from the host fill the link",
        (
            "send less: compressed input, decoding on the GPU (DALI, nvJPEG), no copies to and fro",
            "pinned memory and copies beside computation",
            "the link's width and generation: `nvidia-smi -q -d PCIE` under load",
        ),
    ),
    "input_bound": Advice(
        "waits for input",
        "it works in bursts, and waits in between",
        (
            "the data loader: more workers, prefetching, pinned memory",
            "the pod's CPU limit, and the disks or network that data come from",
            "check by random data in the place of the input: if it is faster, it was the input",
        ),
    ),
    "latency_bound": Advice(
        "bound by latency",
        "a kernel runs at all times, on few of the multiprocessors: small kernels, one by one",
        (
            "larger batches; several requests at once",
            "CUDA graphs, or torch.compile with mode reduce-overhead: fewer launches",
            "share the GPU (MPS, MIG): the work fills a part of it",
        ),
    ),
    "balanced": Advice(
        "balanced, or underused",
        "no single part of the GPU limits it",
        (
            "larger batches, until memory or arithmetic limits",
            "a profiler on one step (Nsight Systems): counters tell no more",
        ),
    ),
    "busy": Advice(
        "busy",
        "kernels run; without profiling fields nobody can tell what limits them",
        ("a profiler on the workload (Nsight Systems)",),
    ),
}
