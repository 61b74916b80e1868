# What is on this host beside packages, as "key<TAB>value" lines: programs that are found before the packages'
# own, units that start other programs, snaps; and what a container lacks that a node needs.
# software. Parsed by gpuboot/hosts/software.py. POSIX sh, changes nothing; defines functions.
software() {
  for folder in /usr/local/sbin /usr/local/bin; do
    for name in kubeadm kubectl kubelet crictl ctr containerd containerd-shim-runc-v2 runc nvidia-ctk \
      nvidia-container-runtime docker dockerd; do
      [ -e "$folder/$name" ] || continue
      case $(readlink -f "$folder/$name") in /usr/bin/* | /usr/sbin/* | /bin/* | /sbin/*) ;;
        *) printf 'shadow\t%s %s\n' "$name" "$folder/$name" ;;
      esac
    done
  done
  if command -v systemctl >/dev/null 2>&1; then
    # ExecStart={ path=/usr/bin/kubelet ; argv[]=/usr/bin/kubelet … }
    systemctl show -p Id -p ExecStart -p FragmentPath containerd kubelet docker 2>/dev/null | awk '
      function report() { if (id != "" && path != "") print "unit_program\t" id " " path " " fragment
        id = path = fragment = "" }
      /^$/ { report() } /^Id=/ { id = substr($0, 4); sub(/\.service$/, "", id) }
      /^FragmentPath=/ { fragment = substr($0, 14) }
      /^ExecStart=/ && match($0, /path=[^ ;]*/) { path = substr($0, RSTART + 5, RLENGTH - 5) }
      END { report() }'
  fi
  for name in docker kubelet kubeadm kube-apiserver kube-proxy microk8s k8s; do
    for folder in /snap /var/lib/snapd/snap; do
      [ -e "$folder/$name/current" ] && printf 'snap\t%s\n' "$name"
    done
  done
  if command -v systemd-detect-virt >/dev/null 2>&1 && systemd-detect-virt --container --quiet; then
    container_lacks
  fi
  return 0
}
container_lacks() { # root, kmsg, sysctl, modules
  read -r first outside count </proc/self/uid_map
  if [ "$first $outside $count" != '0 0 4294967295' ]; then printf 'container_lacks\troot\n'; fi
  [ -e /dev/kmsg ] || printf 'container_lacks\tkmsg\n'
  [ -w /proc/sys/net/ipv4/ip_forward ] || printf 'container_lacks\tsysctl\n'
  # CAP_SYS_MODULE is bit 16, the lowest of the fifth digit from the right
  case $(sed -n 's/^CapEff:.*\(.\)....$/\1/p' /proc/self/status) in
    [13579bdf]) ;;
    *) printf 'container_lacks\tmodules\n' ;;
  esac
}
