# What kubeadm would make in the cluster, and what there is of it. Runs after api.sh.
# Parsed by gpuboot/cluster/kubeadm_objects.py. Arguments: kubeadm's configuration, then the
# paths of the objects. kubeadm only prints here.
config=$1; shift
[ -r "$config" ] || refuse "there is no $config"
for addon in coredns kube-proxy; do
  kubeadm init phase addon "$addon" --print-manifest --config "$config" >>"$work/addons" 2>"$work/said" ||
    refuse "kubeadm: $(cat "$work/said")"
done
ask "$work/answers" "$@"
pack() { printf '%s\t' "$1"; gzip -1c <"$2" | base64 -w 0; echo; }
pack config "$config"
pack addons "$work/addons"
pack answers "$work/answers"
put clock "$(date +%s)"
put end ok
