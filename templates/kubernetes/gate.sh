#!/bin/sh
# gpuboot-gate: keeps pods off GPU nodes whose GPUs are not proven. Written by gpuboot.
#   look                           what the timer does: closes nodes, proves them, renews proofs
#   close NODE REASON MESSAGE      the node takes no new pods
#   open NODE BOOT LEVEL GPUS MESSAGE   it does. BOOT: id of the boot in which it was proven
#   record VERSION                 such lines from standard input, their words separated by tabs, - for an
#                                  empty one (VERSION: of the gpuboot that sends this program)
set -eu
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export KUBECONFIG=/etc/kubernetes/admin.conf
version='' renew_s='' retry_s='' timeout_s='' # of the file of settings
if [ "${1:-}" = record ]; then
  version=$2 # a run sends this program before it has installed it
else
  # shellcheck source=/dev/null
  . /etc/gpuboot/gate.conf
fi
pod=/etc/gpuboot/gate-pod.json
taint=gpuboot.io/unproven
cordon=gpuboot.io/cordoned-at-boot
tab=$(printf '\t')
work='' namespace=''

kube() { kubectl --request-timeout=30s "$@"; }
say() { echo "$*"; }
stamp() { date -u +%Y-%m-%dT%H:%M:%SZ; }
# a text as JSON has it, of one line
quoted() { printf '%s' "$1" | tr '\n\t\r' '   ' | cut -c 1-900 | sed 's/[\\"]/\\&/g; s/^/"/; s/$/"/'; }
since() { # seconds since a time as Kubernetes writes it; many where there is none
  [ -n "$1" ] || { echo 999999999; return; }
  echo $(($(date +%s) - $(date -d "$1" +%s)))
}

condition() { # NODE STATUS REASON MESSAGE
  old=$(kube get node "$1" -o 'jsonpath={range .status.conditions[?(@.type=="GPUsProven")]}{.status} {.lastTransitionTime}{end}')
  now=$(stamp) changed=${old#* }
  [ "${old%% *}" = "$2" ] || changed=$now
  kube patch node "$1" --subresource=status -p "{\"status\":{\"conditions\":[{\"type\":\"GPUsProven\",\"status\":\"$2\",\"reason\":\"$3\",\"message\":$(quoted "$4"),\"lastHeartbeatTime\":\"$now\",\"lastTransitionTime\":\"$changed\"}]}}" >/dev/null
}
message() { kube get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="GPUsProven")].message}'; }
# ends the cordon that the node itself began at its boot; a person's stays
uncordon() {
  [ -n "$(kube get node "$1" -o "jsonpath={.metadata.annotations.gpuboot\.io/cordoned-at-boot}")" ] || return 0
  kube uncordon "$1" >/dev/null
  kube annotate node "$1" "$cordon-" >/dev/null
}
close() { # NODE REASON MESSAGE
  kube taint --overwrite node "$1" "$taint:NoSchedule" >/dev/null
  uncordon "$1"
  case $2 in ProofFailed | VerifyFailed | HealthFailed | GPUsMissing) condition "$1" False "$2" "$3" ;; *) condition "$1" Unknown "$2" "$3" ;; esac
  say "$1 is closed: $2: $3"
}
open() { # NODE BOOT LEVEL GPUS MESSAGE
  boot=$(kube get node "$1" -o 'jsonpath={.status.nodeInfo.bootID}')
  if [ -n "$2" ] && [ "$2" != "$boot" ]; then
    say "$1 stays closed: it rebooted while it was proven"
    return
  fi
  kube annotate --overwrite node "$1" "gpuboot.io/proven-time=$(stamp)" "gpuboot.io/proven-boot=$boot" \
    "gpuboot.io/proven-level=$3" "gpuboot.io/proven-gpus=$4" "gpuboot.io/proven-version=$version" >/dev/null
  condition "$1" True Proven "$5"
  if kube get node "$1" -o 'jsonpath={.spec.taints[*].key}' | grep -qw "$taint"; then
    kube taint node "$1" "$taint-" >/dev/null
    say "$1 is open: $5"
  fi
  uncordon "$1"
}
record() {
  while IFS="$tab" read -r what one two three four five; do
    case $what in
      open) open "$one" "${two#-}" "$three" "$four" "$five" </dev/null ;;
      close) close "$one" "$two" "$three" </dev/null ;;
    esac
  done
}

# The lock of verifications (a Lease that expires 40 s after it was renewed): two would take each
# other's GPUs.
lease() { printf '{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"gpuboot-verify","namespace":"kube-system"},"spec":{"holderIdentity":"%s","leaseDurationSeconds":40,"acquireTime":"%s","renewTime":"%s"}}' "$namespace" "$1" "$1"; }
moment() { date -u +%Y-%m-%dT%H:%M:%S.000000Z; }
lock() {
  renewed=$(kube -n kube-system get lease gpuboot-verify --ignore-not-found -o 'jsonpath={.spec.renewTime}')
  if [ -n "$renewed" ]; then
    [ "$(since "$renewed")" -gt 40 ] || return 1
    kube -n kube-system delete lease gpuboot-verify --ignore-not-found >/dev/null
  fi
  lease "$(moment)" | kube create -f - >/dev/null 2>&1
}
renew() {
  [ "$(kube -n kube-system get lease gpuboot-verify --ignore-not-found -o 'jsonpath={.spec.holderIdentity}')" = "$namespace" ] || return 1
  kube -n kube-system patch lease gpuboot-verify --type=merge -p "{\"spec\":{\"renewTime\":\"$(moment)\"}}" >/dev/null
}
clean() {
  if [ -n "$namespace" ]; then
    kube delete namespace "$namespace" --ignore-not-found --wait=false >/dev/null || say "$namespace is left behind"
    if renew; then kube -n kube-system delete lease gpuboot-verify --ignore-not-found >/dev/null; fi
  fi
  rm -rf "$work"
}

# One line for each GPU node: name, Ready, cordoned, taints, boot, its condition's status, reason and
# time, proven boot, time of the proof, cordoned at boot, GPUs promised, what it offers.
nodes() {
  kube get nodes -l gpuboot.io/gpus -o 'jsonpath={range .items[*]}{.metadata.name}|{.status.conditions[?(@.type=="Ready")].status}|{.spec.unschedulable}|{.spec.taints[*].key}|{.status.nodeInfo.bootID}|{.status.conditions[?(@.type=="GPUsProven")].status}|{.status.conditions[?(@.type=="GPUsProven")].reason}|{.status.conditions[?(@.type=="GPUsProven")].lastHeartbeatTime}|{.metadata.annotations.gpuboot\.io/proven-boot}|{.metadata.annotations.gpuboot\.io/proven-time}|{.metadata.annotations.gpuboot\.io/cordoned-at-boot}|{.metadata.labels.gpuboot\.io/gpus}|{.status.allocatable}{"\n"}{end}'
}
# What pods of a node hold of a resource.
held() { # NODE RESOURCE
  key=$(printf '%s' "$2" | sed 's/\./\\./g')
  kube get pods -A --field-selector "spec.nodeName=$1,status.phase!=Succeeded,status.phase!=Failed" \
    -o "jsonpath={range .items[*].spec.containers[*]}{.resources.limits.$key}{\"\\n\"}{end}" | awk '{ sum += $1 } END { print sum + 0 }'
}
# Closes what is not proven. Prints "due NODE BOOT PROMISED OFFER" for each node to prove now.
look_at() {
  while IFS='|' read -r node ready cordoned taints boot status reason seen proven at self promised offer; do
    closed=''
    case " $taints " in *" $taint "*) closed=yes ;; esac
    # its kubelet still tells of the boot before: until it tells of this one, its own cordon holds
    [ -z "$self" ] || [ "$self" = "$boot" ] || [ "$proven" != "$boot" ] || continue
    # a pod computes on a GPU that is to be repaired, too, and after a reboot: a verification opens it
    if [ "$status" = False ] && [ "$reason" = HealthFailed ]; then
      [ -n "$closed" ] && [ -z "$self" ] || close "$node" "$reason" "$(message "$node" </dev/null)" </dev/null >&2
      continue
    fi
    if [ "$status" != True ] || [ "$proven" != "$boot" ]; then
      why="NotProven${tab}its GPUs have not been proven yet"
      [ -z "$proven" ] || [ "$proven" = "$boot" ] || why="Rebooted${tab}it rebooted after its GPUs were proven ($at)"
      if [ -z "$closed" ] || [ -n "$self" ] || { [ "$status" != False ] && [ "$status" != Unknown ]; }; then
        close "$node" "${why%%"$tab"*}" "${why#*"$tab"}" </dev/null >&2
        [ -z "$self" ] || cordoned=''
        closed=yes status=Unknown
      fi
    elif [ -n "$self$closed" ]; then # it was proven in this boot, and something stopped in between
      open "$node" "$boot" "$(kube get node "$node" -o 'jsonpath={.metadata.annotations.gpuboot\.io/proven-level}' </dev/null)" \
        "$(kube get node "$node" -o 'jsonpath={.metadata.annotations.gpuboot\.io/proven-gpus}' </dev/null)" "proven at $at" </dev/null >&2
      continue
    fi
    [ "$ready" = True ] && [ -z "$cordoned" ] || continue
    if [ -n "$closed" ]; then
      # a verification looks at more than vectorAdd: what it closes in this boot, another one opens
      [ "$status" != False ] || [ "$reason" != VerifyFailed ] || continue
      [ "$status" != False ] || [ "$(since "$seen")" -gt "$retry_s" ] || continue
    else
      [ "$(since "$at")" -gt "$renew_s" ] || continue
    fi
    printf 'due|%s|%s|%s|%s|%s\n' "$node" "$boot" "${closed:-no}" "$promised" "$offer"
  done
}
# "RESOURCE=COUNT" of what a node offers of GPUs and MIG devices
offered() { printf '%s' "$1" | grep -o '"nvidia\.com/[^"]*":"[0-9]*"' | tr -d '"' | sed 's/:/=/' | grep -v '=0$' || :; }
# Makes the pod that computes on all free devices of a node. Prints how many; 0: none is free.
start() { # NODE OFFER
  limits='' total=0
  for one in $(offered "$2"); do
    free=$((${one#*=} - $(held "$1" "${one%=*}")))
    [ "$free" -gt 0 ] || continue
    limits="$limits${limits:+,}\"${one%=*}\":\"$free\""
    total=$((total + free))
  done
  [ "$total" -gt 0 ] || { echo 0; return; }
  sed "s|@NODE@|$1|g; s|@POD@|$(printf '%s' "$1" | tr . -)|g; s|\"@LIMITS@\"|{$limits}|" "$pod" >"$work/pod"
  for _ in 1 2 3 4 5 6 7 8 9 10; do # a new namespace has no service account for an instant
    if kube -n "$namespace" create -f "$work/pod" >"$work/said" 2>&1; then echo "$total"; return; fi
    grep -q serviceaccount "$work/said" || break
    sleep 1
  done
  cat "$work/said" >&2
  return 1
}
# What the log of a pod says: "passed UUIDS", or "failed WHY". Each of the devices must have passed.
verdict() { # LOG COUNT
  awk -v wanted="$2" '
    /^(GPU|MIG)-[^ ]*: / { uuid = $1; sub(/:$/, "", uuid); rest = substr($0, length($1) + 2)
      if (rest ~ /Test PASSED/) good[uuid] = 1
      else if (rest ~ /^exit 0$/) ended[uuid] = 1
      else if (rest ~ /^exit / || rest ~ /[Ff]ail|[Ee]rror/) { if (why == "") why = uuid ": " rest } }
    END {
      for (uuid in good) if (uuid in ended) { n++; list = list (list == "" ? "" : ",") uuid }
      if (n == wanted && why == "") print "passed " list
      else print "failed " (why == "" ? n + 0 " of " wanted " devices computed" : "vectorAdd: " why)
    }' "$1"
}
judge() { # NODE BOOT CLOSED COUNT
  name=$(printf '%s' "$1" | tr . -)
  state=$(kube -n "$namespace" get pod "vectoradd-$name" -o 'jsonpath={.status.phase} {.status.reason} {.status.containerStatuses[0].state.waiting.reason}')
  case $state in
    Succeeded* | "Failed  "* | "Failed DeadlineExceeded"*) ;;
    Running*) state="no answer within $timeout_s s" ;;
    # it did not start, or was ended for reasons of its node or of other pods: nothing was tried
    Failed\ OutOf* | Failed\ NodeAffinity* | Failed\ Evicted* | Failed\ Preempting* | Failed\ Terminated* | Failed\ NodeShutdown* | Pending* | '')
      [ "$3" = no ] || close "$1" NotProven "its pod did not compute: $state"
      say "$1: its pod did not compute: $state"
      return ;;
  esac
  kube -n "$namespace" logs "vectoradd-$name" >"$work/log" 2>&1 || :
  found=$(verdict "$work/log" "$4")
  case $found in
    passed*) open "$1" "$2" vectoradd "${found#passed }" "vectorAdd passed on $4 devices" ;;
    *)
      case $state in Succeeded* | "Failed  "*) why=${found#failed } ;; *) why="$state; ${found#failed }" ;; esac
      close "$1" ProofFailed "$why" ;;
  esac
}
unfinished() { kube -n "$namespace" get pods -o 'jsonpath={range .items[*]}{.status.phase}{"\n"}{end}' | grep -c -v 'Succeeded\|Failed' || :; }

look() {
  work=$(mktemp -d)
  trap clean EXIT
  trap 'exit 1' INT TERM
  nodes >"$work/nodes"
  look_at <"$work/nodes" >"$work/due"
  : >"$work/try"
  while IFS='|' read -r _ node boot closed promised offer; do
    count=$(offered "$offer" | sed 's/.*=//' | awk '{ sum += $1 } END { print sum + 0 }')
    if [ "$count" -ge "$promised" ]; then
      printf '%s|%s|%s|%s\n' "$node" "$boot" "$closed" "$offer" >>"$work/try"
    elif [ "$closed" = no ] || [ "$count" -gt 0 ]; then
      close "$node" GPUsMissing "it offers $count of $promised GPUs" </dev/null
    fi
  done <"$work/due"
  [ -s "$work/try" ] || return 0
  namespace=gpuboot-verify-$(od -An -N3 -t x1 /dev/urandom | tr -d ' \n')
  if ! lock; then
    namespace=''
    say "another verification runs: the next look proves"
    return 0
  fi
  printf '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"%s","labels":{"app.kubernetes.io/managed-by":"gpuboot","app.kubernetes.io/component":"verify","pod-security.kubernetes.io/enforce":"privileged"}}}' "$namespace" | kube create -f - >/dev/null
  : >"$work/started"
  while IFS='|' read -r node boot closed offer; do
    if ! count=$(start "$node" "$offer" </dev/null); then say "$node: no pod could be made"; continue; fi
    if [ "$count" = 0 ]; then
      say "$node: pods hold all of its GPUs: its proof waits"
      continue
    fi
    printf '%s|%s|%s|%s\n' "$node" "$boot" "$closed" "$count" >>"$work/started"
  done <"$work/try"
  end=$(($(date +%s) + timeout_s)) turn=0
  while [ "$(unfinished)" -gt 0 ] && [ "$(date +%s)" -lt "$end" ]; do
    sleep 2
    turn=$(((turn + 1) % 4))
    [ "$turn" != 0 ] || renew || { say "another verification took over"; return 0; }
  done
  while IFS='|' read -r node boot closed count; do
    judge "$node" "$boot" "$closed" "$count" </dev/null
  done <"$work/started"
}

case ${1:-} in
  look) look ;;
  close) close "$2" "$3" "$4" ;;
  open) open "$2" "$3" "$4" "$5" "$6" ;;
  record) record ;;
  *)
    sed -n '2,7s/^# *//p' "$0" >&2
    exit 2 ;;
esac
