#!/bin/sh
# gpuboot-mig apply|look [FILE]: divides this host's GPUs by MIG. Written by gpuboot.
#   apply  makes the layout that FILE names; a GPU that has it already is not touched
#   look   tells which GPUs differ and who uses them, as "key<TAB>value" lines; changes nothing
# A line of FILE (-: standard input) is the index of a GPU and the profiles of its instances, the
# largest first; without a profile MIG is off.
set -u
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
proc=/proc spec=/var/run/cdi/nvidia.yaml
watching='nvidia-dcgm.service nvsm.service' # they hold GPUs and compute on none
not_found=6                                  # nvidia-smi's exit status: nothing of that kind is there

put() { printf '%s\t%s\n' "$1" "$2"; }
say() { echo "gpuboot-mig: $*" >&2; }
die() { # CAUSE REMEDY
  if [ "$what" = look ]; then put error "$1" && put end ok && exit 0; fi
  say "$1" && echo "    remedy: $2" >&2
  exit 1
}
smi() {
  smi_text=$(timeout -k 5 120 nvidia-smi "$@" 2>&1)
  smi_code=$?
  printf '%s\n' "$smi_text" | sed '/^WARNING: /d; /^$/d'
  [ $smi_code = 14 ] || return $smi_code # 14: infoROM is corrupted, which is such a warning
}
line() { tr -s '\n\t' '  ' | sed 's/ $//'; }

# what nvidia-smi says of all GPUs; it gives up on all of them where one is lost
read_gpus() {
  command -v nvidia-smi >/dev/null || die 'nvidia-smi is not installed' 'install the driver first'
  gpus=$(smi --query-gpu=index,uuid,mig.mode.current,mig.mode.pending --format=csv,noheader) ||
    die "nvidia-smi: $(printf '%s\n' "$gpus" | line)" 'run nvidia-smi there'
  listed=$(smi -L) || die "nvidia-smi -L: $(printf '%s\n' "$listed" | line)" 'run nvidia-smi there'
}
value() { # GPU COLUMN: 2 UUID, 3 MIG mode, 4 MIG mode after a reset
  printf '%s\n' "$gpus" | awk -F ', ' -v gpu="$1" -v column="$2" '$1 == gpu { print $column }'
}
# A layout in words that can be compared: `off`, `none` (MIG is on, and nothing made of it), or
# the profiles in the order of their names.
sorted() { tr -s ' ' '\n' | sed '/^$/d' | sort | paste -s -d ' ' -; }
present() { # GPU
  case $(value "$1" 3) in
    '') echo absent ;;
    Enabled)
      profiles=$(printf '%s\n' "$listed" | awk -v gpu="$1:" \
        '$1 == "GPU" { mine = $2 == gpu } $1 == "MIG" && mine { print $2 }' | sorted)
      echo "${profiles:-none}" ;;
    *) echo off ;;
  esac
}
wanted() { # GPU: its profiles, as the layout has them
  printf '%s\n' "$layout" | awk -v gpu="$1" '$1 == gpu { $1 = ""; print }' | sed 's/^ //'
}
# A GPU that gpuboot does not know has the name of one of the MIG manager's layouts in the place of
# profiles: it gets as many instances as its driver lists. all-balanced is what mig-parted makes of it.
listed_for() { # LAYOUT, behind the driver's list: its profiles, the largest first
  awk -v layout="${1#all-}" '
    $3 == "MIG" {
      split($6, number, "/"); dotted = $4; gsub(/\+/, ".", dotted)
      if (dotted == layout) for (i = 0; i < number[2]; i++) same = same " " $4
      if ($4 !~ /^[0-9]+g\.[0-9]+gb$/) next
      slices = $4 + 0
      if (slices > top) top = slices
      if (number[2] + 0 > most[slices]) { most[slices] = number[2] + 0; best[slices] = $4 }
    }
    END {
      if (layout != "balanced") print substr(same, 2)
      else if (top == 7 && most[1] && most[2] && most[3]) print best[3], best[2], best[1], best[1]
      else if (top == 4 && most[1] && most[2]) print best[2], best[1], best[1]
    }'
}
ask_driver() {
  asked=''
  while read -r gpu profiles; do
    case $profiles in
      all-*)
        name=$profiles
        known=$(smi mig -i "$gpu" -lgip) || known=''
        profiles=$(printf '%s\n' "$known" | listed_for "$name")
        [ -n "$profiles" ] || die "the driver of GPU $gpu has no MIG profile for $name" \
          "see \`nvidia-smi mig -i $gpu -lgip\` there" ;;
    esac
    asked="$asked$gpu $profiles
"
  done <<END
$layout
END
  layout=$asked
}
differing() { # those GPUs of the layout that have another one
  printf '%s\n' "$layout" | while read -r gpu profiles; do
    case $gpu in '' | '#'*) continue ;; esac
    asked=$(printf '%s\n' "$profiles" | sorted)
    [ "$(present "$gpu")" = "${asked:-off}" ] || echo "$gpu"
  done
}

# Each running container as "PID ID NAME PROJECT". dockerd starts after this program at boot, and
# whoever asks its socket then would wait for it.
read_users() {
  containers='' computing=''
  if systemctl is-active --quiet docker.service; then
    ids=$(timeout -k 5 60 docker ps -q --no-trunc) ||
      die 'dockerd does not answer' 'see journalctl -u docker there'
    format='{{.State.Pid}} {{.Id}} {{.Name}} {{index .Config.Labels "com.docker.compose.project"}}'
    containers=$(for id in $ids; do # one may have ended meanwhile
      timeout -k 5 60 docker inspect --format "$format" "$id" 2>/dev/null
    done)
  fi
  computing=$(smi --query-compute-apps=gpu_uuid,pid,process_name --format=csv,noheader) ||
    die "nvidia-smi: $(printf '%s\n' "$computing" | line)" 'run nvidia-smi there'
}
container_of() { # PID: name and project of its container
  printf '%s\n' "$containers" | while read -r _ id name project; do
    if [ -n "$id" ] && grep -qs "$id" "$proc/$1/cgroup"; then echo "${name#/} $project"; fi
  done
}
processes() { # GPU: those of others that compute on it
  printf '%s\n' "$computing" | awk -F ', ' -v uuid="$(value "$1" 2)" '$1 == uuid { print $2, $3 }' |
    while read -r pid name; do
      grep -qsF "$(echo "$watching" | tr ' ' '\n')" "$proc/$pid/cgroup" && continue
      # shellcheck disable=SC2046  # name and project
      set -- $(container_of "$pid")
      [ "${2:-}" = gpuboot ] || echo "process $pid ($name)${1:+ of container $1}"
    done
}
device() { # GPU: its device file
  for file in "$proc"/driver/nvidia/gpus/*/information; do
    if grep -qs "$(value "$1" 2)" "$file"; then
      sed -n 's/^Device Minor:[[:space:]]*/nvidia/p' "$file"
    fi
  done
}
# Who uses a GPU that is not ours: what computes on it, and containers that were given it. Of a MIG
# instance as well a container gets the device file of the GPU.
users() { # GPU
  computes=$(processes "$1")
  file=$(device "$1")
  if [ -n "$computes" ]; then printf '%s\n' "$computes"; fi
  printf '%s\n' "$containers" | while read -r pid _ name project; do
    if [ -z "$pid" ] || [ "$project" = gpuboot ]; then continue; fi
    if printf '%s\n' "$computes" | grep -q " of container ${name#/}\$"; then continue; fi
    if [ -e "$proc/$pid/root/dev/${file:-nvidia$1}" ]; then echo "container ${name#/}"; fi
  done
}
# What watches GPUs and is to stop meanwhile: units, and containers of gpuboot's own project
watchers() {
  for unit in $watching; do if systemctl is-active --quiet "$unit"; then echo "$unit"; fi; done
  printf '%s\n' "$containers" | while read -r pid _ name project; do
    [ "$project" = gpuboot ] || continue
    for file in "$proc/$pid"/root/dev/nvidia[0-9]*; do
      if [ -e "$file" ]; then echo "${name#/}" && break; fi
    done
  done
}

pause() { # ends what watches GPUs; it starts again however this ends
  stopped_units='' stopped_containers=''
  trap ended EXIT
  trap 'exit 1' HUP INT TERM
  for watcher in $(watchers); do
    case $watcher in
      *.service) stopped_units="$stopped_units $watcher" ;;
      *) stopped_containers="$stopped_containers $watcher" ;;
    esac
  done
  # shellcheck disable=SC2086  # names, one word each
  if [ -n "$stopped_units" ]; then systemctl stop $stopped_units || exit 1; fi
  # shellcheck disable=SC2086
  if [ -n "$stopped_containers" ]; then docker stop -t 20 $stopped_containers >/dev/null || exit 1; fi
}
ended() {
  code=$?
  resume || code=1
  exit $code
}
resume() {
  back=0
  # a specification names instances; at boot there is none yet
  if [ -e "$spec" ]; then nvidia-ctk cdi generate --output "$spec" >/dev/null || back=1; fi
  # shellcheck disable=SC2086
  if [ -n "$stopped_units" ]; then systemctl start $stopped_units || back=1; fi
  # shellcheck disable=SC2086
  if [ -n "$stopped_containers" ]; then docker start $stopped_containers >/dev/null || back=1; fi
  return $back
}

cleared() { # GPU: its instances are gone, the compute instances first
  for kind in -dci -dgi; do
    said=$(smi mig -i "$1" $kind) || [ $? = $not_found ] || return 1
  done
}
switched() { # GPU 0|1: its MIG mode is this one
  said=$(smi -i "$1" -mig "$2") || return 1
  said=$(smi -i "$1" --query-gpu=mig.mode.current,mig.mode.pending --format=csv,noheader) || return 1
  [ "${said%%,*}" != "${said##*, }" ] || return 0
  said="its MIG mode is $said until it is reset: stop all that uses it and run \`nvidia-smi --gpu-reset -i $1\`, or reboot"
  return 1
}
divided() { # GPU PROFILES...: it has these instances; else `said` tells why not
  gpu=$1
  shift
  if [ "$(value "$gpu" 3)" = Enabled ]; then cleared "$gpu" || return 1; fi
  case $(value "$gpu" 3),$# in
    Enabled,0) switched "$gpu" 0 ;;
    Enabled,* | *,0) ;;
    *) switched "$gpu" 1 ;;
  esac || return 1
  [ $# = 0 ] || said=$(smi mig -i "$gpu" -cgi "$(echo "$*" | tr ' ' ',')" -C)
}

look() {
  wrong=$(differing)
  if [ -n "$wrong" ]; then read_users && watchers | while read -r name; do put restarts "$name"; done; fi
  for gpu in $wrong; do
    put gpu "$gpu $(present "$gpu")"
    users "$gpu" | while read -r user; do put used "$gpu $user"; done
  done
  put end ok
}
apply() {
  wrong=$(differing)
  if [ -z "$wrong" ]; then say 'the GPUs have their layout' && return; fi
  read_users
  used=$(for gpu in $wrong; do users "$gpu" | sed "s/^/GPU $gpu: /"; done)
  if [ -n "$used" ]; then
    die "a MIG layout cannot change under what uses a GPU, nothing was changed: $(printf '%s\n' "$used" | line)" \
      'stop that, then run again'
  fi
  pause
  failed=''
  for gpu in $wrong; do
    # shellcheck disable=SC2046  # profiles, one word each
    if divided "$gpu" $(wanted "$gpu"); then continue; fi
    say "GPU $gpu is not divided: $(printf '%s\n' "$said" | line)" && failed="$failed $gpu"
  done
  [ -z "$failed" ] || die "not divided:$failed" 'see what nvidia-smi said above, then run again'
  read_gpus
  wrong=$(differing | line)
  [ -z "$wrong" ] || die "nvidia-smi does not list the instances of GPU $wrong that it was asked for" \
    'see nvidia-smi -L, then run again'
  say 'the GPUs have their new layout'
}

what=${1:-}
case $what in apply | look) ;; *) what=apply && die 'usage: gpuboot-mig apply|look [FILE]' 'name one' ;; esac
layout=$(cat -- "${2:-/etc/gpuboot/mig-layout}") || die 'there is no layout' 'run deploys/standalone.py'
read_gpus
case $layout in *' all-'*) ask_driver ;; esac
"$what"
