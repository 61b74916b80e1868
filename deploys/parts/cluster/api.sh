# Asks a cluster's API server, on its leader, with the administrator's rights. POSIX sh, changes nothing.
# curl has all its answers over one connection before kubectl has started.
# $GPUBOOT_SILENCE, where it is set: a file that says why the API server did not answer another fact.
# Variables: KUBECONFIG (with the certificates inside, as kubeadm writes it), as (more about the form
# of the answers).
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
refuse() { put error "$(printf '%s' "$1" | tr '\n\t' '  ' | cut -c 1-300)"; put end ok; exit 0; }
[ -r "$KUBECONFIG" ] || refuse "there is no cluster yet"
command -v curl >/dev/null 2>&1 || refuse "curl is not installed"
silence=${GPUBOOT_SILENCE:-/dev/null}
[ ! -s "$silence" ] || refuse "$(cat "$silence")"
# in memory where there is such a place: it holds the administrator's key
work=$(mktemp -d -p /run gpuboot.XXXXXX 2>/dev/null || mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
of() { sed -n "s/^ *$1: *//p" "$KUBECONFIG" | head -n 1; }
for part in certificate-authority client-certificate client-key; do
  of "$part-data" | base64 -d >"$work/$part"
done
server=$(of server)
# ask FILE PATH...: FILE has each answer, and after it a line of its HTTP status and a mark
mark=$(printf '\036')
# shellcheck disable=SC2154  # the fact sets it
ask() {
  file=$1; shift
  for path; do printf 'url = "%s%s"\n' "$server" "$path"; done >"$work/urls"
  curl -q -sSg --noproxy '*' --connect-timeout 5 --max-time 20 --fail-early \
    --cacert "$work/certificate-authority" --cert "$work/client-certificate" \
    --key "$work/client-key" -H "Accept: application/json$as" -w "\n%{http_code} $mark\n" \
    -K "$work/urls" >"$file" 2>"$work/said" || {
    cat "$work/said" >"$silence"; refuse "$(cat "$work/said")"
  }
}
