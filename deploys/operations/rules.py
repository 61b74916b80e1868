"""Rules in force. Prometheus reads them from a volume, which the kubelet renews once a minute."""

from __future__ import annotations

import shlex
from collections.abc import Generator

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.operation import operation

from deploys.lib import changes
from deploys.lib.remote import KUBECTL
from gpuboot.plan import Effect

_WRITTEN_S = 30

# A pod that changes is looked at by its kubelet at once, its volumes included.
_REREAD = f"""\
for left in $(seq {_WRITTEN_S}); do
  if {KUBECTL} -n {{namespace}} get configmaps -l prometheus-name={{name}} -o yaml \\
    | grep -q {{digest}}
  then exec {KUBECTL} -n {{namespace}} annotate --overwrite pods \\
    -l operator.prometheus.io/name={{name}} gpuboot.io/rules={{digest}}
  fi
  sleep 1
done
echo 'gpuboot: the Prometheus operator has not written the new rules after {_WRITTEN_S} s;' \\
  'remedy: its log tells what it refuses; then run again' >&2
exit 1"""


@operation()
def reread(namespace: str, prometheus: str, digest: str) -> Generator[StringCommand]:
    """Have Prometheus read its rules now instead of within two minutes. Runs on the leader.

    Only for a run that changed them: it asks nobody whether that is needed.

    + namespace: where Prometheus runs
    + prometheus: name of the Prometheus object
    + digest: of the rules, as `gpuboot.rules.digest` tells it

    Source: prometheus-operator's labels on what it makes (pkg/prometheus/rules.go, labels.go).
    """
    script = _REREAD.format(
        namespace=shlex.quote(namespace), name=shlex.quote(prometheus), digest=shlex.quote(digest)
    )
    changes.record(
        Effect(
            kind="reload", target="Prometheus", note="it reads its rules at once; nothing restarts"
        )
    )
    yield StringCommand("sh -ec", QuoteString(script))
