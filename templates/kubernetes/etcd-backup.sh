#!/bin/sh
# gpuboot-etcd-backup [REASON]: takes a snapshot of etcd on this control-plane node, checks it, and
# keeps it with the keys that a restore needs. Written by gpuboot; deploys/restore.py restores one.
set -eu
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 077
reason=${1:-manual}
folder='' keep='' # of the file of settings
# shellcheck source=/dev/null
. /etc/gpuboot/etcd-backup.conf
manifest=/etc/kubernetes/manifests/etcd.yaml
pki=/etc/kubernetes/pki
container=gpuboot-etcd-backup

die() {
  echo "gpuboot-etcd-backup: $*" >&2
  exit 1
}
value() { sed -n "s/^ *- --$1=//p" "$manifest" | head -n 1; }
image_of() { sed -n 's/^ *image: *//p' "/etc/kubernetes/manifests/$1.yaml" | head -n 1; }
# a program of etcd's image, which has no shell; not within etcd's pod, which sees no other folder
etcd_program() {
  if ctr -n k8s.io containers info "$container" >/dev/null 2>&1; then # of one that was killed
    ctr -n k8s.io tasks rm -f "$container" >/dev/null 2>&1 || :
    ctr -n k8s.io containers rm "$container"
  fi
  ctr -n k8s.io run --rm --net-host \
    --mount "type=bind,src=$pki/etcd,dst=$pki/etcd,options=rbind:ro" \
    --mount "type=bind,src=$folder,dst=$folder,options=rbind:rw" \
    "$image" "$container" "$@"
}

mkdir -p "$folder"
chmod 700 "$folder"
exec 9>"$folder/.lock"
flock -w 600 9 || die "another backup has been running for 10 minutes"
[ -r "$manifest" ] || die "no etcd runs here: $manifest is missing"
image=$(image_of etcd)
endpoint=$(value listen-client-urls)
endpoint=${endpoint%%,*}

rm -rf "$folder"/.new-*
size=$(du -skx "$(value data-dir)" | cut -f 1)
free=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
[ "$free" -gt $((size + 102400)) ] ||
  die "$folder has $((free / 1024)) MiB left; etcd's data are $((size / 1024)) MiB"

name=$(date -u +%Y%m%dT%H%M%SZ)-$reason
new=$folder/.new-$name
mkdir "$new"
etcd_program etcdctl --endpoints="$endpoint" --cacert="$pki/etcd/ca.crt" \
  --cert="$pki/etcd/healthcheck-client.crt" --key="$pki/etcd/healthcheck-client.key" \
  --command-timeout=300s snapshot save "$new/etcd.db" >"$new/log" 2>&1 ||
  die "etcdctl snapshot save failed: $(tail -n 3 "$new/log")"
status=$(etcd_program etcdutl snapshot status "$new/etcd.db" -w json 2>"$new/log") ||
  die "etcdutl finds the snapshot broken: $(tail -n 3 "$new/log")"
# etcd ends it with the digest of all before; `snapshot status` does not compare it
said=$(tail -c 32 "$new/etcd.db" | od -An -v -t x1 | tr -d ' \n')
[ "$(head -c -32 "$new/etcd.db" | sha256sum | cut -d ' ' -f 1)" = "$said" ] ||
  die "the snapshot does not have the digest that etcd gave it"
rm "$new/log"

cd /etc/kubernetes
set -- # what `kubeadm init` cannot make again; a site may keep a CA's key elsewhere
for file in pki/ca pki/front-proxy-ca pki/etcd/ca pki/sa; do
  for kind in crt key pub; do
    if [ -e "$file.$kind" ]; then set -- "$@" "$file.$kind"; fi
  done
done
tar -cf "$new/pki.tar" "$@"
kubernetes=$(image_of kube-apiserver)
authority=$(sha256sum pki/ca.crt | cut -d ' ' -f 1)
form='{"taken":%s,"reason":"%s","node":"%s","kubernetes":"%s","etcd":"%s","ca":"%s","snapshot":%s}\n'
# shellcheck disable=SC2059
printf "$form" "$(date +%s)" "$reason" "$(value name)" "${kubernetes##*:}" "$image" "$authority" \
  "$status" \
  >"$new/about.json"
sync "$new"/* "$new"
mv -T "$new" "$folder/$name"
sync "$folder"

# the stamp of a name sorts by age
find "$folder" -maxdepth 1 -type d -name '2???????T??????Z-*' | sort -r |
  tail -n +$((keep + 1)) | while IFS= read -r old; do rm -rf "$old"; done
echo "$folder/$name: $status"
