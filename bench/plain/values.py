"""What is the same for every site, as in bench/ansible/group_vars."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GPUBOOT, ANSIBLE = ROOT / "templates", ROOT / "bench/ansible/templates"
SYSCTLS = {
    "net.ipv4.ip_forward": 1,
    "net.bridge.bridge-nf-call-iptables": 1,
    "net.bridge.bridge-nf-call-ip6tables": 1,
    "fs.inotify.max_user_instances": 8192,
    "fs.inotify.max_user_watches": 524288,
}
SYSTEMS = ("debian 12", "ubuntu 22.04", "ubuntu 24.04")
BLACKLIST = [
    "containerd", "cri-tools", "cuda", "docker", "kube", "libcuda", "libnvidia", "libnvsdm",
    "nvidia", "nvlsm",
]  # fmt: skip
CREDENTIALS = (
    "/etc/apt/auth.conf.d/95gpuboot-proxy.conf",
    "/etc/containerd/conf.d/gpuboot-registries.toml",
    "/etc/gpuboot/proxy.env",
)
REGISTRIES = "/etc/containerd/certs.d"
PREREQUISITES = [
    "ca-certificates", "conntrack", "curl", "ethtool", "gnupg", "iproute2", "iptables", "kmod",
    "nftables", "pciutils", "socat", "nvidia-persistenced",
]  # fmt: skip
# what decides besides, in the form of fact.sh
READ = """
for folder in {folders}; do [ -d "$folder" ] || put missing_folder "$folder"; done
for file in {credentials}; do if [ -e "$file" ]; then put old_credentials "$file"; fi; done
awk '$1 !~ /^#/ && $3 == "swap" {{ print "swap\\t" $1 }}' /etc/fstab 2>/dev/null
if [ -e /dev/nvidia-uvm ] || grep -qs nvidia-uvm /proc/devices; then put uvm yes; fi
apt-mark showhold | sed 's/^/hold\\t/'
put disk_kib "$(df -Pk /var/lib | awk 'NR == 2 {{ print $4 }}')"
put smi "$(nvidia-smi -L 2>/dev/null | grep -c 'UUID: GPU-')"
nvidia-ctk --quiet config 2>/dev/null >/run/now.toml &&
  nvidia-ctk --quiet config --set accept-nvidia-visible-devices-envvar-when-unprivileged=false \
    >/run/isolated.toml && cmp -s /run/now.toml /run/isolated.toml && put isolated yes
nvidia-ctk --quiet cdi generate 2>/dev/null >/run/cdi.yaml &&
  cmp -s /run/cdi.yaml /var/run/cdi/nvidia.yaml && put cdi yes
put end ok
"""
ISOLATE = (
    "nvidia-ctk --quiet config --set accept-nvidia-visible-devices-envvar-when-unprivileged=false "
    ">/run/isolated.toml && "
    "install -m 0644 /run/isolated.toml /etc/nvidia-container-runtime/config.toml"
)
CDI = (
    "nvidia-ctk --quiet cdi generate >/run/cdi.yaml && "
    "install -D -m 0644 /run/cdi.yaml /var/run/cdi/nvidia.yaml"
)
