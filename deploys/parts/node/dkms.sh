# What DKMS has of NVIDIA's modules here, and why it built none, as "key<TAB>value" lines.
# Parsed by gpuboot/hosts/node_state.py. POSIX sh, changes nothing; defines a function.
dkms_state() {
  command -v dkms >/dev/null 2>&1 || return 0
  dkms status 2>/dev/null | grep -i '^nvidia' | sed 's/^/dkms\t/'
  # what DKMS has built leaves no log here; it moves away with the module
  for file in /var/lib/dkms/nvidia*/*/build/make.log; do
    [ -r "$file" ] || continue
    printf 'dkms_log\t%s\n' "$file"
    errors=$(grep -aE 'error:|ERROR:|fatal:|No such file|not found' "$file" | tail -n 2)
    [ -n "$errors" ] || errors=$(grep -av '^ *$' "$file" | tail -n 2)
    printf '%s\n' "$errors" | cut -c 1-200 | sed 's/^ */dkms_error\t/'
  done
}
