# What files of this host do at its next boot to settings of ours, as "key<TAB>value" lines. A line
# of a file is "FILE<TAB>NUMBER<TAB>TEXT". boot. Parsed by gpuboot/hosts/boot.py. POSIX sh, changes
# nothing; defines functions.

# KEY PATTERN FILE...: lines that match; one that goes on in the next is one line
boot_lines() {
  key=$1 pattern=$2
  shift 2
  for file; do
    shift
    [ -f "$file" ] && [ -r "$file" ] && set -- "$@" "$file"
  done
  [ $# -eq 0 ] || awk -v key="$key" -v pattern="$pattern" '
    FNR == 1 { line = "" }
    line == "" { start = FNR }
    { line = line $0 }
    /\\$/ { sub(/\\$/, " ", line); next }
    line ~ pattern && line !~ /^[ \t]*[#;]/ { print key "\t" FILENAME "\t" start "\t" line }
    { line = "" }' "$@"
}

# The template of which cloud-init writes /etc/hosts at each boot. The first of these files that has
# manage_etc_hosts decides (cloudinit/helpers.py, ConfigMerger: data of the instance before files)
boot_hosts_template() {
  command -v cloud-init >/dev/null 2>&1 && [ ! -e /etc/cloud/cloud-init.disabled ] || return 0
  data=/var/lib/cloud/instance value=''
  for file in $data/cloud-config.txt $data/vendor2-cloud-config.txt $data/vendor-cloud-config.txt \
    /run/cloud-init/cloud.cfg $(ls -r /etc/cloud/cloud.cfg.d/*.cfg 2>/dev/null) /etc/cloud/cloud.cfg
  do
    [ -r "$file" ] || continue
    value=$(sed -nE "/^ *#/d
      s/(^|.*[{,] *)[\"']?manage_etc_hosts[\"']? *: *[\"']?([A-Za-z0-9]+).*/\\2/p" "$file" |
      tail -n 1 | tr '[:upper:]' '[:lower:]')
    [ -n "$value" ] && break
  done
  case $value in
    true | yes | on | 1 | template)
      family=redhat
      [ -e /etc/debian_version ] && family=debian
      [ -e /etc/cloud/templates/hosts.$family.tmpl ] &&
        printf 'hosts_template\t%s\n' /etc/cloud/templates/hosts.$family.tmpl ;;
  esac
}

# Settings of the kernel, in the order in which they are set at boot: systemd-sysctl, then ufw
boot_sysctls() {
  names='ip_forward|forwarding|bridge-nf-call-ip|inotify.max_user_'
  command -v systemd-analyze >/dev/null 2>&1 &&
    systemd-analyze --no-pager cat-config sysctl.d 2>/dev/null | awk -v names="$names" '
      /^# \/.*\.conf$/ { file = substr($0, 3); number = 0; next }
      { number++ }
      $0 ~ names && $0 !~ /^[ \t]*[#;]/ { print "sysctl_line\t" file "\t" number "\t" $0 }'
  if grep -qsE '^ENABLED="?yes' /etc/ufw/ufw.conf; then
    boot_lines sysctl_line "$names" \
      "$(sed -nE 's/^IPT_SYSCTL="?([^"]*)"?$/\1/p' /etc/default/ufw 2>/dev/null)"
  fi
}

# Commands that turn swap on at boot, which no unit of systemd for swap stands for
boot_swap() {
  pattern='(^|[ \t/;&|=])swapon([ \t;&|]|$)'
  for file in /etc/rc.local /etc/rc.d/rc.local; do
    [ -x "$file" ] && [ ! -L "$file" ] && boot_lines swap_line "$pattern" "$file"
  done
  boot_lines swap_line "$pattern" /etc/crontab /etc/cron.d/* /var/spool/cron/crontabs/root \
    /var/spool/cron/root /var/lib/cloud/scripts/per-boot/*
  for file in /etc/systemd/system/*.service; do
    for link in /etc/systemd/system/*.wants/"${file##*/}"; do
      [ -e "$link" ] || continue
      boot_lines swap_line "^Exec.*$pattern" "$file"
      break
    done
  done
  if grep -qs '^ResourceDisk.Format=y' /etc/waagent.conf; then
    boot_lines swap_line '^ResourceDisk.EnableSwap=y' /etc/waagent.conf
  fi
}

# What restarts the machine when it has installed updates
boot_reboots() {
  if [ -e /usr/bin/unattended-upgrade ] && command -v apt-config >/dev/null 2>&1; then
    apt-config dump 2>/dev/null | awk -F '"' '
      /^Unattended-Upgrade::Automatic-Reboot "/ { reboot = tolower($2) }
      /^APT::Periodic::Unattended-Upgrade "/ { on = $2 }
      END { if (on != "" && on != "0" && reboot ~ /^(true|yes|on|with|enable|1)$/)
        print "reboots_by\tunattended-upgrades" }'
  fi
  if grep -qsE '^reboot *= *when-' /etc/dnf/automatic.conf &&
    systemctl -q is-enabled dnf-automatic.timer 2>/dev/null; then
    printf 'reboots_by\tdnf-automatic\n'
  fi
}

# UNIT: drop-ins of a service, less the one of the kubelet's package
boot_drop_ins() {
  for file in /usr/lib/systemd/system/"$1".service.d/*.conf \
    /usr/local/lib/systemd/system/"$1".service.d/*.conf \
    /run/systemd/system/"$1".service.d/*.conf /etc/systemd/system/"$1".service.d/*.conf; do
    case $file in /usr/lib/*/10-kubeadm.conf) ;; *) printf '%s\n' "$file" ;; esac
  done
}

# What drop-ins of others set for containerd, each with its table before it
boot_containerd() {
  for file in /etc/containerd/conf.d/*.toml; do
    case $file in */99-nvidia.toml | */gpuboot-registries.toml) continue ;; esac
    [ -r "$file" ] && awk -v quote="'" '
      /^[ \t]*\[/ { table = $0; gsub("[][\"" quote " \t]|#.*", "", table); table = table "."; next }
      /^[ \t]*[A-Za-z_]+[ \t]*=/ { gsub(/^[ \t]+|[ \t]+#.*/, "")
        print "containerd_setting\t" FILENAME "\t" FNR "\t" table $0 }
      ' "$file"
  done
}

boot() {
  boot_hosts_template
  [ -e /etc/hosts ] && [ ! -w /etc/hosts ] && printf 'hosts_readonly\t1\n'
  # a comment that says who writes the file
  grep -m 1 -isE '^ *#.*((managed|maintained|generated) (automatically )?by|puppet|ansible)' \
    /etc/hosts | sed 's/^/hosts_owner\t/'
  boot_sysctls
  boot_swap
  # shellcheck disable=SC2046  # no name of such a file has blanks
  boot_lines kubelet_line '(--[a-z]|^ExecStart=)' /etc/default/kubelet /etc/sysconfig/kubelet \
    /etc/systemd/system/kubelet.service $(boot_drop_ins kubelet)
  # shellcheck disable=SC2046
  boot_lines containerd_line '^ExecStart=.' /etc/systemd/system/containerd.service \
    $(boot_drop_ins containerd)
  boot_containerd
  # a control plane's are compared with what kubeadm writes
  for file in /etc/kubernetes/manifests/*; do
    [ -f "$file" ] && [ ! -e /etc/kubernetes/manifests/kube-apiserver.yaml ] &&
      printf 'static_pod\t%s\n' "${file##*/}"
  done
  for file in /etc/resolv.conf /run/systemd/resolve/resolv.conf \
    /run/NetworkManager/no-stub-resolv.conf /run/dnsmasq/resolv.conf; do
    [ -r "$file" ] && printf 'resolver\t%s %s\n' "$file" \
      "$(awk '$1 == "nameserver" { printf "%s ", $2 }' "$file")"
  done
  # the file that a kubelet which has joined takes name servers from
  file=$(sed -n 's/^resolvConf: *"\{0,1\}\([^" ]*\)"\{0,1\} *$/\1/p' \
    /var/lib/kubelet/config.yaml 2>/dev/null)
  [ -n "$file" ] && [ ! -e "$file" ] && printf 'resolver_missing\t%s\n' "$file"
  for unit in NetworkManager systemd-resolved; do
    systemctl -q is-active $unit 2>/dev/null && printf 'boot_unit\t%s\n' $unit
  done
  boot_reboots
}
