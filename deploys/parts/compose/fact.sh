#!/bin/sh
# A compose project on this host: files with their digests, what was applied, and its containers,
# as "key<TAB>value" lines. Changes nothing.
# Variables: folder (the project's), files, folders (paths below it, one a line).
# shellcheck disable=SC2154
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
printf '%s\n' "$files" | while IFS= read -r path; do
  if [ -f "$folder/$path" ]; then
    put file "$(stat -c '%a %u' "$folder/$path") $(sha256sum <"$folder/$path" | cut -d ' ' -f 1) $path"
  fi
done
printf '%s\n' "$folders" | while IFS= read -r path; do
  if [ -d "$folder/$path" ]; then put folder "$(stat -c '%a %u' "$folder/$path") $path"; fi
done
for name in written applied; do
  if [ -f "$folder/.$name" ]; then while IFS= read -r line; do put "$name" "$line"; done <"$folder/.$name"; fi
done
if command -v docker >/dev/null 2>&1 && docker info >/dev/null 2>&1; then
  if [ -f "$folder/compose.yaml" ]; then
    docker compose -f "$folder/compose.yaml" config --hash '*' 2>/dev/null |
      while IFS= read -r line; do put hash "$line"; done
  fi
  docker ps -a --filter label=com.docker.compose.project=gpuboot --format \
    '{{.Label "com.docker.compose.service"}} {{.State}} {{.Label "com.docker.compose.config-hash"}}' |
    while IFS= read -r line; do put container "$line"; done
else
  put absent docker
fi
put end ok
