"""Prometheus' configuration, after a release has got other monitors."""

from pyinfra.api.command import StringCommand

from deploys.parts.cluster.kubectl import KUBECTL

# Prometheus reads what it scrapes from a volume that its kubelet renews once a minute, or when the
# pod changes. The operator writes it seconds after a monitor was made; where the definition was
# deleted before, it looks for monitors again only after half a minute.
_WAIT_SCRIPT = f"""sleep 5
for try in $(seq 20); do
  config=$({KUBECTL} get secrets -A -l managed-by=prometheus-operator \\
    -o 'jsonpath={{range .items[*]}}{{.data.prometheus\\.yaml\\.gz}}{{"\\n"}}{{end}}' | grep . |
    while read -r one; do printf %s "$one" | base64 -d | gunzip; done)
  missing=$({KUBECTL} get servicemonitors -A \\
    -o 'jsonpath={{range .items[*]}}{{.metadata.namespace}}/{{.metadata.name}}{{"\\n"}}{{end}}' |
    while read -r one; do
      case $config in *"serviceMonitor/$one/"*) ;; *) echo "$one" ;; esac
    done)
  if [ -z "$missing" ]; then break; fi
  sleep 2
done
"""
SCRAPE_NOW = StringCommand(
    _WAIT_SCRIPT,
    KUBECTL,
    "annotate --overwrite pods --all-namespaces -l operator.prometheus.io/name",
    'gpuboot.io/monitors="$(date +%s)" >/dev/null',
)
