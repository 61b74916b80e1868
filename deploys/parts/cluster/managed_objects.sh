# Objects of Helm releases and of gpuboot. Runs after api.sh. The values of Secrets stay on the host.
# Parsed by gpuboot/cluster/managed_objects.py. Arguments: where Secrets are listed, then the
# lists of the other kinds.
secrets=$1; shift
ask "$work/answers" "$@"
ask "$work/secrets" "$secrets"
mkdir "$work/values"
# The server writes each name and value on a line of its own; = stands in no key.
awk -v mark="$mark" -v folder="$work/values" '
  NF == 2 && $2 == mark { print "secrets\t" (first == "{" ? $1 : "unreadable"); next }
  first == "" { first = $0 }
  /^      "(metadata|data)": \{$/ { split($0, part, "\""); inside = part[2]; next }
  /^      [}"]/ { inside = "" }
  inside == "metadata" && /^        "(name|namespace)": "/ {
    split($0, part, "\""); place[part[2]] = part[4] }
  inside == "data" {
    split($0, part, "\"")
    file = folder "/" n + 0; printf "%s", part[4] >file; close(file)
    line[n + 0] = "value\t" n + 0 " " "%s" " " part[2]; n++; mine++ }
  /^    \}/ {
    print "secret\t" place["namespace"] " " place["name"]
    for (i = n - mine; i < n; i++) {
      sub("%s", place["namespace"] " " place["name"], line[i]); print line[i] }
    mine = 0 }' "$work/secrets"
(cd "$work/values" && set -- * && { [ ! -e "$1" ] || sha256sum "$@"; }) |
  while read -r sum number; do put sum "$number $sum"; done
printf 'answers\t'
gzip -1c <"$work/answers" | base64 -w 0
echo
put end ok
