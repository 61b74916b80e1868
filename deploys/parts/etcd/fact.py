"""Backups of etcd on a control-plane node."""

import shlex

from deploys.engine.framed import Framed
from gpuboot.cluster import backup_copy
from gpuboot.cluster.backup import SERVICE, Backups
from gpuboot.cluster.backup import parse as parse_backups
from gpuboot.cluster.etcd_restore import LiveData, parse_living
from gpuboot.hosts.fact_output import Fields

# Times in UTC: `date` does not know all abbreviations of time zones
# a folder whose name begins with a dot is of a backup that has not ended
_SCRIPT = """\
ended() {{ # KEY UNIT: how its last run ended, and when
  when=$(TZ=UTC systemctl show -p InactiveEnterTimestamp --value "$2" 2>/dev/null)
  case $when in *:*) when=$(date -d "$when" +%s) ;; *) when= ;; esac
  printf '%s\\t%s\\t%s\\n' "$1" "$(systemctl show -p Result --value "$2" 2>/dev/null)" "$when"
}}
if [ -r /etc/kubernetes/pki/ca.crt ]; then
  printf 'ca\\t%s\\n' "$(sha256sum /etc/kubernetes/pki/ca.crt | cut -d ' ' -f 1)"
fi
cd {folder} 2>/dev/null || {{ printf 'end\\tok\\n'; exit 0; }}
for file in [0-9]*/about.json; do
  if [ -r "$file" ]; then printf 'backup\\t%s\\t' "${{file%/*}}"; cat "$file"; fi
done
ended result {service}
if [ -r .copied ]; then
  printf 'copied\\t'; cat .copied
  printf 'copied_at\\t%s\\n' "$(stat -c %Y .copied)"
fi
ended copy {copy}
printf 'end\\tok\\n'
"""


class EtcdBackups(Framed[Backups]):
    """The backups that are whole, which is copied off the node, and how the last of both ended."""

    default = Backups
    parse = parse_backups

    def command(self, folder: str) -> str:
        """`folder`: where they are kept."""
        return _SCRIPT.format(folder=shlex.quote(folder), service=SERVICE, copy=backup_copy.SERVICE)


class EtcdNow(Framed[LiveData]):
    """Revision and keys that etcd on this control-plane node has now, by its metrics."""

    of_cluster = True
    default = LiveData

    def command(self) -> str:
        metric_pattern = "etcd_debugging_mvcc_(current_revision|keys_total) "
        curl = "curl -q -sS --noproxy '*' --max-time 10 http://127.0.0.1:2381/metrics 2>/dev/null"
        return f"{curl} | grep -E '^{metric_pattern}' | tr ' ' '\\t'; printf 'end\\tok\\n'"

    def process(self, output: list[str]) -> LiveData:
        return parse_living(Fields(output))
