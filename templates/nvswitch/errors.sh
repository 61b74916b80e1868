#!/bin/sh
# gpuboot-nvswitch-errors NODE FOLDER: leaves for node-exporter, in FOLDER, when each NVSwitch of this
# node last had which fatal error (SXid), as the kernel log has it since the driver was loaded: what
# it said before that is over. Written by gpuboot.
set -eu
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
node=$1 folder=$2
mkdir -p "$folder"
work=$folder/gpuboot_nvswitch.new # node-exporter reads *.prom alone
trap 'rm -f "$work" "$work.log"' EXIT
dmesg >"$work.log"
now=$(date +%s)
read -r uptime _ </proc/uptime
awk -v node="$node" -v now="$now" -v booted="$((now - ${uptime%.*}))" '
  /NVRM: loading NVIDIA UNIX/ { split("", last) }
  match($0, /nvidia-nvswitch[0-9]+: SXid \(PCI:[0-9A-Fa-f:.]+\): [0-9]+, Fatal,/) {
    split(substr($0, RSTART + 7, RLENGTH - 7), part, /[:,] /)
    at = now # a kernel that notes no times
    if (match($0, /^\[ *[0-9]+\./)) at = booted + substr($0, 2, RLENGTH - 2)
    last[part[1] "\",sxid=\"" part[3] + 0] = at
  }
  END {
    metric = "gpuboot_nvswitch_fatal_timestamp_seconds"
    print "# HELP " metric " When an NVSwitch last had this fatal error, by the clock of its node."
    print "# TYPE " metric " gauge"
    for (error in last) printf "%s{node=\"%s\",switch=\"%s\"} %d\n", metric, node, error, last[error]
  }' "$work.log" >"$work"
chmod 644 "$work"
mv "$work" "$folder/gpuboot_nvswitch.prom"
