#!/bin/sh
# What tells why a host or its pods do not work, beside what other facts read:
# "key<TAB>value" lines; keys may repeat. POSIX sh, changes nothing. Parsed by
# gpuboot/diagnose/details.py.
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }
named() { sed "s/^/$1\t/"; }
in_file() { [ -r "$2" ] && sed -nE "s/^ *$1: *\"?([^\" ]*)\"? *\$/\\1/p" "$2" | head -n 1; }

# --- units: how they are, and how they ended
has systemctl && systemctl show -p Id -p LoadState -p ActiveState -p SubState -p Result \
  -p ExecMainStatus kubelet containerd docker nvidia-fabricmanager nvidia-persistenced \
  chrony chronyd ntpsec systemd-timesyncd haproxy keepalived 2>/dev/null |
  awk -F = '{ value[$1] = $2 } /^$/ { tell() } END { tell() }
    function tell() { sub(/\.service$/, "", value["Id"])
      if (value["LoadState"] == "loaded" || value["LoadState"] == "masked")
        print "state\t" value["Id"] " " value["ActiveState"] " " value["SubState"] " " \
          value["Result"] " " value["ExecMainStatus"] " " value["LoadState"]
      split("", value) }'

# --- what they said last: of this boot, of the last hour, and only what complains
has journalctl && for unit in kubelet containerd nvidia-fabricmanager; do
  journalctl -q -u $unit -b --since=-1h -n 400 --no-pager -o short-iso 2>/dev/null |
    grep -aE ': [EF][0-9]{4} |level=(error|fatal)|rror|[Ff]ail|fatal|mismatch|higher than' |
    grep -avE 'level=(info|debug)' | tail -n 25 | cut -c 1-600 | sed "s/^/log\t$unit /"
done
dmesg 2>/dev/null | grep -aE "NVRM|nouveau|nvidia|signature|unsigned module|[Kk]ey (is|was) rejected|\
unavailable key|martian|Remounting filesystem|I/O error|[Oo]ut of memory: " |
  tail -n 60 | cut -c 1-300 | named kernel
put uptime "$(cut -d . -f 1 /proc/uptime)"
put now "$(date +%s)"

# --- the driver's module: who signed it, and whose keys the firmware trusts
if has modinfo; then
  put module_file "$(modinfo -n nvidia 2>/dev/null)"
  put module_signer "$(modinfo -F signer nvidia 2>/dev/null | head -n 1)"
fi
if has mokutil; then
  mokutil --sb-state 2>&1 | head -n 1 | named secure_boot
  mokutil --list-enrolled 2>/dev/null | sed -n 's/^ *Subject:.*CN *= *//p' | named mok
  mokutil --list-new 2>/dev/null | sed -n 's/^ *Subject:.*CN *= *//p' | named mok_waiting
fi
for folder in /lib/modules/*/; do
  folder=${folder%/}
  [ -e "$folder/modules.dep" ] && put kernel_installed "${folder##*/}"
done
put char_links "$(find /dev/char -lname '*nvidia*' 2>/dev/null | wc -l)"

# --- kubelet and containerd: do they agree, can containerd start?
kubelet=/var/lib/kubelet/config.yaml
put kubelet_cgroup "$(in_file cgroupDriver $kubelet)"
for file in /etc/containerd/config.toml /etc/containerd/conf.d/*.toml; do
  [ -r "$file" ] && put toml "$file $(sed -n 's/^version *= *//p' "$file" | head -n 1)"
done
if has containerd; then
  if said=$(timeout -k 5 10 containerd config dump 2>&1 </dev/null); then
    printf '%s\n' "$said" | awk '/^ *\[/ { name = ""
        if (match($0, /containerd\.runtimes\.[A-Za-z0-9_-]+\]/)) {
          name = substr($0, RSTART + 20, RLENGTH - 21); print "runtime\t" name }
        if (match($0, /containerd\.runtimes\.[A-Za-z0-9_-]+\.options\]/))
          name = substr($0, RSTART + 20, RLENGTH - 29) }
      name != "" && /SystemdCgroup *=/ { print "runtime_cgroup\t" name " " $NF }'
  else
    # what follows it is a trace of the program's stack
    printf '%s\n' "$said" | grep -avE '^([[:space:]]|goroutine |github.com/|main\.|runtime\.|$)' |
      head -n 3 | cut -c 1-400 | named containerd_error
  fi
fi

# --- room: size and inodes in per cent, and what can be written
for path in / /var /var/lib/kubelet /var/lib/containerd /var/lib/etcd /var/log /tmp; do
  [ -d "$path" ] || continue
  put disk "$path $(df -Pk "$path" | awk 'NR == 2 { print $5 + 0, $4 }') $(df -Pi "$path" |
    awk 'NR == 2 { print $5 + 0 }')"
done
awk '($2 == "/" || $2 ~ "^/var(/lib/(etcd|kubelet|containerd))?$") && $4 ~ /^ro(,|$)/ { print "read_only\t" $2 }' /proc/mounts
[ -r /proc/pressure/memory ] &&
  sed -n 's/^full avg10=\([0-9.]*\).*/memory_pressure\t\1/p' /proc/pressure/memory
put threads "$(sed -n 's,^.*/\([0-9]*\) .*,\1,p' /proc/loadavg)"
put max_threads "$(cat /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max | sort -n | head -n 1)"

# --- names, addresses and ways
resolv=$(in_file resolvConf $kubelet)
resolv=${resolv:-/etc/resolv.conf}
[ -r "$resolv" ] && put resolv_file "$resolv" &&
  grep -E '^(nameserver|search|options)' "$resolv" | named resolv
if has ip; then
  ip -o link show 2>/dev/null | sed -nE 's/^[0-9]+: ([^:@]+)[^:]*:.* mtu ([0-9]+).*/mtu\t\1 \2/p' |
    grep -vE '	(veth|lo )'
  ip -o -4 route show default 2>/dev/null | named default_route
  ip -d -o link show type vxlan 2>/dev/null |
    sed -nE 's/^[0-9]+: ([^:@]+).* local ([^ ]+) dev ([^ ]+).*/vxlan\t\1 \2 \3/p'
  has bridge && bridge fdb show 2>/dev/null | sed -nE 's/.* dst ([0-9.]+) .*/\1/p' | sort -u |
    head -n 64 | while IFS= read -r peer; do
      put peer "$peer $(ip -o route get "$peer" 2>/dev/null |
        sed -nE 's/.* dev ([^ ]+).* src ([^ ]+).*/\1 \2/p')"
    done
fi
for file in /proc/sys/net/ipv4/conf/*/rp_filter; do
  device=${file%/rp_filter}
  case ${device##*/} in veth*) ;; *) put rp_filter "${device##*/} $(cat "$file")" ;; esac
done
for name in count max; do
  file=/proc/sys/net/netfilter/nf_conntrack_$name
  [ -r $file ] && put "conntrack_$name" "$(cat $file)"
done
find /etc/cni/net.d -name '*.conf*' 2>/dev/null | named cni

# --- parts of the control plane that the kubelet is told nothing of
if [ -e /etc/kubernetes/kubelet.conf ] && [ -e /etc/kubernetes/pki/ca.key ]; then
  for part in kube-apiserver etcd kube-controller-manager kube-scheduler; do
    [ -e "/etc/kubernetes/manifests/$part.yaml" ] || put no_manifest "$part"
  done
fi

# --- the API server as this host reaches it, and what it and etcd said last where it does not answer
server=$(sed -n 's/^ *server: *//p' /etc/kubernetes/kubelet.conf 2>/dev/null | head -n 1)
if [ -n "$server" ] && has curl; then
  put server "$server"
  code=$(curl -q -sSk --noproxy '*' --connect-timeout 5 --max-time 8 -o /dev/null \
    -w '%{http_code}' "$server/livez" 2>/dev/null) || code="$? $code"
  put api "$code"
  name=${server#*://} name=${name%:*}
  case "$code" in *' '*) # no answer: is its address found at all?
    address=$(timeout -k 1 6 getent ahosts "${name#[}" 2>/dev/null | sed 's/ .*//;q')
    if [ -n "$address" ]; then put server_address "$address"; else put unresolved "$name"; fi ;;
  esac
  if [ "$code" != 200 ] && [ "$code" != 401 ]; then
    for part in kube-apiserver etcd; do
      # a container that has just been started has said nothing yet
      last=$(find /var/log/pods/ -path "*kube-system_$part-*" -name '*.log' -size +0 \
        -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -n 1 | cut -d ' ' -f 2)
      [ -r "$last" ] && tail -n 600 "$last" | # without what informs, and the text of --help
        grep -avE '"level":"info"|std(out|err) [FP] (I[0-9]{4} |[[:space:]]|Usage:|$|.* flags:$)' |
        tail -n 12 | cut -c 1-600 | sed "s/^/log\t$part /"
    done
  fi
fi
# --- etcd's own port for metrics and health, as kubeadm's manifest and ours have it
[ -e /etc/kubernetes/manifests/etcd.yaml ] && has curl && put etcd "$(curl -q -sS --noproxy '*' \
  --max-time 5 http://127.0.0.1:2381/health 2>&1 | tr '\n\t' '  ' | cut -c 1-300)"
put end ok
