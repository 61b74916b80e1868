#!/bin/sh
# What containerd's configuration ought to be on this host, beside what it is. Changes nothing:
# the expected files are made in a temporary folder that takes the place of /etc/containerd in a
# mount namespace of its own, so nvidia-ctk and containerd see the very paths they will have.
# Variables: root (text of the root file), proxy (text of the unit's drop-in, may be empty),
# toolkit (nvidia-ctk's options, or none).
# shellcheck disable=SC2154
export LC_ALL=C
has() { command -v "$1" >/dev/null 2>&1; }
has containerd || { echo "absent containerd"; exit 0; }
if [ "$toolkit" != none ] && ! has nvidia-ctk; then echo "absent nvidia-ctk"; exit 0; fi

stage=$(mktemp -d) || exit 1
trap 'rm -rf "$stage"' EXIT
mkdir -p /etc/containerd "$stage/conf.d"
version=$(containerd config default 2>/dev/null | sed -n 's/^version *= *//p' | head -n 1)
echo "version $version"
printf '%s' "$root" | sed "s/@VERSION@/$version/" >"$stage/config.toml"
for file in /etc/containerd/conf.d/*.toml; do
  if [ -f "$file" ] && [ "${file##*/}" != 99-nvidia.toml ]; then
    cp "$file" "$stage/conf.d/"
    [ "${file##*/}" = gpuboot-registries.toml ] || echo "foreign $file"
  fi
done
# shellcheck disable=SC2016
said=$(unshare --mount sh -c '
  mount --bind "$1" /etc/containerd || exit 1
  if [ "$2" != none ]; then
    nvidia-ctk runtime configure --runtime=containerd --config=/etc/containerd/config.toml \
      --drop-in-config=/etc/containerd/conf.d/99-nvidia.toml $2 || exit 1
  fi
  containerd config dump >/dev/null || exit 1
' stage "$stage" "$toolkit" 2>&1) || echo "$said" | tail -n 12 | sed 's/^/error /'

encoded() { [ -f "$1" ] && base64 -w 0 <"$1"; }
expected() { # name, expected file, installed file
  echo "expected $1 $(encoded "$2")"
  if [ -f "$2" ]; then cmp -s "$2" "$3" || echo "differs $1"
  elif [ -e "$3" ]; then echo "differs $1"; fi
}
dropin=/etc/systemd/system/containerd.service.d/gpuboot-proxy.conf
[ -z "$proxy" ] || printf '%s' "$proxy" >"$stage/proxy.conf"
expected config "$stage/config.toml" /etc/containerd/config.toml
expected nvidia "$stage/conf.d/99-nvidia.toml" /etc/containerd/conf.d/99-nvidia.toml
expected proxy "$stage/proxy.conf" "$dropin"

# settings somebody else wrote into the root file: in neither the package's file nor ours
ours=/var/lib/gpuboot/containerd/config.toml
if [ -f /etc/containerd/config.toml ] && ! cmp -s "$ours" /etc/containerd/config.toml; then
  [ ! -f "$ours" ] || cat "$ours" >"$stage/known"
  cat "$stage/config.toml" >>"$stage/known"
  grep -vE '^[[:space:]]*(#|$)|^disabled_plugins *= *\["cri"\]' /etc/containerd/config.toml |
    grep -vxFf "$stage/known" | sed 's/^/edited /'
fi

# does the running containerd know the installed files?
started=$(systemctl show -p ExecMainStartTimestamp --value containerd.service 2>/dev/null)
if [ "$(systemctl is-active containerd.service)" = active ] && [ -n "$started" ]; then
  started=$(date -d "$started" +%s)
  for file in /etc/containerd/config.toml /etc/containerd/conf.d/*.toml "$dropin" \
    /etc/gpuboot/proxy.env; do
    if [ -f "$file" ] && [ "$(stat -c %Y "$file")" -gt "$started" ]; then echo "stale $file"; fi
  done
else
  echo "stale containerd is not running"
fi
exit 0
