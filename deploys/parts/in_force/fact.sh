# What is in force in the cluster, as "key<TAB>value" lines. Runs after api.sh. Parsed by
# gpuboot/cluster/settings_in_force.py. Variables: nodes (names), silences (Alertmanager's path; empty:
# nobody asks). Arguments: paths of RBAC.
ask "$work/answers" "$@"
# behind the API server's proxy, all at once: one that hangs holds up no other
{
  # shellcheck disable=SC2154  # the fact sets it
  for node in $nodes; do
    printf 'url = "%s/api/v1/nodes/%s/proxy/configz"\noutput = "%s/kubelet %s"\n' \
      "$server" "$node" "$work" "$node"
  done
  # shellcheck disable=SC2154  # the fact sets it
  if [ -n "$silences" ]; then
    printf 'url = "%s%s"\noutput = "%s/silences -"\n' "$server" "$silences" "$work"
  fi
} >"$work/urls"
if [ -s "$work/urls" ]; then
  curl -q -sSg --parallel --parallel-max 32 --noproxy '*' --connect-timeout 3 --max-time 6 \
    --cacert "$work/certificate-authority" --cert "$work/client-certificate" \
    --key "$work/client-key" -w '%{http_code} %{filename_effective}\n' -K "$work/urls" \
    >"$work/statuses" 2>"$work/said"
  while read -r status file; do
    answer=
    if [ -s "$file" ]; then answer=$(gzip -1c <"$file" | base64 -w 0); fi
    put "${file#"$work/"}" "$status $answer" | tr '\t' ' ' | sed 's/ /\t/'
  done <"$work/statuses"
fi
printf 'answers\t'
gzip -1c <"$work/answers" | base64 -w 0
echo
put clock "$(date +%s)"
put end ok
