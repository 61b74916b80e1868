#!/bin/bash
# supervise.sh UNIT DIRECTORY COMMAND... : keeps one part of a lab running, in cgroups of its own.
#
# Two machines started from one cgroup would share /supervisor and /payload there, and each
# systemd would kill the other's services: so each unit gets a folder in every cgroup hierarchy.
# Exit status 133 of systemd-nspawn means "reboot": start again. 0 is a power-off: stop.
# Anything else is a failure: start again, unless it fails at once three times in a row.
set -eu
unit=$1 dir=$2
shift 2
echo $$ > "$dir/supervisor.pid"

log() { printf '%s supervise: %s\n' "$(date -u +%FT%TZ)" "$*"; }

# The folders this unit owns, one per hierarchy: under the systemd unit that started us (which has
# Delegate=yes), else under "gpuboot" at the top of the hierarchy.
cgroup_folders() {
  local controllers path mount
  while IFS=: read -r _ controllers path; do
    case $controllers in
      '') mount=/sys/fs/cgroup; [ -e $mount/cgroup.controllers ] || mount=$mount/unified ;;
      name=systemd) mount=/sys/fs/cgroup/systemd ;;
      *) mount=/sys/fs/cgroup/$controllers ;;
    esac
    [ -d "$mount" ] || continue
    if [ -d /run/systemd/system ]; then
      echo "$controllers:$mount${path%/}/$unit"
    else
      echo "$controllers:$mount/gpuboot/$unit"
    fi
  done < /proc/self/cgroup
}

prepare_cgroup() { # CONTROLLERS FOLDER
  local parent folder
  parent=$(dirname "$2")
  mkdir -p "$2" "$2-supervisor"
  if [ "$1" = cpuset ]; then # on v1 it starts empty, and takes no process before it has CPUs
    for folder in "$parent" "$2" "$2-supervisor"; do fill_cpuset "$folder"; done
  fi
  # The supervisor stands beside the machine: on v2 only leaves hold processes, and the cgroup
  # it was started from may end before the lab does.
  echo $$ > "$2-supervisor/cgroup.procs"
  if [ "$1" = '' ] && [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    [ -d /run/systemd/system ] || enable_controllers "$(dirname "$parent")"
    enable_controllers "$parent"
  fi
}

fill_cpuset() { # FOLDER
  local file
  for file in cpuset.cpus cpuset.mems; do
    [ -n "$(cat "$1/$file")" ] || cat "$(dirname "$1")/$file" > "$1/$file"
  done
}

enable_controllers() { # FOLDER: pass on to its children what it has itself
  local controller controllers
  read -ra controllers < "$1/cgroup.controllers"
  for controller in "${controllers[@]}"; do
    echo "+$controller" 2>/dev/null > "$1/cgroup.subtree_control" ||
      log "cgroup $1 does not pass on $controller: Kubernetes may miss it"
  done
}

mapfile -t folders < <(cgroup_folders)
: > "$dir/cgroups"
for entry in "${folders[@]}"; do
  prepare_cgroup "${entry%%:*}" "${entry#*:}"
  echo "${entry#*:}" >> "$dir/cgroups"
done

# What a machine leaves in its cgroups: its kubelet's next start would take seconds over each pod.
clear_cgroups() {
  local entry
  for entry in "${folders[@]}"; do
    find "${entry#*:}" -mindepth 1 -depth -type d -exec rmdir {} + ||
      log "cgroups below ${entry#*:} are still in use"
  done
}

failures=0
while :; do
  # A machine that was killed leaves its network device behind.
  ip link delete "vb-$unit" 2>/dev/null && log "removed a stale network device"
  clear_cgroups
  log "start $unit"
  started=$SECONDS code=0
  (
    for entry in "${folders[@]}"; do echo $BASHPID > "${entry#*:}/cgroup.procs"; done
    exec "$@"
  ) &
  echo $! > "$dir/main.pid"
  wait $! || code=$?
  log "$unit ended with status $code"
  [ $code = 0 ] && exit 0
  if [ $code != 133 ]; then
    [ $((SECONDS - started)) -gt 10 ] && failures=0
    failures=$((failures + 1))
    [ $failures -lt 3 ] || { log "gave up: $unit fails at once"; exit $code; }
    sleep 1
  fi
done
