"""What would be done with which node and why, and why not: as JSON and for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpuboot.cluster.repair_keys import TAINT_KEY
from gpuboot.config.settings import Settings
from gpuboot.config.settings.remediate import Action, Remediate
from gpuboot.repair import rails
from gpuboot.repair.decide import Decision, World
from gpuboot.repair.repair_model import OUT, GpuNode, stamp
from gpuboot.repair.signals import Case

Json = dict[str, Any]
NO_ACTION, ACTION_NEEDED, COULD_NOT_TELL = 0, 1, 2  # exit codes
_REPAIRS: Mapping[Action, str] = {
    "reset": "nvidia-smi --gpu-reset -i {gpus}",
    "reboot": "reboot the node",
    "manual": "leave it to a person, who has the GPU replaced",
}
_BACK = ("restart its device plugin and exporter", "prove its GPUs", "take taint and cordon away")


def document(world: World, decision: Decision, settings: Settings, now: float) -> Json:
    """The answer of `gpuboot remediate`. + now: by the API server's clock"""
    breaker = decision.breaker or world.breaker
    return {
        "schema": 1,
        "cluster": settings.cluster.name,
        "time": stamp(now),
        "gpu_nodes": len(world.nodes),
        "error": "",
        "stale": world.stale,
        "stopped": world.stopped,
        "breaker": breaker.cause if breaker.opened else "",
        "nodes": list(_nodes(world, decision, settings.remediate, now)),
        "ignored": [
            {"node": entry.node, "saw": entry.message, "why": entry.cause}
            for entry in world.ignored
        ],
    }


def failed(settings: Settings, error: str) -> Json:
    """The answer where the cluster could not be asked."""
    empty = {"gpu_nodes": 0, "stale": "", "stopped": "", "breaker": "", "nodes": [], "ignored": []}
    return {"schema": 1, "cluster": settings.cluster.name, "time": "", "error": error, **empty}


def exit_code(answer: Json) -> int:
    """The exit code of the command. + answer: as `document` makes it"""
    if answer["error"] or answer["stale"]:
        return COULD_NOT_TELL
    return ACTION_NEEDED if answer["nodes"] else NO_ACTION


def _nodes(world: World, decision: Decision, limits: Remediate, now: float) -> Iterator[Json]:
    """The nodes of which there is something to say, those first that come first."""
    held_nodes = {entry.node: entry for entry in decision.held_nodes}
    fleet = rails.Fleet.of(world.nodes)
    breaker = decision.breaker or world.breaker
    for node in sorted(world.nodes, key=lambda entry: (not entry.out, entry.name)):
        case = world.case(node)
        if not (case or node.repair or node.error):
            continue
        reasons = held_nodes[node.name].reasons if node.name in held_nodes else ()
        if case and case.action and node.state not in OUT and not decision.stopped:
            # how long it has to be seen is part of what would be done, and no reason against it
            often = rails.repaired_too_often(node, now, limits)
            action = None if often else case.action
            reasons = tuple(rails.against(node, action, fleet, breaker, now, limits))
            reasons = (node.error,) if node.error else reasons
            fleet = fleet if reasons else fleet.without(node)
        yield _node(node, case, reasons, limits, now)


def _node(
    node: GpuNode, case: Case | None, reasons: tuple[str, ...], limits: Remediate, now: float
) -> Json:
    repair = node.repair
    action = case.action if case else repair.action if repair else None
    gpus = case.gpus if case else repair.gpus if repair else ()
    return {
        "node": node.name,
        "state": node.state,
        "action": action,
        "gpus": list(gpus),
        "saw": case.cause if case else repair.why if repair else "",
        "would": [] if reasons else list(_would(node, case, limits, now)),
        "why_not": list(reasons),
    }


def _would(node: GpuNode, case: Case | None, limits: Remediate, now: float) -> Iterator[str]:
    """What comes next, one after the other."""
    state, repair = node.state, node.repair
    if state not in OUT:
        if case is None or case.action is None:
            return
        started = repair.case_at if repair and repair.case_at else now
        remaining_s = started + limits.confirm_s - now
        if remaining_s > 0:
            yield f"wait {remaining_s:.0f} s, whether it passes"
        yield f"cordon it, with the taint {TAINT_KEY}={case.reason}:NoSchedule"
        if rails.repaired_too_often(node, now, limits):
            yield f"leave it to a person: repaired {limits.max_repairs} times in seven days"
            return
    action = case.action if case and case.action else repair.action if repair else None
    if state == "failed" or (state == "repairing" and action == "manual"):
        yield "pack what is known of it into a bundle, for the person who repairs it"
        return
    if state in (None, "observed", "confirmed", "released", "quarantined", "draining"):
        yield "move its pods to other nodes, as PodDisruptionBudgets allow"
    gpus = case.gpus if case else repair.gpus if repair else ()
    if state != "validating" and action:
        yield _REPAIRS[action].format(gpus=",".join(gpus))
    if action != "manual":
        yield from _BACK


def text(answer: Json) -> str:
    """The document for a terminal."""
    if answer["error"]:
        return f"{answer['cluster']} could not be asked: {answer['error']}"
    nodes, ignored = answer["nodes"], answer["ignored"]
    lines = [f"{answer['cluster']}: {answer['gpu_nodes']} GPU nodes, {_count(nodes)}"]
    lines += [
        f"  {title}: {answer[key]}"
        for key, title in (
            ("stopped", "stopped"),
            ("stale", "could not tell"),
            ("breaker", "breaker"),
        )
        if answer[key]
    ]
    for node in nodes:
        lines += ["", *_lines(node)]
    if ignored:
        lines += ["", "no reason for a repair:"]
        lines += [f"  {entry['node']}: {entry['saw']}: {entry['why']}" for entry in ignored]
    return "\n".join(lines)


def _count(nodes: list[Json]) -> str:
    would = sum(bool(node["would"]) for node in nodes)
    if not nodes:
        return "none asks for a repair"
    return f"{len(nodes)} to look at, of which {would} would be repaired"


def _lines(node: Json) -> Iterator[str]:
    state = f" ({node['state']})" if node["state"] else ""
    verdict = f"would be repaired: {node['action']}" if node["would"] else "nothing is done"
    yield f"{node['node']}{state}: {verdict}"
    if node["saw"]:
        yield f"  saw      {node['saw']}"
    for title, items in (("would", node["would"]), ("why not", node["why_not"])):
        for index, item in enumerate(items):
            yield f"  {title if index == 0 else '':<8} {item}"
