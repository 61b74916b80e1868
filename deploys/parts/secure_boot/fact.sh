# What Secure Boot means for NVIDIA's kernel module here, as "key<TAB>value" lines.
# secure_boot MODULE. Parsed by gpuboot/hosts/secure_boot.py. POSIX sh, changes nothing; defines a function.
dkms_setting() { # of dkms(8)'s framework.conf; the last one holds
  sed -n "s/^ *$1=[\"']\{0,1\}\([^\"']*\)[\"']\{0,1\} *\$/\1/p" \
    /etc/dkms/framework.conf /etc/dkms/framework.conf.d/*.conf 2>/dev/null | tail -n 1
}
signature_enforcer() { # what makes the kernel refuse modules without a signature that it knows
  firmware='' level='' forced='' locked=/sys/kernel/security/lockdown
  for file in /sys/firmware/efi/efivars/SecureBoot-*; do
    [ -r "$file" ] && [ "$(od -An -t u1 -j 4 -N 1 "$file" | tr -d ' ')" = 1 ] && firmware='Secure Boot'
  done
  [ -r "$locked" ] && level=$(sed -n 's/.*\[\(.*\)\].*/\1/p' "$locked")
  file=/sys/module/module/parameters/sig_enforce
  [ -r "$file" ] && [ "$(cat "$file")" = Y ] && forced=module.sig_enforce=1
  # a kernel that tells its lockdown is believed: shim's validation may be off (mokutil --disable-validation)
  case $level in
    '' | none) [ "$level$forced" = none ] || printf '%s' "${firmware:-$forced}" ;;
    *) printf '%s' "${firmware:-lockdown=$level}" ;;
  esac
}
secure_boot() {
  enforcer=$(signature_enforcer)
  [ -n "$enforcer" ] || return 0
  printf 'secure_boot\t%s\n' "$enforcer"
  # the pair by which DKMS signs the modules that it builds: prepare_mok of dkms 3. It makes another
  # pair where one of the two is missing, so that a certificate alone says nothing
  key=$(dkms_setting mok_signing_key)
  certificate=$(dkms_setting mok_certificate)
  if [ -z "$key" ] && grep -qs '^ID="\{0,1\}ubuntu' /etc/os-release; then
    key=/var/lib/shim-signed/mok/MOK.priv certificate=/var/lib/shim-signed/mok/MOK.der
  fi
  key=${key:-/var/lib/dkms/mok.key} certificate=${certificate:-/var/lib/dkms/mok.pub}
  signer='' serial=''
  if command -v modinfo >/dev/null 2>&1; then signer=$(modinfo -F signer "$1" 2>/dev/null); fi
  if [ -r "$certificate" ] && { [ -e "$key" ] || [ "${key#pkcs11:}" != "$key" ]; }; then
    printf 'mok_key\t%s\n' "$certificate"
    if command -v mokutil >/dev/null 2>&1; then
      printf 'mok_test\t%s\n' "$(mokutil --test-key "$certificate" 2>&1 | head -n 1)"
    fi
    if command -v openssl >/dev/null 2>&1; then
      serial=$(openssl x509 -inform DER -in "$certificate" -noout -serial 2>/dev/null)
      id=$(openssl x509 -inform DER -in "$certificate" -noout -ext subjectKeyIdentifier 2>/dev/null |
        sed -n '2s/[ :]//gp' | tr A-F a-f)
      # the kernel's own keys, the distribution's and those of shim's list of machine owner keys
      if [ -n "$id" ] && grep -qsF ": $id: " /proc/keys; then printf 'mok_in_kernel\tyes\n'; fi
    fi
  fi
  if [ -n "$signer" ]; then
    printf 'module_signer\t%s\n' "$signer"
    if grep -qsF "asymmetri $signer: " /proc/keys; then printf 'module_trusted\tyes\n'; fi
    # a key that was made anew has the old one's name, and another serial number
    if [ -n "$serial" ] &&
      [ "${serial#serial=}" = "$(modinfo -F sig_key "$1" 2>/dev/null | tr -d :)" ]; then
      printf 'module_by_mok_key\tyes\n'
    fi
  fi
}
