wear() {
  mkdir -p /var/lib/containerd
  echo 'tmpfs /var/lib/containerd tmpfs size=300m 0 0' >> /etc/fstab
  mountpoint -q /var/lib/containerd || mount /var/lib/containerd
  head -c 250000000 /dev/zero > /var/lib/containerd/data
}

works() {
  [ "$(stat -c %s /var/lib/containerd/data)" = 250000000 ] || fail "the data is gone"
}

off() {
  umount /var/lib/containerd
  sed -i '/ \/var\/lib\/containerd /d' /etc/fstab
  rmdir /var/lib/containerd
}
