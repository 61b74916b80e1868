# What driver, toolkit and containerd of a GPU node say, as "key<TAB>value" lines; keys may repeat.
# POSIX sh, changes nothing. Parsed by gpuboot/verify/gpu_state.py.
export LC_ALL=C
put() { printf '%s\t%s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }
lines() { while IFS= read -r line; do if [ -n "$line" ]; then put "$1" "$line"; fi; done; }

if [ -r /proc/driver/nvidia/version ]; then put module "$(head -n 1 /proc/driver/nvidia/version)"; fi
# The driver keeps the UUID of a GPU that no longer answers, which nvidia-smi does not tell.
for file in /proc/driver/nvidia/gpus/*/information; do
  [ -r "$file" ] || continue
  slot=${file%/information}
  put proc "${slot##*/} $(sed -n 's/^GPU UUID:[[:space:]]*//p' "$file")"
done

# A GPU that needs a reset keeps index and UUID, and says so in the place of its values.
fields=index,uuid,name,pci.bus_id,memory.total,mig.mode.current,temperature.gpu,power.draw,pstate
query() { bounded "$@" --query-gpu=$fields --format=csv,noheader,nounits; }
# 0000:1c:00.0 as nvidia-smi spells it: 00000000:1C:00.0
bus_id() { printf '%08X:%s' "0x${1%%:*}" "$(printf %s "${1#*:}" | tr '[:lower:]' '[:upper:]')"; }
# gpu ADDRESS: prints its row, or what nvidia-smi says instead
gpu() {
  bus=$(bus_id "$1")
  row=$(query 20 nvidia-smi -i "$bus")
  case $row in
    *", $bus, "*) printf '%s\n' "$row" | lines smi ;;
    *exit=124) put silent "$1 nvidia-smi -i $bus did not answer within 20 s" ;;
    *) put silent "$1 $(printf '%s' "$row" | grep -v '^exit=' | tr -s '\n' ' ')" ;;
  esac
}
mig=no
responsive=no
if has nvidia-smi; then
  answer=$(query 60 nvidia-smi)
  case $answer in *exit=124) ;; *) responsive=yes ;; esac
  # nvidia-smi exits with a code other than 0 for a warning too (14: infoROM is corrupted), so
  # the rows count. One lost GPU makes it give up on all of them: ask for each without a row.
  printf '%s\n' "$answer" | grep -v '^exit=' | lines smi
  devices='' missing=''
  for device in /sys/bus/pci/devices/*; do
    [ "$(cat "$device/vendor")" = 0x10de ] || continue
    case $(cat "$device/class") in 0x0300*|0x0302*) ;; *) continue ;; esac
    slot=${device##*/}
    # those of virtual machines, and those that the driver is told to leave out
    [ ! -e "$device/physfn" ] || continue
    case $(readlink "$device/driver") in */nvidia | '') ;; *) continue ;; esac
    ! grep -qsE '^GPU Excluded:[[:space:]]*Yes' "/proc/driver/nvidia/gpus/$slot/information" ||
      continue
    devices="$devices $slot"
    case $answer in *", $(bus_id "$slot"), "*) ;; *) missing="$missing $slot" ;; esac
  done
  if [ $responsive = no ]; then put smi_error "nvidia-smi did not answer within 60 s"
  elif [ -n "$missing" ] || [ -z "$devices" ]; then
    printf '%s\n' "$answer" | grep -v '^exit=\|, GPU-' | lines smi_error
  fi
  # side by side: each may take its whole time
  details=$(for slot in $missing; do gpu "$slot" & done; wait)
  if [ -n "$details" ]; then printf '%s\n' "$details"; fi
  # a GPU that needs a reset may say so in the place of its MIG mode, too
  case $answer$details in *', Enabled,'* | *', [GPU '*) mig=yes ;; esac
else put smi_error "nvidia-smi is not installed"
fi

if [ $mig = yes ]; then
  # The list has profile and UUID of each MIG device, the long answer its GPU instance.
  bounded 60 nvidia-smi -L | lines mig
  bounded 60 nvidia-smi -q | sed -n 's/^ *//
    /^GPU [0-9A-F]/p; /^Index /p; /^GPU Instance ID /p; /^Compute Instance ID /p' | lines mig_id
fi

# CUDA starts on no GPU that its NVLink fabric has not admitted. Old drivers know no such field.
if [ $responsive = yes ]; then
  bounded 60 nvidia-smi --format=csv,noheader --query-gpu=uuid,fabric.state,fabric.status |
    grep '^GPU-' | lines fabric
fi

# What DCGM's host engine said last, as gpuboot-dcgm-check left it; nothing where there is none.
for check in health diag; do
  answer=/var/lib/gpuboot/dcgm/$check.tsv
  if [ -r "$answer" ]; then lines "dcgm_$check" <"$answer"; fi
done
put dcgm_clock "$(date +%s)"

if has nvidia-ctk && answer=$(timeout -k 5 60 nvidia-ctk cdi list 2>/dev/null); then
  put cdi_read yes
  printf '%s\n' "$answer" | lines cdi
fi
# The configuration that containerd runs with, not what its files say.
if has crictl; then
  put cri "$(timeout -k 5 30 crictl --config /dev/null --runtime-endpoint unix:///run/containerd/containerd.sock --timeout 25s info 2>/dev/null | tr -d '\n')"
fi
put end ok
