# What Secure Boot means for NVIDIA's kernel module here, as "key<TAB>value" lines.
# secure_boot MODULE. Parsed by gpuboot/hosts/secure_boot.py. POSIX sh, changes nothing; defines a function.
secure_boot() {
  on=''
  for file in /sys/firmware/efi/efivars/SecureBoot-*; do
    [ -r "$file" ] && on=$(od -An -t u1 -j 4 -N 1 "$file" | tr -d ' ')
  done
  [ "$on" = 1 ] || return 0
  printf 'secure_boot\t1\n'
  # the key by which DKMS signs the modules that it builds
  key=$(sed -n 's/^ *mok_certificate="\{0,1\}\([^"]*\)"\{0,1\} *$/\1/p' \
    /etc/dkms/framework.conf /etc/dkms/framework.conf.d/*.conf 2>/dev/null | tail -n 1)
  for file in "$key" /var/lib/shim-signed/mok/MOK.der /var/lib/dkms/mok.pub; do
    if [ -n "$file" ] && [ -r "$file" ]; then
      printf 'mok_key\t%s\n' "$file"
      if command -v mokutil >/dev/null 2>&1; then
        printf 'mok_test\t%s\n' "$(mokutil --test-key "$file" 2>&1 | head -n 1)"
      fi
      break
    fi
  done
  if command -v modinfo >/dev/null 2>&1; then
    signer=$(modinfo -F signer "$1" 2>/dev/null)
    if [ -n "$signer" ]; then
      printf 'module_signer\t%s\n' "$signer"
      # the kernel's own keys, the distribution's and those of shim's list of machine owner keys
      if grep -qsF "asymmetri $signer: " /proc/keys; then printf 'module_trusted\tyes\n'; fi
    fi
  fi
}
