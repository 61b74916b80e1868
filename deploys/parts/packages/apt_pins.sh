# lay_pins FOLDER [PACKAGE...]: apt's preferences in FOLDER/preferences, with those of packages that
# pin the driver's version in place of earlier ones, as if they were installed. $options are
# apt-get's. POSIX sh; changes nothing but FOLDER; defines a function.
lay_pins() {
  laid=$1
  shift
  mkdir -p "$laid/preferences" "$laid/pins" || return
  eval "$(apt-config shell preferences Dir::Etc::preferencesparts/d)"
  for file in "${preferences:?}"*; do
    if [ -f "$file" ]; then cp "$file" "$laid/preferences/" || return; fi
  done
  for pin; do
    # shellcheck disable=SC2016
    dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'nvidia-driver-pinning-*' 2>/dev/null |
      while read -r status name; do
        if [ "$status" = installed ]; then dpkg-query -L "$name"; fi
      done | while IFS= read -r file; do
        case $file in "$preferences"*) rm -f "$laid/preferences/${file##*/}" ;; esac
      done
    # shellcheck disable=SC2086,SC2154
    (cd "$laid/pins" && apt-get $options -o APT::Sandbox::User=root download -q "$pin") || return
    for file in "$laid/pins/$pin"_*.deb; do
      dpkg-deb -x "$file" "$laid/pins/files" || return
    done
  done
  find "$laid/pins" -path '*/preferences.d/*' -type f -exec cp {} "$laid/preferences/" \;
}
