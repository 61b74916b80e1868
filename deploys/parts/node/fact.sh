#!/bin/sh
# Reads everything gpuboot wants to know about a host, as "key<TAB>value" lines; keys may repeat.
# POSIX sh, changes nothing, needs no Python and no lspci. Parsed by gpuboot/hosts/node_state.py.
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
first() { [ -r "$1" ] && head -n 1 "$1" | tr -d '\000'; }
has() { command -v "$1" >/dev/null 2>&1; }

put uid "$(id -u)"
# a name for each line; one program for many lines, since what this costs is the start of programs
named() { sed "s/^/$1\t/"; }
# shellcheck disable=SC2046
set -- $(uname -nrm)
kernel=$2
put hostname "$1"
put kernel "$kernel"
put arch "$3"
put machine_id "$(first /etc/machine-id)"
put boot_id "$(first /proc/sys/kernel/random/boot_id)"
if [ -r /etc/os-release ]; then
  # shellcheck disable=SC1091
  (. /etc/os-release
   put os_id "${ID:-}"; put os_version "${VERSION_ID:-}"
   put os_codename "${VERSION_CODENAME:-}"; put os_name "${PRETTY_NAME:-}")
fi

if has systemd-detect-virt; then
  container=$(systemd-detect-virt --container) && put container "$container"
fi

# --- kernel headers: of the running kernel, and beside each metapackage that brings new kernels
offered() { # what the package manager knows of a package, without a download
  if has rpm && ! has dpkg-query; then
    if rpm -q "$1" >/dev/null 2>&1; then echo installed
    elif ! found=$(dnf -q -C repoquery "$1" 2>/dev/null); then echo unknown # it has no index yet
    elif [ -n "$found" ]; then echo available
    else echo missing; fi
  elif dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; then
    echo installed
  elif ! ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; then
    echo unknown # apt has read no index yet
  elif has apt-cache && apt-cache show "$1" 2>/dev/null | grep -q '^Package:'; then echo available
  else echo missing; fi
}
if [ -e "/lib/modules/$kernel/build/Makefile" ]; then put headers installed
elif has dpkg-query; then
  case $kernel in
    *-pve) names="pve-headers-$kernel proxmox-headers-$kernel" ;; # Proxmox VE 7, and from 8 on
    *) names=linux-headers-$kernel ;;
  esac
  for name in $names; do
    offer=$(offered "$name")
    case $offer in installed | available) break ;; esac
  done
  put headers "$offer"
  put headers_package "$name"
else # 5.14.0-570.el9.aarch64+64k has kernel-64k-devel-5.14.0-570.el9.aarch64
  variant=${kernel#"${kernel%%+*}"}
  put headers "$(offered "kernel${variant:+-${variant#+}}-devel-${kernel%%+*}")"
fi
if ! has dpkg-query && has dnf; then put dkms_package "$(offered dkms)"; fi
# a metapackage depends on the kernel of the day; its name may begin with a number as well
# (linux-image-6.12-amd64 of Debian's 6.12 for bookworm)
# shellcheck disable=SC2016
has dpkg-query && dpkg-query -W -f '${db:Status-Status} ${Package} ${Depends}\n' \
  proxmox-default-kernel 'proxmox-kernel-*' 'pve-kernel-*' 'linux-image-*' 2>/dev/null |
  awk '$1 == "installed" && $2 !~ /-dbg$/ { name = $2; $1 = $2 = ""
    if (name ~ /^(proxmox-default-kernel|(proxmox|pve)-kernel-[0-9.]+)$/) {
      sub(/-kernel/, "-headers", name)
      print name
    } else if (name ~ /^linux-image-/ && $0 ~ / linux-image-(unsigned-)?[0-9]/)
      print "linux-headers-" substr(name, 13) }' |
  while IFS= read -r name; do put kernel_headers "$name $(offered "$name")"; done

# --- the kernel: can it do what we need, whether as a module or built in?
put_if_module() {
  if [ -e "/lib/modules/$kernel/modules.dep" ] &&
     grep -qE "/$1\.ko" "/lib/modules/$kernel/modules.dep" "/lib/modules/$kernel/modules.builtin"
  then put kernel_feature "$1"; fi
}
if grep -qw overlay /proc/filesystems; then put kernel_feature overlay; else put_if_module overlay; fi
if [ -d /proc/sys/net/bridge ]; then put kernel_feature br_netfilter; else put_if_module br_netfilter; fi
for name in mlx5_ib ib_umad; do
  if [ -d "/sys/module/$name" ]; then put kernel_feature "$name"; else put_if_module "$name"; fi
done
module_loading # a function of module_loading.sh
for key in net/ipv4/ip_forward net/bridge/bridge-nf-call-iptables kernel/modules_disabled; do
  [ -r /proc/sys/$key ] && printf '%s:' $key && cat /proc/sys/$key
done | sed 's,/,.,g; s,:, ,; s,^,sysctl\t,'
[ "$(first /sys/fs/selinux/enforce)" = 1 ] && put selinux enforcing
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  put cgroup 2
  put cgroup_controllers "$(first /sys/fs/cgroup/cgroup.controllers)"
else put cgroup 1; fi
secure_boot nvidia # a function of secure_boot.sh
configured_keys # a function of repository_keys.sh
boot # a function of boot.sh

# --- PCI: NVIDIA display controllers, 3D controllers and bridges (NVSwitch)
grep -lsx 0x10de /sys/bus/pci/devices/*/vendor | while IFS= read -r file; do
  device=${file%/vendor}
  driver='' function=physical
  if [ -e "$device/driver" ]; then driver=$(readlink "$device/driver"); fi
  if [ -e "$device/physfn" ]; then function=virtual; fi
  put pci "${device##*/} $(first "$device/device") $(first "$device/class") $function ${driver##*/}"
done
set -- /proc/driver/nvidia/gpus/*/information
[ -r "$1" ] && awk -F ':[ \t]*' '$1 == "GPU UUID" { n = split(FILENAME, part, "/")
  print "gpu_uuid\t" part[n - 1] " " $2 }' "$@"

# an NVSwitch of NVLink 5 has no PCI address: the board's ConnectX bridges to it say so in their VPD
if grep -qsx 0x10de /sys/bus/pci/devices/*/vendor; then
  grep -lsx 0x15b3 /sys/bus/pci/devices/*/vendor | while IFS= read -r file; do
    device=${file%/vendor}
    if timeout 10 grep -qsa SW_MNG "$device/vpd"; then put nvlink_bridge "${device##*/}"; fi
  done
fi

# --- the NVIDIA driver: loaded, on disk, and what other installers left
if [ -r /proc/driver/nvidia/version ]; then put driver "$(first /proc/driver/nvidia/version)"; fi
has modinfo && version=$(modinfo -F version nvidia 2>/dev/null) && put driver_module "$version"
set -- /proc/driver/nvidia/capabilities/gpu*/mig/gi*
if [ -e "$1" ]; then put mig_instances $#; fi
for path in /usr/bin/nvidia-uninstall /usr/bin/nvidia-installer; do
  [ -e "$path" ] && put remnant "$path"
done
dkms_state # a function of dkms.sh
vendor_stack # a function of vendor_stack.sh
# shellcheck disable=SC2016
[ -e /usr/bin/nv-fabricmanager ] && has dpkg-query &&
  dpkg-query -W -f '${db:Status-Status} ${Package} ${Conflicts}\n' 'nvidia-fabricmanager*' 2>/dev/null |
  sed -n 's/^installed /fabric_manager\t/p'

# --- packages that matter here, holds, and who is busy with the package manager
has rpm && ! has dpkg-query && rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\n' 2>/dev/null |
  awk '$1 ~ /nvidia|^cuda|^libcuda|containerd|^docker|^kube|^cri-|^runc$|^podman-docker$|^kernel-.*devel|^chrony$|^datacenter-gpu-manager/ {
    print "package\t" $0 }'
locks=/etc/dnf/plugins/versionlock.list
[ -r "$locks" ] && sed -nE 's/^([^#!].*)-[^-]+-[^-]+$/\1/p' "$locks" | sort -u |
  named hold
has dpkg-query && dpkg-query -W -f '${db:Status-Want} ${db:Status-Status} ${Package} ${Version}\n' \
  2>/dev/null | awk '$1 == "hold" { print "hold\t" $3 } { sub(/^[^ ]* /, "") }
    $1 ~ /^(half-.*|unpacked)$/ && $2 ~ /nvidia/ { print "unfinished\t" $2 }
    $1 != "not-installed" && $1 != "config-files" &&
    $2 ~ /nvidia|^cuda|^libcuda|containerd|^docker|^kube|^cri-|^runc$|^linux-(headers|image)|^(chrony|ntp|ntpsec|systemd-timesyncd|unattended-upgrades)$|^datacenter-gpu-manager/ {
      print "package\t" $2 " " $3 }'
# dpkg works on nothing while this file names somebody who is gone; "#0" is a number
has getent && [ -r /var/lib/dpkg/statoverride ] && while read -r user group _ path; do
  case $user in '' | '#'*) ;; *) getent passwd "$user" >/dev/null || put statoverride "user $user $path" ;; esac
  case $group in '' | '#'*) ;; *) getent group "$group" >/dev/null || put statoverride "group $group $path" ;; esac
done </var/lib/dpkg/statoverride
stat -c '%i' /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock 2>/dev/null |
  awk 'NR == FNR { watched[$1]; next }
    $2 != "->" { n = split($6, id, ":"); if (id[n] in watched) print $5 }' - /proc/locks |
  while IFS= read -r pid; do
    [ "$pid" -gt 0 ] 2>/dev/null && put package_lock "$(first "/proc/$pid/comm") (pid $pid)"
  done
for lock in /var/cache/dnf/*_lock.pid /var/lib/dnf/*_lock.pid; do # they hold the process's id
  [ -e "$lock" ] || continue
  pid=$(first "$lock")
  [ -n "$pid" ] && [ -d "/proc/$pid" ] && put package_lock "$(first "/proc/$pid/comm") (pid $pid)"
done
[ -r /etc/dnf/dnf.conf ] && grep -q '^proxy *=' /etc/dnf/dnf.conf && put dnf_proxy 1
if has cloud-init; then
  put cloud_init "$(cloud-init status 2>/dev/null | sed -n 's/^status: *//p' | head -n 1)"
fi

# --- size and time
awk '$1 == "MemTotal:" { print "memory_kib\t" $2 }' /proc/meminfo
put cpus "$(getconf _NPROCESSORS_ONLN)"
folders /var /usr /var/lib/dpkg /var/lib/containerd /var/lib/docker /var/lib/kubelet /var/lib/etcd \
  /opt/cni/bin /boot # a function of folders.sh
du -k /boot/initrd.img-* /boot/initramfs-*.img 2>/dev/null | sort -n | tail -n 1 |
  sed 's/^\([0-9]*\).*/initrd_kib\t\1/'
awk 'NR > 1 { print "swap\t" $1 }' /proc/swaps
has timedatectl && put ntp "$(timedatectl show -p NTPSynchronized --value 2>/dev/null)"

# --- network
has ip && ip -o addr show scope global 2>/dev/null | awk '{ print "address\t" $2 " " $4 }'
has ip && put default_source \
  "$(ip -o route get 192.0.2.1 2>/dev/null | sed -n 's/.* src \([^ ]*\).*/\1/p')"
networks # a function of networks.sh
if has ss; then
  ss -Hltnp 2>/dev/null | awk '{ n = split($4, at, ":"); owner = $NF
    if (match(owner, /"[^"]*"/)) owner = substr(owner, RSTART + 1, RLENGTH - 2); else owner = "?"
    print "port\t" at[n] " " owner
    if (match($NF, /pid=[0-9]+/)) print "port_pid\t" at[n] " " substr($NF, RSTART + 4, RLENGTH - 4)
  }' | sort -u | port_units # a function of remains.sh
else
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk '$4 == "0A" { n = split($2, at, ":"); print "hexport\t" at[n] }' | sort -u
fi

packet_filter # a function of packet_filter.sh
proxies # a function of proxies.sh
software # a function of software.sh

# --- other owners of this machine, and units that matter
has systemctl && systemctl show -p Id -p ActiveState -p UnitFileState \
  k3s k3s-agent rke2-server rke2-agent k0scontroller k0sworker crio docker \
  containerd kubelet nvidia-persistenced nvidia-fabricmanager nvidia-mig-manager nvidia-cdi-refresh \
  chrony chronyd ntp ntpd ntpsec ntpd-rs openntpd systemd-timesyncd timemaster phc2sys 'phc2sys@*' \
  unattended-upgrades firewalld 2>/dev/null |
  awk -F = '$1 == "Id" { id = $2 } $1 == "ActiveState" { active = $2 }
    $1 == "UnitFileState" { file = $2 }
    /^$/ { if (id != "") report(); id = "" } END { if (id != "") report() }
    function report() { sub(/\.service$/, "", id)
      if (active == "active" || file != "") print "unit\t" id " " active " " file }'
remains # a function of remains.sh
[ -d /var/snap/microk8s ] && put foreign microk8s
for file in /etc/kubernetes/admin.conf /etc/kubernetes/kubelet.conf; do
  [ -r "$file" ] && put kubeconfig "$file $(sed -n 's/^ *server: *//p' "$file" | head -n 1)"
done
for step in init join; do # of kubeadm, which began and did not end
  [ -e "/etc/gpuboot/kubeadm-$step.started" ] && put half_made "$step"
done
# only the leader of a run writes it
[ -e /etc/gpuboot/kubeadm.yaml ] && put led_at "$(stat -c %Y /etc/gpuboot/kubeadm.yaml)"
# haproxy: ours, or a site's own, which is not the one of its package
balancer=/etc/haproxy/haproxy.cfg
if [ -e $balancer ]; then
  if grep -q '^listen gpuboot-api$' $balancer; then put load_balancer ours
  elif { if has dpkg; then dpkg --verify haproxy; else rpm -V haproxy; fi; } 2>/dev/null |
    grep -q "$balancer\$"; then put load_balancer foreign; fi
fi
# keepalived: the same; what a package brings is a sample
keepalived=/etc/keepalived/keepalived.conf
if [ -s $keepalived ]; then
  if grep -q '^# Written by gpuboot' $keepalived; then
    put keepalived ours
    put virtual_address "$(awk '/^ *virtual_ipaddress/ { getline; print $1; exit }' $keepalived)"
  elif ! rpm -qf $keepalived >/dev/null 2>&1 || rpm -V keepalived | grep -q "$keepalived\$"; then
    put keepalived foreign
  fi
fi
[ -r /etc/kubernetes/pki/ca.crt ] &&
  put cluster_ca "$(sha256sum /etc/kubernetes/pki/ca.crt | cut -d ' ' -f 1)"

# --- the lock of runs (deploys/run/lock.sh): who took it last, and whether that run holds it still
lock=/run/gpuboot/run.lock
if [ -s "$lock" ]; then
  # shellcheck disable=SC2046
  set -- $(stat -c '%d %i %Y' "$lock") # device numbers as /proc/locks has them: see makedev(3)
  id=$(printf '%02x:%02x:%s' $(($1 >> 8 & 4095)) $(($1 & 255 | $1 >> 12 & 1048320)) "$2")
  grep -q "FLOCK .* $id " /proc/locks && put run_lock_age $(($(date +%s) - $3))
  put run_lock "$(first "$lock")"
fi

# last, so that the clock is read close to the answer
put clock "$(date +%s.%N)"
