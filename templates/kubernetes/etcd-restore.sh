#!/bin/sh
# Steps of a restore of etcd on one control-plane node; deploys/parts/restore/operations.py calls them.
# Each may be repeated: a restore that was killed is begun again.
set -eu
export LC_ALL=C
umask 077
manifests=/etc/kubernetes/manifests
# on the same file system, where the kubelet does not look
aside=/etc/kubernetes/gpuboot-restore
pki=/etc/kubernetes/pki
container=gpuboot-etcd-restore

die() {
  echo "$*" >&2
  exit 1
}
crictl() {
  command crictl --config /dev/null --runtime-endpoint unix:///run/containerd/containerd.sock --timeout 30s "$@" \
    2>/dev/null
}
where() { # PART: its manifest, wherever it is now
  for folder in "$manifests" "$aside"; do
    if [ -e "$folder/$1.yaml" ]; then echo "$folder/$1.yaml" && return; fi
  done
}
running() { crictl ps -q --state running --name "^$1\$"; }

# IMAGE, or "" for that of etcd's manifest; BACKUP NAME PEER CLUSTER: beside the data of now
unpack() {
  image=$1 backup=$2 name=$3 peer=$4 cluster=$5
  [ -n "$image" ] || image=$(sed -n 's/^ *image: *//p' "$(where etcd)" | head -n 1)
  crictl inspecti -q "$image" >/dev/null || crictl pull "$image" >/dev/null ||
    die "the image $image cannot be had"
  rm -rf /var/lib/etcd.restored
  free=$(df -Pk /var/lib | awk 'NR == 2 { print $4 }')
  size=$(du -sk "$backup" | cut -f 1)
  [ "$free" -gt $((2 * size + 102400)) ] || die "/var/lib has $((free / 1024)) MiB left"
  if ctr -n k8s.io containers info "$container" >/dev/null 2>&1; then
    ctr -n k8s.io tasks rm -f "$container" >/dev/null 2>&1 || :
    ctr -n k8s.io containers rm "$container"
  fi
  # Kubernetes' watches must not see revisions come again: etcd.io, Disaster recovery
  ctr -n k8s.io run --rm \
    --mount "type=bind,src=$backup,dst=$backup,options=rbind:ro" \
    --mount type=bind,src=/var/lib,dst=/var/lib,options=rbind:rw \
    "$image" "$container" etcdutl snapshot restore "$backup/etcd.db" \
    --data-dir /var/lib/etcd.restored --name "$name" --initial-cluster "$cluster" \
    --initial-cluster-token "gpuboot-$(basename "$backup")" --initial-advertise-peer-urls "$peer" \
    --bump-revision 1000000000 --mark-compacted 2>&1 | tail -n 3
  [ -d /var/lib/etcd.restored/member ] || die "etcdutl made no data"
}

stop() { # the API server first: it is the one that writes
  mkdir -p "$aside"
  for part in kube-apiserver kube-controller-manager kube-scheduler etcd; do
    if [ -e "$manifests/$part.yaml" ]; then mv "$manifests/$part.yaml" "$aside/"; fi
  done
  end=$(($(date +%s) + 180))
  for part in kube-apiserver etcd; do
    while [ -n "$(running "$part")" ]; do
      [ "$(date +%s)" -lt "$end" ] || die "$part does not end: see \`crictl ps\`"
      sleep 1
    done
  done
}

swap() { # the data of before stay, under a name with the time
  [ -d /var/lib/etcd.restored ] || return 0
  before=/var/lib/etcd.before-$(date -u +%Y%m%dT%H%M%SZ)
  if [ -e /var/lib/etcd ]; then mv -T /var/lib/etcd "$before"; fi
  mv -T /var/lib/etcd.restored /var/lib/etcd
  sync -f /var/lib/etcd
}

start() { # PART...
  for part in "$@"; do
    if [ -e "$aside/$part.yaml" ]; then mv "$aside/$part.yaml" "$manifests/"; fi
  done
  rmdir "$aside" 2>/dev/null || :
}

keys() { # BACKUP: the certificate authorities and the key of service accounts, on an empty machine
  mkdir -p "$pki"
  tar -C /etc/kubernetes -xf "$1/pki.tar"
}

"$@"
