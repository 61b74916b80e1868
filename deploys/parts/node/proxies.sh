# HTTP proxies that programs find in their environment, as "key<TAB>value" lines, without passwords.
# proxies. Parsed by gpuboot/hosts/environment.py. POSIX sh, changes nothing; defines functions.
proxies() {
  env | proxies_in commands
  for file in /etc/environment /etc/default/kubelet /etc/sysconfig/kubelet; do
    [ -r "$file" ] && sed 's/^ *export  *//' "$file" | proxies_in "$file"
  done
  command -v systemctl >/dev/null 2>&1 || return 0
  systemctl show-environment 2>/dev/null | proxies_in systemd # DefaultEnvironment is in it
  for unit in kubelet containerd; do # KEY=value "KEY=value with a blank"
    systemctl show -p Environment --value "$unit" 2>/dev/null | tr ' ' '\n' | proxies_in "$unit"
  done
}
proxies_in() { # lines of NAME=value; those without a value mean none
  sed -n 's/^["$'\'']*\([A-Za-z_]*_[Pp][Rr][Oo][Xx][Yy]\)=/\1 /p' |
    sed 's/["'\'']//g; s/^\([^ ]* \)\$/\1/; s,//.*@,//,; s/[[:space:]]*$//' |
    awk -v where="$1" 'NF > 1 { print "proxy_variable\t" where " " $0 }'
}
