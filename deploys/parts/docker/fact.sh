#!/bin/sh
# dockerd's configuration as it is and as NVIDIA's toolkit would have it, and what dockerd runs
# with, as "key<TAB>value" lines. Changes nothing: the toolkit works on a copy.
# Variable: toolkit (yes on a host with GPUs).
# shellcheck disable=SC2154
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }
has dockerd || put absent docker-ce
if [ "$toolkit" = yes ] && ! has nvidia-ctk; then put absent nvidia-container-toolkit; fi

file=/etc/docker/daemon.json
if [ -e "$file" ]; then put present "$(base64 -w 0 <"$file")"; fi
if [ "$toolkit" = yes ] && has nvidia-ctk; then
  stage=$(mktemp -d) || exit 1
  trap 'rm -rf "$stage"' EXIT
  if [ -e "$file" ]; then cp "$file" "$stage/daemon.json"; fi
  if said=$(nvidia-ctk runtime configure --runtime=docker --set-as-default \
      --config="$stage/daemon.json" 2>&1); then
    put toolkit "$(base64 -w 0 <"$stage/daemon.json")"
  else
    put error "$(printf '%s' "$said" | tail -n 3 | tr '\n' ' ')"
  fi
fi
# does the running dockerd know the proxy that its unit has now? (none of both, after it was taken away)
dropin=/etc/systemd/system/docker.service.d/gpuboot-proxy.conf environment=/etc/gpuboot/proxy.env
unit() { systemctl show -p "$1" --value docker.service 2>/dev/null; }
started=$(unit ExecMainStartTimestamp)
if [ -n "$started" ]; then
  for file in "$dropin" "$environment"; do
    if [ -f "$file" ] && [ "$(stat -c %Y "$file")" -gt "$(date -d "$started" +%s)" ]; then
      put stale "$file"
    fi
  done
  if [ ! -e "$dropin" ] && unit EnvironmentFiles | grep -qF "$environment"; then put stale "$dropin"; fi
fi
# shellcheck disable=SC2016
has docker && put running "$(timeout -k 5 30 docker info --format \
  '{{.DefaultRuntime}} {{.Swarm.LocalNodeState}} {{.ServerVersion}} {{range $name, $r := .Runtimes}}{{$name}},{{end}}' 2>/dev/null)"
put end ok
