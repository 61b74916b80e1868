# Networks that this host knows, as "key<TAB>value" lines: its routes, and what other programs' bridges will
# have when they next run. networks. Parsed by gpuboot/hosts/node_state.py. POSIX sh, changes nothing.
networks() {
  if command -v ip >/dev/null 2>&1; then
    { ip -o -4 route show; ip -o -6 route show; } 2>/dev/null | awk '
      $1 ~ /\// && $1 !~ /^fe80:/ { dev = ""; for (i = 2; i < NF; i++) if ($i == "dev") dev = $(i + 1)
        print "route\t" $1 " " dev }'
  fi
  # podman has its bridges while containers run (netavark, or CNI before), libvirt while it runs
  for file in /etc/containers/networks/*.json /etc/cni/net.d/*podman*.conflist; do
    [ -r "$file" ] && sed -n 's/.*"subnet": *"\([^"]*\)".*/other_network\t\1 podman/p' "$file"
  done
  if command -v podman >/dev/null 2>&1 && [ ! -e /etc/containers/networks/podman.json ] &&
     ! ls /etc/cni/net.d/*podman*.conflist >/dev/null 2>&1; then
    subnet=$(sed -n 's/^ *default_subnet *= *"\(.*\)".*/\1/p' /etc/containers/containers.conf \
      /usr/share/containers/containers.conf 2>/dev/null | head -n 1)
    printf 'other_network\t%s podman\n' "${subnet:-10.88.0.0/16}"
  fi
  for file in /etc/libvirt/qemu/networks/*.xml; do
    [ -r "$file" ] && sed -n "s/.*<ip .*address='\([^']*\)' \(netmask\|prefix\)='\([^']*\)'.*/other_network\t\1\/\3 libvirt/p" "$file"
  done
  if [ -r /etc/docker/daemon.json ]; then
    awk '{ gsub(/[{},]/, "\n"); print }' /etc/docker/daemon.json |
      sed -n 's/.*"\(bip\|base\|fixed-cidr\)" *: *"\([^"]*\/[0-9]*\)".*/other_network\t\2 docker/p'
  fi
  return 0
}
