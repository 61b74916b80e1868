"""All that a host says for a diagnosis, by one command, as it printed it."""

from dataclasses import dataclass, field

from deploys.engine.framed import Framed, script
from deploys.parts.cluster.fact import Kubeadm
from deploys.parts.driver.nvidia_fact import NvidiaFact
from deploys.parts.node.fact import NodeFact
from gpuboot.hosts.fact_output import FactOutputError

SCRIPT = script("diagnose/fact.sh")
_MARK = "##gpuboot-part##"
# in memory where there is such a place: a full disk is among what is looked for
_HEAD = """\
work=$(mktemp -d -p /run gpuboot.XXXXXX 2>/dev/null || mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
part() {
  timeout -k 1 "$limit" sh "$work/$1" >"$work/$1.out" 2>/dev/null </dev/null
  echo $? >"$work/$1.rc"
}
echo "began $(date +%s.%N)\""""
_TAIL = """\
wait
for name in $names; do
  if [ -s "$work/$name.out" ]; then cat "$work/$name.out"; fi
  printf '\\n{mark}%s %s\\n' "$name" "$(cat "$work/$name.rc")"
done
echo "ended $(date +%s.%N)\""""


@dataclass(frozen=True)
class HostOutput:
    """What a host printed.

    + started_at, ended_at: by its clock, seconds since 1970
    + parts: fact -> its lines; failed: fact -> exit status of one that did not end well
    """

    started_at: float = 0.0
    ended_at: float = 0.0
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class HostRecording(Framed[HostOutput]):
    """The output of several facts, each bounded in time, all at once: one that hangs keeps none of
    the others.
    """

    default = HostOutput

    def command(self, socket: str, limit_s: int, gpus: bool) -> str:
        """`socket`: containerd's; `limit_s`: for each fact; `gpus`: whether it has any."""
        scripts = {
            "node": NodeFact().bare_command({}),
            "kubeadm": Kubeadm().bare_command({"socket": socket}),
            "diagnose": SCRIPT,
            **({"nvidia": NvidiaFact().bare_command({})} if gpus else {}),
        }
        lines = [f"limit={limit_s} names='{' '.join(scripts)}'", _HEAD]
        for name, text in scripts.items():
            end = f"GPUBOOT_END_OF_{name}"
            lines += [f"cat >\"$work/{name}\" <<'{end}'", text.strip(), end, f"part {name} &"]
        return "\n".join([*lines, _TAIL.format(mark=_MARK)])

    def process(self, output: list[str]) -> HostOutput:
        parts: dict[str, tuple[str, ...]] = {}
        failed: dict[str, str] = {}
        times: dict[str, float] = {}
        lines: list[str] = []
        for line in output:
            _, mark, text = line.partition(_MARK)
            if mark:
                name, _, status = text.partition(" ")
                parts[name] = tuple(lines[:-1] if lines[-1:] == [""] else lines)
                if status != "0":
                    failed[name] = status
                lines = []
            elif line.startswith(("began ", "ended ")) and not lines:
                times[line[:5]] = float(line[6:])
            else:
                lines.append(line)
        if "ended" not in times:
            raise FactOutputError("the host's answer ends early")
        return HostOutput(times["began"], times["ended"], parts, failed)
