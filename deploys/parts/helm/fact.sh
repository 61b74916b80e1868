# The newest revision of Helm releases, as Helm keeps it in a Secret: "key<TAB>value" lines.
# Runs after api.sh. Parsed by gpuboot/cluster/helm_releases.py.
# Arguments: the path of each release's Secrets. Their number, from 0, stands in the lines.
# Variable names: not empty where nothing but the objects' names may leave the host.
for path; do put asked "$path"; done
# which revisions there are, without what is in them
as=';as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
ask "$work/revisions" "$@"
awk -v mark="$mark" '
  NF == 2 && $2 == mark { print n + 0, first == "{" ? $1 : "unreadable", newest
    n++; first = newest = ""; most = 0; next }
  first == "" { first = $0 }
  /^ *"name": "sh\.helm\.release\.v1\..*\.v[0-9]+",?$/ {
    split($0, part, "\""); revision = part[4]; sub(/.*\.v/, "", revision)
    if (revision + 0 > most) { most = revision + 0; newest = part[4] } }' \
  "$work/revisions" >"$work/newest"
count=$# numbers=
for path; do
  read -r number status newest
  put status "$number $status"
  if [ -n "$newest" ]; then
    set -- "$@" "${path%%\?*}/$newest?pretty=true"
    numbers="$numbers $number"
  fi
done <"$work/newest"
shift "$count"
as=
if [ $# -gt 0 ]; then
  ask "$work/releases" "$@"
  awk -v mark="$mark" -v work="$work" -v numbers="$numbers" '
    BEGIN { split(numbers, number, " "); n = 1 }
    NF == 2 && $2 == mark { n++; next }
    /^      "gpuboot\.io\/managed": "true"/ { print "managed\t" number[n] }
    /^    "release": "/ { split($0, part, "\""); print part[4] >(work "/release." number[n]) }' \
    "$work/releases"
fi
# kind, namespace (- for none) and name of each object of a release's manifest, a text in JSON
names_of() {
  base64 -d <"$work/release.$1" | base64 -d | gzip -d | awk -v number="$1" '
    function tell() {
      if (kind != "" && name != "") print "object\t" number " " kind " " (space == "" ? "-" : space) " " name
      kind = name = space = ""; depth = 0 }
    function value(text) { gsub(/[\\"\047]/, "", text); return text }
    BEGIN { RS = "\\\\n" }
    !began {
      if (!(at = index($0, "\"manifest\":\""))) next
      began = 1; $0 = substr($0, at + 12) }
    { last = match($0, /(^|[^\\])"/); if (last) $0 = substr($0, 1, RSTART) }
    /^---/ { tell() }
    /^[^ #]/ { depth = 0; inside = ($1 == "metadata:") }
    /^kind:/ { kind = value($2) }
    inside && match($0, /^ +/) && (!depth || RLENGTH == depth) {
      depth = RLENGTH
      if ($1 == "name:") name = value($2)
      if ($1 == "namespace:") space = value($2) }
    last { tell(); exit }'
}
for number in $numbers; do
  # shellcheck disable=SC2154  # the fact sets it
  if [ -n "$names" ]; then
    put named "$number yes"
    if [ -e "$work/release.$number" ]; then names_of "$number"; fi
    continue
  fi
  printf 'release\t%s ' "$number"
  if [ -e "$work/release.$number" ]; then base64 -d <"$work/release.$number"; fi
  echo
done
put end ok
