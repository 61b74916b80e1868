#!/bin/sh
# One package repository of a host: its file, its key, and entries of others for the same server, as
# apt itself resolves them. POSIX sh, changes nothing; printed as "key<TAB>value" lines, which
# gpuboot/hosts/repository_state.py parses.
#
# Input as variables: path and key (its files on the host), digest (not empty: gpg need not read the
# key), text (of its file, as it is to be; empty where nobody else's entries matter), server (part
# of its address), key_url, ca (file, or empty); and the function of repository_keys.sh.
# shellcheck disable=SC2154
export LC_ALL=C
# shellcheck disable=SC2174
mkdir -p -m 0755 /run/gpuboot || exit 1
work=$(mktemp -d /run/gpuboot/repository.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT

# entries FILE TARGET : splits a file of sources into its entries, each in a file of its own,
# TARGET.<number>, and prints "number first-line last-line uri suite": a stanza with several URIs or
# suites is one for each pair, which are counted from 1; a line is 1 1
entries() {
  awk -v "target=$2" -v "stanzas=${1##*.}" '
    function stanza(   i, u, s, name, value, uris, suites, file) {
      if (!lines) return
      for (i = 1; i <= lines; i++) {
        if (line[i] ~ /^#/) continue
        value = line[i]
        if (value ~ /^[^ \t]/) {
          name = tolower(value); sub(/:.*/, "", name); sub(/^[^:]*:/, "", value)
        }
        field[i] = name
        if (name == "uris") uris = uris " " value
        if (name == "suites") suites = suites " " value
      }
      uris = split(uris, uri, " "); suites = split(suites, suite, " ")
      for (u = 1; u <= uris; u++) for (s = 1; s <= suites; s++) {
        file = target "." ++count
        for (i = 1; i <= lines; i++)
          if (line[i] !~ /^#/ && field[i] != "uris" && field[i] != "suites") print line[i] > file
        print "URIs: " uri[u] "\nSuites: " suite[s] > file
        close(file)
        print count, NR - lines, NR - 1, u, s
      }
      lines = 0
    }
    stanzas != "sources" {
      if ($0 ~ /^[ \t]*deb/) {
        print > (target "." ++count); close(target "." count); print count, NR, NR, 1, 1
      }
      next
    }
    /^[ \t\r]*$/ { stanza(); next }
    { line[++lines] = $0 }
    END { NR++; if (stanzas == "sources") stanza() }' "$1"
}

# resolved FILE KEY MORE : what apt reads for a file of sources: the folder of each index of it
resolved() {
  # shellcheck disable=SC2016
  apt-get indextargets -o Dir::Etc::sourcelist="$1" -o Dir::Etc::sourceparts=- \
    -o APT::Get::IndexTargets::ReleaseInfo=false --format '$(BASE_URI)' 2>/dev/null |
    sed 's#://[^/@]*@#://***@#' | sort -u | while IFS= read -r base; do printf '%s\t%s%s\n' "$2" "$3" "$base"; done
}

# foreign FILE : entries of another file that name the server
foreign() {
  grep -qiF -e "$server" -- "$1" || return 0
  kind=list; case $1 in *.sources) kind=sources ;; esac
  rm -f "$work"/part.*
  entries "$1" "$work/part" | while read -r number first last uri suite; do
    sed -n "$first,${last}p" "$1" | grep -qiF -e "$server" || continue
    mv "$work/part.$number" "$work/entry.$kind"
    resolved "$work/entry.$kind" entry "$1	$first	$last	$uri	$suite	"
    [ "$uri $suite" = "1 1" ] || continue
    # the text without names and passwords in addresses
    awk -v "file=$1" -v "first=$first" -v "last=$last" 'NR >= first && NR <= last {
      gsub("://[^/@ ]*@", "://***@"); print "line\t" file "\t" first "\t" $0 }' "$1"
  done
}

if [ -e "$path" ]; then sed 's/^/text\t/' "$path"; fi
if [ -e "$key" ]; then
  sha256sum "$key" | sed 's/ .*//; s/^/sha256\t/'
  now=$(date +%s)
  printf 'now\t%s\n' "$now"
  if [ -z "$digest" ]; then
    repository_keys "$key" key | tee "$work/own"
    # near its end: what the publisher offers now, which may last longer
    if awk -v "now=$now" '$3 && $3 - now < 30 * 86400 { near = 1 } END { exit !near }' \
      "$work/own"; then
      if [ -r /etc/gpuboot/proxy.env ]; then
        set -a
        # shellcheck disable=SC1091
        . /etc/gpuboot/proxy.env
        set +a
      fi
      curl -fsSL --connect-timeout 5 --max-time 20 ${ca:+--cacert "$ca"} -o "$work/offered" \
        "$key_url" 2>/dev/null && repository_keys "$work/offered" offered
    fi
  fi
fi
if [ -n "$text" ] && command -v apt-get >/dev/null; then
  eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
  for file in "$list" "$parts"*.list "$parts"*.sources; do
    case ${file##*/} in *[!A-Za-z0-9_.-]*) continue ;; esac # a name that apt does not read
    if [ -f "$file" ] && [ "$file" != "$path" ]; then foreign "$file"; fi
  done >"$work/foreign"
  if [ -s "$work/foreign" ]; then
    cat "$work/foreign"
    printf %s "$text" >"$work/own.sources"
    resolved "$work/own.sources" own ""
  fi
fi
printf 'end\tok\n'
