# Who holds ports, and what others left of an etcd, a cluster or a pod network, as "key<TAB>value" lines.
# Parsed by gpuboot/hosts/remains.py. POSIX sh, changes nothing; defines functions.
unit_of() { # /proc/PID: its systemd unit, "pod", "docker:ID", or "-"
  unit=-
  while IFS= read -r group; do
    case $group in
      *kubepods*) unit=pod ;;
      *docker-*.scope) unit=${group##*docker-} && unit=docker:${unit%.scope} ;;
      */docker/*) unit=docker:${group##*/docker/} ;;
      *.service/*) unit=${group%%.service/*}.service && unit=${unit##*/} ;;
      *.service) unit=${group##*/} ;;
    esac
  done 2>/dev/null <"$1/cgroup"
  echo "$unit"
}

port_units() { # of its input, what follows "port_pid<TAB>PORT " becomes the unit of that process
  while IFS= read -r line; do
    case $line in
      port_pid*)
        line=${line#*	}
        printf 'port_unit\t%s %s\n' "${line% *}" "$(unit_of "/proc/${line#* }")" ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
}

remains() (
  say() { printf '%s\t%s\n' "$1" "$2"; }
  if [ -e /etc/gpuboot/kubelet-config.sha256 ]; then # gpuboot made a node of this host
    say noted yes
    [ -e /etc/kubernetes/kubelet.conf ] && exit 0
  fi
  remains_of_cni
  for step in init join; do # a step that began where nothing was; those of earlier versions are empty
    [ -s "/etc/gpuboot/kubeadm-$step.started" ] && exit 0
  done
  remains_of_etcd
  remains_of_kubeadm
  remains_in_the_kernel
)

remains_of_etcd() {
  if [ -n "$(ls -A /var/lib/etcd 2>/dev/null)" ]; then
    newest=$(find /var/lib/etcd/ -type f -exec stat -c %Y {} + | sort -n | tail -n 1)
    size=$(du -sk /var/lib/etcd/ | cut -f 1)
    # shellcheck disable=SC2012 # names are only shown
    say etcd_data "$size ${newest:-0} $(ls -A /var/lib/etcd | head -n 3 | tr '\n' ' ')"
  fi
  grep -lsx etcd /proc/[0-9]*/comm | while IFS= read -r file; do
    process=${file%/comm}
    # one in a network of its own is a container's own affair
    [ "$(readlink "$process/ns/net")" = "$(readlink /proc/self/ns/net)" ] || continue
    folder=$(tr '\000' '\n' <"$process/cmdline" |
      sed -n 's/^--\{0,1\}data-dir=//p; /^--\{0,1\}data-dir$/{ n; p; }' | head -n 1)
    [ -n "$folder" ] || folder=$(tr '\000' '\n' <"$process/environ" |
      sed -n 's/^ETCD_DATA_DIR=//p' | head -n 1)
    say etcd_process "$(unit_of "$process") $folder"
  done
}

wiped_node() { # gpuboot made a node of this host, and no kubelet runs, nor k3s or another with its own
  [ -e /etc/gpuboot/kubelet-config.sha256 ] && [ -z "$(ss -Hltn 'sport = :10250' 2>/dev/null)" ]
}

remains_of_kubeadm() {
  authority=/etc/kubernetes/pki/ca.crt
  [ -r $authority ] || authority=$(find /etc/kubernetes/pki/ -type f 2>/dev/null | sort | head -n 1)
  [ -n "$authority" ] && say pki "$authority $(
    sed -n '/BEGIN CERTIFICATE/,/END CERTIFICATE/p; /END CERTIFICATE/q' "$authority" |
      base64 | tr -d '\n')"
  for file in /etc/kubernetes/manifests/*; do
    [ -f "$file" ] && say manifest "${file##*/}"
  done
  for name in admin super-admin kubelet bootstrap-kubelet controller-manager scheduler; do
    file=/etc/kubernetes/$name.conf
    [ -e "$file" ] && say credentials "$file $(sed -n 's/^ *server: *//p' "$file" | head -n 1)"
  done
  pods=$(find /var/lib/kubelet/pods -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)
  if [ -e /var/lib/kubelet/config.yaml ] || { [ "$pods" -gt 0 ] && ! wiped_node; }; then
    say kubelet_state "$pods $(stat -c %Y /var/lib/kubelet)"
  fi
}

remains_of_cni() {
  for file in /etc/cni/net.d/* /etc/cni/net.d/.[!.]*; do
    case $file in
      */10-flannel.conflist) ;; # flannel writes it anew
      *.conf | *.conflist | *.json)
        [ -f "$file" ] || continue
        kind=$(tr '{' ',' <"$file" | tr ',' '\n' |
          sed -n 's/^[[:space:]]*"type" *: *"\([^"]*\)".*/\1/p' | head -n 1)
        say cni_file "${kind:--} ${file##*/}" ;;
    esac
  done
  sed -n "s/^ *conf_dir *= *[\"']\(.*\)[\"'].*/\1/p" /etc/containerd/conf.d/*.toml 2>/dev/null |
    sed 's/^/cni_folder	/'
}

remains_in_the_kernel() {
  for link in /sys/class/net/*; do
    link=${link##*/}
    case $link in
      cni0 | flannel.1 | flannel-v6.1) [ -e /etc/gpuboot/kubelet-config.sha256 ] || say link "$link" ;;
      tunl0) # the kernel makes it by itself, without an address
        [ -n "$(ip -4 -o address show dev tunl0 2>/dev/null)" ] && say link "$link" ;;
      cali* | vxlan.calico | vxlan-v6.calico | wireguard.cali | wg-v6.cali | cilium_* | weave | \
        vethwe-* | kube-bridge | kube-dummy-if | kube-ipvs0 | antrea-gw0 | ovn-k8s-mp0)
        say link "$link" ;;
    esac
  done
  # flannel's: a device of the kernel has its port without a process
  ss -Hlunp 2>/dev/null | awk '{ n = split($4, at, ":"); owner = "?"
    if (match($NF, /"[^"]*"/)) owner = substr($NF, RSTART + 1, RLENGTH - 2)
    if (at[n] ~ /^(8472|51820|51821)$/) print "udp_port\t" at[n] " " owner }' | sort -u
  ip route show 2>/dev/null |
    awk '$1 ~ /^(blackhole|unreachable|prohibit)$/ && $2 ~ /\./ { print "dead_route\t" $1 " " $2 }'
}
