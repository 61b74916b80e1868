"""The links that only the level `deep` has: what its tests say of each GPU of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from gpuboot.verify.checks.pod_remedies import without_answer
from gpuboot.verify.deep import dcgm_diag, load, nccl_tests, nvbandwidth
from gpuboot.verify.deep.answers import Answer, NodeAnswers, Step
from gpuboot.verify.deep.thresholds import Threshold, threshold
from gpuboot.verify.evidence import Gpu, Host
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
    found: list[Finding] = []
    for step, decide in deciding.items():
        answer = answers.steps.get(step, Answer(ended="not started", reason="it was not tried"))
        found += _without_answer(host.node, step, answer) or decide(answer)
    return [*found, *_load(host.node, order, answers.samples)]


def _order(host: Host, answers: NodeAnswers) -> list[Gpu]:
    """The GPUs, each at the place that is its number in a container."""
    known = {gpu.uuid: gpu for gpu in host.working}
    numbered = [known[uuid] for uuid in answers.uuids if uuid in known]
    return numbered or sorted(host.working, key=lambda gpu: gpu.index or 0)


def _builder(node: str, link: str, answer: Answer) -> FindingBuilder:
    return FindingBuilder(link, _CHECKS[link], node, answer.seconds)


def _without_answer(node: str, step: Step, answer: Answer) -> list[Finding]:
    """What an answer is that never came; [] where it came."""
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
        found = dcgm_diag.parse(answer.output)
    except dcgm_diag.DiagError as error:
        return [builder.unknown(str(error), _BROKEN)]
    if found.error:
        return [builder.unknown(f"it did not run: {found.error}", _BROKEN)]
    return [_diagnosed(found.of(number), gpu, builder) for number, gpu in enumerate(gpus)]


def _diagnosed(results: Sequence[dcgm_diag.Outcome], gpu: Gpu, builder: FindingBuilder) -> Finding:
    """DCGM's verdicts on one GPU. Of its software alone no GPU is proven."""
    own = [item for item in results if item.gpu is not None]
    if not own:
        return builder.unknown("DCGM says nothing of it", _BROKEN, gpu.uuid)
    wrong = [item for item in results if item.status.lower() in ("fail", "warn")]
    if wrong:
        texts = [f"{item.test}: {_said(item)}" for item in wrong]
        warnings = [warning for item in wrong for warning in item.warnings]
        setting = bool(warnings) and all(warning.setting for warning in warnings)
        return builder.failed("; ".join(texts), _SETTING if setting else _HARDWARE, gpu.uuid)
    passed = [item.test for item in results if item.status.lower() == "pass"]
    skipped = [item.test for item in results if item.status.lower() in ("skip", "not run")]
    rest = f"; skipped: {', '.join(skipped)}" if skipped else ""
    hardware = [item for item in own if item.category != "Deployment"
                and item.status.lower() == "pass"]  # fmt: skip
    if not hardware:
        why = f"DCGM ran no test of the hardware on it{rest}"
        return builder.not_covered(
            why, "this model may not have them: see `dcgmi diag -h`", gpu.uuid
        )
    return builder.passed(f"passed: {', '.join(passed)}{rest}", gpu.uuid)


def _said(item: dcgm_diag.Outcome) -> str:
    return " ".join(warning.text for warning in item.warnings) or item.status


def _bandwidth(node: str, gpus: Sequence[Gpu], answer: Answer) -> list[Finding]:
    builder = _builder(node, "bandwidth", answer)
    try:
        found = nvbandwidth.parse(answer.output)
    except nvbandwidth.BandwidthError as error:
        return [builder.unknown(str(error), _BROKEN)]
    wanted = [name for name in nvbandwidth.CASES
              if name != nvbandwidth.GPU_TO_GPU or len(gpus) > 1]  # fmt: skip
    if broken := _broken_cases(found, wanted):
        if answer.exit or any("mismatch" in text.lower() for text in broken):
            return [builder.failed("; ".join(broken), _HARDWARE)]
        return [builder.unknown("; ".join(broken), _BROKEN)]
    return [_copied(found.cases, number, gpu, builder) for number, gpu in enumerate(gpus)]


def _broken_cases(found: nvbandwidth.Bandwidths, wanted: Iterable[str]) -> list[str]:
    """Test cases that gave no whole answer, with the reason."""
    missing = [name for name in wanted if name not in found.cases]
    return [
        *([found.error] if found.error else []),
        *(
            f"{name}: {case.problem}"
            for name, case in found.cases.items()
            if case.problem and not case.waived
        ),
        *(f"{name}: not in the answer" for name in missing if not found.error),
    ]


def _copied(
    cases: Mapping[str, nvbandwidth.Case], number: int, gpu: Gpu, builder: FindingBuilder
) -> Finding:
    """The slowest of one GPU's copies, beside what its model is known to reach."""
    known = threshold(gpu.name)
    least = {name: min(values) for name, case in cases.items() if (values := case.of(number))}
    if nvbandwidth.HOST_TO_GPU not in least:
        return builder.unknown("nvbandwidth measured nothing of it", _BROKEN, gpu.uuid)
    figures = ", ".join(
        f"{_ROUTES[name]} {gbps:.1f} GB/s" for name, gbps in least.items() if name in _ROUTES
    )
    limits = _limits(known)
    slow = [name for name in _ROUTES if name in least and least[name] < limits.get(name, 0)]
    if slow and known:
        short = ", ".join(f"{_ROUTES[name]} below {limits[name]:g} GB/s" for name in slow)
        remedy = _SLOW_PEER if slow == [nvbandwidth.GPU_TO_GPU] else _SLOW_HOST
        return builder.failed(f"{figures}: {short} ({known.source})", remedy, gpu.uuid)
    judged = known.source if known else f"no figures are published for {gpu.name or 'its model'}"
    return builder.passed(f"{figures} ({judged})", gpu.uuid)


_ROUTES = {
    nvbandwidth.HOST_TO_GPU: "from the host",
    nvbandwidth.GPU_TO_HOST: "to the host",
    nvbandwidth.GPU_TO_GPU: "to other GPUs",
}


def _limits(known: Threshold | None) -> dict[str, float]:
    if known is None:
        return {}
    host = {nvbandwidth.HOST_TO_GPU: known.host, nvbandwidth.GPU_TO_HOST: known.host}
    return host | ({nvbandwidth.GPU_TO_GPU: known.peer} if known.peer is not None else {})


def _collective(node: str, gpus: Sequence[Gpu], answer: Answer) -> list[Finding]:
    """One finding for the node: all of its GPUs work together, or not."""
    builder = _builder(node, "collective", answer)
    try:
        found = nccl_tests.parse(answer.output)
    except nccl_tests.NcclError as error:
        return [builder.unknown(str(error), _BROKEN)]
    largest = found.largest
    wrong = max(found.wrong or 0, sum(row.wrong or 0 for row in found.rows))
    if wrong:
        return [builder.failed(f"{wrong} values of the sum are wrong", _HARDWARE)]
    if found.problems:
        return [builder.failed("; ".join(found.problems[:3]), _SLOW_ALL)]
    if found.ranks and len(found.ranks) < len(gpus):
        why = f"{len(found.ranks)} of {len(gpus)} GPUs took part"
        return [builder.failed(why, "the pod's log tells which CUDA does not see")]
    if found.wrong is None or largest is None:
        return [builder.unknown("the output ends before the result", _BROKEN)]
    return [_reduced(largest, gpus, builder)]


def _reduced(row: nccl_tests.Row, gpus: Sequence[Gpu], builder: FindingBuilder) -> Finding:
    known = threshold(gpus[0].name)
    figure = f"bus bandwidth {row.busbw:.1f} GB/s among {len(gpus)} GPUs, 0 wrong"
    if known is None or known.all_reduce is None or known.gpus != len(gpus):
        name = gpus[0].name or "the model"
        return builder.passed(f"{figure} (no figure is published for {len(gpus)} {name})")
    if row.busbw < known.all_reduce:
        why = f"{figure}: below {known.all_reduce:g} GB/s ({known.source})"
        return builder.failed(why, _SLOW_ALL)
    return builder.passed(f"{figure}, at least {known.all_reduce:g} ({known.source})")


def _load(node: str, gpus: Sequence[Gpu], text: str) -> list[Finding]:
    builder = FindingBuilder("load", _CHECKS["load"], node)
    samples = load.parse(text)
    of = {gpu.uuid: [item for item in samples if item.uuid == gpu.uuid] for gpu in gpus}
    said = "" if samples else text.strip().partition("\n")[0][:200]
    return [
        _loaded(
            of[gpu.uuid],
            [item for other in gpus if other.name == gpu.name for item in of[other.uuid]],
            gpu.uuid,
            builder,
            said,
        )
        for gpu in gpus
    ]


def _loaded(
    samples: Sequence[load.Sample],
    alike: Sequence[load.Sample],
    uuid: str,
    builder: FindingBuilder,
    said: str,
) -> Finding:
    """+ alike: of all GPUs of its model; said: by nvidia-smi, where there are no samples"""
    if not any(item.busy for item in samples):
        why = "nvidia-smi was not asked while it worked" if samples else "nvidia-smi said nothing"
        if said:
            return builder.unknown(f"nvidia-smi says: {said}", _BROKEN, uuid)
        return builder.not_covered(
            why, "the tests give it work: see the links diag and bandwidth", uuid
        )
    seen = load.summary(samples)
    if narrow := load.narrowed(samples):
        return builder.failed(f"PCIe {narrow} under load; {seen}", _NARROW, uuid)
    if slow := load.slowed(samples):
        return builder.failed(f"{', '.join(slow)}; {seen}", _SLOWED, uuid)
    if behind := load.apart(samples, alike):
        return builder.failed(f"{behind}; {seen}", _BEHIND, uuid)
    return builder.passed(seen, uuid)
