# Whose driver, toolkit and apt settings this machine came with, as "vendor_stack<TAB>name" lines.
# Parsed by gpuboot/hosts/node_state.py. POSIX sh, changes nothing; defines a function.
vendor_stack() {
  if [ -r /etc/dgx-release ]; then # each update over the air adds its own version; the serial number stays there
    awk -F = '{ gsub(/"/, "", $2) } $1 == "DGX_PRETTY_NAME" { name = $2 }
      $1 == "DGX_SWBUILD_VERSION" || $1 == "DGX_OTA_VERSION" { version = $2 }
      END { print "vendor_stack\tDGX OS " version " (" name ")" }' /etc/dgx-release
  fi
  # shellcheck disable=SC2016
  if command -v dpkg-query >/dev/null 2>&1; then
    dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' lambda-stack-cuda lambda-stack \
      2>/dev/null | sed -n 's/^installed \([^ ]*\) \(.*\)/vendor_stack\tLambda Stack (\1 \2)/p'
  fi
}
