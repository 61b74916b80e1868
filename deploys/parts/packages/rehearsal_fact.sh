# Rehearses an installation by apt in a private copy of the host's sources, as "key<TAB>value" lines.
# Parsed by gpuboot/hosts/package_rehearsal.py. POSIX sh; changes nothing but the copy, which it removes.
# rehearsal_fact.py defines before it: lay_pins (apt_pins.sh), prepare, put_keys, put_planned, simulate,
# put_credentials, remove_copy, copy, options, pins.
# shellcheck disable=SC2154
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
told() { # what apt complains about, as one line: errors, then warnings
  awk '/^[EW]: / { kind = substr($0, 1, 1); text = substr($0, 4)
      if (!seen[text]++) said[kind] = said[kind] (said[kind] == "" ? "" : "; ") text }
    END { print said["E"] (said["E"] != "" && said["W"] != "" ? "; " : "") said["W"] }' "$1"
}
give_up() {
  put error "$1"
  put end ok
  exit 0
}
trap remove_copy EXIT

# --- the sources that this run brings, and their indices; of all others the host's own are good enough
prepare || give_up 'its copy of the package sources cannot be written below /run'
mkdir -p "$copy/planned"
put_planned
put_credentials
# shellcheck disable=SC2086
read_index() { apt-get $options update -q "$@" >"$copy/said" 2>&1; }
read_planned() {
  read_index -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$copy/planned" \
    -o APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any
}
# shellcheck disable=SC2086
key() { # key FILE COPY URL: the host's own, else the publisher's; nothing is installed with it
  if [ -s "$1" ]; then cat "$1" >"$2"
  else
    /usr/lib/apt/apt-helper $options download-file "$3" "$2" >"$copy/said" 2>&1 ||
      give_up "the key $3 cannot be read: $(told "$copy/said")"
  fi
  chmod 0644 "$2"
}
put_keys
if [ -n "$(ls "$copy/planned")" ]; then
  read_planned || give_up "$(told "$copy/said")"
fi

# --- what pins the driver's packages is installed before them
# shellcheck disable=SC2086
lay_pins "$copy" $pins >"$copy/said" 2>&1 || unpinned=$(told "$copy/said")
printf 'Dir::Etc::preferencesparts "%s/preferences";\n' "$copy" >>"$copy/apt.conf"

# --- the transaction; where it cannot be, once more with all indices read again
simulate >"$copy/transaction" 2>"$copy/why" || {
  read_index
  simulate >"$copy/transaction" 2>"$copy/why" || {
    # an index that cannot be read may be what it lacks
    said=$(told "$copy/said")
    [ -z "$said" ] || give_up "$(told "$copy/why"); not all indices could be read: $said"
    put refused yes
    give_up "$(told "$copy/why")$(sed -n '/unmet dependencies:$/,$ s/^  */; /p' "$copy/transaction" |
      tr -d '\n')"
  }
}
[ -z "${unpinned:-}" ] || give_up "$unpinned"
sed 's/^/apt\t/' "$copy/transaction"

# --- what is to go: by whose hand it came, of which source it is, and what runs of it
sed -nE 's/^(Remv|Purg) ([^ ]*) .*/\2/p' "$copy/transaction" >"$copy/removed"
if [ -s "$copy/removed" ]; then
  # shellcheck disable=SC2046,SC2086
  apt-mark $options showmanual $(cat "$copy/removed") 2>/dev/null | sed 's/^/manual\t/'
  while IFS= read -r name; do
    dpkg-query -W -f "source\t$name "'${source:Package}\n' "$name" 2>/dev/null
    # dpkg may know a file by its way through /lib, which is a link to /usr/lib
    dpkg-query -L "$name" 2>/dev/null | sed "s,^/usr/,/,; s,^,$name /usr,"
  done <"$copy/removed" | awk -v files="$copy/files" '/^source/ { print; next } { print > files }'
  touch "$copy/files"
  grep -F " /usr/boot/vmlinuz-$(uname -r)" "$copy/files" | while read -r name _; do
    put use "$name the running kernel"
  done
  sed -nE 's,^([^ ]*) /usr/lib/systemd/system/([^/]*\.(service|socket|timer))$,\1 \2,p' "$copy/files" |
    while read -r name unit; do
      case $unit in *@.*) unit="${unit%@*}@*.${unit##*.}" ;; esac
      systemctl list-units --plain --no-legend --state=active "$unit" 2>/dev/null |
        awk -v name="$name" '{ print "use\t" name " " $1 }'
    done
  # programs and libraries that services have open; a container's files are not the host's
  for folder in /proc/[0-9]*; do
    service=$(sed -n 's,.*/\([^/]*\.service\)$,\1,p' "$folder/cgroup" 2>/dev/null | head -n 1)
    [ -n "$service" ] && awk -v service="$service" '
      NR == FNR { file[substr($0, length($1) + 2)] = $1; next }
      $6 ~ "^/" { path = $6; if (path !~ "^/usr/") path = "/usr" path
        if (path in file && !told[file[path]]++) print "use\t" file[path] " " service }
      ' "$copy/files" "$folder/maps" 2>/dev/null
  done | sort -u
fi
put end ok
