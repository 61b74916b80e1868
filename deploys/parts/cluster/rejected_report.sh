# What the API server answers to a node's report that changes nothing. Runs after api.sh.
# Parsed by deploys/parts/cluster/api_server_fact.py. Argument: the path of the node's Lease. A dry run: nothing is
# stored, and whoever has to admit a kubelet's report is asked about this one as well.
status=$(curl -q -sSg --noproxy '*' --connect-timeout 3 --max-time 15 \
  --cacert "$work/certificate-authority" --cert "$work/client-certificate" \
  --key "$work/client-key" -X PATCH -H 'Content-Type: application/merge-patch+json' -d '{}' \
  -o "$work/answer" -w '%{http_code}' "$server$1?dryRun=All" 2>"$work/said") ||
  refuse "$(cat "$work/said")"
put status "$status"
printf 'answer\t'
gzip -1c <"$work/answer" | base64 -w 0
echo
put end ok
