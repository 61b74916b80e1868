#!/bin/sh
# forced.sh FOLDER: what the simulated hosts' SSH server runs in place of every command.
#
# FOLDER/ADDRESS/ has the answers of the host with that address, by the command's SHA-256. With
# FOLDER/ADDRESS/machine the command runs on the machine of that name in FOLDER/ssh_config, and its
# answer is recorded.
set -eu
folder=$1
# CLIENT PORT SERVER PORT
# shellcheck disable=SC2086
set -- $SSH_CONNECTION
digest=$(printf %s "$SSH_ORIGINAL_COMMAND" | sha256sum)
answer=$folder/$3/${digest%% *}
if [ -e "$folder/$3/machine" ]; then
  printf %s "$SSH_ORIGINAL_COMMAND" > "$answer.command"
  read -r machine < "$folder/$3/machine"
  code=0
  ssh -n -F "$folder/ssh_config" "$machine" "$SSH_ORIGINAL_COMMAND" \
    > "$answer.stdout" 2> "$answer.stderr" || code=$?
  echo "$code" > "$answer.code"
fi
if [ ! -e "$answer.code" ]; then
  mkdir -p "$folder/unknown"
  printf %s "$SSH_ORIGINAL_COMMAND" > "$folder/unknown/$3"
  echo "forced.sh: no answer to this command was recorded" >&2
  exit 125
fi
# a recorded time stands for now, and is as long
sed "s/1111111111\.111111111/$(date +%s.%N)/" "$answer.stdout"
read -r code < "$answer.code"
exit "$code"
