# Deprecated APIs that somebody has asked this host's API server for since it started, in Prometheus'
# text format. Runs after api.sh. Parsed by gpuboot/cluster/deprecated_apis.py.
server=https://127.0.0.1:${server##*:}
# shellcheck disable=SC2154  # api.sh sets them
ask "$work/metrics" /metrics
sed -n 's/^\(apiserver_requested_deprecated_apis{.*\)$/metric\t\1/p' "$work/metrics"
# shellcheck disable=SC2154  # api.sh sets it
put status "$(sed -n "s/^\([0-9]*\) $mark\$/\1/p" "$work/metrics")"
put end ok
