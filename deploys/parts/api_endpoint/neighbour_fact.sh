# Who answers at an address, as "key<TAB>value" lines; parsed by gpuboot/cluster/virtual_address.py.
# Changes nothing. bash and timeout are there on every Debian and Ubuntu, curl is not.
# shellcheck disable=SC2154  # the fact sets address and port
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
found=
said=$(timeout 2 bash -c "exec 3<>'/dev/tcp/$address/$port'" 2>&1) && found=open
case $said in *refused*) found=refused ;; esac
if [ -n "$found" ]; then put port "$found"; fi
# an entry may be of somebody who has left: then nobody has confirmed it just now
ip -s -o neigh show to "$address" 2>/dev/null | awk -v found="$found" '{
  for (i = 1; i < NF; i++) {
    if ($i == "lladdr") mac = $(i + 1)
    if ($i == "used") split($(i + 1), seconds, "/")
  }
  if (mac != "" && (found != "" || seconds[2] <= 3)) { print "mac\t" mac; exit }
}'
put end ok
