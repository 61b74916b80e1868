# Resets GPUs of a drained node. POSIX sh; its last line is how it ended, a tab, and why.
#   done     all of them were reset
#   failed   nvidia-smi did not reset one
#   busy     a program that does not watch GPUs uses some: nothing was reset
# What watches GPUs holds them open. Its containers end here, with the kubelet stopped so that they
# stay away for the reset; they start anew with it, and forget what they knew of the GPU.
# shellcheck disable=SC2154  # who runs it sets gpus, folder and socket
export LC_ALL=C
units=
for unit in nvidia-persistenced nvidia-dcgm nvsm; do
  if systemctl is-enabled -q "$unit" || systemctl is-active -q "$unit"; then units="$units $unit"; fi
done 2>/dev/null
plugins=/var/lib/kubelet/device-plugins

call() { crictl --config /dev/null --runtime-endpoint "$socket" --timeout 30s "$@"; }

# shellcheck disable=SC2086  # names of units, one word each
start() { systemctl start $units kubelet; }

end() { printf '%s\t%s\n' "$1" "$(printf %s "$2" | tr '\n\t' '  ')"; exit 0; }

# who has GPUs open; the fabric manager is needed for a reset where there are NVSwitches
users() {
  find /proc/[0-9]*/fd -lname '/dev/nvidia*' 2>/dev/null | cut -d/ -f3 | sort -un |
    while read -r pid; do
      name=$(cat "/proc/$pid/comm" 2>/dev/null) || continue
      case $name in nv-fabric* | nvidia-imex*) ;; *) echo "$name (process $pid)" ;; esac
    done
}

exec 9>"$folder/gpu-reset.lock"
flock -w 300 9 || end busy "an earlier reset has not ended"
trap start EXIT
trap 'exit 1' HUP INT TERM
# shellcheck disable=SC2086
systemctl stop kubelet $units
for pod in $(call pods -q --state ready --name 'device-plugin|dcgm|feature-discovery|mig-manager'); do
  ids=$(call ps -q --pod "$pod")
  # shellcheck disable=SC2086
  if [ -n "$ids" ]; then call stop --timeout 10 $ids >/dev/null; fi
done
used=$(users)
if [ -n "$used" ]; then end busy "GPUs are used by $used"; fi
for gpu in $gpus; do
  said=$(timeout -k 5 120 nvidia-smi --gpu-reset -i "$gpu" 2>&1 9>&-) ||
    [ $? = 14 ] || end failed "$gpu: $said"
done
rm -f "$plugins"/nvidia*.sock # as the kubelet does when it starts
start
for _ in $(seq 60); do
  for path in "$plugins"/nvidia*.sock; do if [ -e "$path" ]; then break 2; fi; done
  sleep 2
done
end "done" "$gpus"
