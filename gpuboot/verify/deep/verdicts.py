"""The links that only the level `deep` has: what its tests say of each GPU of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from gpuboot.verify.checks.pod_remedies import without_answer
from gpuboot.verify.deep import dcgm_diag, gpu_state_at_work, nccl_tests, nvbandwidth
from gpuboot.verify.deep.deep_answers import Answer, NodeAnswers, Step
from gpuboot.verify.deep.thresholds import Threshold, threshold
from gpuboot.verify.devices import Gpu, Host
from gpuboot.verify.findings import Finding, FindingBuilder

_CHECKS: dict[str, str] = {
    "diag": "dcgmi diag",
    "bandwidth": "nvbandwidth",
    "collective": "all_reduce_perf",
    "load": "nvidia-smi under load",
}
_HUNG = (
    "look for XIDs in the kernel log of the node (`journalctl -k -g 'NVRM: Xid'`); a GPU that "
    "keeps a process waiting comes back by a reset or a reboot; see verify.deep.timeout_s"
)
_BROKEN = "read the whole output in the folder `deep` of the report, and verify again"
_HARDWARE = (
    "drain the node and reset the GPU (`nvidia-smi --gpu-reset`), verify again; if it fails again, "
    "give the output to its manufacturer"
)
_SETTING = "a setting of the node keeps DCGM from passing: change it, and verify again"
_SLOW_HOST = (
    "compare `nvidia-smi -q -d PCIE` with the slot, and the BIOS' settings for PCIe (ACS, relaxed "
    "ordering, NUMA nodes per socket); reseat the card if its link is narrow"
)
_SLOW_PEER = (
    "see `nvidia-smi nvlink --status` and `nvidia-smi topo -m`, and the fabric manager's log"
)
_SLOW_ALL = (
    "see `nvidia-smi nvlink --status`, `nvidia-smi topo -m` and the fabric manager's log; "
    "NCCL_DEBUG=INFO tells which links NCCL takes"
)
_NARROW = "reseat the card, and look at its riser and slot; the BIOS may limit the slot"
_SLOWED = "look at the machine's fans and air, and at its power supplies"
_BEHIND = (
    "see `nvidia-smi -q -d CLOCK,POWER` on the node: a clock that is locked (`nvidia-smi -rgc` "
    "unlocks it) or a lowered limit (`nvidia-smi -pl`) is a setting; else it is the card or its air"
)

_Of = Callable[[Answer], list[Finding]]


def evaluate(host: Host, answers: NodeAnswers) -> list[Finding]:
    """A finding for each GPU of a node at each link of the level, or one for the node."""
    if answers.skipped:
        remedy = "drain the node, and verify again"
        return [
            FindingBuilder(link, check, host.node).not_covered(answers.skipped, remedy)
            for link, check in _CHECKS.items()
            if link != "collective" or len(host.working) > 1
        ]
    order = _order(host, answers)
    deciding: dict[Step, _Of] = {
        "diag": partial(_diag, host.node, order),
        "bandwidth": partial(_bandwidth, host.node, order),
        "collective": partial(_collective, host.node, order),
    }
    if len(order) < 2:
        del deciding["collective"]  # there is nobody to reduce with
    findings: list[Finding] = []
    for step, decide in deciding.items():
        answer = answers.steps.get(step, Answer(ended="not started", reason="it was not tried"))
        findings += _without_answer(host.node, step, answer) or decide(answer)
    return [*findings, *_load(host.node, order, answers.samples)]


def _order(host: Host, answers: NodeAnswers) -> list[Gpu]:
    """The GPUs, each at the place that is its number in a container."""
    gpus_by_uuid = {gpu.uuid: gpu for gpu in host.working}
    numbered = [gpus_by_uuid[uuid] for uuid in answers.uuids if uuid in gpus_by_uuid]
    return numbered or sorted(host.working, key=lambda gpu: gpu.index or 0)


def _builder(node: str, link: str, answer: Answer) -> FindingBuilder:
    return FindingBuilder(link, _CHECKS[link], node, answer.seconds)


def _without_answer(node: str, step: Step, answer: Answer) -> list[Finding]:
    """The findings of an answer that never came; [] where it came."""
    builder = _builder(node, step, answer)
    if answer.ended == "hung":
        return [builder.failed(f"{_CHECKS[step]} hangs: {answer.reason}", _HUNG)]
    if answer.ended == "not started":
        return [builder.unknown(answer.reason, without_answer(answer.reason))]
    if answer.ended == "left out":
        return [builder.not_covered(answer.reason, "see docs/deep.md for what it needs")]
    return []


def _diag(node: str, gpus: Sequence[Gpu], answer: Answer) -> list[Finding]:
    builder = _builder(node, "diag", answer)
    try:
        diagnosis = dcgm_diag.parse(answer.output)
    except dcgm_diag.DiagError as error:
        return [builder.unknown(str(error), _BROKEN)]
    if diagnosis.error:
        return [builder.unknown(f"it did not run: {diagnosis.error}", _BROKEN)]
    return [_diagnosed(diagnosis.of(number), gpu, builder) for number, gpu in enumerate(gpus)]


def _diagnosed(results: Sequence[dcgm_diag.Outcome], gpu: Gpu, builder: FindingBuilder) -> Finding:
    """DCGM's verdicts on one GPU. A pass of its software checks alone proves no GPU."""
    gpu_results = [item for item in results if item.gpu is not None]
    if not gpu_results:
        return builder.unknown("DCGM says nothing of it", _BROKEN, gpu.uuid)
    bad_results = [item for item in results if item.status.lower() in ("fail", "warn")]
    if bad_results:
        texts = [f"{item.test}: {_outcome_text(item)}" for item in bad_results]
        warnings = [warning for item in bad_results for warning in item.warnings]
        setting = bool(warnings) and all(warning.setting for warning in warnings)
        return builder.failed("; ".join(texts), _SETTING if setting else _HARDWARE, gpu.uuid)
    passed = [item.test for item in results if item.status.lower() == "pass"]
    skipped = [item.test for item in results if item.status.lower() in ("skip", "not run")]
    note = f"; skipped: {', '.join(skipped)}" if skipped else ""
    hardware = [item for item in gpu_results if item.category != "Deployment"
                and item.status.lower() == "pass"]  # fmt: skip
    if not hardware:
        reason = f"DCGM ran no test of the hardware on it{note}"
        return builder.not_covered(
            reason, "this model may not have them: see `dcgmi diag -h`", gpu.uuid
        )
    return builder.passed(f"passed: {', '.join(passed)}{note}", gpu.uuid)


def _outcome_text(item: dcgm_diag.Outcome) -> str:
    return " ".join(warning.text for warning in item.warnings) or item.status


def _bandwidth(node: str, gpus: Sequence[Gpu], answer: Answer) -> list[Finding]:
    builder = _builder(node, "bandwidth", answer)
    try:
        bandwidths = nvbandwidth.parse(answer.output)
    except nvbandwidth.BandwidthError as error:
        return [builder.unknown(str(error), _BROKEN)]
    expected_cases = [name for name in nvbandwidth.CASES
              if name != nvbandwidth.GPU_TO_GPU or len(gpus) > 1]  # fmt: skip
    if broken := _broken_cases(bandwidths, expected_cases):
        if answer.exit or any("mismatch" in text.lower() for text in broken):
            return [builder.failed("; ".join(broken), _HARDWARE)]
        return [builder.unknown("; ".join(broken), _BROKEN)]
    return [_copied(bandwidths.cases, number, gpu, builder) for number, gpu in enumerate(gpus)]


def _broken_cases(bandwidths: nvbandwidth.Bandwidths, expected_cases: Iterable[str]) -> list[str]:
    """Test cases that gave no whole answer, with the reason."""
    missing = [name for name in expected_cases if name not in bandwidths.cases]
    return [
        *([bandwidths.error] if bandwidths.error else []),
        *(
            f"{name}: {case.problem}"
            for name, case in bandwidths.cases.items()
            if case.problem and not case.waived
        ),
        *(f"{name}: not in the answer" for name in missing if not bandwidths.error),
    ]


def _copied(
    cases: Mapping[str, nvbandwidth.Case], number: int, gpu: Gpu, builder: FindingBuilder
) -> Finding:
    """The slowest of one GPU's copies, beside what its model is known to reach."""
    published = threshold(gpu.name)
    minimums = {name: min(values) for name, case in cases.items() if (values := case.of(number))}
    if nvbandwidth.HOST_TO_GPU not in minimums:
        return builder.unknown("nvbandwidth measured nothing of it", _BROKEN, gpu.uuid)
    figures = ", ".join(
        f"{_ROUTES[name]} {gbps:.1f} GB/s" for name, gbps in minimums.items() if name in _ROUTES
    )
    limits = _limits(published)
    slow = [name for name in _ROUTES if name in minimums and minimums[name] < limits.get(name, 0)]
    if slow and published:
        short = ", ".join(f"{_ROUTES[name]} below {limits[name]:g} GB/s" for name in slow)
        remedy = _SLOW_PEER if slow == [nvbandwidth.GPU_TO_GPU] else _SLOW_HOST
        return builder.failed(f"{figures}: {short} ({published.source})", remedy, gpu.uuid)
    none = f"no figures are published for {gpu.name or 'its model'}"
    basis = published.source if published and limits else none
    return builder.passed(f"{figures} ({basis})", gpu.uuid)


_ROUTES = {
    nvbandwidth.HOST_TO_GPU: "from the host",
    nvbandwidth.GPU_TO_HOST: "to the host",
    nvbandwidth.GPU_TO_GPU: "to other GPUs",
}


def _limits(published: Threshold | None) -> dict[str, float]:
    if published is None:
        return {}
    limits = {
        nvbandwidth.HOST_TO_GPU: published.host,
        nvbandwidth.GPU_TO_HOST: published.host,
        nvbandwidth.GPU_TO_GPU: published.peer,
    }
    return {route: limit for route, limit in limits.items() if limit is not None}


def _collective(node: str, gpus: Sequence[Gpu], answer: Answer) -> list[Finding]:
    """The node's finding: whether all of its GPUs work together."""
    builder = _builder(node, "collective", answer)
    try:
        result = nccl_tests.parse(answer.output)
    except nccl_tests.NcclError as error:
        return [builder.unknown(str(error), _BROKEN)]
    largest = result.largest
    wrong_values = max(result.wrong or 0, sum(row.wrong or 0 for row in result.rows))
    if wrong_values:
        return [builder.failed(f"{wrong_values} values of the sum are wrong", _HARDWARE)]
    if result.problems:
        return [builder.failed("; ".join(result.problems[:3]), _SLOW_ALL)]
    if result.ranks and len(result.ranks) < len(gpus):
        reason = f"{len(result.ranks)} of {len(gpus)} GPUs took part"
        return [builder.failed(reason, "the pod's log tells which CUDA does not see")]
    if result.wrong is None or largest is None:
        return [builder.unknown("the output ends before the result", _BROKEN)]
    return [_reduced(largest, gpus, builder)]


def _reduced(row: nccl_tests.Row, gpus: Sequence[Gpu], builder: FindingBuilder) -> Finding:
    published = threshold(gpus[0].name)
    figure = f"bus bandwidth {row.busbw:.1f} GB/s among {len(gpus)} GPUs, 0 wrong"
    if published is None or published.all_reduce is None or published.gpus != len(gpus):
        name = gpus[0].name or "the model"
        return builder.passed(f"{figure} (no figure is published for {len(gpus)} {name})")
    if row.busbw < published.all_reduce:
        reason = f"{figure}: below {published.all_reduce:g} GB/s ({published.source})"
        return builder.failed(reason, _SLOW_ALL)
    return builder.passed(f"{figure}, at least {published.all_reduce:g} ({published.source})")


def _load(node: str, gpus: Sequence[Gpu], text: str) -> list[Finding]:
    builder = FindingBuilder("load", _CHECKS["load"], node)
    samples = gpu_state_at_work.parse(text)
    of = {gpu.uuid: [item for item in samples if item.uuid == gpu.uuid] for gpu in gpus}
    message = "" if samples else text.strip().partition("\n")[0][:200]
    return [
        _loaded(
            of[gpu.uuid],
            [item for peer in gpus if peer.name == gpu.name for item in of[peer.uuid]],
            gpu.uuid,
            builder,
            message,
        )
        for gpu in gpus
    ]


def _loaded(
    samples: Sequence[gpu_state_at_work.Sample],
    peers: Sequence[gpu_state_at_work.Sample],
    uuid: str,
    builder: FindingBuilder,
    message: str,
) -> Finding:
    """+ peers: of all GPUs of its model; message: by nvidia-smi, where there are no samples"""
    if not any(item.busy for item in samples):
        reason = (
            "nvidia-smi was not asked while it worked" if samples else "nvidia-smi said nothing"
        )
        if message:
            return builder.unknown(f"nvidia-smi says: {message}", _BROKEN, uuid)
        return builder.not_covered(
            reason, "the tests give it work: see the links diag and bandwidth", uuid
        )
    figures = gpu_state_at_work.summary(samples)
    if narrow := gpu_state_at_work.narrowed(samples):
        return builder.failed(f"PCIe {narrow} under load; {figures}", _NARROW, uuid)
    if slow := gpu_state_at_work.slowed(samples):
        return builder.failed(f"{', '.join(slow)}; {figures}", _SLOWED, uuid)
    if behind := gpu_state_at_work.apart(samples, peers):
        return builder.failed(f"{behind}; {figures}", _BEHIND, uuid)
    return builder.passed(figures, uuid)
