# What keeps NVIDIA's kernel modules from being loaded at boot here, as "key<TAB>value" lines.
# Parsed by gpuboot/hosts/module_loading.py. POSIX sh, changes nothing; defines a function.
module_loading() {
  for name in nouveau nova_core nvidiafb nvidia; do
    [ -d "/sys/module/$name" ] && printf 'module\t%s\n' "$name"
  done
  # what holds: files that others of their name hide are left out, and the kernel's command line is in
  command -v modprobe >/dev/null 2>&1 && modprobe --showconfig 2>/dev/null | awk '
    /^# End of configuration files/ { exit }
    $1 ~ /^(blacklist|options)$/ && $2 ~ /^(nvidia|overlay$|br_netfilter$)/ || $1 ~ /^(install|alias)$/ && $2 !~ /:/ {
      print "modprobe\t" $0 }'
  # where it stands
  hidden=' '
  set -- /proc/cmdline
  for file in /etc/modprobe.d/*.conf /run/modprobe.d/*.conf /usr/local/lib/modprobe.d/*.conf \
    /usr/lib/modprobe.d/*.conf /lib/modprobe.d/*.conf; do
    case $hidden in *" ${file##*/} "*) continue ;; esac
    hidden="$hidden${file##*/} "
    [ -r "$file" ] && set -- "$@" "$file"
  done
  [ -r /etc/initramfs-tools/modules ] && set -- "$@" /etc/initramfs-tools/modules
  awk '
    FILENAME ~ /\/proc\/cmdline$/ {
      for (i = 1; i <= NF; i++)
        if ($i ~ /^(module_blacklist|modprobe\.blacklist)=/ || $i ~ /^nvidia\./) print "boot_option\t" $i
      next
    }
    FILENAME ~ /initramfs-tools/ {
      if ($1 ~ /^(nouveau|nova_core|nova-core|nvidiafb)$/)
        print "initramfs_module\t" FILENAME ":" FNR ":" $1
      next
    }
    /nvidia|overlay|br[_-]netfilter/ || $1 ~ /^(install|alias)$/ { print "modprobe_file\t" FILENAME ":" FNR ":" $0 }' "$@"
}
