# The cluster as its leader sees it, as tab-separated lines. Parsed by gpuboot/clusterstate.py.
# POSIX sh, changes nothing; a cluster that does not answer is an answer, not an error.
export LC_ALL=C KUBECONFIG
put() { printf '%s\t%s\n' "$1" "$2"; }
if [ ! -r "$KUBECONFIG" ] || ! command -v kubectl >/dev/null 2>&1; then
  put error "there is no cluster yet"; put end ok; exit 0
fi
if ! answer=$(kubectl get --raw /readyz --request-timeout=5s 2>&1); then
  put error "$(printf '%s' "$answer" | tr '\n\t' '  ' | cut -c 1-300)"; put end ok; exit 0
fi
put server "$(kubectl get --raw /version | sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p')"
record() { kubectl -n kube-system get configmap kubeadm-config -o "jsonpath=$1"; }
put config "$(record '{.metadata.annotations.gpuboot\.io/sha256}')"
put record "$(record '{.data.ClusterConfiguration}' | base64 -w 0)"
tab='{"\t"}'
kubectl get nodes -o jsonpath="{range .items[*]}node$tab{.metadata.name}$tab\
{.status.nodeInfo.kubeletVersion}$tab{.status.conditions[?(@.type==\"Ready\")].status}$tab\
{.status.conditions[?(@.type==\"Ready\")].message}$tab{.status.allocatable}$tab\
{.metadata.labels}$tab{.spec.taints}{\"\\n\"}{end}"
kubectl get namespaces -o jsonpath="{range .items[*]}namespace$tab{.metadata.name}$tab\
{.metadata.labels}{\"\\n\"}{end}"
workloads="{range .items[*]}workload$tab{.kind}$tab{.metadata.namespace}$tab{.metadata.name}$tab\
{.status}$tab{.spec.replicas}$tab{.metadata.generation}$tab\
{.metadata.annotations.gpuboot\\.io/sha256}{\"\\n\"}{end}"
kubectl get daemonsets,deployments,statefulsets -A -o jsonpath="$workloads"
if policy=$(kubectl get clusterpolicies.nvidia.com -o jsonpath='{.items[*].status.state}' 2>&1)
then put policy "$policy"; fi
put end ok
