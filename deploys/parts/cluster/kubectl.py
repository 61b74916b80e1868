"""kubectl on the leader, with the administrator's rights."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyinfra.api.command import QuoteString, StringCommand

from gpuboot.cluster import manifests

ADMIN_CONF = "/etc/kubernetes/admin.conf"
KUBECTL = f"kubectl --kubeconfig {ADMIN_CONF}"


def apply_as(manager: str) -> str:
    """`kubectl apply` in somebody's name; what follows is a manifest's file, or - for stdin."""
    return f"{KUBECTL} apply --server-side --force-conflicts --field-manager {manager} -f"


KUBECTL_APPLY = apply_as("gpuboot")

# The Prometheus operator checks rules by a webhook, which refuses for a moment after its start.
_PATIENT = """\
file=$(mktemp); trap 'rm -f "$file"' EXIT; cat >"$file"
for left in $(seq 30); do
  if said=$({command} "$file" 2>&1)
  then exit 0; fi
  case $said in *"failed calling webhook"*) sleep 1 ;; *) break ;; esac
done
printf '%s\\n' "$said" >&2; exit 1"""


def with_objects(command: str, objects: Iterable[Mapping[str, Any]]) -> StringCommand:
    """A command of kubectl's that is given objects, which webhooks may refuse for a moment.

    + command: what the name of the objects' file follows
    """
    script = _PATIENT.format(command=command)
    return StringCommand("sh -ec", QuoteString(script), _stdin=manifests.manifest(objects))
