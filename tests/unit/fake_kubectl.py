#!/usr/bin/env python3
"""kubectl for the gate's scripts: nodes, pods and a lease, kept in the JSON file $STATE.

Knows just the questions that the scripts ask, by the fields that stand in them.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

PATH = Path(os.environ["STATE"])
CORDON = "gpuboot.io/cordoned-at-boot"


def node_fields(node: dict[str, Any]) -> dict[str, str]:
    """What each field of a question prints."""
    condition, notes = node.get("condition", {}), node.get("annotations", {})
    return {
        ".metadata.name": node["name"],
        '@.type=="Ready")].status': node.get("ready", "True"),
        ".spec.unschedulable": "true" if node.get("cordoned") else "",
        ".spec.taints[*].key": " ".join(node.get("taints", [])),
        ".status.nodeInfo.bootID": node["boot"],
        '@.type=="GPUsProven")].status': condition.get("status", ""),
        '@.type=="GPUsProven")].reason': condition.get("reason", ""),
        '@.type=="GPUsProven")].message': condition.get("message", ""),
        '@.type=="GPUsProven")].lastHeartbeatTime': condition.get("lastHeartbeatTime", ""),
        ".metadata.labels.gpuboot\\.io/gpus": str(node.get("gpus", 2)),
        ".status.allocatable": json.dumps(
            {"cpu": "8", "nvidia.com/gpu": str(node.get("offers", 2))}, separators=(",", ":")
        ),
        **{
            f".metadata.annotations.gpuboot\\.io/{key}": notes.get(f"gpuboot.io/{key}", "")
            for key in ("proven-boot", "proven-time", "proven-level", "proven-gpus")
        },
        ".metadata.annotations.gpuboot\\.io/cordoned-at-boot": notes.get(CORDON, ""),
    }


def render_fields(node: dict[str, Any], question: str) -> str:
    """The answer to a jsonpath about one node."""
    if question.startswith("jsonpath={range .status.conditions"):
        condition = node.get("condition", {})
        return f"{condition['status']} {condition['lastTransitionTime']}" if condition else ""
    fields = node_fields(node)

    def field_value(field: re.Match[str]) -> str:
        return next(fields[key] for key in fields if field[1].endswith(key))

    text = question.removeprefix("jsonpath=").removeprefix("{range .items[*]}")
    return re.sub(r"\{([^{}]+)\}", field_value, text.removesuffix('{"\\n"}{end}'))


def annotate(node: dict[str, Any], words: list[str]) -> None:
    notes = node.setdefault("annotations", {})
    for word in words:
        key, _, value = word.partition("=")
        if word.endswith("-"):
            notes.pop(word[:-1], None)
        else:
            notes[key] = value


def of_node(state: dict[str, Any], words: list[str]) -> str:
    verb = words[0]
    arguments = [word for word in words[1:] if word not in ("--overwrite", "node", "-o")]
    node = next(item for item in state["nodes"] if item["name"] == arguments[0])
    if verb == "get":
        return render_fields(node, arguments[1])
    if verb == "taint":
        key = arguments[1].removesuffix("-").partition(":")[0]
        taints = [item for item in node.get("taints", []) if item != key]
        node["taints"] = taints if arguments[1].endswith("-") else [*taints, key]
    elif verb == "uncordon":
        node["cordoned"] = False
    elif verb == "annotate":
        annotate(node, arguments[1:])
    elif "--subresource=status" in arguments:
        node["condition"] = json.loads(arguments[-1])["status"]["conditions"][0]
    else:
        assert verb == "patch"
        if state.get("refused"):
            sys.exit("Forbidden")
        patch = json.loads(arguments[-1])
        node["cordoned"] = patch["spec"]["unschedulable"]
        node.setdefault("annotations", {}).update(patch["metadata"]["annotations"])
    return ""


def of_lease(state: dict[str, Any], words: list[str]) -> str:
    lease = state.get("lease")
    if words[0] == "delete":
        state["lease"] = None
    elif words[0] == "get" and lease:
        return str(lease["renewTime" if "renewTime" in words[-1] else "holderIdentity"])
    return ""


def created(state: dict[str, Any], name: str) -> str:
    item = json.loads(sys.stdin.read() if name == "-" else Path(name).read_text())
    if item["kind"] == "Lease":
        state["lease"] = item["spec"]
    elif item["kind"] == "Pod":
        state["pods"].append(item)
    return ""


def of_pods(state: dict[str, Any], words: list[str]) -> str:
    if words[0] == "logs":
        return str(state["logs"].get(words[1].removeprefix("vectoradd-"), ""))
    if "-A" in words:
        node = re.search(r"spec\.nodeName=([^,]+)", " ".join(words))
        assert node
        return f"{state.get('held', {}).get(node[1], '')}\n"
    phases = state.get("phases", {})
    names = [pod["metadata"]["name"].removeprefix("vectoradd-") for pod in state["pods"]]
    if words[1] == "pods":
        return "".join(f"{phases.get(name, 'Succeeded').split()[0]}\n" for name in names)
    return f"{phases.get(words[2].removeprefix('vectoradd-'), 'Succeeded')}  "


def main(words: list[str]) -> str:
    state = json.loads(PATH.read_text())
    words = [word for word in words if not word.startswith("--request-timeout")]
    state.setdefault("calls", []).append(" ".join(words))
    if state.get("away", 0) > 0:
        state["away"] -= 1
        PATH.write_text(json.dumps(state))
        sys.exit("dial tcp: connect: connection refused")
    if words[0] == "-n":
        words = words[2:]
    if words[:2] == ["get", "nodes"]:
        answer = "".join(f"{render_fields(node, words[-1])}\n" for node in state["nodes"])
    elif "lease" in words:
        answer = of_lease(state, words)
    elif words[0] == "create":
        answer = created(state, words[words.index("-f") + 1])
    elif words[0] in ("get", "logs") and (words[0] == "logs" or words[1] in ("pod", "pods")):
        answer = of_pods(state, words)
    elif "namespace" in words:
        answer = ""
    else:
        answer = of_node(state, words)
    PATH.write_text(json.dumps(state))
    return answer


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]))
