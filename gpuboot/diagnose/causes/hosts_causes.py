"""What is wrong with a machine whatever it runs."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.cluster.objects import Condition
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import RECENT_S, Facts
from gpuboot.diagnose.log_lines import last_words

_SKEW_S = 2.0  # certificates and leases of seconds bear no more
_FULL = 95  # per cent of size or inodes; the kubelet evicts at 90 (nodefs) and 85 (imagefs)
_PRESSED = 85  # where the kubelet's thresholds begin
_KILLED = "Out of memory: Killed"  # for the whole host, not for one container's limit
_STALLED = 20.0  # per cent of the time in which all work waits for memory


def host_silent(facts: Facts) -> Iterator[Sighting]:
    """Where no host at all answers, the way from the control machine may be what is broken."""
    silent = [host for host in facts.hosts if host.error]
    all_silent = len(silent) > 1 and not facts.read
    for host in silent:
        yield Sighting(
            node=host.node,
            evidence=(host.error, *(("no host answers this machine",) if all_silent else ())),
            confidence=Confidence.LIKELY if all_silent else Confidence.CERTAIN,
            values={"host": host.name},
        )


def clock_skew(facts: Facts) -> Iterator[Sighting]:
    """Measured against the control machine: where all hosts agree, its own clock is off."""
    skews = [host.skew_s for host in facts.read]
    control_is_skewed = (
        len(skews) > 1 and min(map(abs, skews)) >= _SKEW_S and max(skews) - min(skews) < _SKEW_S
    )
    for host in facts.read:
        if abs(host.skew_s) < _SKEW_S:
            continue
        way = "ahead of" if host.skew_s > 0 else "behind"
        evidence = [f"its clock is {abs(host.skew_s):.0f} s {way} the control machine's"]
        if host.state and not host.state.ntp_synchronised:
            evidence.append("timedatectl: NTPSynchronized=no")
        if control_is_skewed:
            evidence.append(
                "so is every host's: the control machine's own clock may be the wrong one"
            )
        confidence = Confidence.POSSIBLE if control_is_skewed else Confidence.CERTAIN
        yield Sighting(node=host.node, evidence=tuple(evidence), confidence=confidence)


def disk_full(facts: Facts) -> Iterator[Sighting]:
    for host in facts.read:
        evidence = []
        for disk in host.details.disks:
            if disk.used >= _FULL:
                evidence.append(
                    f"{disk.path}: {disk.used} % used, {disk.free_kib // 1024} MiB free"
                )
            if disk.inodes >= _FULL:
                evidence.append(f"{disk.path}: {disk.inodes} % of the inodes used")
        node = facts.cluster.node(host.node)
        pressure = node.conditions.get("DiskPressure", Condition()) if node else Condition()
        full = bool(evidence)
        if pressure.status == "True":
            evidence.append(f"node condition DiskPressure: {pressure.message}")
            full = full or any(disk.used >= _PRESSED for disk in host.details.disks)
        if evidence:
            # the kubelet takes the condition back minutes after there is room again
            confidence = Confidence.CERTAIN if full else Confidence.LIKELY
            yield Sighting(
                node=host.node, evidence=tuple(dict.fromkeys(evidence)), confidence=confidence
            )


def disk_read_only(facts: Facts) -> Iterator[Sighting]:
    for host in facts.read:
        if host.details.read_only:
            kernel = host.kernel("Remounting", "I/O")
            evidence = [f"{path} is mounted read-only" for path in host.details.read_only]
            yield Sighting(node=host.node, evidence=(*evidence, *kernel[-2:]))


def memory_short(facts: Facts) -> Iterator[Sighting]:
    for host in facts.read:
        node = facts.cluster.node(host.node)
        pressure = node.conditions.get("MemoryPressure", Condition()) if node else Condition()
        is_short = pressure.status == "True"
        condition = [f"node condition MemoryPressure: {pressure.message}"] * is_short
        stalled = host.details.memory_pressure >= _STALLED
        share = f"/proc/pressure/memory: full avg10={host.details.memory_pressure}"
        kernel = host.kernel(_KILLED, within_s=RECENT_S)[-1:]
        if evidence := [*condition, *([share] if stalled else []), *kernel]:
            # the kubelet takes the condition back minutes after there is memory again
            confidence = Confidence.CERTAIN if condition and stalled else Confidence.LIKELY
            yield Sighting(node=host.node, evidence=tuple(evidence), confidence=confidence)


def process_ids_short(facts: Facts) -> Iterator[Sighting]:
    for host in facts.read:
        node = facts.cluster.node(host.node)
        pressure = node.conditions.get("PIDPressure", Condition()) if node else Condition()
        used, limit = host.details.threads
        is_short = bool(limit) and used * 100 >= limit * _PRESSED
        count = [f"{used} processes and threads, of {limit} that the kernel allows"] * is_short
        condition = [f"node condition PIDPressure: {pressure.message}"]
        if evidence := [*count, *(condition * (pressure.status == "True"))]:
            # the kubelet takes the condition back minutes after there are some again
            confidence = Confidence.CERTAIN if is_short else Confidence.LIKELY
            yield Sighting(node=host.node, evidence=tuple(evidence), confidence=confidence)


def node_missing(facts: Facts) -> Iterator[Sighting]:
    """Hosts of the inventory that the cluster has no node of."""
    names = [host.state.hostname for host in facts.read if host.state]
    for host in facts.read:
        if not facts.cluster.nodes or facts.cluster.node(host.node):
            continue
        evidence = ["the API server has no node of its name"]
        if not host.joined:
            evidence.append("/etc/kubernetes/kubelet.conf is missing: it has not joined")
        elif host.running("kubelet"):
            evidence.append("its kubelet runs, and makes its node only as it starts")
        if host.state and names.count(host.state.hostname) > 1:
            evidence.append(f"another host is called {host.state.hostname} as well")
        yield Sighting(node=host.node, evidence=(*evidence, *host.log("kubelet", "not found")[-1:]))


def machine_id_shared(facts: Facts) -> Iterator[Sighting]:
    """Hosts with the machine id of another one, as clones of one image have it."""
    ids = {
        host.node: host.state.machine_id
        for host in facts.read
        if host.state and host.state.machine_id
    }
    for node, text in ids.items():
        if twins := [name for name in ids if ids[name] == text and name != node]:
            yield Sighting(node=node, evidence=(f"{', '.join(twins)} has its machine id {text}",))


def kubelet_stopped(facts: Facts) -> Iterator[Sighting]:
    for host in facts.read:
        unit = host.details.units.get("kubelet")
        if not host.joined or unit is None or (unit.active, unit.sub) == ("active", "running"):
            continue
        state = f"kubelet.service is {unit.active} ({unit.sub}), result {unit.result}"
        evidence = [f"{state}, exit status {unit.status}"]
        if unit.load == "masked":
            evidence.append("kubelet.service is masked")
        # one that was stopped gave up nothing: what it said is of before
        last = [] if unit.result == "success" else last_words(host.log("kubelet"))
        yield Sighting(node=host.node, evidence=(*evidence, *last))


def node_not_ready(facts: Facts) -> Iterator[Sighting]:
    for node in facts.cluster.nodes:
        if not node.ready:
            message = node.message or "its kubelet does not report"
            host = next((item for item in facts.read if item.node == node.name), None)
            last = last_words(host.log("kubelet")) if host else []
            yield Sighting(
                node=node.name,
                evidence=(f"the node is not Ready: {message}", *last),
                confidence=Confidence.POSSIBLE,
            )


_ALL_BELOW = (
    *("pod-terminating", "etcd-unhealthy"),
    *("node-not-ready", "api-server-down", "coredns-not-ready"),
    *("prometheus-target-down", "prometheus-down", "api-extension-unavailable"),
)

TABLE = (
    Cause(
        id="host-silent",
        meaning="a host cannot be read: no answer on SSH, no way to become root, or too slow",
        find=host_silent,
        remedy="look at its power, its console, the network to it and its sudoers",
        command="ping -c 3 {host}; ssh -v {host} sudo true",
        on="here",
        explains=("kubelet-stopped", "node-missing", *_ALL_BELOW, "operand-desired-zero"),
    ),
    Cause(
        id="clock-skew",
        meaning="a host's clock is off",
        find=clock_skew,
        remedy="start its time service, and let it reach a time server",
        command="sudo timedatectl set-ntp true; timedatectl",
        on="node",
        explains=("certificates-expired", "api-server-down", "node-not-ready"),
    ),
    Cause(
        id="disk-full",
        meaning="a file system has no room or no inodes left, so the kubelet evicts pods",
        find=disk_full,
        remedy="make room; what takes it is mostly images, logs or somebody's data",
        command="sudo du -xh --max-depth=2 /var | sort -h | tail -20; sudo crictl rmi --prune",
        on="node",
        explains=(
            *("kubelet-stopped", "containerd-stopped", "pod-crash-loop", "pod-evicted"),
            *("volume-full", "storage-corrupt", "container-runtime-hangs"),
            *("pending-taint", *_ALL_BELOW),
        ),
    ),
    Cause(
        id="disk-read-only",
        meaning="the system's file system is mounted read-only, mostly after I/O errors",
        find=disk_read_only,
        remedy="look for I/O errors, check the file system, replace the disk",
        command="findmnt -no SOURCE,OPTIONS /; sudo dmesg --level=err,warn | tail -n 20",
        on="node",
        explains=("kubelet-stopped", "containerd-stopped", *_ALL_BELOW),
    ),
    Cause(
        id="memory-short",
        meaning="a host has no memory left, and waits for it",
        find=memory_short,
        remedy="find what takes it, and give it a limit or another node",
        command="ps -eo rss,pid,args --sort=-rss | head",
        on="node",
        explains=(
            *("kubelet-stopped", "node-not-ready", "pending-taint", "pod-evicted"),
            *("container-out-of-memory", "container-runtime-hangs"),
        ),
    ),
    Cause(
        id="process-ids-short",
        meaning="a host has no process ids left, so nothing can be started on it",
        find=process_ids_short,
        remedy="find what starts so many processes or threads; limit it by the kubelet's "
        'podPidsLimit (cluster.kubelet = {"podPidsLimit": 4096})',
        command="ps -eo nlwp,pid,args --sort=-nlwp | head; sysctl kernel.pid_max",
        on="node",
        explains=("kubelet-stopped", "node-not-ready", "pending-taint", "pod-evicted"),
    ),
    Cause(
        id="node-missing",
        meaning="a host of the inventory is no node of the cluster: it has not joined, its node "
        "was deleted, or another host has its name",
        find=node_missing,
        remedy="joined, and its kubelet runs: restart that, which makes the node again; else run "
        "deploys/site.py, which joins it. Of two hosts with one name, rename one "
        "(hostnamectl set-hostname) and reset it before",
        command="sudo systemctl restart kubelet; hostname; sudo journalctl -u kubelet -n 20 "
        "--no-pager",
        on="node",
        explains=("device-plugin-missing", "pending-resource", "static-pod-missing"),
    ),
    Cause(
        id="machine-id-shared",
        meaning="hosts have one machine id, of which systemd makes the MAC addresses of flannel's "
        "links and DHCP addresses: their pods do not reach each other",
        find=machine_id_shared,
        remedy="give each clone but one its own, and reboot it",
        command="sudo rm -f /etc/machine-id /var/lib/dbus/machine-id; "
        "sudo systemd-machine-id-setup; sudo reboot",
        on="node",
        explains=("api-from-pods", "dns-upstream", "coredns-not-ready", "prometheus-target-down"),
    ),
    Cause(
        id="kubelet-stopped",
        meaning="the kubelet does not run, so the node starts and reports nothing",
        find=kubelet_stopped,
        remedy="start it; if it ends again, its last lines say why: a flag or field that it does "
        "not know stands in /etc/default/kubelet, a drop-in or kubeadm's files, which "
        "deploys/site.py writes again",
        command="sudo systemctl unmask kubelet; sudo systemctl start kubelet; "
        "sudo journalctl -u kubelet -n 50 --no-pager",
        on="node",
        explains=(*_ALL_BELOW, "node-missing", "pending-taint", "operand-desired-zero"),
    ),
    Cause(
        id="node-not-ready",
        meaning="a node is not Ready, and no cause is known on it",
        find=node_not_ready,
        remedy="read what its kubelet says",
        command="kubectl describe node {node}",
        fallback=True,
        explains=("api-extension-unavailable",),
    ),
)
