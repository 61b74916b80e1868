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
query() { timeout 60 nvidia-smi "$@" --query-gpu=$fields --format=csv,noheader,nounits 2>&1; }
mig=no
# a GPU that needs a reset may say so in the place of its MIG mode, too
answered() {
  printf '%s\n' "$answer" | lines smi
  case $answer in *', Enabled,'* | *', [GPU '*) mig=yes ;; esac
}
if ! has nvidia-smi; then put smi_error "nvidia-smi is not installed"
elif answer=$(query); then answered
else
  # One lost GPU makes nvidia-smi give up on all of them: ask for each by itself.
  printf '%s\n' "$answer" | lines smi_error
  for device in /sys/bus/pci/devices/*; do
    [ "$(cat "$device/vendor")" = 0x10de ] || continue
    case $(cat "$device/class") in 0x0300*|0x0302*) ;; *) continue ;; esac
    slot=${device##*/}
    bus=$(printf '0000%s' "$slot" | tr '[:lower:]' '[:upper:]')
    if answer=$(query -i "$bus"); then answered
    else put silent "$slot $(printf '%s' "$answer" | tr -s '\n' ' ')"
    fi
  done
fi

if [ $mig = yes ]; then
  # The list has profile and UUID of each MIG device, the long answer its GPU instance.
  timeout 60 nvidia-smi -L 2>&1 | lines mig
  timeout 60 nvidia-smi -q 2>/dev/null | sed -n 's/^ *//
    /^GPU [0-9A-F]/p; /^Index /p; /^GPU Instance ID /p; /^Compute Instance ID /p' | lines mig_id
fi

# CUDA starts on no GPU that its NVLink fabric has not admitted. Old drivers know no such field.
if has nvidia-smi && answer=$(timeout 60 nvidia-smi --format=csv,noheader \
  --query-gpu=uuid,fabric.state,fabric.status 2>/dev/null); then
  printf '%s\n' "$answer" | lines fabric
fi

# What DCGM's host engine said last, as gpuboot-dcgm-check left it; nothing where there is none.
for check in health diag; do
  answer=/var/lib/gpuboot/dcgm/$check.tsv
  if [ -r "$answer" ]; then lines "dcgm_$check" <"$answer"; fi
done
put dcgm_clock "$(date +%s)"

if has nvidia-ctk && answer=$(timeout 60 nvidia-ctk cdi list 2>/dev/null); then
  put cdi_read yes
  printf '%s\n' "$answer" | lines cdi
fi
# The configuration that containerd runs with, not what its files say.
if has crictl; then
  put cri "$(timeout 30 crictl --runtime-endpoint unix:///run/containerd/containerd.sock info 2>/dev/null | tr -d '\n')"
fi
put end ok
