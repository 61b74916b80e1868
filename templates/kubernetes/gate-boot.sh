#!/bin/sh
# gpuboot-gate-boot NODE [after]: before its kubelet starts, this node takes itself out of service.
# Written by gpuboot. The kubelet's own credentials may cordon its node, and may not taint it
# (NodeRestriction); on the leader gpuboot-gate puts the taint in the cordon's place.
# after: the kubelet has started already, since it runs the API server that is asked here.
set -eu
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export KUBECONFIG=/etc/kubernetes/kubelet.conf
node=$1
boot=$(cat /proc/sys/kernel/random/boot_id)
patch="{\"metadata\":{\"annotations\":{\"gpuboot.io/cordoned-at-boot\":\"$boot\"}},\"spec\":{\"unschedulable\":true}}"
turn=0
while :; do
  # somebody may have cordoned it, who will uncordon it; that leaves the taint
  if said=$(kubectl --request-timeout=10s get node "$node" -o 'jsonpath={.status.nodeInfo.bootID} {.spec.unschedulable} {.metadata.annotations.gpuboot\.io/proven-boot}' 2>&1); then
    case $said in
      "$boot true"* | *" true "* | *" $boot") echo "$node is not touched: $said"; exit 0 ;;
      "$boot "*) [ -n "${2:-}" ] || { echo "$node has run in this boot already"; exit 0; } ;;
    esac
    if said=$(kubectl --request-timeout=10s patch node "$node" -p "$patch" 2>&1); then
      echo "$node is cordoned until its GPUs are proven"
      exit 0
    fi
  fi
  case $said in
    *NotFound*) echo "$said: its kubelet registers it anew"; exit 0 ;;
  esac
  [ $((turn % 30)) != 0 ] || echo "$node cannot be cordoned, so its kubelet does not start: $said" >&2
  turn=$((turn + 1))
  sleep 1
done
