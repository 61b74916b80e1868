# The newest revision of Helm releases, as Helm keeps it in a Secret: "key<TAB>value" lines.
# Runs after api.sh. Parsed by gpuboot/kubernetes/helm.py.
# Arguments: the path of each release's Secrets. Their number, from 0, stands in the lines.
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
for number in $numbers; do
  printf 'release\t%s ' "$number"
  if [ -e "$work/release.$number" ]; then base64 -d <"$work/release.$number"; fi
  echo
done
put end ok
