#!/bin/sh
# Writes and reads at a fixed rate, on a node and by the node's own way to the API servers.
# Whatever becomes of a request, the next one is sent in its turn.
# Arguments: seconds, prefix of the objects' names. Standard input: a token.
# Prints for each: kind, number, begin and end in seconds since 1970, HTTP status (000: none).
seconds=$1 prefix=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf 'Authorization: Bearer %s\n' "$(cat)" >"$folder/token"
api=https://gpuboot-api:6443/api/v1/namespaces/requests/configmaps
send() { # KIND NUMBER CURL'S ARGUMENTS...
  kind=$1 number=$2 begun=$(date +%s.%N)
  shift 2
  status=$(curl -q -s -o /dev/null -w '%{http_code}' --max-time 10 \
    --cacert /etc/kubernetes/pki/ca.crt -H "@$folder/token" "$@")
  echo "$kind $number $begun $(date +%s.%N) $status" >>"$folder/log"
}
write() {
  body="{\"metadata\":{\"name\":\"$prefix-$1\"}}"
  send write "$1" -X POST -H 'Content-Type: application/json' -d "$body" "$api"
}
read_one() { send read "$1" "$api/known"; }
end=$(($(date +%s) + seconds)) number=0
while [ "$(date +%s)" -lt "$end" ]; do
  number=$((number + 1))
  write "$number" &
  read_one "$number" &
  sleep 0.25
done
wait
cat "$folder/log"
