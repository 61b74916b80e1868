#!/bin/sh
# gpuboot-dcgm-check health|diag: asks DCGM's host engine of this node how its GPUs are, and leaves
# the verdicts for node-exporter (metrics) and for gpuboot verify. Written by gpuboot.
# It fails where there is no answer that can be read: verdicts then stay what they were, and age.
set -eu
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
metrics='' results='' node='' settle_s='' # of the file of settings
# shellcheck source=/dev/null
. /etc/gpuboot/dcgm.conf
work=''
# by which text of DCGM each error code is known, and how grave it is at most
codes='{{ codes }}'

die() {
  echo "gpuboot-dcgm-check: $*" >&2
  exit 1
}
# dcgmi's exit status says nothing of health, and its JSON may stand behind lines of its own
ask() { # SECONDS ARGUMENTS...: its JSON
  limit=$1
  shift
  timeout -k 5 "$limit" dcgmi "$@" >"$work/said" 2>&1 || :
  sed -n '/^{/,$p' "$work/said" >"$work/json"
  [ -s "$work/json" ] || die "dcgmi $* printed no JSON: $(tail -n 1 "$work/said" | cut -c 1-300)"
}
# {"0": "GPU-…"}: DCGM's number of a GPU -> its UUID; and its model
gpus() {
  timeout -k 5 60 dcgmi discovery -l >"$work/said" 2>&1 || :
  awk -F '|' '$2 ~ /^ *[0-9]+ *$/ { id = $2 + 0 }
    sub(/^ *Name: */, "", $3) { sub(/ *$/, "", $3); printf "%d\t%s\n", id, $3 }' "$work/said" >"$work/models"
  awk -F '|' '$2 ~ /^ *[0-9]+ *$/ { id = $2 + 0 }
    match($3, /GPU-[0-9a-f-]+/) { printf "%s\"%d\":\"%s\"", gap, id, substr($3, RSTART, RLENGTH); gap = "," }' \
    "$work/said" >"$work/gpus"
  [ -s "$work/gpus" ] || die "dcgmi discovery lists no GPU: $(tail -n 1 "$work/said" | cut -c 1-300)"
  echo "{$(cat "$work/gpus")}"
}
# "WATCH": of those that are on
watched() {
  ask 60 health -f -j
  jq -ce '[.body | to_entries[] | select(.value.value == "On") | .key]' "$work/json" ||
    die "dcgmi health -f has another layout: $(tr -d '\n' <"$work/json" | cut -c 1-300)"
}

# Verdicts as rows: number, UUID, entity, what was looked at, 0, 10 or 20, what DCGM says of it; and,
# of health, its error code.
rows() { # FILTER, with what is the same for both kinds of answers
  jq -r --argjson gpus "$gpus" --argjson watched "$watched" --argjson codes "$codes" '
    def verdict(names): names[.] // error("a verdict that nobody knows: \(tojson)");
    def line: map(tostring | gsub("[\\s\\\\]+"; " ") | .[:300]) | join("\t");
    '"$1" "$work/json" >"$work/rows" 2>"$work/error" ||
    die "dcgmi $what: an answer that cannot be read: $(tail -n 1 "$work/error" | cut -c 1-300)"
}
health() {
  watched=$(watched)
  case $watched in
    *'"Memory"'*) ;;
    *) # a new engine watches nothing, and has nothing to tell of in the first minute
      timeout -k 5 60 dcgmi health -s a >"$work/said" 2>&1 || :
      echo "health watches are set: $(tail -n 1 "$work/said")"
      sleep "$settle_s"
      watched=$(watched)
      case $watched in *'"Memory"'*) ;; *) die "DCGM does not watch: $(tail -n 1 "$work/said")" ;; esac ;;
  esac
  gpus=$(gpus)
  ask 120 health -c -j
  # an answer names incidents alone: what is watched and not named is well
  # shellcheck disable=SC2016
  rows '
    def watch: sub(" system$"; "") | {PCIe: "PCIE", Memory: "MEM", InfoROM: "INFOROM",
      Thermal: "THERMAL", Power: "POWER", Driver: "DRIVER",
      "Internal error": "NVSWITCH"}[.] // .; # dcgmi has no name for incidents of NVSwitches
    # several findings of a watch are joined: "… the GPU., GPU 0…"
    def codes: [split("\\., "; null)[] as $one | [$codes[] | . as $code | select($one | test($code.like))]
      | if . == [] then {code: "", most: 20} else .[] end] | unique_by(.code);
    def level: verdict({Healthy: 0, Warning: 10, Failure: 20});
    (.body["Overall Health"].value | level) as $overall
    | [.body | to_entries[] | select(.key != "Overall Health") | .key as $group
        | .value.children | to_entries[] | .key as $id
        | .value.children.Errors.children | to_entries[]
        | {group: $group, id: $id, watch: (.key | watch), level: (.value.value | level),
           text: (.value.overflow // [] | join(" "))}
        | . + (.text | codes[]) | .level = ([.level, .most] | min)] as $found
    | if $overall > 0 and $found == [] then error("not healthy, and no incident") else . end
    | ($gpus | to_entries[] | .key as $id | .value as $uuid
        | $watched[] | select(startswith("NvSwitch") or . == "ConnectX" | not) | watch as $watch
        | [$found[] | select(.group == "GPU" and .id == $id and .watch == $watch)]
        | if . == [] then {level: 0, text: "", code: "DCGM_FR_OK"} else .[] end
        | [$id, $uuid, "", $watch, .level, .text, .code]),
      ($found[] | select(.group != "GPU")
        | ["", "", "\(.group) \(.id)", .watch, .level, .text, .code]),
      ($found[] | .watch as $watch
        | select(.group == "GPU" and (([$watched[] | watch] | index($watch) | not)
            or (.id as $id | $gpus | has($id) | not)))
        | [.id, ($gpus[.id] // ""), "", .watch, .level, .text, .code])
    | line'
  publish health_watch "What DCGM says of a GPU: 0 healthy, 10 warning, 20 failure."
}
diag() {
  gpus=$(gpus) watched='[]'
  ask 1500 diag -r 1 -j
  # shellcheck disable=SC2016
  rows '
    def level: verdict({Pass: 0, Warn: 10, Fail: 20});
    def tried: select(.status != "Skip" and .status != "Not Run");
    def text: [.warnings // [] | .[] | if type == "string" then . else .warning end] | join(" ");
    def settings_alone: [.warnings // [] | .[] | objects | .error_severity] | length > 0 and all(. == 5);
    def value: if .status == "Fail" and settings_alone then 10 else (.status | level) end;
    (.["DCGM Diagnostic"] // .["DCGM GPU Diagnostic"] // error("no diagnostic in it")) as $all
    | if $all.runtime_error then error("it did not run: \($all.runtime_error)") else $all end
    | [.test_categories[].tests[] | .name as $test
        | if .results then .results[] | tried
            | ((.entity_id // .gpu_id // .gpu_ids) | tostring) as $id | (.entity_group // "GPU") as $group
            | if $group == "GPU" then [$id, ($gpus[$id] // ""), "", $test, value, text]
              else ["", "", "\($group) \($id)", $test, value, text] end
          else .test_summary | tried | ["", "", "node", $test, value, text] end]
    | if . == [] then error("no test has run") else .[] | line end'
  publish test "What a quick diagnosis of DCGM says of a GPU: 0 pass, 10 warning, 20 failure."
}
publish() { # LABEL HELP: for node-exporter, which reads whole files only, and for gpuboot verify
  now=$(date +%s)
  name=gpuboot_dcgm_$what
  {
    printf '# HELP %s %s\n# TYPE %s gauge\n' "$name" "$2" "$name"
    awk -F '\t' -v name="$name" -v node="$node" -v label="$1" '{ gsub(/"/, "") }
      FILENAME ~ /models$/ { models[$1] = $2; next }
      { also = label == "health_watch" ? ",health_error_code=\"" $7 "\",modelName=\"" models[$1] "\"" : ""
      printf "%s{node=\"%s\",gpu=\"%s\",UUID=\"%s\",entity=\"%s\",%s=\"%s\"%s} %s\n",
        name, node, $1, $2, $3, label, $4, also, $5 }' "$work/models" "$work/rows"
    printf '# HELP %s_timestamp_seconds When DCGM last answered that.\n' "$name"
    printf '# TYPE %s_timestamp_seconds gauge\n' "$name"
    printf '%s_timestamp_seconds{node="%s"} %s\n' "$name" "$node" "$now"
  } >"$work/prom"
  { printf 'time\t%s\n' "$now" && cat "$work/rows"; } >"$work/rows.whole"
  mkdir -p "$metrics" "$results"
  install -m 644 "$work/json" "$results/.$what.json" && mv "$results/.$what.json" "$results/$what.json"
  install -m 644 "$work/rows.whole" "$results/.$what" && mv "$results/.$what" "$results/$what.tsv"
  install -m 644 "$work/prom" "$metrics/.$name" && mv "$metrics/.$name" "$metrics/$name.prom"
  awk -F '\t' -v what="$what" '$5 > 0 { bad++; print what ": " $4 " of " ($3 == "" ? "GPU " $1 " " $2 : $3) ": " ($5 == 20 ? "failure" : "warning") ": " $6 }
    END { if (!bad) print what ": all well" }' "$work/rows"
}

what=${1:-}
case $what in health | diag) ;; *) die "usage: gpuboot-dcgm-check health|diag" ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$what"
