# Who answers at an address, as "key<TAB>value" lines; parsed by gpuboot/kubernetes/virtual_address.py.
# Changes nothing. bash and timeout are there on every Debian and Ubuntu, curl is not.
# shellcheck disable=SC2154  # the fact sets address and port
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
said=$(timeout 2 bash -c "exec 3<>'/dev/tcp/$address/$port'" 2>&1) && put port open
case $said in *refused*) put port refused ;; esac
# an entry of before that nobody has confirmed is STALE or DELAY
ip -o neigh show to "$address" nud reachable 2>/dev/null |
  awk '{ for (i = 1; i < NF; i++) if ($i == "lladdr") { print "mac\t" $(i + 1); exit } }'
put end ok
