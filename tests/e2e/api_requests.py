"""Requests to the API while a control plane is lost: what the tests of several of them share."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.conftest import ROOT, Lab, until

REQUESTS = Path(__file__).with_name("requests.sh")
# of each loss: a quiet beginning, a machine without power, and its way back, which can disturb too
SECONDS = 120
QUIET_S = 15
AWAY_S = 45
FAILING = 0.01
FAILING_S = 10.0
CONTROLS = ("cp1", "cp2", "cp3")


@dataclass(frozen=True)
class Request:
    """One request of `requests.sh`. Times in seconds since 1970."""

    kind: str
    number: int
    start: float
    end: float
    status: int

    @property
    def failed(self) -> bool:
        return not 200 <= self.status < 300


def ready(site: Lab) -> dict[str, bool]:
    return {name: status == ["True"] for name, status in site.snapshot()["ready"].items()}


def healthy(site: Lab, machine: str) -> bool:
    """Whether every member of etcd answers, asked on a machine."""
    output = site.ssh(
        machine,
        "curl -s --max-time 5 http://127.0.0.1:2381/health; kubectl get --raw /readyz; true",
    )
    return '"health":"true"' in output and output.endswith("ok")


def power(site: Lab, machine: str, switch: str) -> None:
    result = site.lab("power", "--name", site.name, machine, switch)
    assert result.code == 0, result.details


def begin(site: Lab) -> str:
    """A namespace for the requests. Returns the token of a client that may work there."""
    site.kubectl("create", "namespace", "requests")
    site.kubectl("-n", "requests", "create", "configmap", "known")
    site.kubectl("-n", "requests", "create", "serviceaccount", "client")
    site.kubectl("-n", "requests", "create", "rolebinding", "client", "--clusterrole=admin",
                 "--serviceaccount=requests:client")  # fmt: skip
    return site.kubectl("-n", "requests", "create", "token", "client", "--duration=1h")


def bears_the_loss(site: Lab, machine: str, token: str) -> None:
    """A control plane loses power: few requests fail, and no acknowledged write is lost."""
    requests = requests_during(site, machine, token)
    failed = [item for item in requests if item.failed]
    print(f"{machine}: {summarize(requests)}")
    assert len(failed) <= FAILING * len(requests), summarize(requests)
    if failed:
        elapsed = max(item.end for item in failed) - min(item.start for item in failed)
        assert elapsed <= FAILING_S, summarize(requests)
    until(lambda: all(healthy(site, name) for name in CONTROLS), f"{machine} is back")
    until(lambda: all(ready(site).values()), "all nodes are Ready")
    configmaps = json.loads(site.kubectl("-n", "requests", "get", "configmaps", "-o", "json"))
    stored = {item["metadata"]["name"] for item in configmaps["items"]}
    acknowledged = {
        f"{machine}-{item.number}" for item in requests
        if item.kind == "write" and not item.failed
    }  # fmt: skip
    assert acknowledged
    assert acknowledged <= stored


def requests_during(site: Lab, machine: str, token: str) -> list[Request]:
    """What became of each request while a control plane lost power, and came back."""
    script = REQUESTS.read_text()
    command = ["scripts/lab", "ssh", "--name", site.name, "gpu1"]
    remote = f"cat >/run/requests.sh <<'END'\n{script}\nEND\nchmod +x /run/requests.sh"
    site.ssh("gpu1", remote)
    with subprocess.Popen(
        [*command, f"/run/requests.sh {SECONDS} {machine}"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as client:  # fmt: skip
        assert client.stdin is not None
        client.stdin.write(token)
        client.stdin.close()
        client.stdin = None
        time.sleep(QUIET_S)
        power(site, machine, "off")
        time.sleep(AWAY_S)
        power(site, machine, "on")
        out, _ = client.communicate(timeout=SECONDS + 60)
    rows = [line.split() for line in out.splitlines()]
    return [
        Request(kind, int(number), float(start), float(end), int(status))
        for kind, number, start, end, status in rows
    ]


def summarize(requests: list[Request]) -> str:
    """What a person wants to know of them."""
    failed = [item for item in requests if item.failed]
    slow = max(item.end - item.start for item in requests)
    lines = [f"{len(failed)} of {len(requests)} requests failed; the slowest took {slow:.1f} s"]
    start = min(item.start for item in requests)
    lines += [
        f"{item.kind} {item.number} at {item.start - start:.1f} s for "
        f"{item.end - item.start:.1f} s: {item.status}"
        for item in failed
    ]
    return "\n".join(lines)
