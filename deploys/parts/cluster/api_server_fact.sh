# Why the API server of this control plane may not answer: "lacks<TAB>SUBJECT<TAB>WHY" lines.
# POSIX sh, changes nothing. Parsed by deploys/parts/cluster/api_server_fact.py.
# Variable: socket, containerd's.
socket=${socket:-}
manifests=/etc/kubernetes/manifests
lacks() { printf 'lacks\t%s\t%s\n' "$1" "$2"; }
for unit in containerd kubelet; do
  state=$(systemctl show -p ActiveState -p SubState --value $unit.service 2>/dev/null | tr '\n' ' ')
  case $state in "active running "*) ;; *) lacks "$unit" "it is ${state:-unknown}" ;; esac
done
api=$manifests/kube-apiserver.yaml
[ -e $api ] || lacks kube-apiserver "$api does not exist"
if grep -q -- '--etcd-servers=https://127\.0\.0\.1:' $api 2>/dev/null && [ ! -e $manifests/etcd.yaml ]; then
  lacks etcd "$manifests/etcd.yaml does not exist"
fi
cri() { timeout 10 crictl --config /dev/null --runtime-endpoint "unix://$socket" --timeout 8s "$@"; }
for part in etcd kube-apiserver; do
  [ -e $manifests/$part.yaml ] || continue
  [ -z "$(cri ps --name "^$part\$" --state running -q 2>/dev/null)" ] || continue
  id=$(cri ps -a --name "^$part\$" --state exited -q 2>/dev/null | head -n 1)
  [ -n "$id" ] || continue
  said=$(cri logs --tail 1 "$id" 2>&1 | tr '\t\n' '  ' | cut -c 1-400)
  lacks "$part" "it has ended: ${said:-it said nothing}"
done
printf 'end\tok\n'
