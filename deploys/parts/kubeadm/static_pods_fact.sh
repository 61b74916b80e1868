# The control plane's manifests here, what kubeadm would write, and what runs, as "key<TAB>value"
# lines. Parsed by gpuboot/cluster/static_pods.py. POSIX sh, changes nothing. Variable: config
# (kubeadm's configuration of this host).
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
manifests=/etc/kubernetes/manifests
if ! command -v kubeadm >/dev/null 2>&1 || [ ! -d $manifests ]; then
  put error "there is no control plane yet"; put end ok; exit 0
fi
work=$(mktemp -d -p /run gpuboot.XXXXXX 2>/dev/null || mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2154  # the fact sets it
printf '%s' "$config" >"$work/kubeadm"
for phase in 'control-plane all' 'etcd local'; do
  # shellcheck disable=SC2086  # two words
  KUBEADM_INIT_DRYRUN_DIR=$work kubeadm init phase $phase --dry-run --config "$work/kubeadm" \
    >/dev/null 2>"$work/said" || {
    put error "kubeadm: $(tail -n 1 "$work/said" | tr '\t' ' ' | cut -c 1-300)"; put end ok; exit 0
  }
done
for file in "$work"/*.yaml; do put expected "${file##*/} $(base64 -w 0 "$file")"; done
# the kubelet reads every file there whose name begins with no dot
for file in "$manifests"/*; do
  [ -f "$file" ] && put actual "${file##*/} $(base64 -w 0 "$file")"
done
for process in /proc/[0-9]*; do
  { read -r name <"$process/comm"; } 2>/dev/null || continue
  case $name in kube-apiserver | kube-controller | kube-scheduler | etcd)
    put running "$(tr '\0\n\t' '\n  ' <"$process/cmdline" 2>/dev/null | base64 -w 0)" ;;
  esac
done
put end ok
