# How far kubeadm got on this host, as "key<TAB>value" lines. Parsed by gpuboot/cluster/cluster_state.py.
# POSIX sh, changes nothing, works before anything is installed.
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }

set -- kubelet kubeadm kubectl kubernetes-cni cri-tools
if has rpm && ! has dpkg-query; then
  rpm -q --qf 'installed %{NAME} %{VERSION}-%{RELEASE}\n' "$@"
else
  dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' "$@"
fi 2>/dev/null | awk '$1 == "installed" { print "package\t" $2 " " $3 }'
for file in admin.conf kubelet.conf manifests/kube-apiserver.yaml; do
  if [ -e "/etc/kubernetes/$file" ]; then put file "$file"; fi
done
for step in init join upgrade kubelet; do
  if [ -e "/etc/gpuboot/kubeadm-$step.started" ]; then put started "$step"; fi
done
if [ -e /etc/gpuboot/kubernetes-node-upgrade.started ]; then put started node-upgrade; fi
if [ -r /etc/gpuboot/kubelet-config.sha256 ]; then
  read -r config written </etc/gpuboot/kubelet-config.sha256
  put kubelet_config "$config"
  # notes of earlier versions do not have what kubeadm wrote
  if [ -n "$written" ] && [ "$written" != "$(sha256sum </var/lib/kubelet/config.yaml | cut -d ' ' -f 1)" ]; then
    put kubelet_edited yes
  fi
fi
if [ -r /var/lib/kubelet/kubeadm-flags.env ]; then
  put kubelet_flags "$(tr '\n\t' '  ' </var/lib/kubelet/kubeadm-flags.env)"
fi
if [ -r /etc/kubernetes/pki/ca.crt ]; then put ca "$(base64 -w 0 /etc/kubernetes/pki/ca.crt)"; fi
authority() { sed -n 's/^ *certificate-authority-data: *//p' "$1" | head -n 1; }
if [ ! -e /root/.kube/config ]; then put kubeconfig absent
elif [ ! -r /etc/kubernetes/admin.conf ]; then put kubeconfig other
elif cmp -s /etc/kubernetes/admin.conf /root/.kube/config; then put kubeconfig same
elif [ "$(authority /etc/kubernetes/admin.conf)" = "$(authority /root/.kube/config)" ]; then
  put kubeconfig stale
else put kubeconfig other
fi
# when certificates expire: of each file the first one, of which only that leaves the host
set --
for file in /etc/kubernetes/pki/*.crt /etc/kubernetes/pki/etcd/*.crt /etc/kubernetes/*.conf \
  /var/lib/kubelet/pki/kubelet-client-current.pem; do
  if [ -r "$file" ]; then set -- "$@" "$file"; fi
done
if [ $# -gt 0 ]; then
  awk '/BEGIN CERTIFICATE/ && !seen[FILENAME]++ { body = ""; inside = 1; next }
    /END CERTIFICATE/ && inside { print "certificate\t" FILENAME " " body; inside = 0 }
    inside { body = body $0 }
    $1 == "client-certificate-data:" { print "certificate\t" FILENAME " " $2 }' "$@"
fi
if [ -e /etc/gpuboot/certificates.renewed ]; then put renewed yes; fi
put clock "$(date +%s)"
# nobody asks for the images of a host that has joined
joined=no
if [ -e /etc/kubernetes/kubelet.conf ]; then joined=yes; fi
for step in init join; do
  if [ -e "/etc/gpuboot/kubeadm-$step.started" ]; then joined=no; fi
done
remains # a function of remains.sh
# what pods of an earlier cluster of gpuboot left in the kernel
if [ $joined = no ] && [ -e /etc/gpuboot/kubelet-config.sha256 ]; then
  for link in cni0 flannel.1 flannel-v6.1; do
    if [ -e "/sys/class/net/$link" ]; then put left "$link"; fi
  done
fi
# shellcheck disable=SC2154  # the fact sets it
if [ $joined = no ] && has ctr && [ -S "$socket" ]; then
  ctr -a "$socket" -n k8s.io images ls -q | grep -v '@sha256:\|^sha256:' | sed 's/^/image\t/'
fi
put end ok
