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
  local parent
  parent=$(dirname "$2")
  mkdir -p "$2"
  case $1 in
    cpuset) # a v1 cpuset starts empty and takes no process before it has CPUs and memory nodes
      local folder file
      for folder in "$parent" "$2"; do
        for file in cpuset.cpus cpuset.mems; do
          [ -s "$folder/$file" ] && [ -n "$(cat "$folder/$file")" ] && continue
          cat "$(dirname "$folder")/$file" > "$folder/$file"
        done
      done ;;
    '') # v2: processes live in leaves only, so the supervisor stands beside the machine
      if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        mkdir -p "$parent/$unit-supervisor"
        echo $$ > "$parent/$unit-supervisor/cgroup.procs"
        [ -d /run/systemd/system ] || enable_controllers "$(dirname "$parent")"
        enable_controllers "$parent"
      fi ;;
  esac
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

failures=0
while :; do
  # A machine that was killed leaves its network device behind.
  ip link delete "vb-$unit" 2>/dev/null && log "removed a stale network device"
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
