# What an API server answers to each path, packed. Runs after api.sh.
# Parsed by gpuboot/cluster/api_answers.py. Arguments: the paths.
ask "$work/answers" "$@"
printf 'answers\t'
gzip -1c <"$work/answers" | base64 -w 0
echo
put clock "$(date +%s)" # beside the API server, which is on this host
put end ok
