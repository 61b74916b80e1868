# An etcd that somebody runs, or ran: its folder, and what it needs to be started again.
sums=/var/tmp/site-etcd.sums

wear() {
  mkdir -p /var/lib/etcd/member/snap /var/lib/etcd/member/wal
  chmod 700 /var/lib/etcd
  head -c 4000000 /dev/urandom > /var/lib/etcd/member/snap/db
  head -c 64000000 /dev/zero > /var/lib/etcd/member/wal/0000000000000000-0000000000000000.wal
  find /var/lib/etcd -type f -exec sha256sum {} + > $sums
}

works() {
  sha256sum --quiet -c $sums || fail "the data of etcd is not what it was"
}

off() {
  rm -r /var/lib/etcd $sums
}
