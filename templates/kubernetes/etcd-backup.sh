#!/bin/sh
# gpuboot-etcd-backup [REASON]: takes a snapshot of etcd on this control-plane node, checks it, and
# keeps it with the keys that a restore needs. gpuboot-etcd-backup copy: copies those that are here
# to another place. Written by gpuboot; deploys/restore.py restores one.
set -eu
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 077
# of the file of settings; copy: rsync, s3, or '' for no copies; volumes: how kubectl lists them
folder='' keep='' metrics='' node='' volumes='' copy='' to='' port='' keep_copies=''
# shellcheck source=/dev/null
. /etc/gpuboot/etcd-backup.conf
manifest=/etc/kubernetes/manifests/etcd.yaml
pki=/etc/kubernetes/pki
container=gpuboot-etcd-backup
copied=$folder/.copied

die() {
  echo "gpuboot-etcd-backup: $*" >&2
  exit 1
}
value() { sed -n "s/^ *- --$1=//p" "$manifest" | head -n 1; }
image_of() { sed -n 's/^ *image: *//p' "/etc/kubernetes/manifests/$1.yaml" | head -n 1; }
# names, the newest first: their stamps sort by age
backups() {
  find "$folder" -maxdepth 1 -type d -name '2???????T??????Z-*' -printf '%f\n' | sort -r
}
taken() { sed -n 's/.*"taken":\([0-9]*\).*/\1/p' "$folder/$1/about.json"; }
# UNIT: a success ends the failure of an earlier run, and its next try; not that of a run under way
settle() {
  case $(systemctl show -p SubState --value "$1") in
    failed | auto-restart*)
      # systemd forgets at once what is stopped and not referred to, which is as good
      { systemctl stop "$1" && systemctl reset-failed "$1"; } 2>/dev/null ||
        [ "$(systemctl show -p Result --value "$1")" = success ] ||
        echo "gpuboot-etcd-backup: $1 still says that it has failed" >&2 ;;
  esac
}
# NAME VALUE WHAT: for node-exporter, which runs as nobody and reads whole files only
metric() {
  part=$metrics/.$1.$$
  (umask 022 && mkdir -p "$metrics") &&
    printf '# HELP %s %s\n# TYPE %s gauge\n%s{node="%s"} %s\n' \
      "$1" "$3" "$1" "$1" "$node" "$2" >"$part" &&
    chmod 644 "$part" && mv "$part" "$metrics/$1.prom"
}
# when the keys of this host's package repositories end, so that a site hears of it that nobody runs;
# configured_keys is a function of repository_keys.sh
tell_key_ends() {
  name=gpuboot_repository_key_end_timestamp_seconds
  part=$metrics/.$name.$$
  configured_keys | awk -v "name=$name" -v "node=$node" '
    BEGIN {
      print "# HELP " name " When the key of a package repository ends."
      print "# TYPE " name " gauge"
    }
    $4 > 0 {
      printf "%s{node=\"%s\",repository=\"%s\",fingerprint=\"%s\"} %s\n", name, node, $2, $3, $4
    }' >"$part" && chmod 644 "$part" && mv "$part" "$metrics/$name.prom"
}
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

take() { # REASON
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

  name=$(date -u +%Y%m%dT%H%M%SZ)-$1
  new=$folder/.new-$name
  mkdir "$new"
  etcd_program etcdctl --endpoints="$endpoint" --cacert="$pki/etcd/ca.crt" \
    --cert="$pki/etcd/healthcheck-client.crt" --key="$pki/etcd/healthcheck-client.key" \
    --command-timeout=300s snapshot save "$new/etcd.db" >"$new/log" 2>&1 ||
    die "etcdctl snapshot save failed: $(tail -n 3 "$new/log")"
  for _ in 1 2 3; do # a busy `ctr run` can end before it has copied what a program printed
    status=$(etcd_program etcdutl snapshot status "$new/etcd.db" -w json 2>"$new/log") ||
      die "etcdutl finds the snapshot broken: $(tail -n 3 "$new/log")"
    [ -z "$status" ] || break
  done
  [ -n "$status" ] || die "etcdutl does not tell what is in the snapshot"
  # etcd ends it with the digest of all before; `snapshot status` does not compare it
  said=$(tail -c 32 "$new/etcd.db" | od -An -v -t x1 | tr -d ' \n')
  [ "$(head -c -32 "$new/etcd.db" | sha256sum | cut -d ' ' -f 1)" = "$said" ] ||
    die "the snapshot does not have the digest that etcd gave it"
  rm "$new/log"
  # which folders of nodes are volumes: the snapshot has nothing of what is in them
  timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=20s get pv \
    -o "$volumes" >"$new/volumes" 2>/dev/null || rm -f "$new/volumes"
  describe "$1"
  sync "$new"/* "$new"
  mv -T "$new" "$folder/$name"
  sync "$folder"
  backups | tail -n +$((keep + 1)) | while IFS= read -r old; do rm -rf "${folder:?}/$old"; done
  echo "$folder/$name: $status"
  metric gpuboot_etcd_backup_timestamp_seconds "$(taken "$name")" \
    "When the newest good backup of etcd on this node was taken." ||
    echo "gpuboot-etcd-backup: Prometheus is not told: nothing can be written in $metrics" >&2
  tell_key_ends || echo "gpuboot-etcd-backup: Prometheus is not told when keys end" >&2
  settle gpuboot-etcd-backup.service
  # on its own: what waits for a backup does not wait for a network. A start would wait for the next
  # try of one that has failed.
  [ -z "$copy" ] || settle gpuboot-etcd-backup-copy.service
  [ -z "$copy" ] || systemctl start --no-block gpuboot-etcd-backup-copy.service ||
    echo "gpuboot-etcd-backup: no copy off this node was begun" >&2
}

describe() { # REASON: the keys, and what the snapshot is
  cd /etc/kubernetes
  reason=$1
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
}

# The other place. A copy that has about.json is whole: it comes last. These are called where
# `set -e` does not hold.
rsync_names() {
  rsync -dp "$empty/" "$there/" || return 1 # the node's folder, the first time
  listed=$(rsync --list-only -r --include='/*/' --include='/*/about.json' --exclude='*' "$there/") ||
    return 1
  echo "$listed" | sed -n 's#.* \([^ ]*\)/about\.json$#\1#p'
}
rsync_send() {
  rsync -rtp --exclude=/about.json "$folder/$1/" "$there/$1/" &&
    rsync -tp "$folder/$1/about.json" "$there/$1/"
}
rsync_check() {
  differs=$(rsync -rcn --out-format=%n "$folder/$1/" "$there/$1/") && [ -z "$differs" ]
}
rsync_drop() { rsync -r --delete --include="/$1/***" --exclude='*' "$empty/" "$there/"; }

s3() { rclone --config /etc/gpuboot/etcd-backup-rclone.conf --retries 2 \
    --low-level-retries 3 --contimeout 15s "$@"; }
s3_names() {
  listed=$(s3 lsf -R --files-only --include '/*/about.json' "$there") || return 1
  echo "$listed" | sed -n 's#/about\.json$##p'
}
s3_send() {
  s3 copy --exclude /about.json "$folder/$1" "$there/$1" &&
    s3 copy --include /about.json "$folder/$1" "$there/$1"
}
s3_check() { s3 check --one-way --download "$folder/$1" "$there/$1"; }
s3_drop() { s3 purge "$there/$1"; }

copy_all() {
  [ -n "$copy" ] || die "no place off this node is set"
  exec 9>"$folder/.copy-lock"
  flock -w 600 9 || die "another copy has been running for 10 minutes"
  empty=$folder/.empty
  mkdir -p "$empty"
  there=$to/$node
  export RSYNC_RSH="ssh -i /etc/gpuboot/etcd-backup-copy.key -p $port -o IdentitiesOnly=yes \
-o UserKnownHostsFile=/etc/gpuboot/etcd-backup-copy.known_hosts -o GlobalKnownHostsFile=/dev/null \
-o StrictHostKeyChecking=yes -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=30"
  newest=''
  # another backup may be taken meanwhile
  while [ "$(backups | head -n 1)" != "$newest" ]; do
    newest=$(backups | head -n 1)
    copy_missing
  done
}

copy_missing() {
  names=$("${copy}_names") || die "$to cannot be read"
  for name in $(backups | head -n "$keep_copies"); do
    # an old one may be deleted at any time
    if [ -d "$folder/$name" ] && ! echo "$names" | grep -qxF "$name"; then
      "${copy}_send" "$name" || [ ! -d "$folder/$name" ] || die "$name is not copied to $there"
      echo "$name is copied to $there"
    fi
  done
  "${copy}_check" "$newest" ||
    { "${copy}_drop" "$newest" && "${copy}_send" "$newest" && "${copy}_check" "$newest"; } ||
    die "the copy of $newest in $there is not what is here"
  when=$(taken "$newest")
  printf '%s\t%s\t%s\n' "$newest" "$when" "$to" >"$copied.new"
  mv "$copied.new" "$copied"
  metric gpuboot_etcd_backup_copy_timestamp_seconds "$when" \
    "When the newest backup of etcd that has a good copy off this node was taken."
  settle gpuboot-etcd-backup-copy.service
  names=$("${copy}_names") || die "$to cannot be read"
  for name in $(echo "$names" | sort -r | tail -n +$((keep_copies + 1))); do
    "${copy}_drop" "$name" || die "$name is too old, and stays in $there"
  done
}

if [ "${1:-}" = copy ]; then copy_all; else take "${1:-manual}"; fi
