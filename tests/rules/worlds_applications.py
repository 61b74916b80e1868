"""What applications count beside the GPUs that their pods hold, and the rules' answers."""

from __future__ import annotations

from collections.abc import Mapping

from tests.rules.model import G0, G1, HOLDER, Labels, dcgm, series, values
from tests.rules.worlds import World

_CLOCK, _WATTS = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_POWER_USAGE"
TRAIN = {"namespace": "ml", "pod": "train-0"}
_WEB = {"namespace": "web", "pod": "llm-0"}
G9 = {"node": "gpu2", "UUID": "GPU-9", "gpu": "0"}


def _gpu(gpu: Labels, watts: str | None, **holder: str) -> dict[str, str]:
    """A GPU as the exporter shows it. + watts: in promtool's notation; None: it has no sensor"""
    power = {dcgm(_WATTS, gpu, **holder): watts} if watts else {}
    return {dcgm(_CLOCK, gpu, **holder): "1980x300", **power}


def _app(metric: str, of: Mapping[str, str], course: str, **labels: str) -> dict[str, str]:
    """A series of an application, as a PodMonitor's scrape stores it."""
    target = {"job": "ml/applications", "endpoint": "metrics", "container": "main",
              "instance": f"{of['pod']}:9464"}  # fmt: skip
    return {series(metric, **{**target, **of, **labels}): course}


def _counts(rate: float, minutes: float = 60) -> str:
    return values((0, minutes, rate * 60))


_NOTHING_PER_GPU: dict[str, list[tuple[Labels, float]]] = {
    f"namespace_pod:{unit}_per_{per}:rate5m": []
    for unit in ("tokens", "samples") for per in ("gpu", "joule")
}  # fmt: skip

APPLICATIONS = [
    World(
        "a training pod with two GPUs: samples a second, per GPU and joule",
        {
            **_gpu(G0, "400x300", **HOLDER), **_gpu(G1, "600x300", **HOLDER), **_gpu(G9, "70x300"),
            **_app("ml_samples_total", TRAIN, _counts(100), phase="training"),
            **_app("ml_tokens_total", TRAIN, _counts(50000), phase="training"),
        },
        30,
        {
            "namespace_pod:gpu_whole:count": [(TRAIN, 2)],
            "namespace_pod:gpu_whole_power:sum5m": [(TRAIN, 1000)],
            "namespace_pod:samples:rate5m": [({**TRAIN, "phase": "training"}, 100)],
            "namespace_pod:samples_per_gpu:rate5m": [({**TRAIN, "phase": "training"}, 50)],
            "namespace_pod:samples_per_joule:rate5m": [({**TRAIN, "phase": "training"}, 0.1)],
            "namespace_pod:tokens:rate5m": [({**TRAIN, "phase": "training"}, 50000)],
            "namespace_pod:tokens_per_gpu:rate5m": [({**TRAIN, "phase": "training"}, 25000)],
            "namespace_pod:tokens_per_joule:rate5m": [({**TRAIN, "phase": "training"}, 50)],
            "namespace_pod:requests_waiting:sum": [],
        },
    ),
    World(
        "a process for each GPU adds up; what two jobs scrape counts once, as an exporter's twin",
        {
            **_gpu(G0, "500x300", **HOLDER), **_gpu(G1, "500x300", **HOLDER),
            dcgm(_WATTS, G0, job="dcgm-exporter", **HOLDER): "500x300",
            **_app("ml_samples_total", TRAIN, _counts(10), phase="training", instance="a:1"),
            **_app("ml_samples_total", TRAIN, _counts(20), phase="training", instance="a:2"),
            series("ml_samples_total", **TRAIN, phase="training", job="annotated-pods",
                   instance="a:2", app="train"): _counts(20),
        },
        30,
        {
            "namespace_pod:samples:rate5m": [({**TRAIN, "phase": "training"}, 30)],
            "namespace_pod:samples_per_gpu:rate5m": [({**TRAIN, "phase": "training"}, 15)],
            "namespace_pod:samples_per_joule:rate5m": [({**TRAIN, "phase": "training"}, 0.03)],
        },
    ),
    World(
        "two pods share a GPU by time; one of them has another GPU to itself",
        {
            **_gpu(G0, "600x300", namespace="ml", pod="a", vgpu="0"),
            **_gpu(G0, "600x300", namespace="ml", pod="b", vgpu="1"),
            **_gpu(G1, "300x300", namespace="ml", pod="b"),
            **_gpu(G9, "200x300", **_WEB),
            **_app("ml_tokens_total", {"namespace": "ml", "pod": "a"}, _counts(40), phase="prompt"),
            **_app("ml_tokens_total", {"namespace": "ml", "pod": "b"}, _counts(80), phase="prompt"),
            **_app("ml_tokens_total", _WEB, _counts(20), phase="prompt"),
        },
        30,
        {
            "namespace_pod:tokens:rate5m": [
                ({"namespace": "ml", "pod": "a", "phase": "prompt"}, 40),
                ({"namespace": "ml", "pod": "b", "phase": "prompt"}, 80),
                ({**_WEB, "phase": "prompt"}, 20)],
            "namespace_pod:gpu_whole:count": [(_WEB, 1)],
            "namespace_pod:gpu_whole_power:sum5m": [(_WEB, 200)],
            "namespace_pod:tokens_per_gpu:rate5m": [({**_WEB, "phase": "prompt"}, 20)],
            "namespace_pod:tokens_per_joule:rate5m": [({**_WEB, "phase": "prompt"}, 0.1)],
        },
    ),
    World(
        "a pod holds three shares of a GPU in two containers, and another GPU whole",
        {
            dcgm(metric, gpu, namespace="ml", pod="a", **holder_labels): f"{value}x300"
            for metric in (
                "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_SM_CLOCK",
            )
            for gpu, value, holder_labels in (
                (G0, 0.8, {"container": "main", "vgpu": "0"}),
                (G0, 0.8, {"container": "main", "vgpu": "1"}),
                (G0, 0.8, {"container": "sidecar", "vgpu": "2"}),
                (G1, 0.2, {"container": "main"}),
            )
        },
        30,
        {
            "namespace_pod:engine_active:avg2m": [({"namespace": "ml", "pod": "a"}, 0.5)],
            "namespace_pod:sm_active:avg2m": [({"namespace": "ml", "pod": "a"}, 0.5)],
            "namespace:engine_active:avg": [({"namespace": "ml"}, 0.5)],
            "gpu:shares_held:count": [
                ({"node": "gpu1", "UUID": gpu["UUID"], "namespace": "ml", "pod": "a"}, count)
                for gpu, count in ((G0, 3), (G1, 1))],
        },
    ),
    World(
        "MIG: each instance shows its whole GPU's watts, which are nobody's",
        {
            **_gpu(G0, "600x300", GPU_I_ID="1", GPU_I_PROFILE="1g.10gb", **HOLDER),
            **_gpu(G0, "600x300", GPU_I_ID="2", GPU_I_PROFILE="1g.10gb"),
            **_app("ml_tokens_total", TRAIN, _counts(40), phase="training"),
        },
        30,
        {
            "namespace_pod:tokens:rate5m": [({**TRAIN, "phase": "training"}, 40)],
            "namespace_pod:gpu_whole:count": [],
            "namespace_pod:gpu_whole_power:sum5m": [],
            **_NOTHING_PER_GPU,
        },
    ),
    World(
        "one of two GPUs does not tell its power: per GPU is known, per joule is not",
        {
            **_gpu(G0, "400x300", **HOLDER), **_gpu(G1, None, **HOLDER),
            **_app("ml_samples_total", TRAIN, _counts(100), phase="training"),
        },
        30,
        {
            "namespace_pod:gpu_whole:count": [(TRAIN, 2)],
            "namespace_pod:gpu_whole_power:sum5m": [],
            "namespace_pod:samples_per_gpu:rate5m": [({**TRAIN, "phase": "training"}, 50)],
            "namespace_pod:samples_per_joule:rate5m": [],
        },
    ),
    World(
        "pods that hold GPUs and count nothing; a pod that counts and holds none",
        {
            **_gpu(G0, "400x300", **HOLDER),
            **_app("ml_tokens_total", _WEB, _counts(5), phase="generation"),
        },
        30,
        {
            "namespace_pod:tokens:rate5m": [({**_WEB, "phase": "generation"}, 5)],
            "namespace_pod:samples:rate5m": [],
            "namespace_pod:requests_running:sum": [],
            "namespace_pod:gpu_whole:count": [(TRAIN, 1)],
            **_NOTHING_PER_GPU,
        },
    ),
    World(
        "a server that stands idle makes no tokens: zero, and not nothing",
        {
            **_gpu(G0, "70x300", **_WEB),
            **_app("ml_tokens_total", _WEB, "900x300", phase="generation"),
            **_app("ml_requests_waiting", _WEB, "0x300"),
        },
        30,
        {
            "namespace_pod:tokens_per_gpu:rate5m": [({**_WEB, "phase": "generation"}, 0)],
            "namespace_pod:tokens_per_joule:rate5m": [({**_WEB, "phase": "generation"}, 0)],
            "namespace_pod:requests_waiting:sum": [(_WEB, 0)],
        },
    ),
    World(
        "the GPU goes to the next pod: the old one's tokens are gone at once",
        {
            dcgm(_CLOCK, G0, **HOLDER): values((1980, 20), (None, 30)),
            dcgm(_CLOCK, G0, **{**HOLDER, "pod": "next"}): values((None, 20), (1980, 30)),
            **_app("ml_tokens_total", TRAIN, values((0, 20, 600), (None, 30)), phase="training"),
        },
        22,
        {
            "namespace_pod:tokens:rate5m": [],
            "namespace_pod:gpu_whole:count": [({**TRAIN, "pod": "next"}, 1)],
        },
    ),
    World(
        "vLLM, with two engines in one server; and Triton, with two models",
        {
            **_gpu(G0, "300x300", **_WEB), **_gpu(G1, "500x300", **_WEB),
            **_gpu(G9, "100x300", namespace="web", pod="triton-0"),
            **{
                name: course
                for engine in ("0", "1")
                for metric, course in (
                    ("vllm:generation_tokens_total", _counts(400)),
                    ("vllm:prompt_tokens_total", _counts(1200)),
                    ("vllm:num_requests_waiting", "3x300"),
                    ("vllm:num_requests_running", "8x300"),
                )
                for name in _app(metric, _WEB, "", model_name="m", engine=engine)
            },
            **_app("nv_inference_count", {"namespace": "web", "pod": "triton-0"}, _counts(30),
                   model="a", version="1"),
            **_app("nv_inference_count", {"namespace": "web", "pod": "triton-0"}, _counts(20),
                   model="b", version="1"),
            **_app("nv_inference_pending_request_count",
                   {"namespace": "web", "pod": "triton-0"}, "4x300", model="a", version="1"),
        },
        30,
        {
            "namespace_pod:tokens:rate5m": [
                ({**_WEB, "phase": "generation"}, 800), ({**_WEB, "phase": "prompt"}, 2400)],
            "namespace_pod:tokens_per_gpu:rate5m": [
                ({**_WEB, "phase": "generation"}, 400), ({**_WEB, "phase": "prompt"}, 1200)],
            "namespace_pod:tokens_per_joule:rate5m": [
                ({**_WEB, "phase": "generation"}, 1), ({**_WEB, "phase": "prompt"}, 3)],
            "namespace_pod:requests_waiting:sum": [
                (_WEB, 6), ({"namespace": "web", "pod": "triton-0"}, 4)],
            "namespace_pod:requests_running:sum": [(_WEB, 16)],
            "namespace_pod:samples:rate5m": [
                ({"namespace": "web", "pod": "triton-0", "phase": "inference"}, 50)],
            "namespace_pod:samples_per_joule:rate5m": [
                ({"namespace": "web", "pod": "triton-0", "phase": "inference"}, 0.5)],
        },
    ),
]  # fmt: skip
