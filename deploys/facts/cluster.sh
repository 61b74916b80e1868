# The cluster as its leader sees it, as tab-separated lines. Parsed by gpuboot/kubernetes/cluster_state.py.
# POSIX sh, changes nothing; a cluster that does not answer is an answer, not an error.
# Variables: KUBECONFIG, preflight (yes: also what only preflight compares).
export LC_ALL=C KUBECONFIG
put() { printf '%s\t%s\n' "$1" "$2"; }
flat() { tr '\n\t' '  ' | cut -c 1-300; }
if [ ! -r "$KUBECONFIG" ] || ! command -v kubectl >/dev/null 2>&1; then
  put error "there is no cluster yet"; put end ok; exit 0
fi
if ! answer=$(kubectl get --raw /readyz --request-timeout=5s 2>&1); then
  put error "$(printf '%s' "$answer" | flat)"; put end ok; exit 0
fi

# Few questions, all at once: what they cost is the start of a program each.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ask() {
  answer="$work/$1"; shift
  { kubectl "$@" --request-timeout=20s >"$answer" 2>"$answer.err" || mv "$answer.err" "$work/failed"; } &
}
tab='{"\t"}' end='{"\n"}{end}'
# each KIND WORD COLUMNS: a line for each object of a kind; with `name`: of a name
each() {
  printf '{range .items[?(@.%s=="%s")]}%s%s%s%s' "${4:+metadata.}${4:-kind}" "$1" "$2" "$tab" "$3" "$end"
}
ask version get --raw /version
# shellcheck disable=SC2154  # the fact sets it
if [ "$preflight" = yes ]; then
  ask flannel -n kube-flannel get configmap kube-flannel-cfg --ignore-not-found \
    -o 'jsonpath={.data.net-conf\.json}'
  services=,services
else
  : >"$work/flannel"
  services=
fi
ask kubeadm -n kube-system get configmap kubeadm-config \
  -o "jsonpath={.metadata.annotations.gpuboot\\.io/sha256}$tab{.data.ClusterConfiguration}"
ready='.status.conditions[?(@.type=="Ready")]'
node="{.metadata.name}$tab{.status.addresses[?(@.type==\"InternalIP\")].address}$tab\
{.status.nodeInfo.kubeletVersion}$tab{$ready.status}$tab{$ready.message}$tab\
{.status.allocatable}$tab{.metadata.labels}$tab{.spec.taints}$tab{.spec.podCIDRs}"
class="{.metadata.name}$tab{.metadata.annotations.storageclass\\.kubernetes\\.io/is-default-class}"
workload="{.kind}$tab{.metadata.namespace}$tab{.metadata.name}$tab{.status}$tab{.spec.replicas}$tab\
{.metadata.generation}$tab{.metadata.annotations.gpuboot\\.io/sha256}"
operand="{.metadata.namespace}$tab{.metadata.name}$tab{.metadata.labels.helm\.sh/chart}$tab\
{.spec.template}"
waiting='{.name}={.state.waiting.reason} {end}'
issue="{.metadata.namespace}$tab{.metadata.name}$tab{.spec.nodeName}$tab\
{range .status.initContainerStatuses[*]}$waiting{range .status.containerStatuses[*]}$waiting$tab\
{.status.conditions[?(@.type==\"PodScheduled\")].message}"
ask objects get nodes,namespaces,storageclasses,runtimeclasses,daemonsets,deployments,statefulsets,pods"$services" -A \
  -o "jsonpath=$(
    each Node node "$node"
    each Namespace namespace "{.metadata.name}$tab{.metadata.labels}"
    each StorageClass class "$class"
    each RuntimeClass runtime "{.metadata.name}$tab{.handler}"
    for kind in DaemonSet Deployment StatefulSet; do each "$kind" workload "$workload"; done
    each Pod pod_issue "$issue"
    each Service service "{.metadata.namespace}/{.metadata.name}$tab{.spec.ports[*].nodePort}"
    for name in nvidia-device-plugin-daemonset gpu-feature-discovery nvidia-dcgm-exporter \
      nvidia-operator-validator; do each "$name" operand "$operand" name; done
  )"
kubectl get clusterpolicies.nvidia.com --request-timeout=20s -o 'jsonpath={.items[*].status.state}' \
  >"$work/policy" 2>/dev/null # there is no such kind before the GPU Operator is installed
wait
if [ -e "$work/failed" ]; then
  put error "$(flat <"$work/failed")"; put end ok; exit 0
fi
put server "$(sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p' "$work/version")"
put config "$(head -n 1 "$work/kubeadm" | cut -f 1)"
put record "$(sed '1s/^[^\t]*\t//' "$work/kubeadm" | base64 -w 0)"
awk -F '\t' '$1 != "pod_issue" || $5 ~ /=[A-Z]/ || $6 != ""' "$work/objects"
put policy "$(cat "$work/policy")"
put flannel "$(base64 -w 0 <"$work/flannel")"
put end ok
